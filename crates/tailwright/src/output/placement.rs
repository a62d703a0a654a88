//! A placement by a model: what everybody sees, and what a correlated day would do to it.

use crate::input::Scene;
use crate::output::json::pretty;
use crate::output::{percent, time, words};
use crate::predicting::{Forecast, Home, Placed, by_priority, policy, server_name};
use crate::terminal::{Align, Table};
use model::{PerStage, Policy};
use serde::Serialize;

/// What people read.
pub(crate) fn text(scene: &Scene, placed: &Placed) -> String {
    let mut text = format!(
        "{}; placed by {} in {}.\n\n",
        answer(scene, placed),
        placed.model.name(),
        time(placed.elapsed.as_secs_f64())
    );
    text.push_str(&table(scene, placed));
    for (tenant, refusal) in &placed.packing.refused {
        let spec = &scene.tenants[*tenant].spec;
        text.push_str(&format!(
            "\nnot admitted: {} ({}): {}",
            spec.name,
            spec.slo,
            super::admission::why(scene, refusal)
        ));
    }
    text.push('\n');
    text.push_str(&risks(scene, placed).into_iter().map(|line| line + "\n").collect::<String>());
    text
}

/// The answer in a sentence.
pub(crate) fn answer(scene: &Scene, placed: &Placed) -> String {
    let (all, refused) = (scene.tenants.len(), placed.packing.refused.len());
    format!(
        "{} of {all} workloads fit on {} (the loads alone need {})",
        all - refused,
        words::count(placed.packing.servers.len(), "server"),
        placed.packing.lower_bound
    )
}

/// What the promise rests on, and what happens without it.
pub(crate) fn risks(scene: &Scene, placed: &Placed) -> Vec<String> {
    let forecasts: Vec<&Forecast> = placed.servers.iter().flatten().collect();
    let slo = |f: &Forecast| scene.tenants[f.bound.tenant].spec.slo.latency.0;
    let summary = |latency: &dyn Fn(&Forecast) -> f64| {
        let within = forecasts.iter().filter(|f| latency(f) <= slo(f)).count();
        let ratio = |f: &Forecast| latency(f) / slo(f);
        let worst = forecasts.iter().max_by(|a, b| ratio(a).total_cmp(&ratio(b)));
        let worst = worst.map_or_else(String::new, |f| {
            let name = &scene.tenants[f.bound.tenant].spec.name;
            let latency = if latency(f).is_finite() { time(latency(f)) } else { "no bound".to_owned() };
            format!("; the worst is {name} with {latency}, {} of its SLO", percent(ratio(f)))
        });
        format!("{within} of {} within their SLO{worst}", forecasts.len())
    };
    let model = placed.model;
    let together = |f: &Forecast| f.bursts_together.unwrap_or(f64::INFINITY);
    vec![
        format!("{}: {} ({})", model.name(), summary(&|f| f.bound.seconds()), model.assumption()),
        format!("bursts together: {} (a correlated day: all worst bursts end at once)", summary(&together)),
        format!("worst case: {} (whatever the burst curves allow)", summary(&|f| f.worst_case.seconds())),
    ]
}

fn table(scene: &Scene, placed: &Placed) -> String {
    let mut table = Table::new(&[
        ("  workload", Align::Left),
        ("prio", Align::Right),
        ("SLO", Align::Left),
        (placed.model.name(), Align::Right),
        ("slack", Align::Right),
        ("bursts together", Align::Right),
        ("worst case", Align::Right),
    ]);
    for forecast in placed.servers.iter().flat_map(|forecasts| by_priority(forecasts)) {
        table.row(row(scene, &forecast));
    }
    let rendered = table.render();
    let mut lines = rendered.lines();
    let mut text = format!("{}\n", lines.next().unwrap_or_default());
    for (number, forecasts) in placed.servers.iter().enumerate() {
        let count = words::count(forecasts.len(), "workload");
        text.push_str(&format!(
            "{}: {count}; mean load {}\n",
            server_name(scene, number),
            load(scene, forecasts)
        ));
        for line in lines.by_ref().take(forecasts.len()) {
            text.push_str(line);
            text.push('\n');
        }
    }
    text
}

fn row(scene: &Scene, forecast: &Forecast) -> Vec<String> {
    let spec = &scene.tenants[forecast.bound.tenant].spec;
    let seconds = |s: f64| if s.is_finite() { time(s) } else { "none".to_owned() };
    vec![
        format!("  {}", spec.name),
        forecast.bound.priority.to_string(),
        spec.slo.to_string(),
        super::bounds::latency(&forecast.bound),
        percent(1.0 - forecast.bound.seconds() / spec.slo.latency.0),
        forecast.bursts_together.map_or_else(|| "none".to_owned(), time),
        seconds(forecast.worst_case.seconds()),
    ]
}

fn load(scene: &Scene, forecasts: &[Forecast]) -> String {
    let of = |f: &Forecast, stage| scene.tenants[f.bound.tenant].traffic.utilisation()[stage];
    let sums = PerStage::from_fn(|stage| forecasts.iter().map(|f| of(f, stage)).sum::<f64>());
    words::by_stage(sums.iter().map(|(stage, load)| (stage, *load)))
}

#[derive(Serialize)]
struct Document<'a> {
    servers_used: usize,
    servers_lower_bound: usize,
    workloads_admitted: usize,
    model: &'a str,
    assumption: &'a str,
    elapsed_s: f64,
    forecasts: Vec<Entry<'a>>,
    #[serde(flatten)]
    policy: Policy,
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    server: String,
    bound_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate_s: Option<f64>,
    bursts_together_s: Option<f64>,
    worst_case_s: Option<f64>,
}

/// The placement as one JSON object, which is itself a policy file.
pub(crate) fn json(scene: &Scene, placed: &Placed) -> String {
    let servers = placed.servers.iter().enumerate();
    let forecasts = servers.flat_map(|(number, all)| all.iter().map(move |forecast| (number, forecast)));
    pretty(&Document {
        servers_used: placed.packing.servers.len(),
        servers_lower_bound: placed.packing.lower_bound,
        workloads_admitted: scene.tenants.len() - placed.packing.refused.len(),
        model: placed.model.name(),
        assumption: placed.model.assumption(),
        elapsed_s: placed.elapsed.as_secs_f64(),
        forecasts: forecasts.map(|(number, forecast)| entry(scene, number, forecast)).collect(),
        policy: policy_of(scene, placed),
    })
}

fn entry<'a>(scene: &'a Scene, server: usize, forecast: &Forecast) -> Entry<'a> {
    Entry {
        name: &scene.tenants[forecast.bound.tenant].spec.name,
        server: server_name(scene, server),
        bound_s: forecast.bound.latency.ok().map(|p| p.bound),
        estimate_s: forecast.bound.latency.ok().and_then(|p| p.estimate).map(|e| e.latency),
        bursts_together_s: forecast.bursts_together,
        worst_case_s: forecast.worst_case.latency.ok().map(|p| p.bound),
    }
}

/// The placement as the document that enforcing and simulating take.
fn policy_of(scene: &Scene, placed: &Placed) -> Policy {
    let mut homes: Vec<Option<Result<Home, String>>> = vec![None; scene.tenants.len()];
    for (server, forecasts) in placed.servers.iter().enumerate() {
        for f in forecasts {
            let priority = PerStage::from_fn(|_| f.bound.priority);
            homes[f.bound.tenant] = Some(Ok(Home { server, priority, bound: f.bound.seconds() }));
        }
    }
    for (tenant, refusal) in &placed.packing.refused {
        homes[*tenant] = Some(Err(super::admission::why(scene, refusal)));
    }
    policy(scene, placed.model.name(), &homes)
}

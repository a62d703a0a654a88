//! A placement by a model: the latencies of all workloads, and those where all bursts meet.

use crate::plan::table::{by_server, not_admitted};
use cli::terminal::{Align, TextTable, answered_after_s};
use model::PerStage;
use operation::document::pretty;
use operation::text::{by_stage, percent, time};
use plan::prediction::{
    ModelPlacement, PredictionProblem, SloCalibrationReport, WorkloadForecast, by_priority, server_name,
};
use units::plural;

/// The table for people, server by server, and what the predictions assume.
pub(crate) fn text(problem: &PredictionProblem, placed: &ModelPlacement) -> String {
    let mut text = format!(
        "{}; placed by {} in {}.\n\n",
        answer(problem, placed),
        placed.model.name(),
        time(answered_after_s())
    );
    text.push_str(&table(problem, placed));
    text.push('\n');
    text.push_str(&not_admitted(&placed.refused(problem)));
    text.push_str(&risks(problem, placed).into_iter().map(|line| line + "\n").collect::<String>());
    text
}

/// Says in a sentence who fits where.
pub(crate) fn answer(problem: &PredictionProblem, placed: &ModelPlacement) -> String {
    let all = problem.cluster.workloads.len();
    let refused = placed.packing.refused.len();
    format!(
        "{} of {} fit on {} (mean load needs at least {})",
        all - refused,
        plural(all, "workload"),
        plural(placed.packing.servers.len(), "server"),
        placed.packing.lower_bound
    )
}

/// Describes the assumptions of the predictions, and the consequences if they do not hold.
pub(crate) fn risks(problem: &PredictionProblem, placed: &ModelPlacement) -> Vec<String> {
    let forecasts: Vec<&WorkloadForecast> = placed.servers.iter().flatten().collect();
    let model = placed.model;
    let by_model = within_slo(problem, &forecasts, |forecast| forecast.bound.seconds());
    let mut risks = vec![format!("{}: {by_model} ({})", model.name(), model.row().assumption)];
    risks.extend(placed.calibration(problem).iter().flat_map(SloCalibrationReport::sentences));
    if forecasts.iter().any(|forecast| forecast.worst_case.is_none()) {
        // Interrupted before all of them were computed.
        return risks;
    }
    let or_infinite = |latency: Option<f64>| latency.unwrap_or(f64::INFINITY);
    let together = within_slo(problem, &forecasts, |forecast| or_infinite(forecast.bursts_together));
    let worst_case = within_slo(problem, &forecasts, |forecast| or_infinite(forecast.worst_case_s()));
    risks.push(format!(
        "bursts together: {together} (the longest replay; in one of them all worst bursts end at once)"
    ));
    risks.push(format!("worst case: {worst_case} (whatever the burst curves allow)"));
    risks
}

/// Counts the forecasts within their SLO by one of their latencies, and finds the worst.
fn within_slo(
    problem: &PredictionProblem,
    forecasts: &[&WorkloadForecast],
    latency: impl Fn(&WorkloadForecast) -> f64,
) -> String {
    let mut within = 0;
    let mut worst: Option<(f64, &WorkloadForecast)> = None;
    for &forecast in forecasts {
        let slo = problem.spec(forecast.bound.workload).slo.latency.0;
        let seconds = latency(forecast);
        let used = latency(forecast) / slo;
        within += usize::from(seconds <= slo);
        if worst.is_none_or(|(most, _)| used.total_cmp(&most).is_ge()) {
            worst = Some((used, forecast));
        }
    }
    let worst = worst.map_or_else(String::new, |(used, forecast)| {
        let name = &problem.spec(forecast.bound.workload).name;
        let seconds = latency(forecast);
        let latency = if seconds.is_finite() { time(seconds) } else { "no bound".to_owned() };
        format!("; the worst is {name} with {latency}, {} of its SLO", percent(used))
    });
    format!("{within} of {} within their SLO{worst}", forecasts.len())
}

fn table(problem: &PredictionProblem, placed: &ModelPlacement) -> String {
    let mut table = TextTable::new(&[
        ("  workload", Align::Left),
        ("prio", Align::Right),
        ("SLO", Align::Left),
        (placed.model.name(), Align::Right),
        ("slack", Align::Right),
        ("bursts together", Align::Right),
        ("worst case", Align::Right),
    ]);
    for forecast in placed.servers.iter().flat_map(|forecasts| by_priority(forecasts)) {
        table.row(row(problem, &forecast));
    }
    let headings = placed.servers.iter().enumerate().map(|(number, forecasts)| {
        let count = plural(forecasts.len(), "workload");
        let name = server_name(problem, number);
        (format!("{name}: {count}; mean load {}", load(problem, forecasts)), forecasts.len())
    });
    let table = table.without_first(&["worst case", "bursts together", "prio"]);
    by_server(&table.answered_by(&[placed.model.name(), "slack"]), headings)
}

fn row(problem: &PredictionProblem, forecast: &WorkloadForecast) -> Vec<String> {
    let spec = problem.spec(forecast.bound.workload);
    let seconds =
        |latency: Option<f64>| latency.filter(|s| s.is_finite()).map_or_else(|| "none".to_owned(), time);
    vec![
        format!("  {}", spec.name),
        forecast.bound.priority.to_string(),
        spec.slo.to_string(),
        crate::bound::text::latency(&forecast.bound),
        percent(1.0 - forecast.bound.seconds() / spec.slo.latency.0),
        seconds(forecast.bursts_together),
        seconds(forecast.worst_case_s()),
    ]
}

fn load(problem: &PredictionProblem, forecasts: &[WorkloadForecast]) -> String {
    let of = |f: &WorkloadForecast, stage| {
        problem.cluster.workloads[f.bound.workload].traffic.utilisation()[stage]
    };
    let sums = PerStage::from_fn(|stage| forecasts.iter().map(|f| of(f, stage)).sum::<f64>());
    by_stage(sums.iter().map(|(stage, load)| (stage, *load)))
}

/// The placement as one JSON object, which is itself a policy file.
pub(crate) fn json(problem: &PredictionProblem, placed: &ModelPlacement) -> String {
    pretty(&placed.document(problem, answered_after_s))
}

//! Decisions on arrivals and departures: as a table, as JSON, as a policy.

use crate::input::Scene;
use crate::input::events::Event;
use crate::output::json::pretty;
use crate::output::{percent, time, words};
use crate::predicting::{self, Admission, Home, Outcome, server_name};
use crate::terminal::{Align, Table};
use model::{Policy, Stage};
use plan::admission::{AdmissionGuarantee, AdmissionRefusal, Breach, BreachCause};
use serde::Serialize;

/// What people read: every decision, then who is there.
pub(crate) fn text(scene: &Scene, admission: &Admission) -> String {
    let refused = admission.refused(scene).len();
    let mut text = format!(
        "{} by {} on {}; {}.\n\n",
        words::count(admission.guarantees.len(), "workload"),
        admission.name.name(),
        servers(scene),
        if refused == 0 { "nobody is refused".to_owned() } else { format!("{refused} refused") }
    );
    text.push_str(&decisions(scene, admission));
    text.push('\n');
    text.push_str(&present(admission));
    text.push_str(&format!("\n{}: {}\n", admission.name.name(), admission.name.assumption()));
    text
}

fn servers(scene: &Scene) -> String {
    match scene.profile {
        None => format!("{} of {}", words::count(scene.count, "link"), scene.network),
        Some(_) => format!("{} of class '{}'", words::count(scene.count, "server"), scene.class),
    }
}

fn decisions(scene: &Scene, admission: &Admission) -> String {
    let mut table = Table::new(&[
        ("event", Align::Left),
        ("decision", Align::Left),
        ("in", Align::Right),
        ("why", Align::Left),
    ]);
    let names = |who: &[usize]| {
        who.iter().map(|&w| scene.tenants[w].spec.name.as_str()).collect::<Vec<_>>().join(" ")
    };
    for decision in &admission.decisions {
        let event = match &decision.event {
            Event::Arrive(who) => format!("arrive {}", names(who)),
            Event::Depart(who) => format!("depart {}", names(&[*who])),
        };
        let (answer, why) = match &decision.outcome {
            Outcome::Accepted(server) => (server_name(scene, *server), String::new()),
            Outcome::Refused(refusal) => ("refused".to_owned(), why(scene, refusal)),
            Outcome::Departed => ("gone".to_owned(), String::new()),
            Outcome::Absent => ("was not there".to_owned(), String::new()),
        };
        table.row(vec![event, answer, time(decision.elapsed.as_secs_f64()), why]);
    }
    table.render()
}

fn present(admission: &Admission) -> String {
    let mut table = Table::new(&[
        ("workload", Align::Left),
        ("server", Align::Right),
        ("prio", Align::Right),
        ("SLO", Align::Left),
        ("bound", Align::Right),
        ("slack", Align::Right),
    ]);
    for guaranteed in &admission.guarantees {
        let slo = guaranteed.slo;
        table.row(vec![
            guaranteed.name.clone(),
            (guaranteed.server + 1).to_string(),
            priority(guaranteed),
            slo.to_string(),
            guaranteed.latency.map_or_else(|_| "none".to_owned(), time),
            guaranteed.latency.map_or_else(|_| String::new(), |l| percent(1.0 - l / slo.latency.0)),
        ]);
    }
    table.render()
}

/// One number, or one per stage where they differ.
fn priority(guaranteed: &AdmissionGuarantee) -> String {
    let priorities: Vec<u32> = guaranteed.priority.iter().map(|(_, p)| *p).collect();
    match priorities[..] {
        [a, b, c] if a == b && b == c => a.to_string(),
        _ => priorities.iter().map(u32::to_string).collect::<Vec<_>>().join("/"),
    }
}

/// Who is where, as the document that enforcing and simulating take.
pub(crate) fn policy(scene: &Scene, admission: &Admission) -> Policy {
    let mut homes: Vec<Option<Result<Home, String>>> = vec![None; scene.tenants.len()];
    let tenant = |name: &str| scene.tenants.iter().position(|tenant| tenant.spec.name == name);
    for guaranteed in &admission.guarantees {
        let home = Home {
            server: guaranteed.server,
            priority: guaranteed.priority,
            bound: guaranteed.latency.unwrap_or(f64::INFINITY),
        };
        homes[tenant(&guaranteed.name).expect("who is there came from the scene")] = Some(Ok(home));
    }
    for (tenant, refusal) in admission.refused(scene) {
        homes[tenant] = Some(Err(why(scene, refusal)));
    }
    predicting::policy(scene, admission.name.name(), &homes)
}

/// Why an arrival was refused, for people.
pub(crate) fn why(scene: &Scene, refusal: &AdmissionRefusal) -> String {
    let Some((server, breach)) = refusal.closest() else { return refusal.to_string() };
    let place =
        if scene.count == 1 { String::new() } else { format!("closest on {}-{}: ", scene.class, server + 1) };
    format!("{place}{}", why_breach(breach))
}

fn why_breach(breach: &Breach) -> String {
    let who =
        if breach.newcomer { breach.workload.clone() } else { format!("{} (there before)", breach.workload) };
    let mut text = match breach.cause {
        BreachCause::Latency { predicted, allowed } => format!(
            "{who} would see {}, {} above its {}",
            time(predicted),
            percent(predicted / allowed - 1.0),
            breach.slo
        ),
        BreachCause::Undefined(undefined) => format!("{who} would have no guarantee: {undefined}"),
    };
    match breach.others {
        0 => {}
        1 => text.push_str("; another one misses its SLO, too"),
        others => text.push_str(&format!("; {others} others miss their SLOs, too")),
    }
    text
}

#[derive(Serialize)]
struct Document<'a> {
    model: &'a str,
    servers: usize,
    link_only: bool,
    admitted: Vec<&'a str>,
    refused: Vec<Refused<'a>>,
    workloads: Vec<Entry<'a>>,
    decisions: Vec<Decided<'a>>,
    sketching_s: f64,
}

#[derive(Serialize)]
struct Refused<'a> {
    name: &'a str,
    reason: String,
}

#[derive(Serialize)]
struct Entry<'a> {
    name: &'a str,
    server: String,
    model: &'a str,
    percentile: f64,
    priority: u32,
    priority_by_stage: [u32; 3],
    bound_s: Option<f64>,
    slo_s: f64,
}

#[derive(Serialize)]
struct Decided<'a> {
    event: &'static str,
    names: Vec<&'a str>,
    accepted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    elapsed_s: f64,
}

/// What machines read.
pub(crate) fn json(scene: &Scene, admission: &Admission) -> String {
    let model = admission.name.name();
    let name = |tenant: usize| scene.tenants[tenant].spec.name.as_str();
    let refused = admission.refused(scene);
    pretty(&Document {
        model,
        servers: scene.count,
        link_only: scene.profile.is_none(),
        admitted: admission.guarantees.iter().map(|g| g.name.as_str()).collect(),
        refused: refused.iter().map(|(t, r)| Refused { name: name(*t), reason: why(scene, r) }).collect(),
        workloads: admission.guarantees.iter().map(|g| entry(scene, model, g)).collect(),
        decisions: admission.decisions.iter().map(|d| decided(scene, d)).collect(),
        sketching_s: admission.sketching.as_secs_f64(),
    })
}

fn entry<'a>(scene: &Scene, model: &'a str, guaranteed: &'a AdmissionGuarantee) -> Entry<'a> {
    Entry {
        name: &guaranteed.name,
        server: server_name(scene, guaranteed.server),
        model,
        percentile: guaranteed.slo.percentile.percent(),
        priority: guaranteed.priority[Stage::NetworkIn],
        priority_by_stage: guaranteed.priority.into_array(),
        bound_s: guaranteed.latency.ok(),
        slo_s: guaranteed.slo.latency.0,
    }
}

fn decided<'a>(scene: &'a Scene, decision: &predicting::Decision) -> Decided<'a> {
    let (event, who) = match &decision.event {
        Event::Arrive(who) => ("arrive", &who[..]),
        Event::Depart(who) => ("depart", std::slice::from_ref(who)),
    };
    let server = match &decision.outcome {
        Outcome::Accepted(server) => Some(server_name(scene, *server)),
        _ => None,
    };
    let reason = match &decision.outcome {
        Outcome::Refused(refusal) => Some(why(scene, refusal)),
        Outcome::Absent => Some("it was not there".to_owned()),
        _ => None,
    };
    Decided {
        event,
        names: who.iter().map(|&w| scene.tenants[w].spec.name.as_str()).collect(),
        accepted: reason.is_none(),
        server,
        reason,
        elapsed_s: decision.elapsed.as_secs_f64(),
    }
}

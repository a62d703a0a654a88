//! Decisions on arrivals and departures, as tables and as JSON.

use cli::terminal::{Align, TextTable, answered_after_s};
use model::Stage;
use operation::Silent;
use operation::document::document;
use operation::text::{percent, time};
use placement::admission::AdmissionGuarantee;
use plan::RefusedWorkload;
use plan::admission::{AdmissionAnswer, AdmissionDecision, AdmissionEvent, AdmissionOutcome};
use plan::prediction::{
    ModelName, PredictionProblem, SloCalibrationReport, report_slo_calibration, server_name,
};
use schemars::JsonSchema;
use serde::Serialize;
use units::plural;

/// The tables for people: every decision, then who is there.
pub(crate) fn text(problem: &PredictionProblem, admission: &AdmissionOutcome) -> String {
    let refused = admission.refused(problem).len();
    let mut text = format!(
        "{} by {} on {}; {}.\n\n",
        plural(admission.guarantees.len(), "workload"),
        admission.procedure.name(),
        servers(problem, admission.servers_used()),
        who_is_refused(refused, admission.refused_again(problem).len())
    );
    text.push_str(&decisions(problem, admission));
    text.push('\n');
    text.push_str(&present(admission));
    text.push_str(&format!("\n{}: {}\n", admission.procedure.name(), admission.procedure.row().assumption));
    for sentence in calibration(problem, admission).iter().flat_map(SloCalibrationReport::sentences) {
        text.push_str(&format!("{sentence}\n"));
    }
    text
}

/// Describes refusals: workloads without a place, and those that asked for a second one.
fn who_is_refused(refused: usize, again: usize) -> String {
    match (refused, again) {
        (0, 0) => "none is refused".to_owned(),
        (_, 0) => format!("{refused} refused"),
        _ => format!("{refused} refused, and {again} a second place while there"),
    }
}

/// The evidence that decisions by the calibrated model rest on.
fn calibration(problem: &PredictionProblem, admission: &AdmissionOutcome) -> Option<SloCalibrationReport> {
    (admission.procedure == ModelName::Calibrated.into()).then(|| report_slo_calibration(problem, &Silent))
}

/// Describes the number of servers in use.
fn servers(problem: &PredictionProblem, used: usize) -> String {
    let of_all = |noun| match used == problem.server().count {
        true => plural(used, noun),
        false => format!("{used} of {}", plural(problem.server().count, noun)),
    };
    match problem.profile() {
        None => format!("{} of {}", of_all("link"), problem.server().network),
        Some(_) => format!("{} of class '{}'", of_all("server"), problem.server().class),
    }
}

fn decisions(problem: &PredictionProblem, admission: &AdmissionOutcome) -> String {
    let mut table = TextTable::new(&[
        ("event", Align::Left),
        ("decision", Align::Left),
        ("in", Align::Right),
        ("why", Align::Left),
    ]);
    let names =
        |who: &[usize]| who.iter().map(|&w| problem.spec(w).name.as_str()).collect::<Vec<_>>().join(" ");
    for decision in &admission.decisions {
        let event = match &decision.event {
            AdmissionEvent::Arrive(who) => format!("arrive {}", names(who)),
            AdmissionEvent::Depart(who) => format!("depart {}", names(&[*who])),
        };
        let (answer, why) = match &decision.answer {
            AdmissionAnswer::Accepted(server) => (server_name(problem, *server), String::new()),
            AdmissionAnswer::Refused(why) => ("refused".to_owned(), why.clone()),
            AdmissionAnswer::Departed => ("gone".to_owned(), String::new()),
            AdmissionAnswer::Absent => ("was not there".to_owned(), String::new()),
        };
        table.row(vec![event, answer, time(decision.elapsed.as_secs_f64()), why]);
    }
    table.answered_by(&["decision", "why"]).render()
}

fn present(admission: &AdmissionOutcome) -> String {
    let mut table = TextTable::new(&[
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
    table.without_first(&["prio"]).answered_by(&["bound", "slack", "server"]).render()
}

/// One number, or one per stage where they differ.
fn priority(guaranteed: &AdmissionGuarantee) -> String {
    let priorities: Vec<u32> = guaranteed.priority.iter().map(|(_, p)| *p).collect();
    match priorities[..] {
        [a, b, c] if a == b && b == c => a.to_string(),
        _ => priorities.iter().map(u32::to_string).collect::<Vec<_>>().join("/"),
    }
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct AdmissionDocument<'a> {
    model: &'a str,
    servers: usize,
    /// The servers that have a workload in the end.
    servers_used: usize,
    link_only: bool,
    admitted: Vec<&'a str>,
    refused: Vec<RefusedDocument>,
    workloads: Vec<AdmittedDocument<'a>>,
    decisions: Vec<DecisionDocument<'a>>,
    /// Wall time of making sketches of the traces, seconds.
    sketching_s: f64,
    /// Wall time from the start of the program to this answer, seconds.
    elapsed_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    slo_calibration: Option<SloCalibrationReport>,
}

#[derive(Serialize, JsonSchema)]
struct RefusedDocument {
    name: String,
    reason: String,
}

#[derive(Serialize, JsonSchema)]
struct AdmittedDocument<'a> {
    name: &'a str,
    server: String,
    model: &'a str,
    percentile: f64,
    priority: u32,
    priority_by_stage: [u32; 3],
    bound_s: Option<f64>,
    slo_s: f64,
}

#[derive(Serialize, JsonSchema)]
struct DecisionDocument<'a> {
    event: &'static str,
    names: Vec<&'a str>,
    accepted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Wall time of this decision alone, seconds.
    elapsed_s: f64,
}

/// One object: who is where, and every decision.
pub(crate) fn json(problem: &PredictionProblem, admission: &AdmissionOutcome) -> String {
    let model = admission.procedure.name();
    let slo_calibration = calibration(problem, admission);
    document(&AdmissionDocument {
        model,
        servers: problem.server().count,
        servers_used: admission.servers_used(),
        link_only: problem.profile().is_none(),
        admitted: admission.guarantees.iter().map(|g| g.name.as_str()).collect(),
        refused: admission.refused(problem).into_iter().map(refused).collect(),
        workloads: admission.guarantees.iter().map(|g| entry(problem, model, g)).collect(),
        decisions: admission.decisions.iter().map(|d| decided(problem, d)).collect(),
        sketching_s: admission.sketching.as_secs_f64(),
        elapsed_s: answered_after_s(),
        slo_calibration,
    })
}

fn refused(refused: RefusedWorkload) -> RefusedDocument {
    RefusedDocument { name: refused.workload, reason: refused.reason }
}

fn entry<'a>(
    problem: &PredictionProblem,
    model: &'a str,
    guaranteed: &'a AdmissionGuarantee,
) -> AdmittedDocument<'a> {
    AdmittedDocument {
        name: &guaranteed.name,
        server: server_name(problem, guaranteed.server),
        model,
        percentile: guaranteed.slo.percentile.percent(),
        priority: guaranteed.priority[Stage::NetworkIn],
        priority_by_stage: guaranteed.priority.into_array(),
        bound_s: guaranteed.latency.ok(),
        slo_s: guaranteed.slo.latency.0,
    }
}

fn decided<'a>(problem: &'a PredictionProblem, decision: &AdmissionDecision) -> DecisionDocument<'a> {
    let (event, who) = match &decision.event {
        AdmissionEvent::Arrive(who) => ("arrive", &who[..]),
        AdmissionEvent::Depart(who) => ("depart", std::slice::from_ref(who)),
    };
    let server = match &decision.answer {
        AdmissionAnswer::Accepted(server) => Some(server_name(problem, *server)),
        _ => None,
    };
    let reason = match &decision.answer {
        AdmissionAnswer::Refused(why) => Some(why.clone()),
        AdmissionAnswer::Absent => Some("it was not there".to_owned()),
        _ => None,
    };
    DecisionDocument {
        event,
        names: who.iter().map(|&w| problem.spec(w).name.as_str()).collect(),
        accepted: reason.is_none(),
        server,
        reason,
        elapsed_s: decision.elapsed.as_secs_f64(),
    }
}

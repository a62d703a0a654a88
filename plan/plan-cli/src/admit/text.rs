//! Decisions on arrivals and departures, as tables and as JSON.

use cli::terminal::{Align, TextTable, answered_after_s};
use operation::document::document;
use operation::text::{percent, time};
use placement::admission::AdmissionGuarantee;
use plan::admission::{AdmissionAnswer, AdmissionEvent, AdmissionOutcome};
use plan::prediction::{PredictionProblem, SloCalibrationReport, server_name};
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
    for sentence in admission.calibration(problem).iter().flat_map(SloCalibrationReport::sentences) {
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

/// One object: who is where, and every decision.
pub(crate) fn json(problem: &PredictionProblem, admission: &AdmissionOutcome) -> String {
    document(&admission.document(problem, answered_after_s))
}

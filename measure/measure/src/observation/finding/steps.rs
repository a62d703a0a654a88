//! What to do about a cause: a command to paste, or a step in words.

use crate::observation::finding::answer::{Culprit, FindingInput, NextStep};
use crate::observation::finding::rows::{Step, row_of};
use observe::Cause;
use std::collections::BTreeSet;

/// The most processes of a server that a command names.
const PROCESSES_MAX: usize = 64;

/// The next step about a cause.
pub(super) fn next_step(cause: Cause, culprit: Option<&Culprit>, input: &FindingInput<'_>) -> NextStep {
    let ports = joined(input.asked.ports.iter());
    let processes = &input.report.processes;
    match (row_of(cause).step, culprit) {
        // The kernel needs its threads, and their work is that of others.
        (Step::DemoteOrFifo, Some(Culprit::Process { pid, further: 0, .. }))
            if !processes.contains(pid) && !(input.is_kernel_thread)(*pid) =>
        {
            experiment(&format!("demote={pid}"), processes, &ports)
        }
        (Step::DemoteOrFifo, _) => experiment("fifo", processes, &ports),
        (Step::Knob(_), Some(Culprit::LargeAnswers { .. }))
        | (Step::Words(_), Some(Culprit::LargeAnswers { .. })) => {
            NextStep::Words("serve large answers apart, or send them in pieces".to_owned())
        }
        (Step::Words(_), Some(Culprit::Client { address, .. })) => {
            NextStep::Words(format!("limit what {address} sends, or give the server more workers"))
        }
        (Step::Knob(knob), _) => experiment(knob, processes, &ports),
        (Step::Block, _) => NextStep::Command("tailwright observe --block --duration 10s".to_owned()),
        (Step::Words(words), _) => {
            let pid = processes.first().map_or("PID".to_owned(), u32::to_string);
            NextStep::Words(words.replace("PID", &pid))
        }
    }
}

/// The next step where no request was seen.
pub(super) fn step_without_requests(input: &FindingInput<'_>) -> NextStep {
    let ports = joined(input.asked.ports.iter());
    if !input.is_listening {
        return NextStep::Words(format!(
            "start the server or give its port: no socket of this machine listens at port {ports}"
        ));
    }
    if input.report.counts.unseen_reads > 0 {
        return NextStep::Words(
            "let the server use plain reads, without MPTCP, splice or sockmap".to_owned(),
        );
    }
    if input.asked.share < 1.0 {
        return NextStep::Words("choose a larger --share: perhaps no connection was chosen".to_owned());
    }
    NextStep::Words(format!("send requests to port {ports} while it is observed, or observe for longer"))
}

/// An experiment with a knob, whose default value is tried unless it has one.
fn experiment(knob: &str, processes: &BTreeSet<u32>, ports: &str) -> NextStep {
    let pids = match processes.len() {
        0 => "PID".to_owned(),
        _ => joined(processes.iter().take(PROCESSES_MAX)),
    };
    NextStep::Command(format!("tailwright experiment {knob} --pid {pids} --port {ports}"))
}

fn joined<'a, T: ToString + 'a>(parts: impl Iterator<Item = &'a T>) -> String {
    parts.map(T::to_string).collect::<Vec<_>>().join(",")
}

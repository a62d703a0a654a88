//! The machine's view of a plan: the policy with a summary around it.

use crate::files;
use crate::input::Problem;
use crate::output::comparison::Compared;
use crate::planning::{Planned, policy_of};
use model::{OperationError, Policy};
use serde::Serialize;
use std::path::Path;
use std::time::Duration;

/// How long a run took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// From the start of the program to the plan.
    pub(crate) elapsed: Duration,
    /// Reading traces, or finding what was read before.
    pub(crate) characterise: Duration,
}

#[derive(Serialize)]
struct Document<'a> {
    servers_used: usize,
    servers_lower_bound: usize,
    servers_lower_bound_fractional: f64,
    workloads_admitted: usize,
    elapsed_s: f64,
    cpu_s: f64,
    characterise_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    servers_changed: Option<&'a [String]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    compared: &'a [Compared],
    #[serde(flatten)]
    policy: Policy,
}

/// The plan as one JSON object, which is itself a policy file.
pub(crate) fn document(
    problem: &Problem,
    planned: &Planned,
    timing: Timing,
    compared: &[Compared],
) -> String {
    let document = Document {
        servers_used: planned.placement.servers.len(),
        servers_lower_bound: planned.lower_bound.servers,
        servers_lower_bound_fractional: planned.lower_bound.fractional,
        workloads_admitted: planned.admitted(),
        elapsed_s: timing.elapsed.as_secs_f64(),
        cpu_s: planned.cpu.as_secs_f64(),
        characterise_s: timing.characterise.as_secs_f64(),
        servers_changed: planned.changed.as_deref(),
        compared,
        policy: policy_of(problem, planned),
    };
    pretty(&document)
}

/// JSON with a line end.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data with text keys serialises");
    text.push('\n');
    text
}

/// Writes a result file: whole, or not at all.
pub(crate) fn write(path: &Path, text: &str, what: &str) -> Result<(), OperationError> {
    files::write_whole(path, text.as_bytes()).map_err(|error| cannot(path, what, &error))
}

/// Whether a result file can be written, before it takes long to have a result.
pub(crate) fn may_write(path: &Path, what: &str) -> Result<(), OperationError> {
    files::may_write(path).map_err(|error| cannot(path, what, &error))
}

fn cannot(path: &Path, what: &str, error: &std::io::Error) -> OperationError {
    OperationError::machine(format_args!("{}: cannot write the {what}: {error}", path.display()))
        .hint("check that the folder exists, its permissions and the space left")
}

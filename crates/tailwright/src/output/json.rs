//! The machine's view of a plan: the policy with a summary around it.

use model::Policy;
use serde::Serialize;
use workflow::planning::{MethodComparison, MovedWorkload, PlanRun, policy_of};

#[derive(Serialize)]
struct PlanDocument<'a> {
    servers_used: usize,
    servers_lower_bound: usize,
    servers_lower_bound_fractional: f64,
    workloads_admitted: usize,
    elapsed_s: f64,
    cpu_s: f64,
    characterise_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    servers_changed: Option<&'a [String]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workloads_moved: Option<&'a [MovedWorkload]>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    compared: &'a [MethodComparison],
    #[serde(flatten)]
    policy: Policy,
}

/// The plan as one JSON object, which is itself a policy file.
pub(crate) fn plan(run: &PlanRun) -> String {
    let planned = &run.planned;
    pretty(&PlanDocument {
        servers_used: planned.placement.servers.len(),
        servers_lower_bound: planned.lower_bound.servers,
        servers_lower_bound_fractional: planned.lower_bound.fractional,
        workloads_admitted: planned.admitted(),
        elapsed_s: run.elapsed.as_secs_f64(),
        cpu_s: planned.cpu.as_secs_f64(),
        characterise_s: run.characterise.as_secs_f64(),
        servers_changed: planned.changed.as_ref().map(|changed| changed.servers.as_slice()),
        workloads_moved: planned.changed.as_ref().map(|changed| changed.moved.as_slice()),
        compared: &run.compared,
        policy: policy_of(&run.problem, planned),
    })
}

/// JSON with a line end.
pub(crate) fn pretty(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("plain data with text keys serialises");
    text.push('\n');
    text
}

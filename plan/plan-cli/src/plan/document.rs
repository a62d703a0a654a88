//! The JSON document of a plan: the policy, with figures of the search.

use cli::terminal::answered_after_s;
use model::Policy;
use operation::document::{DocumentFormat, pretty, schema_of};
use plan::planning::{MethodComparison, MovedWorkload, PlanRun, policy_of};
use schemars::JsonSchema;
use serde::Serialize;

/// Policy files as `plan`, `plan --model` and `admit -o` write them.
#[derive(Serialize, JsonSchema)]
#[serde(untagged)]
#[allow(dead_code, reason = "only its schema is used")]
enum PolicyFile<'a> {
    Plan(PlanDocument<'a>),
    Placement(super::placement::PlacementDocument<'a>),
    Policy(Policy),
}

/// Returns the format of policy files, which several verbs write.
pub fn policy_format() -> DocumentFormat {
    let mut schema = schema_of::<PolicyFile>();
    schema.insert("title".to_owned(), "policy".into());
    DocumentFormat { name: "policy", schema }
}

/// A policy, with what is said of the plan that it comes from.
#[derive(Serialize, JsonSchema)]
pub struct PlanDocument<'a> {
    #[serde(flatten)]
    policy: Policy,
    /// Number of servers with workloads.
    servers_used: usize,
    /// No plan needs fewer servers.
    servers_lower_bound: usize,
    /// Lower bound before it is rounded up.
    servers_lower_bound_fractional: f64,
    /// Number of workloads with a guarantee.
    workloads_admitted: usize,
    /// Wall time from the start of the program to this answer, seconds.
    elapsed_s: f64,
    /// CPU time of placement, limits and lower bound, seconds.
    cpu_s: f64,
    /// Wall time of reading the traces, seconds.
    characterise_s: f64,
    /// With --keep: the servers on which something is not as the policy had it.
    #[serde(skip_serializing_if = "Option::is_none")]
    servers_changed: Option<&'a [String]>,
    /// With --keep: the workloads that could not stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    workloads_moved: Option<&'a [MovedWorkload]>,
    /// With --compare: results of other methods.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    compared: &'a [MethodComparison],
}

/// The plan as one JSON object, which is itself a policy file.
pub fn plan(run: &PlanRun) -> String {
    let planned = &run.planned;
    pretty(&PlanDocument {
        policy: policy_of(&run.problem, planned),
        servers_used: planned.placement.servers.len(),
        servers_lower_bound: planned.lower_bound.servers,
        servers_lower_bound_fractional: planned.lower_bound.fractional,
        workloads_admitted: planned.admitted(),
        elapsed_s: answered_after_s(),
        cpu_s: planned.cpu.as_secs_f64(),
        characterise_s: run.characterise.as_secs_f64(),
        servers_changed: planned.changed.as_ref().map(|changed| changed.servers.as_slice()),
        workloads_moved: planned.changed.as_ref().map(|changed| changed.moved.as_slice()),
        compared: &run.compared,
    })
}

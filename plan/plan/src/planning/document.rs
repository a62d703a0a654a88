//! The document of a plan: the policy, with figures of the search.

use crate::planning::compare::MethodComparison;
use crate::planning::fleet::FleetPrices;
use crate::planning::kept::MovedWorkload;
use crate::planning::policy::policy_of;
use crate::planning::request::PlanRun;
use crate::planning::survival::PlanSurvival;
use model::Policy;
use schemars::JsonSchema;
use serde::Serialize;

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
    /// Prices, if servers have prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    fleet: Option<&'a FleetPrices>,
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
    /// With --survive: what the plan does when servers fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    survival: Option<&'a PlanSurvival>,
    /// With --compare: results of other methods.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    compared: &'a [MethodComparison],
}

impl PlanRun {
    /// Returns the plan as a document, which is itself a policy file; `elapsed_s` is the wall time of the whole run.
    pub fn document(&self, elapsed_s: f64) -> PlanDocument<'_> {
        let planned = &self.planned;
        PlanDocument {
            policy: policy_of(&self.problem, planned),
            servers_used: planned.placement.servers.len(),
            servers_lower_bound: planned.lower_bound.servers,
            servers_lower_bound_fractional: planned.lower_bound.fractional,
            fleet: planned.fleet.as_ref(),
            workloads_admitted: planned.admitted(),
            elapsed_s,
            cpu_s: planned.cpu.as_secs_f64(),
            characterise_s: self.characterise.as_secs_f64(),
            servers_changed: planned.changed.as_ref().map(|changed| changed.servers.as_slice()),
            workloads_moved: planned.changed.as_ref().map(|changed| changed.moved.as_slice()),
            survival: self.survival.as_ref(),
            compared: &self.compared,
        }
    }
}

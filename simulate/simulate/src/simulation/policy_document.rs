//! The document of a simulated policy.

use crate::simulation::policy::{PolicySimulation, SimulatedBound};
use model::Policy;
use scenario::server::WorkloadOutcome;
use schemars::JsonSchema;
use serde::Serialize;

/// A simulation of every server of a policy: the latencies of the workloads beside their bounds.
#[derive(Serialize, JsonSchema)]
pub struct PolicySimulationDocument<'a> {
    policy: &'a str,
    seed: u64,
    replications: usize,
    /// Servers to which the bounds of the policy do not apply, and why: --without-bounds accepts that, or the policy is of version 1 and for several channels.
    #[serde(skip_serializing_if = "Option::is_none")]
    bounds_do_not_apply: Option<&'a str>,
    servers: Vec<SimulatedServerDocument<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct SimulatedServerDocument<'a> {
    name: &'a str,
    /// The device time of the best-effort requests that flood the server, seconds; null without such a flood.
    flood_request_s: Option<f64>,
    workloads: Vec<BoundedOutcomeDocument<'a>>,
}

/// Measured latency of a workload, beside its bound.
#[derive(Serialize, JsonSchema)]
struct BoundedOutcomeDocument<'a> {
    #[serde(flatten)]
    outcome: &'a WorkloadOutcome,
    bound_s: Option<f64>,
    longest_s: Option<f64>,
    /// `held`, `broken`, or `exceeded` where an assumption of the bound did not hold; null without a bound, and where one that
    /// does not apply was not exceeded.
    #[schemars(extend("enum" = ["held", "broken", "exceeded", null]))]
    bound: Option<&'static str>,
    /// Why an exceeded bound is not broken; null where it is or was held.
    assumption: Option<&'static str>,
}

impl PolicySimulation {
    /// Returns the simulation as a document.
    pub fn document<'a>(&'a self, policy: &'a Policy, seed: u64) -> PolicySimulationDocument<'a> {
        let mut servers = Vec::new();
        for server in &self.servers {
            let workloads = server.outcomes.iter().zip(&server.bounds);
            servers.push(SimulatedServerDocument {
                name: &server.name,
                flood_request_s: self.flood_of(&server.name),
                workloads: workloads
                    .map(|(outcome, bound)| BoundedOutcomeDocument {
                        outcome,
                        bound_s: bound.map(|bound| bound.bound_s),
                        longest_s: bound.and_then(|bound| bound.longest_s),
                        bound: bound.and_then(|bound| bound_word(&bound)),
                        assumption: bound.and_then(|bound| bound.assumption()),
                    })
                    .collect(),
            });
        }
        PolicySimulationDocument {
            policy: &policy.policy_name,
            seed,
            replications: self.replications,
            bounds_do_not_apply: self.broken_bounds.as_ref().map(|broken| broken.sentence.as_str()),
            servers,
        }
    }

    /// Returns the device time of the best-effort requests that flood a server, seconds.
    fn flood_of(&self, server: &str) -> Option<f64> {
        let flooded = self.flooded.iter().find(|(name, _)| name == server);
        flooded.map(|(_, seconds)| *seconds)
    }
}

fn bound_word(bound: &SimulatedBound) -> Option<&'static str> {
    match (bound.is_exceeded(), bound.is_broken()) {
        (false, _) if !bound.applies => None,
        (false, _) => Some("held"),
        (true, true) => Some("broken"),
        (true, false) => Some("exceeded"),
    }
}

impl SimulatedBound {
    /// Returns the assumption of an exceeded bound that did not hold.
    pub fn assumption(&self) -> Option<&'static str> {
        match self {
            _ if !self.is_exceeded() || self.is_broken() => None,
            Self { applies: false, .. } => Some("it does not apply to this server"),
            Self { covers_every_request: false, .. } => {
                Some("it is about a percentile, or does not count what the server does not interrupt")
            }
            _ => Some("the requests exceed their limits"),
        }
    }
}

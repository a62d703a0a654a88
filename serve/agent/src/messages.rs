//! Messages between a controller and the agent of a host.

use model::Policy;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use workload::live::{CurveMark, CurveReport};

/// The policies that a host is to enforce, and where their traffic comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Assignment {
    /// Identity of the cluster whose controller assigned this.
    pub cluster: String,
    /// Name of the host in the hosts file.
    pub host: String,
    /// Increases with every change of the assignment; 0 is none.
    pub epoch: u64,
    /// Text of the hosts file, without the clients of `servers`.
    pub hosts: String,
    /// True if the host limits its links, too, and not only its storage.
    #[serde(default)]
    pub network: bool,
    pub servers: Vec<ServerAssignment>,
}

/// The policy of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerAssignment {
    pub server: String,
    /// The server's workloads with their limits.
    pub policy: Policy,
    pub clients: Vec<WorkloadClients>,
}

/// The clients of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WorkloadClients {
    /// Name of the workload in the policy.
    pub workload: String,
    pub clients: Vec<ClientPlace>,
}

/// A source of requests, with the meaning of `[[client]]` in a hosts file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClientPlace {
    /// Host that sends the requests; the server's if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Addresses or prefixes of the client.
    pub address: Vec<String>,
    /// Export or volume that it uses; any if absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub export: Option<String>,
}

/// Use of an agent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum AgentMode {
    /// Says what an assignment would change, and changes nothing.
    #[default]
    Advising,
    /// Enforces assignments.
    Applying,
}

/// Stages that a host can enforce.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Abilities {
    /// Servers of the host before which a proxy answers.
    pub storage: BTreeSet<String>,
    /// True if the host's links can be shaped.
    pub network: bool,
}

/// Proof that a report was made after an answer of the controller, and that no later report has arrived. Reports that a
/// network delays or repeats are thus told from those of a host that has lost its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Ticket {
    /// Run of the controller.
    pub run: u64,
    pub number: u64,
}

/// State of a host as its agent reports it. Versions of agent and controller may differ: both ignore fields that they
/// do not know.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentReport {
    /// Cluster that the agent belongs to; absent before the first answer.
    pub cluster: Option<String>,
    /// From the latest answer.
    pub ticket: Option<Ticket>,
    pub mode: AgentMode,
    pub abilities: Abilities,
    /// Epoch of the assignment that the host enforces, verified; 0 for none.
    pub applied: u64,
    /// The latest assignment that could not be applied.
    pub refused: Option<AssignmentRefusal>,
    /// The latest advice of an agent that only advises.
    pub advice: Option<Advice>,
    /// Counters of the proxies of the host that answered.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub observations: Vec<ServerObservation>,
    /// Sentences about proxies that the agent runs and that need a look; each stays until it is over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Counters of the proxy before a server. They only rise, so that a lost report is made up for by the next.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ServerObservation {
    pub server: String,
    /// Identity of the counters; with another one they have begun at zero.
    pub counters: String,
    /// Number of requests in the proxy's queue.
    pub waiting: u64,
    /// Number of requests at the server.
    pub outstanding: u64,
    pub workloads: Vec<WorkloadCounters>,
    /// Burst curves of what clients sent, after those that the controller has; absent if the proxy is of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<serde_json::Value>")]
    pub curves: Option<CurveReport>,
}

/// Reads and writes of a workload since its proxy began to count, as the proxy saw them.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadCounters {
    /// Name of the workload in the policy.
    pub workload: String,
    /// Number of answered requests.
    pub requests: u64,
    /// Number of bytes read and written.
    pub bytes: u64,
    /// Number of requests that took longer than the SLO of the policy allows.
    pub late: u64,
    /// Number of requests that the limits of the policy did not cover.
    pub beyond_limits: u64,
    /// Total time that requests beyond the limits waited in the proxy, seconds.
    pub beyond_limits_waited_s: f64,
    /// Total latency, seconds.
    pub latency_s: f64,
    /// Numbers of requests by latency: the upper end of a bucket in nanoseconds (`None` for the last), and the number
    /// in it alone. Empty buckets are left out.
    pub latencies: Vec<(Option<u64>, u64)>,
}

/// An assignment that could not be applied; the host enforces the one before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AssignmentRefusal {
    pub epoch: u64,
    pub reason: String,
}

/// Effect that an assignment would have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Advice {
    pub epoch: u64,
    pub text: String,
}

/// Answer of the controller to a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct AgentAnswer {
    pub cluster: String,
    /// Name of the host that the agent's token is for; empty from a controller of an older version.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub host: String,
    pub ticket: Ticket,
    /// The host's assignment, if the report named another epoch.
    pub assignment: Option<Assignment>,
    /// Burst curves that the controller has, by server.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub curves: BTreeMap<String, CurveMark>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_may_differ() {
        // As version 1 of the agent wrote it.
        let old = r#"{ "cluster": null, "ticket": null, "mode": "applying",
            "abilities": { "storage": [], "network": false }, "applied": 3, "refused": null, "advice": null }"#;
        let report: AgentReport = serde_json::from_str(old).expect("a report without observations");
        assert!(report.observations.is_empty() && report.warnings.is_empty());
        // Without observations it is written as before.
        let written: serde_json::Value = serde_json::to_value(&report).expect("plain data");
        assert_eq!(written, serde_json::from_str::<serde_json::Value>(old).expect("JSON"));
        let later = old.replace("\"applied\"", "\"of_a_later_version\": 1, \"applied\"");
        assert_eq!(serde_json::from_str::<AgentReport>(&later).expect("a later report"), report);
    }
}

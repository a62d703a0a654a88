//! Messages between a controller and the agent of a host.

use model::Policy;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The policies that a host is to enforce, and where their traffic comes from.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    pub servers: Vec<ServerAssignment>,
}

/// The policy of one server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerAssignment {
    pub server: String,
    /// The server's workloads with their limits.
    pub policy: Policy,
    pub clients: Vec<WorkloadClients>,
}

/// The clients of a workload.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadClients {
    /// Name of the workload in the policy.
    pub workload: String,
    pub clients: Vec<ClientPlace>,
}

/// A source of requests, with the meaning of `[[client]]` in a hosts file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AgentMode {
    /// Says what an assignment would change, and changes nothing.
    #[default]
    Advising,
    /// Enforces assignments.
    Applying,
}

/// Stages that a host can enforce.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Abilities {
    /// Servers of the host before which a proxy answers.
    pub storage: BTreeSet<String>,
    /// True if the host's links can be shaped.
    pub network: bool,
}

/// Proof that a report was made after an answer of the controller, and that no later report has arrived. Reports that a
/// network delays or repeats are thus told from those of a host that has lost its state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// Run of the controller.
    pub run: u64,
    pub number: u64,
}

/// State of a host as its agent reports it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
}

/// An assignment that could not be applied; the host enforces the one before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AssignmentRefusal {
    pub epoch: u64,
    pub reason: String,
}

/// Effect that an assignment would have.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Advice {
    pub epoch: u64,
    pub text: String,
}

/// Answer of the controller to a report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentAnswer {
    pub cluster: String,
    pub ticket: Ticket,
    /// The host's assignment, if the report named another epoch.
    pub assignment: Option<Assignment>,
}

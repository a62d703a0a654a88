//! Bodies of requests and answers.

use agent::{Advice, AgentMode, ClientPlace};
use controller::{
    ClusterState, Decision, DecisionAnswer, RecordedEvent, Role, ServerView, Standing, TokenRecord,
    WorkloadState,
};
use serde::{Deserialize, Serialize};

/// A request for a guarantee.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadQuestion {
    /// Tenant, for operators; otherwise that of the token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    pub name: String,
    /// `99.9% < 20ms`.
    pub slo: String,
    /// Hash of a trace that was sent before.
    pub trace: String,
    pub clients: Vec<ClientRequest>,
}

/// A client of a workload.
pub type ClientRequest = ClientPlace;

/// A trace that was read.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TraceDocument {
    /// By which requests name it.
    pub trace: String,
    /// Number of requests.
    pub requests: u64,
    /// Classes of servers that it was read for.
    pub classes: Vec<String>,
}

/// Answer to a request.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DecisionDocument {
    /// Position in the history; absent for a question without commitment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<u64>,
    pub tenant: String,
    pub name: String,
    /// `admitted`, `refused`, `removed` or `withdrawn`.
    pub answer: String,
    /// Reason, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The workload as admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadDocument>,
}

/// An admitted workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WorkloadDocument {
    pub tenant: String,
    pub name: String,
    pub slo: String,
    pub server: String,
    /// Bound on its latency by the latest policy of its server, seconds.
    pub bound_s: f64,
    /// `enforced`, `pending`, `advised` or `gone`. A bound is promised while it is `enforced`.
    pub standing: String,
    /// Statements that the bound rests on and that the cluster does not enforce.
    pub assumptions: Vec<String>,
    /// Derivation of the bound when it was admitted; only for one workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derivation: Option<serde_json::Value>,
}

/// Decisions, oldest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct DecisionPage {
    pub decisions: Vec<DecisionDocument>,
    /// Position after which the next page begins; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Events, oldest first.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct EventPage {
    pub events: Vec<RecordedEvent>,
    /// Position after which the next page begins; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A server.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ServerDocument {
    pub server: String,
    pub class: String,
    pub host: String,
    /// Number of workloads by the latest policy.
    pub workloads: usize,
    /// True if its hosts enforce the latest policy.
    pub settled: bool,
}

/// The agent of a host.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct AgentDocument {
    pub host: String,
    /// `advising` or `applying`; absent before its first report.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<AgentMode>,
    /// Servers before which it finds a proxy.
    pub storage: Vec<String>,
    /// True if it limits the network.
    pub network: bool,
    /// Epoch of the assignment that the host enforces; 0 for none.
    pub applied: u64,
    /// Epoch of its latest assignment.
    pub wanted: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub advice: Option<Advice>,
}

/// A token to issue.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TokenRequest {
    pub name: String,
    #[serde(flatten)]
    pub role: Role,
}

/// A new token, which is shown once.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct IssuedToken {
    pub name: String,
    pub token: String,
}

/// A token without its secret.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct TokenDocument {
    pub name: String,
    #[serde(flatten)]
    pub role: Role,
}

pub(crate) fn standing_word(standing: Standing) -> &'static str {
    match standing {
        Standing::Enforced => "enforced",
        Standing::Pending => "pending",
        Standing::Advised => "advised",
        Standing::Gone => "gone",
    }
}

impl WorkloadDocument {
    pub(crate) fn new(state: &ClusterState, id: u64, workload: &WorkloadState) -> Self {
        Self {
            tenant: workload.request.tenant.clone(),
            name: workload.request.name.clone(),
            slo: workload.request.slo.clone(),
            server: workload.server.clone(),
            bound_s: workload.bound_s,
            standing: standing_word(state.standing(id)).to_owned(),
            assumptions: workload.assumptions.clone(),
            derivation: None,
        }
    }

    pub(crate) fn with_derivation(self, derivation: serde_json::Value) -> Self {
        Self { derivation: Some(derivation), ..self }
    }
}

impl DecisionDocument {
    pub(crate) fn new(state: &ClusterState, decision: &Decision) -> Self {
        let (answer, reason, id) = match &decision.answer {
            DecisionAnswer::Admitted { workload } => ("admitted", None, Some(*workload)),
            DecisionAnswer::Refused { reason } => ("refused", Some(reason.clone()), None),
            DecisionAnswer::Removed => ("removed", None, None),
            DecisionAnswer::Withdrawn { reason } => ("withdrawn", Some(reason.clone()), None),
        };
        let workload = id.and_then(|id| Some(WorkloadDocument::new(state, id, state.workload(id)?)));
        Self {
            seq: Some(decision.seq),
            at_ns: Some(decision.at_ns),
            tenant: decision.tenant.clone(),
            name: decision.name.clone(),
            answer: answer.to_owned(),
            reason,
            workload,
        }
    }
}

impl From<ServerView<'_>> for ServerDocument {
    fn from(view: ServerView<'_>) -> Self {
        Self {
            server: view.name.to_owned(),
            class: view.class.to_owned(),
            host: view.host.to_owned(),
            workloads: view.decided.workloads.len(),
            settled: view.is_settled,
        }
    }
}

impl From<&TokenRecord> for TokenDocument {
    fn from(token: &TokenRecord) -> Self {
        Self { name: token.name.clone(), role: token.role.clone() }
    }
}

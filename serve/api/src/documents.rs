//! Bodies of requests and answers.

use agent::{Advice, AgentMode, ClientPlace};
use controller::{
    Alert, ClusterState, CoveredTraffic, Decision, DecisionAnswer, ObservedVerdict, RecordedEvent, Role,
    ServerView, Standing, TokenRecord, WorkloadObservation, WorkloadState,
};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A request for a guarantee.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
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

/// A request for a renewal: a decision on a promise again, by what the clients of a workload sent.
#[derive(Debug, Clone, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RenewalQuestion {
    /// True to give back what they did not use. Otherwise the promise becomes larger, and covers what it did, too.
    #[serde(default)]
    pub give_back: bool,
    /// Least time of observation, seconds: by default 0, and a day where something is given back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_min_s: Option<u64>,
}

/// Changes of alerts, as the controller posts them to webhooks.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct AlertPost {
    /// Identity of the cluster.
    pub cluster: String,
    /// The oldest first. A change can come again.
    pub alerts: Vec<Alert>,
    /// True if changes before these were forgotten, because the receiver took too long.
    pub has_missed: bool,
}

/// A client of a workload.
pub type ClientRequest = ClientPlace;

/// A trace that was read.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TraceDocument {
    /// By which requests name it.
    pub trace: String,
    /// Number of requests.
    pub requests: u64,
    /// Classes of servers that it was read for.
    pub classes: Vec<String>,
}

/// Answer to a request.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DecisionDocument {
    /// Position in the history; absent for a question without commitment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub at_ns: Option<u64>,
    pub tenant: String,
    pub name: String,
    /// `admitted`, `refused`, `removed` or `withdrawn`; for a renewal `renewed`, `kept` or `renewal-withdrawn`.
    pub answer: String,
    /// Reason, and what would help.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The workload as admitted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<WorkloadDocument>,
}

/// An admitted workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadDocument {
    pub tenant: String,
    pub name: String,
    pub slo: String,
    pub server: String,
    /// Bound on its latency by the latest policy of its server, seconds.
    pub bound_s: f64,
    /// `enforced`, `pending`, `advised` or `gone`. A bound is promised while it is `enforced`.
    pub standing: String,
    /// Traffic for which it is promised: `the trace`, `the trace and live traffic` or `live traffic`.
    #[serde(default)]
    pub covers: String,
    /// Position of the latest renewal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub renewed_by: Option<u64>,
    /// True while hosts have not confirmed the latest renewal: the smaller of both promises stands.
    #[serde(default)]
    pub renewing: bool,
    /// Latest certain verdict on its requests in the history.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verdict: Option<ObservedVerdict>,
    /// Statements that the bound rests on and that the cluster does not enforce.
    pub assumptions: Vec<String>,
    /// Derivation of the bound when it was admitted; only for one workload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub derivation: Option<serde_json::Value>,
}

/// Workloads by name.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct WorkloadPage {
    pub workloads: Vec<WorkloadDocument>,
    /// Name after which the next page begins; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Observations by the names of their workloads.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct ObservationPage {
    pub observations: Vec<WorkloadObservation>,
    /// Name after which the next page begins; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
}

/// Decisions, oldest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct DecisionPage {
    pub decisions: Vec<DecisionDocument>,
    /// Position after which the next page begins; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Events, oldest first.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct EventPage {
    pub events: Vec<RecordedEvent>,
    /// Position after which the next page begins; absent on the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// A server.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
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
    /// Warnings of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A token to issue.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct TokenRequest {
    pub name: String,
    #[serde(flatten)]
    pub role: Role,
}

/// A new token, which is shown once.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
pub struct IssuedToken {
    pub name: String,
    pub token: String,
}

/// A token without its secret.
#[derive(Debug, Clone, Serialize, Deserialize, JsonSchema)]
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

pub(crate) fn covers_words(covered: CoveredTraffic) -> &'static str {
    match (covered.has_trace, covered.renewed_by) {
        (_, None) => "the trace",
        (true, Some(_)) => "the trace and live traffic",
        (false, Some(_)) => "live traffic",
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
            covers: covers_words(workload.covered).to_owned(),
            renewed_by: workload.covered.renewed_by,
            renewing: workload.is_renewing(),
            verdict: workload.verdict,
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
        let (reason, id) = match &decision.answer {
            DecisionAnswer::Admitted { workload } => (None, Some(*workload)),
            DecisionAnswer::Removed => (None, None),
            DecisionAnswer::Renewed { workload, reason } => (Some(reason.clone()), Some(*workload)),
            DecisionAnswer::Refused { reason }
            | DecisionAnswer::Withdrawn { reason }
            | DecisionAnswer::Kept { reason }
            | DecisionAnswer::RenewalWithdrawn { reason } => (Some(reason.clone()), None),
        };
        let workload = id.and_then(|id| Some(WorkloadDocument::new(state, id, state.workload(id)?)));
        Self {
            seq: Some(decision.seq),
            at_ns: Some(decision.at_ns),
            tenant: decision.tenant.clone(),
            name: decision.name.clone(),
            answer: decision.answer.word().to_owned(),
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

//! The servers and workloads of a policy, and a workload's form in the file.

use super::enforcement::ServerEnforcement;
use super::error::{PolicyError, ROUNDING};
use super::limit::StageLimit;
use crate::{Objective, PerStage, Slo, Stage};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A server in use and the capacities of its stages; limits are fractions of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyServer {
    /// The server's name, unique in the policy.
    pub name: String,
    /// The server class it was taken from.
    pub class: String,
    /// Link bandwidth in each direction, bytes per second.
    pub network_bytes_per_s: f64,
    /// Name of the device profile that its storage work is computed with.
    pub storage_profile: String,
    /// Hash of that profile's work and idle latency; absent in policies that do not state it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub storage_profile_hash: Option<String>,
    /// Terms of use of the server that the bounds of its workloads assume; absent if they assume none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub enforcement: Option<ServerEnforcement>,
}

/// A host of clients and the capacity of its links; limits there are fractions of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyHost {
    /// The host's name, unique in the policy.
    pub name: String,
    /// Link bandwidth in each direction, bytes per second.
    pub network_bytes_per_s: f64,
}

/// Place of a workload on the links of the host from which its requests come.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyClient {
    /// Name of the host, one of the policy's.
    pub host: String,
    /// Strict priority on both links of the host: 0 is served first.
    pub priority: u32,
    /// Token buckets of requests and answers that hold beside those of the server, relative to the host's links.
    pub limits: Vec<StageLimit>,
    /// Longest delay of requests on the link out of the host, seconds. Contained in the bound.
    pub request_delay_s: f64,
    /// Longest delay of answers on the link into the host, seconds. Contained in the bound.
    pub answer_delay_s: f64,
}

/// An SLO beside the first one of a workload, and what is promised.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PolicySlo {
    /// The SLO; its latency is at most 1e9 s.
    pub slo: Objective,
    /// Guaranteed latency of the requests that it is about, seconds, when admitted; never above that of the SLO.
    pub bound_s: Option<f64>,
}

/// Server, priority and limits of one workload.
///
/// A policy file has the SLO three times, as text and as the two numbers in it; the text is
/// authoritative.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "PolicyWorkloadDocument", into = "PolicyWorkloadDocument")]
pub struct PolicyWorkload {
    /// The workload's name, unique in the policy.
    pub name: String,
    /// True if a guarantee is given; without one the workload runs as best effort.
    pub admitted: bool,
    /// Name of its server, when admitted.
    pub server: Option<String>,
    /// Strict priority, when admitted: 0 is served first.
    pub priority: Option<u32>,
    /// Priorities by stage in path order, if they differ between stages; `priority` is that of the first.
    pub priority_by_stage: Option<[u32; 3]>,
    /// Requested SLO, promised or not.
    pub slo: Slo,
    /// Guaranteed latency, seconds, when admitted; never above that of the SLO.
    pub bound_s: Option<f64>,
    /// Other SLOs of all its requests, or of its reads or writes.
    pub further_slos: Vec<PolicySlo>,
    /// Token buckets by stage when admitted, none otherwise.
    pub limits: Vec<StageLimit>,
    /// Place on the links of its clients' host, when admitted, if the bound counts them.
    pub client: Option<PolicyClient>,
    /// Device time at the storage stage of the largest request that the guarantee covers, seconds. Larger
    /// requests have no priority; without a value every size is covered.
    pub largest_request: Option<f64>,
    /// Maximum number of bytes at network-out per second of device time of a guaranteed request, where
    /// several are served at a time. It bounds the answers of the workload that may overtake one of its
    /// own.
    pub densest_answer: Option<f64>,
    /// Reason for the refusal and the change that would admit the workload, when refused.
    pub refusal: Option<String>,
}

/// Server and promise of an admitted workload.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyPlacement {
    /// Name of the server, one of the policy's.
    pub server: String,
    /// Strict priority by stage: 0 is served first.
    pub priority: PerStage<u32>,
    /// Guaranteed latency, seconds, if there is a guarantee.
    pub bound_s: Option<f64>,
    /// Token buckets at the stages, none if nothing is limited.
    pub limits: Vec<StageLimit>,
}

impl PolicyWorkload {
    /// Creates an admitted workload with its placement.
    pub fn admitted(name: impl Into<String>, slo: Slo, placement: PolicyPlacement) -> Self {
        let priorities = placement.priority.into_array();
        let differ = priorities.iter().any(|priority| *priority != priorities[0]);
        Self {
            name: name.into(),
            admitted: true,
            server: Some(placement.server),
            priority: Some(priorities[0]),
            priority_by_stage: differ.then_some(priorities),
            slo,
            bound_s: placement.bound_s,
            further_slos: Vec::new(),
            limits: placement.limits,
            client: None,
            largest_request: None,
            densest_answer: None,
            refusal: None,
        }
    }

    /// Restricts the promise to requests of at most this device time, seconds.
    #[must_use]
    pub fn with_largest_request(self, seconds: Option<f64>) -> Self {
        Self { largest_request: seconds, ..self }
    }

    /// Restricts the promise to requests of at most this many bytes at network-out per second of device
    /// time.
    #[must_use]
    pub fn with_densest_answer(self, bytes_per_s: Option<f64>) -> Self {
        Self { densest_answer: bytes_per_s, ..self }
    }

    /// Adds the place on the links of its clients' host.
    #[must_use]
    pub fn with_client(self, client: Option<PolicyClient>) -> Self {
        Self { client, ..self }
    }

    /// Adds SLOs beside the first one.
    #[must_use]
    pub fn with_further_slos(self, further_slos: Vec<PolicySlo>) -> Self {
        Self { further_slos, ..self }
    }

    /// Returns all SLOs with what is promised, the first one first.
    pub fn objectives(&self) -> impl Iterator<Item = PolicySlo> {
        let first = PolicySlo { slo: self.slo.into(), bound_s: self.bound_s };
        std::iter::once(first).chain(self.further_slos.iter().copied())
    }

    /// Returns the token buckets that apply where requests or answers enter the network: those of the server and those of
    /// the client host.
    pub fn limits_at(&self, stage: Stage) -> impl Iterator<Item = &StageLimit> {
        let of_host = self.client.iter().flat_map(|client| &client.limits);
        self.limits.iter().chain(of_host).filter(move |limit| limit.stage == stage)
    }

    /// Creates a workload without a guarantee, with the reason.
    pub fn refused(name: impl Into<String>, slo: Slo, why: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            admitted: false,
            server: None,
            priority: None,
            priority_by_stage: None,
            slo,
            bound_s: None,
            further_slos: Vec::new(),
            limits: Vec::new(),
            client: None,
            largest_request: None,
            densest_answer: None,
            refusal: Some(why.into()),
        }
    }
}

/// A workload of a policy as written, with its SLO in three forms.
#[derive(Serialize, Deserialize, JsonSchema)]
#[serde(expecting = "struct PolicyWorkload")]
pub(super) struct PolicyWorkloadDocument {
    /// The name of the workload, unique in the policy.
    name: String,
    /// True if a guarantee is given; without one it runs as best effort.
    admitted: bool,
    /// The name of its server, when admitted.
    server: Option<String>,
    /// Strict priority, when admitted: 0 is served first.
    priority: Option<u32>,
    /// Priorities at network-in, storage and network-out, where they differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority_by_stage: Option<[u32; 3]>,
    /// Requested SLO; it takes precedence over the two numbers.
    slo: Slo,
    /// The SLO's percentile, 0 to 100.
    slo_percentile: f64,
    /// The SLO's latency, seconds.
    slo_s: f64,
    /// The guaranteed latency, seconds, when admitted.
    bound_s: Option<f64>,
    /// Other SLOs of all its requests, or of its reads or writes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    further_slos: Vec<PolicySlo>,
    /// Token buckets by stage when admitted, none otherwise.
    limits: Vec<StageLimit>,
    /// Place on the links of its clients' host, when admitted, if the bound counts them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    client: Option<PolicyClient>,
    /// Device time of the largest request that the guarantee covers, seconds; without a value every size
    /// is covered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    largest_request: Option<f64>,
    /// Maximum number of bytes at network-out per second of device time of a guaranteed request; only if
    /// the device serves several requests at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    densest_answer: Option<f64>,
    /// Reason for the refusal and the change that would admit the workload, when refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refusal: Option<String>,
}

impl From<PolicyWorkload> for PolicyWorkloadDocument {
    fn from(workload: PolicyWorkload) -> Self {
        let slo = workload.slo;
        Self {
            name: workload.name,
            admitted: workload.admitted,
            server: workload.server,
            priority: workload.priority,
            priority_by_stage: workload.priority_by_stage,
            slo,
            slo_percentile: slo.percentile.percent(),
            slo_s: slo.latency.0,
            bound_s: workload.bound_s,
            further_slos: workload.further_slos,
            limits: workload.limits,
            client: workload.client,
            largest_request: workload.largest_request,
            densest_answer: workload.densest_answer,
            refusal: workload.refusal,
        }
    }
}

impl TryFrom<PolicyWorkloadDocument> for PolicyWorkload {
    type Error = PolicyError;

    fn try_from(document: PolicyWorkloadDocument) -> Result<Self, PolicyError> {
        let numbers = [document.slo_percentile, document.slo_s];
        check_slo_numbers(&document.name, numbers, document.slo)?;
        Ok(Self {
            name: document.name,
            admitted: document.admitted,
            server: document.server,
            priority: document.priority,
            priority_by_stage: document.priority_by_stage,
            slo: document.slo,
            bound_s: document.bound_s,
            further_slos: document.further_slos,
            limits: document.limits,
            client: document.client,
            largest_request: document.largest_request,
            densest_answer: document.densest_answer,
            refusal: document.refusal,
        })
    }
}

/// Refuses numbers of an SLO that differ from its text, which is authoritative.
fn check_slo_numbers(workload: &str, [percentile, seconds]: [f64; 2], slo: Slo) -> Result<(), PolicyError> {
    let owner = format!("workload '{workload}'");
    for (field, found, expected) in
        [("slo_percentile", percentile, slo.percentile.percent()), ("slo_s", seconds, slo.latency.0)]
    {
        if (found - expected).abs() > ROUNDING * expected {
            return Err(PolicyError::impossible(
                &owner,
                field,
                found,
                format_args!("{expected} as in slo, {slo}"),
            ));
        }
    }
    Ok(())
}

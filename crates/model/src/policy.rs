//! The policy: what deciding hands to enforcing, simulating and verifying, and its file.
//!
//! There is one way to read a policy and one to make its parts, so that whoever has a [`Policy`] from a file
//! has one that was checked.

use crate::{PerStage, Slo, Stage};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::fmt;

/// What the field `format` of a policy file says; readers refuse others.
pub const POLICY_FORMAT: &str = "tailwright-policy-1";

/// Everything that passes from deciding to enforcing, and what the simulator takes: where each workload
/// goes, with which priority and which rate limits at every stage.
///
/// Reading one, by [`Policy::from_json`] or as a part of another document, checks that it is sound: the
/// format is known, names are unique, and no limit is beyond what a stage can do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "PolicyDocument", into = "PolicyDocument")]
pub struct Policy {
    /// The method that decided, such as `tailwright` or `knee`.
    pub policy_name: String,
    /// Servers in use, in the order in which they were filled.
    pub servers: Vec<PolicyServer>,
    /// Every workload that was asked for, admitted or not, in the order of the request.
    pub workloads: Vec<PolicyWorkload>,
}

impl Policy {
    /// A policy that `method` decided.
    pub fn new(
        method: impl Into<String>,
        servers: Vec<PolicyServer>,
        workloads: Vec<PolicyWorkload>,
    ) -> Self {
        Self { policy_name: method.into(), servers, workloads }
    }

    /// Reads and checks the JSON of a policy file.
    ///
    /// # Errors
    ///
    /// When the text is not a policy, is one of another format, repeats a name, or has a limit with a rate
    /// outside 0 to 1 or a negative burst.
    pub fn from_json(text: &str) -> Result<Self, PolicyError> {
        serde_json::from_str::<PolicyDocument>(text).map_err(PolicyError::NotAPolicy)?.try_into()
    }
}

/// Why a text is no sound policy.
#[derive(Debug)]
pub enum PolicyError {
    /// The text is not JSON with the fields of a policy.
    NotAPolicy(serde_json::Error),
    /// The format is this one, not [`POLICY_FORMAT`].
    UnknownFormat(String),
    /// Two servers have this name.
    RepeatedServer(String),
    /// Two workloads have this name.
    RepeatedWorkload(String),
    /// This workload has a limit that no stage can enforce.
    UnsoundLimit(String),
}

impl fmt::Display for PolicyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotAPolicy(error) => write!(f, "not a policy: {error}"),
            Self::UnknownFormat(format) => {
                write!(f, "the format is '{format}', expected '{POLICY_FORMAT}'")
            }
            Self::RepeatedServer(name) => write!(f, "server '{name}' is given twice"),
            Self::RepeatedWorkload(name) => write!(f, "workload '{name}' is given twice"),
            Self::UnsoundLimit(name) => {
                write!(f, "workload '{name}' has a limit with a rate outside 0 to 1 or a negative burst")
            }
        }
    }
}

impl std::error::Error for PolicyError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::NotAPolicy(error) => Some(error),
            _ => None,
        }
    }
}

/// A policy as it is written, before it is checked.
#[derive(Serialize, Deserialize)]
#[serde(expecting = "struct Policy")]
struct PolicyDocument {
    format: String,
    policy_name: String,
    servers: Vec<PolicyServer>,
    workloads: Vec<PolicyWorkload>,
}

impl From<Policy> for PolicyDocument {
    fn from(policy: Policy) -> Self {
        let Policy { policy_name, servers, workloads } = policy;
        Self { format: POLICY_FORMAT.to_owned(), policy_name, servers, workloads }
    }
}

impl TryFrom<PolicyDocument> for Policy {
    type Error = PolicyError;

    fn try_from(document: PolicyDocument) -> Result<Self, PolicyError> {
        let PolicyDocument { format, policy_name, servers, workloads } = document;
        if format != POLICY_FORMAT {
            return Err(PolicyError::UnknownFormat(format));
        }
        if let Some(name) = repeated(servers.iter().map(|server| server.name.as_str())) {
            return Err(PolicyError::RepeatedServer(name.to_owned()));
        }
        if let Some(name) = repeated(workloads.iter().map(|workload| workload.name.as_str())) {
            return Err(PolicyError::RepeatedWorkload(name.to_owned()));
        }
        let unsound = workloads.iter().find(|w| !w.limits.iter().all(|at| at.limit.is_sound()));
        match unsound {
            Some(workload) => Err(PolicyError::UnsoundLimit(workload.name.clone())),
            None => Ok(Self { policy_name, servers, workloads }),
        }
    }
}

/// The first name that occurs a second time.
fn repeated<'a>(names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut seen = BTreeSet::new();
    names.into_iter().find(|name| !seen.insert(*name))
}

/// A server in use and what its stages can do; limits are fractions of these capacities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyServer {
    /// The server's name, unique in the policy.
    pub name: String,
    /// The server class it was taken from.
    pub class: String,
    /// Link bandwidth in each direction, bytes per second.
    pub network_bytes_per_s: f64,
    /// Which device profile its storage work is counted with.
    pub storage_profile: String,
}

/// One workload's place, priority and limits.
///
/// A policy file has the SLO three times, as text and as the two numbers in it; the text is the one that
/// counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "PolicyWorkloadDocument", into = "PolicyWorkloadDocument")]
pub struct PolicyWorkload {
    /// The workload's name, unique in the policy.
    pub name: String,
    /// Whether a guarantee is given; without one the workload runs as best effort.
    pub admitted: bool,
    /// Name of its server, when admitted.
    pub server: Option<String>,
    /// Strict priority, when admitted: 0 is served first.
    pub priority: Option<u32>,
    /// By stage in path order, where stages differ; `priority` is that of the first.
    pub priority_by_stage: Option<[u32; 3]>,
    /// The SLO that was asked for, whether it is promised or not.
    pub slo: Slo,
    /// The guaranteed latency, seconds, when admitted; never above that of the SLO.
    pub bound_s: Option<f64>,
    /// Token buckets by stage when admitted, none otherwise.
    pub limits: Vec<StageLimit>,
    /// Why it was refused and what would admit it, when refused.
    pub refusal: Option<String>,
}

/// Where an admitted workload goes, and what it is promised there.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyPlacement {
    /// Name of the server, one of the policy's.
    pub server: String,
    /// Strict priority by stage: 0 is served first.
    pub priority: PerStage<u32>,
    /// The guaranteed latency, seconds, where there is a guarantee.
    pub bound_s: Option<f64>,
    /// Token buckets at the stages, none where nothing is limited.
    pub limits: Vec<StageLimit>,
}

impl PolicyWorkload {
    /// A workload that has a place on a server.
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
            limits: placement.limits,
            refusal: None,
        }
    }

    /// A workload that has no guarantee, and why.
    pub fn refused(name: impl Into<String>, slo: Slo, why: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            admitted: false,
            server: None,
            priority: None,
            priority_by_stage: None,
            slo,
            bound_s: None,
            limits: Vec::new(),
            refusal: Some(why.into()),
        }
    }
}

/// A workload of a policy as it is written, with its SLO in three forms.
#[derive(Serialize, Deserialize)]
#[serde(expecting = "struct PolicyWorkload")]
struct PolicyWorkloadDocument {
    name: String,
    admitted: bool,
    server: Option<String>,
    priority: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    priority_by_stage: Option<[u32; 3]>,
    slo: Slo,
    /// The SLO's percentile, 0 to 100.
    slo_percentile: f64,
    /// The SLO's latency, seconds.
    slo_s: f64,
    bound_s: Option<f64>,
    limits: Vec<StageLimit>,
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
            limits: workload.limits,
            refusal: workload.refusal,
        }
    }
}

impl From<PolicyWorkloadDocument> for PolicyWorkload {
    fn from(document: PolicyWorkloadDocument) -> Self {
        Self {
            name: document.name,
            admitted: document.admitted,
            server: document.server,
            priority: document.priority,
            priority_by_stage: document.priority_by_stage,
            slo: document.slo,
            bound_s: document.bound_s,
            limits: document.limits,
            refusal: document.refusal,
        }
    }
}

/// A token bucket at one stage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StageLimit {
    /// The stage at which the bucket applies.
    pub stage: Stage,
    /// The bucket, relative to the stage's capacity.
    #[serde(flatten)]
    pub limit: RateLimit,
    /// The rate in base units of the stage per second: bytes on the network, seconds of device time on
    /// storage.
    pub rate_per_s: f64,
    /// The burst in base units of the stage: bytes on the network, seconds of device time on storage.
    pub burst_work: f64,
}

impl StageLimit {
    /// A limit with its absolute values, on a server with links of this bandwidth in each direction.
    pub fn new(stage: Stage, limit: RateLimit, network_bytes_per_s: f64) -> Self {
        let capacity = match stage {
            // Device time itself is the unit.
            Stage::Storage => 1.0,
            Stage::NetworkIn | Stage::NetworkOut => network_bytes_per_s,
        };
        Self { stage, limit, rate_per_s: limit.rate * capacity, burst_work: limit.burst * capacity }
    }
}

/// A token bucket normalised by a stage's capacity (thesis §2.3.1: r = 1 is full utilisation).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct RateLimit {
    /// Fraction of the stage's capacity, 0–1.
    pub rate: f64,
    /// Seconds of the stage's full capacity.
    pub burst: f64,
}

impl RateLimit {
    /// Whether a stage can enforce it: a rate within 0 to 1, and a burst that is finite and not negative.
    fn is_sound(&self) -> bool {
        (0.0..=1.0).contains(&self.rate) && self.burst.is_finite() && self.burst >= 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn workload(name: &str) -> PolicyWorkload {
        let limit = RateLimit { rate: 0.25, burst: 0.5 };
        let limits = Stage::ALL.map(|stage| StageLimit::new(stage, limit, 1e8)).to_vec();
        let priority = PerStage::from_fn(|_| 2);
        let placement = PolicyPlacement { server: "ssd-1".into(), priority, bound_s: Some(0.125), limits };
        PolicyWorkload::admitted(name, "99.9% < 200ms".parse().unwrap(), placement)
    }

    fn policy() -> Policy {
        let server = PolicyServer {
            name: "ssd-1".into(),
            class: "ssd".into(),
            network_bytes_per_s: 1e8,
            storage_profile: "x".into(),
        };
        let refused = PolicyWorkload::refused("b", "99% < 1s".parse().unwrap(), "no room");
        Policy::new("tailwright", vec![server], vec![workload("a"), refused])
    }

    #[test]
    fn the_file_has_the_slo_in_three_forms() {
        let text = serde_json::to_string(&policy()).unwrap();
        assert_eq!(
            text,
            concat!(
                r#"{"format":"tailwright-policy-1","policy_name":"tailwright","servers":[{"name":"ssd-1","class":"#,
                r#""ssd","network_bytes_per_s":100000000.0,"storage_profile":"x"}],"workloads":[{"name":"a","#,
                r#""admitted":true,"server":"ssd-1","priority":2,"slo":"99.9% < 200ms","slo_percentile":99.9,"#,
                r#""slo_s":0.2,"bound_s":0.125,"limits":[{"stage":"network-in","rate":0.25,"burst":0.5,"#,
                r#""rate_per_s":25000000.0,"burst_work":50000000.0},{"stage":"storage","rate":0.25,"burst":0.5,"#,
                r#""rate_per_s":0.25,"burst_work":0.5},{"stage":"network-out","rate":0.25,"burst":0.5,"#,
                r#""rate_per_s":25000000.0,"burst_work":50000000.0}]},{"name":"b","admitted":false,"server":null,"#,
                r#""priority":null,"slo":"99% < 1s","slo_percentile":99.0,"slo_s":1.0,"bound_s":null,"limits":[],"#,
                r#""refusal":"no room"}]}"#
            )
        );
        assert_eq!(Policy::from_json(&text).unwrap(), policy());
    }

    #[test]
    fn stages_that_differ_are_written() {
        let mut priority = PerStage::from_fn(|_| 1);
        priority[Stage::Storage] = 0;
        let placement = PolicyPlacement { server: "s".into(), priority, bound_s: None, limits: Vec::new() };
        let workload = PolicyWorkload::admitted("a", "99% < 1s".parse().unwrap(), placement);
        assert_eq!((workload.priority, workload.priority_by_stage), (Some(1), Some([1, 0, 1])));
    }

    #[test]
    fn every_way_of_reading_checks() {
        let text = serde_json::to_string(&policy()).unwrap();
        let mut repeated = policy();
        repeated.workloads.push(workload("a"));
        let mut servers = policy();
        servers.servers.push(servers.servers[0].clone());
        for (text, message) in [
            ("{".to_owned(), "not a policy: EOF while parsing an object at line 1 column 1"),
            (
                text.replace("policy-1", "policy-9"),
                "the format is 'tailwright-policy-9', expected 'tailwright-policy-1'",
            ),
            (serde_json::to_string(&repeated).unwrap(), "workload 'a' is given twice"),
            (serde_json::to_string(&servers).unwrap(), "server 'ssd-1' is given twice"),
            (
                text.replace("\"rate\":0.25", "\"rate\":1.25"),
                "workload 'a' has a limit with a rate outside 0 to 1 or a negative burst",
            ),
        ] {
            assert_eq!(Policy::from_json(&text).unwrap_err().to_string(), message);
            assert!(serde_json::from_str::<Policy>(&text).is_err(), "{message}");
        }
    }
}

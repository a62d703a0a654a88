use crate::{Slo, Stage};
use serde::{Deserialize, Serialize};

/// The value of [`Policy::format`]; readers refuse others.
pub const POLICY_FORMAT: &str = "tailwright-policy-1";

/// Everything that passes from deciding to enforcing, and what the simulator takes: where each workload
/// goes, with which priority and which rate limits at every stage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// [`POLICY_FORMAT`].
    pub format: String,
    /// The method that decided, e.g. `tailwright` or `knee`.
    pub policy_name: String,
    /// Servers in use, in the order in which they were filled.
    pub servers: Vec<PolicyServer>,
    /// Every workload that was asked for, admitted or not, in the order of the request.
    pub workloads: Vec<PolicyWorkload>,
}

/// A server in use and what its stages can do; limits are fractions of these capacities.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyServer {
    /// Unique.
    pub name: String,
    /// The server class it was taken from.
    pub class: String,
    /// Link bandwidth in each direction, bytes per second.
    pub network_bytes_per_s: f64,
    /// Which device profile its storage work is counted with.
    pub storage_profile: String,
}

/// One workload's place, priority and limits.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct PolicyWorkload {
    /// Unique.
    pub name: String,
    /// Whether a guarantee is given; without one the workload runs as best effort.
    pub admitted: bool,
    /// Name of its server, when admitted.
    pub server: Option<String>,
    /// Strict priority, when admitted: 0 is served first.
    pub priority: Option<u32>,
    /// By stage in path order, where stages differ; `priority` is that of the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority_by_stage: Option<[u32; 3]>,
    /// What was asked for.
    pub slo: Slo,
    /// The SLO's percentile, 0–100.
    pub slo_percentile: f64,
    /// The SLO's latency, seconds.
    pub slo_s: f64,
    /// The guaranteed latency, seconds, when admitted; never above `slo_s`.
    pub bound_s: Option<f64>,
    /// One per stage when admitted, none otherwise.
    pub limits: Vec<StageLimit>,
    /// Why it was refused and what would admit it, when refused.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
}

/// A token bucket at one stage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StageLimit {
    /// Where it applies.
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

/// A token bucket normalised by a stage's capacity (thesis §2.3.1: r = 1 is full utilisation).
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct RateLimit {
    /// Fraction of the stage's capacity, 0–1.
    pub rate: f64,
    /// Seconds of the stage's full capacity.
    pub burst: f64,
}

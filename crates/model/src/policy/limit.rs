//! Token buckets of a policy, relative to the capacity of a stage and in its units.

use crate::Stage;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A token bucket at one stage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
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
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RateLimit {
    /// Fraction of the stage's capacity, 0–1.
    pub rate: f64,
    /// Seconds of the stage's full capacity.
    pub burst: f64,
}

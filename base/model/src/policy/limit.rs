//! Token buckets of a policy, relative to the capacity of a stage and in absolute units.
//!
//! A limit has two sides. The workload keeps `rate` and `burst`, counted when its requests arrive at the
//! server; its own bound requires only this. Enforcers count where a stage begins, after earlier stages
//! have delayed requests and a device with several channels has reordered them. Their buckets therefore
//! also hold the `allowance`, so that a workload within its limits always finds tokens. Bounds of other
//! workloads count both.

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
    /// Size of the enforcer's bucket beyond the burst, seconds of the stage's capacity. It allows for
    /// requests that earlier stages bunch or reorder, and is not part of the limit that the workload
    /// keeps.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub allowance: f64,
    /// The allowance in base units of the stage: bytes on the network, seconds of device time on storage.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub allowance_work: f64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks by reference")]
fn is_zero(value: &f64) -> bool {
    *value == 0.0
}

impl StageLimit {
    /// Creates a limit with its absolute values, on a server with links of this bandwidth in each
    /// direction.
    pub fn new(stage: Stage, limit: RateLimit, network_bytes_per_s: f64) -> Self {
        let capacity = Self::capacity(stage, network_bytes_per_s);
        Self {
            stage,
            limit,
            rate_per_s: limit.rate * capacity,
            burst_work: limit.burst * capacity,
            allowance: 0.0,
            allowance_work: 0.0,
        }
    }

    /// Returns the limit with an enforcer's bucket that holds `allowance` seconds of capacity beyond the
    /// burst.
    #[must_use]
    pub fn with_allowance(self, allowance: f64, network_bytes_per_s: f64) -> Self {
        let capacity = Self::capacity(self.stage, network_bytes_per_s);
        Self { allowance, allowance_work: allowance * capacity, ..self }
    }

    /// Returns the size of the enforcer's bucket: burst and allowance, in base units of the stage.
    pub fn bucket_work(&self) -> f64 {
        self.burst_work + self.allowance_work
    }

    /// Returns the base units of a stage per second of its capacity.
    fn capacity(stage: Stage, network_bytes_per_s: f64) -> f64 {
        match stage {
            // The base unit is device time itself.
            Stage::Storage => 1.0,
            Stage::NetworkIn | Stage::NetworkOut => network_bytes_per_s,
        }
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

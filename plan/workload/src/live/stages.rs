//! Burst curves of a stretch of traffic at all stages.

use super::CORNERS_MAX;
use crate::burst::{BurstCurve, BurstError};
use model::{PerStage, Stage};
use serde::{Deserialize, Serialize};
use units::Work;

/// The largest of some requests, in each respect that bounds depend on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LargestRequest {
    /// Most work at the storage, thousandths of a nanosecond of device time.
    pub storage: u64,
    /// Most work at network-out per work at the storage, millionths of a byte per nanosecond of device time; rounded up.
    pub density: u64,
}

impl LargestRequest {
    /// Describes one request.
    pub fn of(work: &PerStage<Work>) -> Self {
        let storage = work[Stage::Storage].0;
        let answer = u128::from(work[Stage::NetworkOut].0) * MILLION;
        let density = if storage > 0 { answer.div_ceil(u128::from(storage)) } else { 0 };
        Self { storage, density: u64::try_from(density).unwrap_or(u64::MAX) }
    }

    #[must_use]
    pub fn max(self, other: Self) -> Self {
        Self { storage: self.storage.max(other.storage), density: self.density.max(other.density) }
    }

    /// Most work at network-out per work at the storage, bytes per nanosecond of device time.
    pub fn densest_answer(self) -> f64 {
        // An integer below 2^53 is exact, and one above is far beyond any link.
        self.density as f64 / 1e6 * (1.0 + f64::EPSILON)
    }
}

const MILLION: u128 = 1_000_000;

/// The burst curves of the same requests at every stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StageCurves {
    network_in: BurstCurve,
    storage: BurstCurve,
    network_out: BurstCurve,
    /// Largest request; absent from earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    largest: Option<LargestRequest>,
}

impl StageCurves {
    /// Combines the curves of all stages, in path order, of requests of which `largest` is known.
    pub fn new([network_in, storage, network_out]: [BurstCurve; 3], largest: Option<LargestRequest>) -> Self {
        Self { network_in, storage, network_out, largest }
    }

    /// The curve at a stage, in thousandths of a byte on the network and thousandths of a nanosecond of device time on
    /// storage.
    pub fn curve(&self, stage: Stage) -> &BurstCurve {
        match stage {
            Stage::NetworkIn => &self.network_in,
            Stage::Storage => &self.storage,
            Stage::NetworkOut => &self.network_out,
        }
    }

    /// The number of requests.
    pub fn requests(&self) -> u64 {
        self.storage.count()
    }

    /// Returns the largest request; `None` if it is not known of all of them.
    pub fn largest(&self) -> Option<LargestRequest> {
        self.largest
    }

    /// The curves of this stretch followed by `later`, or curves that dominate them if they have more than
    /// [`CORNERS_MAX`] corners.
    ///
    /// # Errors
    /// See [`BurstCurve::merge`].
    pub fn merge(&self, later: &Self) -> Result<Self, BurstError> {
        let merge = |stage| Ok(self.curve(stage).merge(later.curve(stage))?.coarsened(CORNERS_MAX));
        Ok(Self {
            network_in: merge(Stage::NetworkIn)?,
            storage: merge(Stage::Storage)?,
            network_out: merge(Stage::NetworkOut)?,
            largest: self.largest.zip(later.largest).map(|(one, other)| one.max(other)),
        })
    }
}

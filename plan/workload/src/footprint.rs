//! The work that one workload causes at every stage, computed in one pass over its requests.

use crate::burst::{BurstBuilder, BurstCurve, BurstEnvelope, BurstError, StageArrival};
use crate::device::{NetworkModel, StorageProfile, StorageWork};
use crate::live::LargestRequest;
use model::{PerStage, Request, Stage};
use serde::{Deserialize, Serialize};
use units::{Nanos, Work};

/// The burst curve of a workload at every stage: bytes on the network, device time on storage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Footprint {
    network_in: BurstCurve,
    storage: BurstCurve,
    network_out: BurstCurve,
    /// Thousandths of a nanosecond of device time.
    largest_request: u64,
    /// Thousandths of a byte per thousandth of a nanosecond.
    densest_answer: f64,
}

/// Traffic that was seen live, of some requests within some time.
#[derive(Debug, Clone, PartialEq)]
pub struct LiveDemand<'a> {
    /// Envelopes in path order.
    pub envelopes: &'a [BurstEnvelope; 3],
    /// Time in which all of it came.
    pub span: Nanos,
    pub total: PerStage<Work>,
    pub requests: u64,
    pub largest: LargestRequest,
}

impl Footprint {
    /// The work of live traffic.
    pub fn of_live(demand: &LiveDemand<'_>) -> Self {
        let LiveDemand { envelopes, span, total, requests, largest } = demand;
        let curve =
            |stage: Stage| BurstCurve::within(&envelopes[stage as usize], *span, total[stage], *requests);
        Self {
            network_in: curve(Stage::NetworkIn),
            storage: curve(Stage::Storage),
            network_out: curve(Stage::NetworkOut),
            largest_request: largest.storage,
            densest_answer: largest.densest_answer(),
        }
    }

    /// The footprint of these requests followed by those of `later`, on the same device.
    ///
    /// # Errors
    /// See [`BurstCurve::merge`].
    pub fn merge(&self, later: &Self) -> Result<Self, BurstError> {
        Ok(Self {
            network_in: self.network_in.merge(&later.network_in)?,
            storage: self.storage.merge(&later.storage)?,
            network_out: self.network_out.merge(&later.network_out)?,
            largest_request: self.largest_request.max(later.largest_request),
            densest_answer: self.densest_answer.max(later.densest_answer),
        })
    }

    /// Returns a footprint of curves of the same requests; `None` if their times and numbers differ, or the extremes are
    /// none.
    pub(crate) fn from_parts(
        [network_in, storage, network_out]: [BurstCurve; 3],
        largest_request: u64,
        densest_answer: f64,
    ) -> Option<Self> {
        let extent = |curve: &BurstCurve| (curve.first(), curve.last(), curve.count());
        let is_same = extent(&network_in) == extent(&storage) && extent(&network_out) == extent(&storage);
        let is_possible = largest_request <= storage.total().0
            && densest_answer.is_finite()
            && densest_answer.is_sign_positive();
        (is_same && is_possible).then_some(Self {
            network_in,
            storage,
            network_out,
            largest_request,
            densest_answer,
        })
    }

    /// The curve at a stage, in thousandths of a byte on the network and thousandths of a nanosecond of device
    /// time on storage.
    pub fn curve(&self, stage: Stage) -> &BurstCurve {
        match stage {
            Stage::NetworkIn => &self.network_in,
            Stage::Storage => &self.storage,
            Stage::NetworkOut => &self.network_out,
        }
    }

    /// The work of the largest request at the storage, thousandths of a nanosecond of device time.
    pub fn largest_request(&self) -> Work {
        Work(self.largest_request)
    }

    /// The most work at network-out that a request brings per work at the storage: bytes per nanosecond of device time.
    pub fn densest_answer(&self) -> f64 {
        self.densest_answer
    }

    /// The number of requests of the workload.
    pub fn requests(&self) -> u64 {
        self.storage.count()
    }
}

/// Builds a [`Footprint`] from a stream in bounded memory.
#[derive(Debug)]
pub struct FootprintBuilder {
    network: NetworkModel,
    storage: StorageWork,
    curves: PerStage<BurstBuilder>,
    largest_request: Work,
    densest_answer: f64,
}

impl FootprintBuilder {
    /// Begins a footprint of requests that cross a network and reach a storage device.
    pub fn new(network: NetworkModel, storage: &StorageProfile) -> Self {
        let curves = PerStage::from_fn(|_| BurstBuilder::new());
        Self { network, storage: storage.work_model(), curves, largest_request: Work(0), densest_answer: 0.0 }
    }

    /// Adds the next request.
    ///
    /// # Errors
    /// When the request arrives before its predecessor, or the total work exceeds its range.
    pub fn push(&mut self, request: &Request) -> Result<(), BurstError> {
        let work = PerStage::from_fn(|stage| match stage {
            Stage::Storage => self.storage.work(request),
            network => self.network.work(network, request),
        });
        self.largest_request = self.largest_request.max(work[Stage::Storage]);
        if work[Stage::Storage].0 > 0 {
            let density = work[Stage::NetworkOut].0 as f64 / work[Stage::Storage].0 as f64;
            self.densest_answer = self.densest_answer.max(density);
        }
        for stage in Stage::ALL {
            self.curves[stage].push(StageArrival { at: request.arrival, work: work[stage] })?;
        }
        Ok(())
    }

    /// The curves of all requests.
    ///
    /// # Errors
    /// When there was no request.
    pub fn finish(self) -> Result<Footprint, BurstError> {
        let largest_request = self.largest_request.0;
        let densest_answer = self.densest_answer;
        let [network_in, storage, network_out] = self.curves.into_array().map(BurstBuilder::finish);
        Ok(Footprint {
            network_in: network_in?,
            storage: storage?,
            network_out: network_out?,
            largest_request,
            densest_answer,
        })
    }
}

//! The work that one workload causes at every stage, computed in one pass over its requests.

use crate::burst::{BurstBuilder, BurstCurve, BurstError, StageArrival};
use crate::device::{NetworkModel, StorageProfile, StorageWork};
use model::{PerStage, Request, Stage};
use serde::{Deserialize, Serialize};

/// The burst curve of a workload at every stage: bytes on the network, device time on storage.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Footprint {
    network_in: BurstCurve,
    storage: BurstCurve,
    network_out: BurstCurve,
}

impl Footprint {
    /// The curve at a stage, in thousandths of a byte on the network and thousandths of a nanosecond of device
    /// time on storage.
    pub fn curve(&self, stage: Stage) -> &BurstCurve {
        match stage {
            Stage::NetworkIn => &self.network_in,
            Stage::Storage => &self.storage,
            Stage::NetworkOut => &self.network_out,
        }
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
}

impl FootprintBuilder {
    /// Begins a footprint of requests that cross a network and reach a storage device.
    pub fn new(network: NetworkModel, storage: &StorageProfile) -> Self {
        let curves = PerStage::from_fn(|_| BurstBuilder::new());
        Self { network, storage: storage.work_model(), curves }
    }

    /// Adds the next request.
    ///
    /// # Errors
    /// When the request arrives before its predecessor, or the total work exceeds its range.
    pub fn push(&mut self, request: &Request) -> Result<(), BurstError> {
        for stage in Stage::ALL {
            let work = match stage {
                Stage::Storage => self.storage.work(request),
                network => self.network.work(network, request),
            };
            self.curves[stage].push(StageArrival { at: request.arrival, work })?;
        }
        Ok(())
    }

    /// The curves of all requests.
    ///
    /// # Errors
    /// When there was no request.
    pub fn finish(self) -> Result<Footprint, BurstError> {
        let [network_in, storage, network_out] = self.curves.into_array().map(BurstBuilder::finish);
        Ok(Footprint { network_in: network_in?, storage: storage?, network_out: network_out? })
    }
}

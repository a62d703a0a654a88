//! A request as time at each stage of a server: what predictions and simulations both count.

use super::{NetworkModel, StorageProfile, StorageWork};
use model::{Job, PerStage, Request, Stage};
use units::{ByteRate, Nanos, Work};

/// Turns the requests of one stream, in order, into time at each stage of a server. One per stream, as for
/// [`StorageWork`].
#[derive(Debug, Clone)]
pub struct PathWork {
    network: NetworkModel,
    bandwidth: ByteRate,
    storage: Option<StorageWork>,
    margin: f64,
}

impl PathWork {
    /// Links of this bandwidth in each direction, and a device between them; `None` for a link alone. All work is
    /// multiplied by `margin`, at least 1.
    pub fn new(
        network: NetworkModel,
        bandwidth: ByteRate,
        storage: Option<&StorageProfile>,
        margin: f64,
    ) -> Self {
        Self { network, bandwidth, storage: storage.map(StorageProfile::work_model), margin }
    }

    /// What the next request needs, rounded up to whole nanoseconds.
    pub fn work(&mut self, request: &Request) -> PerStage<Nanos> {
        let storage = self.storage.as_mut().map_or(Work::ZERO, |model| model.work(request));
        let bytes = |stage| self.network.work(stage, request).base_units();
        PerStage::from_fn(|stage| match stage {
            Stage::Storage => nanos_up(storage.base_units() * self.margin),
            link => nanos_up(bytes(link) / self.bandwidth.bytes_per_sec() * 1e9 * self.margin),
        })
    }

    /// The next request as a job: its arrival and the work from [`Self::work`].
    pub fn job(&mut self, request: &Request) -> Job {
        Job { arrival: request.arrival, work: self.work(request) }
    }
}

/// The next whole nanosecond; saturates.
fn nanos_up(ns: f64) -> Nanos {
    // `as` saturates.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Nanos(ns.ceil() as u64)
}

//! The time that a request needs at each stage of a server, as predictions and simulations count it.

use super::{NetworkModel, StorageProfile, StorageWork};
use model::{Job, PerStage, Request, Stage};
use units::{ByteRate, Nanos, Work};

/// Converts the requests of one stream, in order, to time at each stage of a server. Each stream needs a converter of
/// its own, like [`StorageWork`].
#[derive(Debug, Clone)]
pub struct PathWork {
    network: NetworkModel,
    bandwidth: ByteRate,
    storage: Option<StorageWork>,
    margin: f64,
}

impl PathWork {
    /// A server with links of this bandwidth in each direction and a device between them; without a device if `storage`
    /// is `None`. All work is multiplied by `margin`, which is at least 1.
    pub fn new(
        network: NetworkModel,
        bandwidth: ByteRate,
        storage: Option<&StorageProfile>,
        margin: f64,
    ) -> Self {
        Self { network, bandwidth, storage: storage.map(StorageProfile::work_model), margin }
    }

    /// The time that the next request needs at each stage, rounded up to whole nanoseconds.
    pub fn work(&mut self, request: &Request) -> PerStage<Nanos> {
        let storage = self.storage.as_mut().map_or(Work::ZERO, |model| model.work(request));
        PerStage::from_fn(|stage| match stage {
            Stage::Storage => nanos_up(storage.base_units() * self.margin),
            link => nanos_up(
                self.network.work(link, request).base_units() / self.bandwidth.bytes_per_sec()
                    * 1e9
                    * self.margin,
            ),
        })
    }

    /// The next request as a job: its arrival and the work from [`Self::work`].
    pub fn job(&mut self, request: &Request) -> Job {
        Job { arrival: request.arrival, work: self.work(request) }
    }
}

/// Rounds up to whole nanoseconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
fn nanos_up(ns: f64) -> Nanos {
    Nanos(ns.ceil() as u64)
}

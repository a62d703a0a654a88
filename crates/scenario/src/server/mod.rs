//! A storage server: network in, a device, network out, and the workloads that share it.
//!
//! Requests of traces become time at each stage by the functions that planning uses ([`PathWork`]). A trace repeats
//! for ever; a replication begins anywhere in each, so that replications are independent alignments. The latency
//! of the idle device is added to every request, as bounds count it: that of the slower operation, after the
//! device and without keeping it busy.
//!
//! The device has `channels` channels, each as many times slower than the profile's work says: the throughput
//! is the profile's, and a request alone takes `channels` times as long. Priorities and limits apply before a channel is free.
//!
//! Not covered: devices whose speed depends on their queue, and limits of outstanding bytes.

mod build;
mod outcome;
mod playback;
mod rule;
mod spec;
mod tenant;

pub use outcome::{Kept, Outcome};
pub use rule::{Rule, Rules};
pub use spec::of_trace;
pub(crate) use spec::{ServerSpec, WorkloadSpec};
pub use tenant::{Demand, Tenant};

use ::model::{Op, Stage};
use sim::engine::{NetworkStation, QueueingNetwork};
use units::{ByteRate, Nanos};
use workload::device::{NetworkModel, PathWork, StorageProfile};

const CHANNELS_MAX: u32 = 4096;

type Result<T> = std::result::Result<T, String>;

/// A device behind a network link.
#[derive(Debug, Clone)]
pub struct StorageServer {
    profile: StorageProfile,
    network: ByteRate,
    channels: u32,
}

impl StorageServer {
    /// Links of a bandwidth in each direction.
    ///
    /// # Errors
    /// When there is no channel, or there are thousands.
    pub fn new(profile: StorageProfile, network: ByteRate, channels: u32) -> Result<Self> {
        if !(1..=CHANNELS_MAX).contains(&channels) {
            return Err(format!("server.channels: expected 1 to {CHANNELS_MAX}, found {channels}"));
        }
        Ok(Self { profile, network, channels })
    }

    /// Turns the requests of one workload into time at each stage.
    pub fn path(&self) -> PathWork {
        PathWork::new(NetworkModel::default(), self.network, Some(&self.profile), 1.0)
    }

    /// Bandwidth of the links.
    pub fn network(&self) -> ByteRate {
        self.network
    }

    /// Of the device.
    pub fn channels(&self) -> u32 {
        self.channels
    }

    /// Latency of the idle device.
    pub fn base_latency(&self) -> Nanos {
        let slower = [Op::Read, Op::Write].map(|op| self.profile.base_latency(op).0);
        // Of a device: far below 2⁶⁴ ns.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Nanos((slower.into_iter().fold(0.0, f64::max) * 1e9).ceil() as u64)
    }

    /// The stations for tenants, one class each.
    pub(crate) fn stations(&self, tenants: &[Tenant], rules: &Rules) -> Result<QueueingNetwork> {
        let [into, storage, out] = rules.kinds(self, tenants)?;
        let station = |stage: Stage, workers, kind| NetworkStation::new(stage.name(), workers, kind);
        let mut network = QueueingNetwork::chain(vec![
            station(Stage::NetworkIn, 1, into),
            station(Stage::Storage, self.channels, storage),
            station(Stage::NetworkOut, 1, out),
        ]);
        network.steps[2].delay = self.base_latency();
        network.classes = u32::try_from(tenants.len()).map_err(|_| "too many workloads")?;
        Ok(network)
    }
}

//! The device of a storage server and its network links.

use ::model::{CHANNELS_MAX, Condition, FRAME, Op, Request, ServerConditions, ServerEnforcement, Stage};
use ::workload::device::{DeviceModel, NetworkModel, PathWork, StorageProfile};
use discipline::enforce::{DeviceAccess, DeviceOperation, DeviceUsage, OwnerBounds, ProfileBounds};
use units::{ByteRate, Bytes, Nanos, Seconds};

/// Returns the size of a network packet: if no policy states it, the most that a sender hands over at once.
pub(super) fn packet_bytes(policy: Option<&ServerEnforcement>) -> f64 {
    policy.map_or(FRAME.0 as f64, |policy| policy.packet_bytes)
}

/// A device behind a network link.
#[derive(Debug, Clone)]
pub struct StorageServer {
    profile: StorageProfile,
    network: ByteRate,
    channels: u32,
    bounds: OwnerBounds,
    idle_by_operation: bool,
}

impl StorageServer {
    /// Creates a device of this profile with this many channels, behind links of this bandwidth in each
    /// direction.
    ///
    /// # Errors
    /// When the number of channels is 0, or in the thousands.
    pub fn new(profile: StorageProfile, network: ByteRate, channels: u32) -> Result<Self, String> {
        if !(1..=CHANNELS_MAX).contains(&channels) {
            return Err(format!("server.channels: expected 1 to {CHANNELS_MAX}, found {channels}"));
        }
        Ok(Self { profile, network, channels, bounds: OwnerBounds::default(), idle_by_operation: false })
    }

    /// Returns the server with bounds on the requests at the device, which take precedence over the
    /// policy's and the profile's.
    #[must_use]
    pub fn with_bounds(self, bounds: OwnerBounds) -> Self {
        Self { bounds, ..self }
    }

    /// Returns the server with the idle device's latency counted by operation, as bounds of reads or writes alone count it,
    /// or else by size alone, as those of all requests do.
    #[must_use]
    pub fn with_idle_by_operation(self, idle_by_operation: bool) -> Self {
        Self { idle_by_operation, ..self }
    }

    /// Returns true if bounds on the requests at the device were given.
    pub(super) fn has_bounds(&self) -> bool {
        self.bounds != OwnerBounds::default()
    }

    /// Returns the use of the device under these terms of a policy.
    pub(super) fn device_use(&self, policy: Option<&ServerEnforcement>) -> DeviceUsage {
        let limits = self.profile.queue_limits();
        let profile = ProfileBounds {
            requests: limits.map(|limits| {
                [limits.read_requests_max, limits.write_requests_max]
                    .map(|items| u32::try_from(items).unwrap_or(u32::MAX).max(1))
            }),
            bytes: limits.map(|limits| [limits.read_bytes_max, limits.write_bytes_max]),
            is_disk: matches!(self.profile.device(), DeviceModel::Disk(_)),
        };
        DeviceUsage::new(&self.bounds, policy, &profile)
    }

    /// Returns the conditions of the server under these terms of a policy, for comparison with the
    /// assumptions of its bounds.
    pub(super) fn conditions(&self, policy: Option<&ServerEnforcement>) -> ServerConditions {
        self.device_use(policy)
            .conditions()
            .with(Condition::Channels, Some(self.channels))
            .with(Condition::Network, Some(self.network.bytes_per_sec()))
            .with(Condition::Packet, Some(packet_bytes(policy)))
            // Requests take no time in the proxy of a simulation.
            .with(Condition::ProxyTime, Some(0.0))
            .with(Condition::ProfileName, Some(self.profile.name()))
    }

    /// The profile of the device.
    pub fn profile(&self) -> &StorageProfile {
        &self.profile
    }

    /// Returns the maximum device time of a request of this size, nanoseconds, at least 1.
    pub(super) fn largest_work(&self, size: Bytes) -> u64 {
        let work = [Op::Read, Op::Write].map(|op| {
            let request = Request { arrival: Nanos::ZERO, size, op, offset: None, response: None };
            self.path().work(&request)[Stage::Storage].0
        });
        work[0].max(work[1]).max(1)
    }

    /// A function that turns the requests of one workload into time at each stage.
    pub fn path(&self) -> PathWork {
        PathWork::new(NetworkModel::default(), self.network, Some(&self.profile), 1.0)
    }

    /// The bandwidth of the links in each direction.
    pub fn network(&self) -> ByteRate {
        self.network
    }

    /// Returns the number of requests that the device serves at a time.
    pub fn channels(&self) -> u32 {
        self.channels
    }

    /// Returns the latency of the idle device for any request.
    pub fn base_latency(&self) -> Nanos {
        nanos_up(self.profile.base_latency_of_any())
    }
}

/// Rounds up to whole nanoseconds.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
fn nanos_up(time: Seconds) -> Nanos {
    Nanos((time.0 * 1e9).ceil() as u64)
}

/// The latency that an idle device adds to requests, by their sizes. That is the one of the slower operation, as bounds of all
/// requests count it, unless the server says otherwise.
#[derive(Debug, Clone)]
pub(super) struct IdleDevice {
    profile: StorageProfile,
    by_operation: bool,
}

impl IdleDevice {
    pub(super) fn of(server: &StorageServer) -> Self {
        Self { profile: server.profile.clone(), by_operation: server.idle_by_operation }
    }

    pub(super) fn latency(&self, access: &DeviceAccess) -> Nanos {
        let [read, write] =
            [Op::Read, Op::Write].map(|op| self.profile.base_latency(op, Bytes(access.bytes)).0);
        let latency = match access.operation {
            _ if !self.by_operation => read.max(write),
            DeviceOperation::Read => read,
            DeviceOperation::Write => write,
        };
        nanos_up(Seconds(latency))
    }
}

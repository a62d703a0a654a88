//! The device of a storage server and its network links.

use ::model::Op;
use ::workload::device::{CHANNELS_MAX, NetworkModel, PathWork, StorageProfile};
use units::{ByteRate, Nanos};

/// A device behind a network link.
#[derive(Debug, Clone)]
pub struct StorageServer {
    profile: StorageProfile,
    network: ByteRate,
    channels: u32,
}

impl StorageServer {
    /// A device of this profile with so many channels, behind links of this bandwidth in each direction.
    ///
    /// # Errors
    /// When there is no channel, or there are thousands.
    pub fn new(profile: StorageProfile, network: ByteRate, channels: u32) -> Result<Self, String> {
        if !(1..=CHANNELS_MAX).contains(&channels) {
            return Err(format!("server.channels: expected 1 to {CHANNELS_MAX}, found {channels}"));
        }
        Ok(Self { profile, network, channels })
    }

    /// A function that turns the requests of one workload into time at each stage.
    pub fn path(&self) -> PathWork {
        PathWork::new(NetworkModel::default(), self.network, Some(&self.profile), 1.0)
    }

    /// The bandwidth of the links in each direction.
    pub fn network(&self) -> ByteRate {
        self.network
    }

    /// How many requests the device serves at a time.
    pub fn channels(&self) -> u32 {
        self.channels
    }

    /// The latency of the idle device, that of the slower operation.
    pub fn base_latency(&self) -> Nanos {
        let slower = [Op::Read, Op::Write].map(|op| self.profile.base_latency(op).0);
        // The latency of a device is far below 2⁶⁴ ns.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Nanos((slower.into_iter().fold(0.0, f64::max) * 1e9).ceil() as u64)
    }
}

//! Footprints of parts of a trace, which merge exactly and travel as bytes together with the device they are for.

use crate::burst::{BurstCurve, BurstError};
use crate::bytes::{self, DamagedBytes, Reader};
use crate::device::{DeviceModel, NetworkModel, StorageProfile};
use crate::{Footprint, FootprintBuilder};
use model::{Request, Stage};
use std::fmt;

const MARK: &[u8; 4] = b"tfp1";
const NAME: &str = "footprint";

/// A footprint, and a hash of what decides the work of its requests.
#[derive(Debug, Clone, PartialEq)]
pub struct StoredFootprint {
    device: [u8; 32],
    footprint: Footprint,
}

/// The reason for which footprints cannot be made, merged or used.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum StoredFootprintError {
    /// Work on the device depends on the request before, so that parts of a trace do not merge.
    DependsOnBefore,
    /// The footprint is of another device.
    OtherDevice,
    Burst(BurstError),
}

impl fmt::Display for StoredFootprintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::DependsOnBefore => write!(
                f,
                "the device is a disk, where the time of a request depends on the one before: expected an SSD; footprints \
                 of parts do not merge, so give traces to the planner"
            ),
            Self::OtherDevice => {
                write!(f, "the footprint was made for another device profile: make it again for this one")
            }
            Self::Burst(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for StoredFootprintError {}

impl From<BurstError> for StoredFootprintError {
    fn from(error: BurstError) -> Self {
        Self::Burst(error)
    }
}

impl StoredFootprint {
    /// Returns the footprint of requests on a device, with the network model of plans.
    ///
    /// # Errors
    /// See [`StoredFootprintError`].
    pub fn from_requests(
        profile: &StorageProfile,
        requests: impl IntoIterator<Item = Request>,
    ) -> Result<Self, StoredFootprintError> {
        let device = device(profile)?;
        let mut builder = FootprintBuilder::new(NetworkModel::default(), profile);
        for request in requests {
            builder.push(&request)?;
        }
        Ok(Self { device, footprint: builder.finish()? })
    }

    /// Returns the footprint of these requests followed by those of `later`.
    ///
    /// # Errors
    /// See [`StoredFootprintError`].
    pub fn merge(&self, later: &Self) -> Result<Self, StoredFootprintError> {
        if self.device != later.device {
            return Err(StoredFootprintError::OtherDevice);
        }
        Ok(Self { device: self.device, footprint: self.footprint.merge(&later.footprint)? })
    }

    /// Returns the footprint if it is for this device.
    ///
    /// # Errors
    /// See [`StoredFootprintError`].
    pub fn on(self, profile: &StorageProfile) -> Result<Footprint, StoredFootprintError> {
        if self.device == device(profile)? {
            Ok(self.footprint)
        } else {
            Err(StoredFootprintError::OtherDevice)
        }
    }

    /// Returns the curve at a stage.
    pub fn curve(&self, stage: Stage) -> &BurstCurve {
        self.footprint.curve(stage)
    }

    /// Returns the footprint as bytes, which are equal for equal footprints.
    pub fn to_bytes(&self) -> Vec<u8> {
        bytes::sealed(MARK, |bytes| {
            bytes.extend(self.device);
            bytes::put(bytes, self.footprint.largest_request().0);
            bytes.extend(self.footprint.densest_answer().to_le_bytes());
            for stage in Stage::ALL {
                self.footprint.curve(stage).put(bytes);
            }
        })
    }

    /// Reads what [`Self::to_bytes`] wrote.
    ///
    /// # Errors
    /// When the bytes are something else or damaged, or no requests can have this footprint.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, DamagedBytes> {
        let mut reader = Reader::open(bytes, MARK, NAME)?;
        let device = reader.array()?;
        let largest = reader.number()?;
        let densest = f64::from_le_bytes(reader.array()?);
        let curves =
            [BurstCurve::take(&mut reader)?, BurstCurve::take(&mut reader)?, BurstCurve::take(&mut reader)?];
        reader.end()?;
        let footprint = Footprint::from_parts(curves, largest, densest);
        let footprint = footprint
            .ok_or_else(|| DamagedBytes::new("footprint: its stages are not those of the same requests"))?;
        Ok(Self { device, footprint })
    }

    /// Returns true if a file with these first bytes is meant to be a stored footprint.
    pub fn is_meant(first: &[u8]) -> bool {
        first.starts_with(&MARK[..3])
    }
}

/// Returns a hash of what decides the work of requests on a device.
fn device(profile: &StorageProfile) -> Result<[u8; 32], StoredFootprintError> {
    match profile.device() {
        DeviceModel::Ssd(_) => {}
        DeviceModel::Disk(_) => return Err(StoredFootprintError::DependsOnBefore),
    }
    let network = serde_json::to_vec(&NetworkModel::default()).expect("plain data");
    let mut hasher = blake3::Hasher::new();
    hasher.update(&network);
    hasher.update(&profile.work_key());
    Ok(*hasher.finalize().as_bytes())
}

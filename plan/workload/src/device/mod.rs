//! Models of devices that turn a request into work: milli-bytes on a network, picoseconds of device time
//! on storage (thesis §2.3.2).
//!
//! This module decides what one request costs at each stage, in integers rounded up, so that sums over a trace are
//! exact and never understate. An SSD costs size / bandwidth(size, operation) from a measured table; a
//! disk costs seek, rotation and transfer, less where a request continues a recent stream.
//!
//! It does not cover garbage collection and other state of an SSD (the table is what it sustained while
//! measured), sequential writes that miss a revolution (an enforcer batches them, thesis §2.2.1),
//! or requests below the table's first size where the profile has no cost of an operation: they count at
//! the bandwidth of that size, although devices take about as long for them as for that size.

mod disk;
mod error;
mod file;
mod network;
mod path;
mod profile;
mod ssd;

pub use disk::{Disk, DiskParameters, SeekPoint};
pub use error::ProfileError;
pub use network::NetworkModel;
pub use path::PathWork;
pub use profile::{
    BaseLatency, BaseLatencyRow, DeviceModel, OperationCost, QueueLimits, StorageProfile, StorageWork,
};
pub use ssd::{BandwidthRow, SsdTable};

#[cfg(test)]
mod testing;

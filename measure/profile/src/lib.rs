//! Measures a real file or block device with direct I/O and turns the result into a device profile.
//!
//! Decides which cells (operation × request size × parallelism) to measure, in which order, and what the
//! repeats say. Every cell is measured in several rounds spread over the whole run, in a seeded random
//! order, so that a device that drifts shows as noise and not as a difference between cells. The
//! bandwidth of a size is what the device sustains with the smallest parallelism that reaches 95 % of its
//! best; the base latency is the tail at one outstanding request.
//!
//! [`MeasurementPlan`], [`stats`] and [`Measurement`] are pure; [`StorageTarget`] and [`measure`] do I/O. One
//! thread issues one request at a time, so a very fast device may be limited by the processor, which is then
//! part of the storage stack that is measured.
//!
//! Does not cover: an SSD's garbage collection under hours of writes (a run is too short to provoke it),
//! mixtures of reads and writes, and writes that are flushed through the device's cache. Magnetic disks are
//! measured in another way, by [`measure_disk`] and [`fit_disk`], which have not been tried on a real disk yet.

mod aligned_buffer;
mod disk;
mod measure;
mod measurement;
mod plan;
mod progress;
pub mod stats;
mod target;

pub use disk::{DiskMeasurement, SeekSample, fit_disk, measure_disk};
pub use measure::measure;
pub use measurement::{CellMeasurement, Measurement, OpMeasurement, SizeMeasurement, WritesFrom};
pub use plan::{MeasurementCell, MeasurementPlan, MeasurementSettings};
pub use progress::ProfileProgress;
pub use target::{MIN_REQUESTS, StorageTarget, TargetAccess};

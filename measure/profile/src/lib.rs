//! Measures a file or block device with direct I/O and makes a device profile of the results.
//!
//! The plan chooses the cells (operation × request size × parallelism) and their order. Every cell is
//! measured in several rounds, spread over the whole run in a seeded random order, so that drift of the
//! device appears as noise and not as a difference between cells. The bandwidth of a size is the
//! throughput with the smallest parallelism that reaches 95 % of the best; the base latency is the tail
//! at one outstanding request.
//!
//! The target of requests is exchangeable ([`measure_cells`]): the plan and the conclusions are the same for a server
//! that is reached by a network.
//!
//! [`MeasurementPlan`], [`stats`] and [`Measurement`] are pure; [`StorageTarget`] and [`measure`] do I/O.
//! Each outstanding request has a thread of its own. For a very fast device the processor may therefore
//! be the limit; it is then part of the measured storage stack.
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
pub use measure::{check_room, measure, measure_cells};
pub use measurement::{CellMeasurement, Measurement, OpMeasurement, Repeat, SizeMeasurement, WritesFrom};
pub use plan::{MeasurementCell, MeasurementPlan, MeasurementSettings};
pub use progress::ProfileProgress;
pub use target::{MIN_REQUESTS, StorageTarget, TargetAccess};

//! Characterises request streams: how much work they cause at each stage, and how bursty it is.
//!
//! The module [`device`] converts requests to work, [`burst`] computes exact, mergeable burst (r-b) curves of work,
//! [`windows`] the distribution of work in windows of time, and [`mmpp`] fits a Markov-modulated process to the same
//! stream. A [`Footprint`] combines the first two: the curves of one workload at every stage. [`live`] has those of traffic
//! that has no end.
//!
//! Only [`profile_file`] opens files. Nothing here knows topology and policy.

pub mod burst;
mod bytes;
pub mod device;
mod footprint;
pub mod live;
pub mod mmpp;
pub mod profile_file;
mod stored_footprint;
pub mod windows;

pub use bytes::DamagedBytes;
pub use footprint::{Footprint, FootprintBuilder, LiveDemand};
pub use stored_footprint::{StoredFootprint, StoredFootprintError};

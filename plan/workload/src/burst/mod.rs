//! Burst (r-b) curves: for every rate r, the smallest token bucket b(r) that never delays a workload
//! (thesis §2.3.1), exact and mergeable.
//!
//! For arrivals (t_i, w_i) in order of time, b(r) = max over i ≤ j of Σ w(i..j) − r·(t_j − t_i). It is the
//! support function of the points (duration, work) of all intervals, so the upper hull of these points,
//! the [`BurstEnvelope`], gives b(r) for *every* r ≥ 0, while Algorithm 2.1 of the thesis samples some rates.
//!
//! When two parts of a trace are joined, the intervals of the whole are those of the parts and those that cross the
//! seam; the latter are the Minkowski sum of the intervals that end with the left part and those that begin with the
//! right part. A [`BurstCurve`] therefore consists of three hulls and merges exactly; [`BurstBuilder`] computes it
//! from a stream, [`SlidingBurstCurve`] maintains it over a moving window.
//!
//! Everything is integer arithmetic (nanoseconds, thousandths of a base unit of work, 128-bit products):
//! merging is associative bit for bit. Real numbers appear only when a rate does, and round up.
//!
//! This module does not decide what a request costs at a stage (device profiles do), nor which limits to choose from
//! a curve.

mod arrival;
mod build;
mod coarsen;
mod curve;
mod envelope;
mod error;
mod hull;
mod parallel;
mod reduce;
mod sliding;
mod stored;

pub use arrival::StageArrival;
pub use build::BurstBuilder;
pub use curve::BurstCurve;
pub use envelope::{BurstEnvelope, EnvelopeVertex};
pub use error::BurstError;
pub use reduce::EnvelopeReduction;
pub use sliding::SlidingBurstCurve;

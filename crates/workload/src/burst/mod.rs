//! Burst (r-b) curves: for every rate r, the smallest token bucket b(r) that never delays a workload
//! (thesis §2.3.1), exact and mergeable.
//!
//! For arrivals (t_i, w_i) in order of time, b(r) = max over i ≤ j of Σ w(i..j) − r·(t_j − t_i). It is the
//! support function of the points (duration, work) of all intervals, so the upper hull of these points,
//! the [`Envelope`], gives b(r) for *every* r ≥ 0, where Algorithm 2.1 of the thesis samples some.
//!
//! All intervals of a join are those of its parts and those that cross the seam; the latter are the
//! Minkowski sum of the intervals that end with the left part and those that begin with the right part.
//! A [`BurstCurve`] therefore keeps three hulls and merges exactly; [`BurstBuilder`] computes it from a
//! stream, [`SlidingBurst`] keeps it over a window.
//!
//! Everything is integer arithmetic (nanoseconds, thousandths of a base unit of work, 128-bit products):
//! merging is associative bit for bit. Real numbers appear only when a rate does, and round up.
//!
//! Not covered: what a request costs at a stage (device profiles), and what limits to choose from a curve.

mod build;
mod curve;
mod envelope;
mod error;
mod hull;
mod parallel;
mod reduce;
mod sliding;

pub use build::BurstBuilder;
pub use curve::BurstCurve;
pub use envelope::{Envelope, Vertex};
pub use error::BurstError;
pub use reduce::Reduction;
pub use sliding::SlidingBurst;

use units::{Nanos, Work};

/// One request as a stage sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// When it arrives, since the trace's origin.
    pub at: Nanos,
    /// What it costs the stage.
    pub work: Work,
}

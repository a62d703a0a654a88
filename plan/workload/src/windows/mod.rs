//! Work of a stream within windows of time, as a distribution instead of a maximum.
//!
//! The stream is a circular trace: after its period it repeats. Its distribution over a window is that of the
//! work that arrives in a window whose start is uniform over the period, which is what a replay with a
//! uniform alignment observes; nothing is fitted, and nothing is assumed about its process. Requests
//! do not observe what time observes (a burst contains many requests in little time), so the backlog that a request
//! finds of its own stream is distributed over requests: [`CircularWork::backlog_at_arrivals`].
//!
//! A path of stages counts as one queue. A job's work there is the most that any stage works on it, and a
//! window has an allowance in addition: the jobs that straddle a turning point of the busy periods that lead to
//! a completion are worked on at two or three stages in sequence. With works w₁, w₂, w₃ the allowance of a
//! window is the larger of `max_j (w₁ + w₂ + w₃ − max w)` (one job straddles both turning points) and
//! `max_j min(w₁, w₂) + max_j min(w₂, w₃)` (one job each). The latency model that uses it explains why this is
//! enough.
//!
//! Distributions round outward: work in one of 16 bins per octave counts as the largest work seen in the bin.
//!
//! This module covers neither dependence between streams nor traffic that the trace does not show.

mod backlog;
mod cell;
mod circular_work;
mod delay;
mod distribution;
mod sweep;

pub use backlog::JointBacklogs;
pub use circular_work::CircularWork;
pub use distribution::{WorkAtom, WorkDistribution};

#[cfg(test)]
mod tests;

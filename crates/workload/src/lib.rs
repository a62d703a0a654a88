//! Characterises request streams: what they ask of each stage, and how burstily.
//!
//! [`device`] turns requests into work, [`burst`] turns work into exact, mergeable burst (r-b) curves.
//! [`mmpp`] fits a Markov-modulated process to the same stream.
//! A [`Footprint`] is both together: one workload's curves at every stage.
//! Nothing here opens files or knows topology and policy.

pub mod burst;
pub mod device;
mod footprint;
pub mod mmpp;
pub mod windows;

pub use footprint::{Footprint, FootprintBuilder};

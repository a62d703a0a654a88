//! Characterises request streams: what they ask of each stage, and how burstily.
//!
//! [`device`] turns requests into work, [`burst`] turns work into exact, mergeable burst (r-b) curves.
//! Nothing here opens files or knows topology and policy.

pub mod burst;
pub mod device;

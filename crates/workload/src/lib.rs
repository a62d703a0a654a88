//! Characterises request streams: what they ask of each stage, and how burstily.
//!
//! [`device`] turns requests into work. Nothing here opens files or knows topology and policy.

pub mod device;

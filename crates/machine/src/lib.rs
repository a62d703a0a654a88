//! What this machine can do for timing.

pub mod netns;

//! Queueing disciplines as pure state machines: what is served next. The clock is an argument, so that a
//! simulator and a live system run the same code.
//!
//! [`serve`] decides who is in service on c workers, one item each; [`Sharing`] divides them evenly without
//! slices; [`StrictPriority`] is a waiting line of its own, which needs
//! no clock at all; [`TokenBuckets`] limit what passes.

mod bits;
mod buckets;
mod priority;
mod random;
pub mod serve;
mod sharing;

pub use buckets::{Limit, TokenBuckets};
pub use priority::StrictPriority;
pub use sharing::Sharing;

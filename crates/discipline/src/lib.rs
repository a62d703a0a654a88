//! Queueing disciplines as pure state machines: what is served next. The clock is an argument, so that a
//! simulator and a live system run the same code.
//!
//! [`serve`] decides who is in service on c workers, one item each; [`enforce`] what is sent to a shared device, and
//! when; [`Sharing`] divides workers without slices; [`StrictPriority`] is a waiting line of its own, which needs
//! no clock at all; [`TokenBuckets`] limit what passes.

mod bits;
mod buckets;
pub mod enforce;
mod priority;
mod random;
pub mod serve;
mod sharing;
mod tournament;

pub use buckets::{Limit, TokenBuckets};
pub use priority::StrictPriority;
pub use sharing::Sharing;

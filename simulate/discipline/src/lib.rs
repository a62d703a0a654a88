//! Queueing disciplines as pure state machines that decide which item is served next. The clock is an
//! argument, so that a simulator and a live system run the same code.
//!
//! [`serve`] assigns items to c workers, one item each. [`enforce`] decides which requests are sent to a
//! shared device, and when. [`pool`] admits requests of a service whose threads the kernel schedules.
//! [`ProcessorSharing`] divides workers among items without slices. [`StrictPriority`] is a queue that
//! needs no clock, and `TokenBuckets` limit throughput.

mod bit_set;
pub mod enforce;
pub mod pool;
mod processor_sharing;
mod request_key;
pub mod serve;
mod split_mix;
mod strict_priority;
mod token_buckets;
mod tournament;

pub use processor_sharing::ProcessorSharing;
pub use request_key::RequestKey;
pub use strict_priority::StrictPriority;
pub use token_buckets::Limit;
pub(crate) use token_buckets::TokenBuckets;

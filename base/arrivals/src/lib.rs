//! Random arrivals and service times: plain data that becomes seeded, endless streams, and its short text form.
//!
//! A [`RateProcess`] is an arrival process that is given by its rate over time (Poisson, Markov-modulated, on-off,
//! b-model, diurnal, and sums of them). An [`ArrivalPattern`] is a rate process, a renewal process with any
//! [`TimeDistribution`] of its gaps, or batches at the instants of another pattern. A [`TimedRequestSource`] joins a
//! pattern with the distribution of service times; a [`TimedRequest`] is one request of it, or of a measured stream,
//! whose utilisation [`scale`] changes. Patterns and distributions have a text form, such as `poisson(500/s)`,
//! `renewal(lognormal(mean=1ms, c2=4))` or `batch(4, poisson(10/s))`.
//!
//! The same value and seed give the same stream in every run of one build; random generators and elementary functions
//! may differ between versions and platforms in their last digits. Streams hold a few words per source.
//!
//! A crate of its own because traces that are written, load that is sent and streams that are simulated come from
//! the same processes, and none of these sides may know the others.
//!
//! Open loop: arrivals do not wait for departures. Service times are drawn independently of arrivals and of each
//! other; correlated ones come from a measured stream. Not covered: sizes, directions and addresses of requests.

mod arrival_times;
mod b_model;
mod distribution;
mod error;
mod pattern;
mod rate_process;
mod rounding;
mod sampler;
pub mod scale;
mod seed;
mod source;
mod text;

pub use arrival_times::ArrivalTimes;
pub use distribution::{DistributionFamily, TimeDistribution};
pub use error::ParameterError;
pub use pattern::{ArrivalPattern, BatchSize};
pub use rate_process::{MmppState, RateProcess};
pub use sampler::Sampler;
pub use seed::split_seed;
pub use source::{TimedRequest, TimedRequestSource};
pub use text::ExpressionError;

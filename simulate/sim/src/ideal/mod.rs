//! Ideal latency of a service: the effect of queueing alone on an arrival stream (Tales of the Tail §2).
//!
//! An [`IdealStation`] is an A/S/c queue: workers that serve one request at a time, without interruption
//! and without any cost of their own, in a [`ServiceOrder`]. If a real server is slower than this model,
//! the excess is not due to the arrivals and the utilisation.
//!
//! FIFO is the recursion of Kiefer and Wolfowitz (Lindley's for one worker); a queue per worker is
//! Lindley's for each. LIFO and random order keep the waiting requests. n requests at c workers take O(n
//! log c); FIFO and queues per worker hold O(c) words, the others also the waiting requests.
//! [`StationRun`] collects the latencies of a stream in a [`Summary`] of bounded memory, and
//! [`replicate`] does so for several random streams.
//!
//! Ties: at one instant departures come before arrivals, arrivals in their given order, and a request
//! that finds a worker idle starts at once. Of several workers that become free at one instant any may
//! take the next request: the latencies are the same.
//!
//! Not covered: service that is shared, preempted or depends on the queue; several stations.

mod distribution;
mod error;
mod replicate;
mod service_order;
mod shared_queue;
mod start_times;
mod station;
mod station_run;
mod summary;

pub use distribution::LatencyDistribution;
pub use error::OutOfOrderError;
pub use replicate::{ReplicationSizes, replicate, replicate_while};
pub use service_order::ServiceOrder;
pub use station::IdealStation;
pub use station_run::StationRun;
pub use summary::Summary;

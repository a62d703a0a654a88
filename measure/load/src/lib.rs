//! Open-loop load against real servers: every request is sent at its intended time, whatever became of the requests
//! before it, and every request is observed. Protocols: NFSv3, NBD, memcached by TCP and UDP,
//! HTTP/1.1, and echo.
//!
//! [`run()`] sets up all connections first (in their network namespaces, with handshakes, mounts and stored keys), then
//! starts the clock. One thread does all timing: it sleeps on a timer until shortly before the next request is due,
//! spins for the rest, and in between reads replies from non-blocking sockets. Requests are pipelined.
//!
//! - Latency counts from the intended time. The time that a request spends in the generator because a socket is full or
//!   a connection is down is part of its latency, so there is no coordinated omission.
//! - How late the generator itself was is recorded separately, request by request ([`LoadReport::generator_lags`]), so
//!   that a run which is spoiled by its lag can be rejected.
//! - A connection that is lost is set up again in the background while the others continue.
//! - What is read can be compared with what was written ([`LoadOptions::verify_data`]).
//!
//! The connections of a workload take requests in turn. Choosing the least busy connection instead would let the
//! generator balance load around a slow connection, and its choice would depend on the replies; in turn, the same seed
//! gives every connection the same requests in every run.
//!
//! Not covered: more than one timing thread (the benchmark `generator` shows how fast one core sends), TLS, NFSv4, and
//! what is done with the observations. Nothing here knows policies or bounds.

mod address_space;
mod codec;
mod content;
mod engine;
mod interval_log;
mod options;
mod progress;
mod report;
mod run;
mod setup;
mod target;
mod validate;
mod workload;

pub use interval_log::write_intervals;
pub use options::LoadOptions;
pub use progress::{LoadPhase, LoadProgress};
pub use report::{DataComparison, LoadReport, WorkloadCounters};
pub use run::run;
pub use target::{LoadTarget, MemcachedTransport};
pub use workload::{ClientHost, DrawnLoad, LoadWorkload, OfferedLoad};

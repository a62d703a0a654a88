//! Open-loop load against real servers: every request is sent at its intended time, independently of
//! earlier requests, and every request is observed. Protocols: NFSv3, NBD, memcached over TCP and UDP,
//! HTTP/1.1, HTTP/2, unary gRPC, and echo; by TCP also inside of TLS.
//!
//! [`run()`] sets up all connections first (in their network namespaces, with handshakes, mounts and
//! stored keys), then starts the clock. One thread does all timing: it sleeps on a timer until shortly
//! before the next request is due, then spins, and reads replies from non-blocking sockets in between.
//! Requests are pipelined.
//!
//! - Latency counts from the intended time. It includes the time that a request spends in the generator
//!   because a socket is full or a connection is down, so there is no coordinated omission.
//! - The lag of the generator itself is recorded separately for each request
//!   ([`LoadReport::generator_lags`]), so that a run with too much lag can be rejected.
//! - A lost connection is set up again in the background while the others continue.
//! - The data of reads can be compared with earlier writes ([`LoadOptions::verify_data`]).
//!
//! The connections of a workload take requests in turn. Choosing the least busy connection instead would
//! let the generator balance load around a slow connection, and its choice would depend on the replies.
//! In turn, the same seed gives every connection the same requests in every run.
//!
//! Not covered: more than one timing thread (the benchmark `generator` measures the rate of one core),
//! NFSv4, streams of gRPC, and the evaluation of the observations. The crate knows neither policies nor bounds.

mod address_space;
mod codec;
mod content;
mod engine;
mod interval_log;
mod options;
mod progress;
mod report;
mod run;
mod server;
mod setup;
mod target;
mod tls;
mod validate;
mod workload;

pub use interval_log::write_intervals;
pub use options::LoadOptions;
pub use progress::{LoadPhase, LoadProgress};
pub use report::{DataComparison, LoadReport, WorkloadCounters};
pub use run::run;
pub use server::{MemcachedFacts, NbdExportFacts, remove_values, time_missing_keys};
pub use target::{CertificateCheck, HttpVersion, LoadTarget, MemcachedTransport};
pub use workload::{ClientHost, DrawnLoad, LoadWorkload, OfferedLoad};

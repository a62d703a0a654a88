//! Open-loop load against real servers: requests are sent when they are meant to be sent, whatever became of those
//! before, and every one is observed. NFSv3, NBD, memcached and HTTP/1.1.
//!
//! [`run()`] sets up all connections first (in their network namespaces, with handshakes, mounts and stored keys), then
//! starts the clock. One thread does all timing: it sleeps on a timer until shortly before the next request is due,
//! spins for the rest, and in between takes answers from non-blocking sockets. Requests are pipelined.
//!
//! - Latency counts from the intended time. What waits in the generator because a socket takes no more, or because a
//!   connection is gone, waits at the expense of its latency: no coordinated omission.
//! - How late the generator itself was is kept apart from that, request by request ([`Ran::lags_of`]), so that a run
//!   whose lag spoils it can be rejected.
//! - A connection that is lost is set up again in the background while the others go on.
//! - What is read can be compared with what was written ([`Options::verify_data`]).
//!
//! Requests go to the connections of a workload in turn. Choosing the least busy one instead would let the generator
//! balance load around a slow connection, and its choice would depend on the answers: in turn, the same seed gives
//! every connection the same requests in every run.
//!
//! Not covered: more than one timing thread (one core sends as fast as the benchmark `generator` says), TLS, NFSv4,
//! what is done with observations. Nothing here knows policies or bounds.

mod check;
mod content;
mod engine;
mod intervals;
mod ran;
mod run;
mod setup;
mod speak;
mod target;
mod workload;

pub use intervals::write_intervals;
pub use ran::{Compared, Counts, Phase, Progress, Ran};
pub use run::run;
pub use target::Target;
pub use workload::{Demand, Options, Origin, Workload};

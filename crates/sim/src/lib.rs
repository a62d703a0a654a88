//! Exact replay of request streams through the queues of a server, and what may be said of the percentiles
//! of many replays.
//!
//! A [`ReplayTrace`] is a trace that repeats for ever, a [`ReplayStream`] is a trace with its priorities on a server,
//! a [`ReplaySystem`] is a server with its streams. An [`Alignment`] says where in its trace each stream stands when
//! the window opens; [`Replay`] runs one and tells an [`Observer`] the latency of every request that arrives
//! within the window. The crate `confidence` turns the percentiles of independent alignments into statements about all.
//!
//! Times are integer nanoseconds and every tie has a rule ([`Replay`]), so a replay is exact and repeatable.
//!
//! [`source`] describes random and measured streams of requests, and [`ideal`] is what queueing alone does to one.
//! [`engine`] is the general simulator: stations under any discipline, chains and feed-forward graphs, open and
//! closed loops. It streams into histograms, so that its memory does not grow with a run.
//!
//! Not covered by the replay: rate limits, devices whose speed depends on their queue, clients that wait for answers.

mod alignment;
mod budget;
mod danger;
pub mod engine;
pub mod ideal;
mod merge;
mod observe;
mod parallel;
mod replay;
mod replay_trace;
mod server;
mod start;
mod system;

pub use alignment::Alignment;
pub use budget::{LatencyTarget, TargetMiss, first_target_miss};
pub use danger::sort_worst_first;
pub use observe::{Exceedances, Latencies, Observer, Percentiles, nearest_rank};
pub use parallel::alignment_percentiles;
pub use replay::{PreemptionMode, Replay, ReplayOutcome};
pub use replay_trace::{ReplayTrace, WorkOverflowError};
pub use system::{ReplayStream, ReplaySystem, UnsteadyError};

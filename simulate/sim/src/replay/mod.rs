//! Exact replay of circular traces through the stages of a storage server.
//!
//! A [`ReplayTrace`] is a trace that repeats for ever, a [`ReplayStream`] is a trace with its priorities on a
//! server, a [`ReplaySystem`] is a server with its streams. An [`Alignment`] defines the position of each
//! stream in its trace when the window opens. [`Replay`] runs one and reports the latency of every request
//! that arrives within the window to an [`Observer`]. The crate `confidence` turns the percentiles of
//! independent alignments into statements about all.
//!
//! Not covered: rate limits, devices whose speed depends on their queue, clients that wait for answers.

mod alignment;
mod alignment_order;
mod alignment_percentiles;
mod arrival_index;
mod arrival_merge;
mod arrived_work;
mod banded;
mod cell_scan;
mod idle;
mod latency_band;
mod latency_target;
mod observer;
mod percentile_search;
mod percentiles;
mod possibly_late;
mod run;
mod stage_server;
mod stream;
mod system;
mod target_miss;
mod target_search;
mod trace;
mod transit;
mod work_bucket;

pub use alignment::Alignment;
pub use alignment_order::sort_worst_first;
pub use alignment_percentiles::{alignment_percentiles, percentiles_above, preemptive_percentiles};
pub use latency_target::LatencyTarget;
pub use observer::{Latencies, Observer};
pub use percentiles::Percentiles;
pub use run::{PreemptionMode, Replay, ReplayOutcome};
pub use stream::ReplayStream;
pub use system::{ReplaySystem, UnsteadyError};
pub use target_miss::{TargetMiss, first_target_miss};
pub use target_search::TargetSearch;
pub use trace::{ReplayTrace, WorkOverflowError};

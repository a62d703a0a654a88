//! Seeded simulation of request streams through queues.
//!
//! There are four simulators, each as simple as its question allows:
//! - [`replay`] plays the circular traces that share a storage server through its three stages, exactly and in the
//!   steady state, for many relative shifts of the traces.
//! - [`ideal`] gives the latencies that queueing alone causes at one station.
//! - [`engine`] is the general one: stations under any discipline, chains and feed-forward graphs, open and closed
//!   loops. It collects histograms, so that its memory does not grow with a run.
//! - [`pool_tiers`] plays requests that wait without CPU in the middle of a visit through tiers of request pools.
//!
//! Times are integer nanoseconds and every tie has a rule, so equal inputs give equal results. What arrives is described
//! by the crate `arrivals`; what may be said of several replications, by the crate `confidence`.

pub mod engine;
pub mod ideal;
pub mod pool_tiers;
mod rank;
mod relaxation;
pub mod replay;

pub use rank::nearest_rank;
pub use relaxation::{settling_arrivals, settling_window};
pub use replay::{
    Alignment, Latencies, LatencyTarget, Observer, Percentiles, PreemptionMode, Replay, ReplayOutcome,
    ReplayStream, ReplaySystem, ReplayTrace, TargetMiss, TargetSearch, UnsteadyError, WorkOverflowError,
    alignment_percentiles, first_target_miss, percentiles_above, preemptive_percentiles, sort_worst_first,
};

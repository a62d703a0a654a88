//! Requests of live servers, stage by stage, without a change to the server: small programs in the kernel report when
//! bytes of requests and answers pass, and a state machine here joins their events into requests.
//!
//! - [`observe`] runs an observation. [`ObservedRequest`] has the instants T0 to T6 of *Tales of the Tail* and the start
//!   of processing; its stages add up to T6 − T0 exactly.
//! - [`RequestStatistics`] sums up: percentiles, and the share of each stage in mean and variance.
//! - [`CauseObserver`] divides the time of each request among causes, and says what percentiles would be without one.
//! - [`RequestJoiner`] is pure; the kernel comes in through [`AttachedProbes`] alone.
//!
//! - [`Protocol`] says whose messages are told apart by their bytes; otherwise packets, reads and writes decide
//!   what a request is.
//!
//! Not seen: TLS and HTTP/2 (several requests in a record or on a connection are not told apart), unix sockets, reads by
//! splice, and IPv6 packets with extension headers. Nothing here knows policies, bounds and plans.

mod block;
mod causes;
mod counters;
mod event;
mod join;
mod nesting;
mod observations;
mod observing;
mod order;
mod probe;
mod recent;
mod request;
mod run;
mod running;
mod sampling;
mod seconds;
mod selftest;
mod statistics;
#[cfg(test)]
mod testing;
mod thread_name;
mod windows;

pub use block::{
    AttachedBlockProbes, BlockContention, BlockDevice, BlockEvent, BlockObserver, BlockOperation, BlockPhase,
    BlockReport, BlockRequester, BlockSettings, BlockStatistics, BlockTimes, BlockWaitSums, BlockWaits,
    TimeBehind, WAITED_FOR_MAX, WaitSums, observe_block,
};
pub use causes::{
    AttributedRequest, CAUSES, Cause, CauseAttribution, CauseObserver, CauseProfile, CauseReport, CauseTimes,
    Counterfactual, EXPLAINED_PERCENTILES, IntendedWaits, InterferingProcess, OccupyingThread,
    OvertakenRequests, PercentileCauses, REPLAYED_MAX, ReplayDoubt, ReplayedPercentile, TakenOut,
    UnseenCause, counterfactual, overtaken, unseen_causes,
};
pub use counters::{
    ANSWER_RETRANSMITS, CounterReport, CounterUnit, KERNEL_COUNTERS, KernelCount, KernelCounter,
    LISTEN_DROPS, LISTEN_OVERFLOWS, NAMESPACE_RETRANSMITS, QUOTA_THROTTLED_TIME, QUOTA_THROTTLES,
    SOFTNET_DROPS, SOFTNET_SQUEEZES, STEAL, ThrottledGroup, UDP_DROPS,
};
pub use event::{EventKind, KernelEvent, ThreadSchedule};
pub use join::{JoinCounts, RequestJoiner, TableSizes};
pub use nesting::{ClientRequest, RequestNesting, nesting};
pub use observations::observations;
pub use observing::{
    AcceptQueue, MeasuredCost, ObservationEnd, ObservationProgress, ObservationReport, ObservationSettings,
    ObservationWatcher, ReadCoverage,
};
pub use probe::{
    AttachedProbes, ProbeCost, ProbeSettings, may_measure_cost, missing_rights, refused, types_of_kernel,
};
pub use recent::RecentStatistics;
pub use request::{HeldUpTime, ObservedRequest, POINTS, RequestPoint, RequestQuality, STAGE_NAMES, STAGES};
pub use run::{observe, watch};
pub use sampling::{CostLimit, SampledTime};
pub use seconds::{NanosecondCount, in_seconds};
pub use selftest::{SelfTestReport, self_test};
pub use statistics::{LatencyProfile, RequestStatistics, StageProfile};
pub use wire::{PROTOCOLS, Protocol};

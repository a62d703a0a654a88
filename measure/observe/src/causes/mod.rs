//! Why requests took as long as they did: where the time of each went, and what the tail would be without a cause.
//!
//! `attribution` divides the time of a request among causes, by `timeline` of threads and `occupancy` of CPUs; `profile`
//! sums up by latency; `replay` takes a cause out, and
//! `work_conserving` serves the requests again. All of it is pure but for `unseen`, which looks at the machine.

mod attribution;
mod cause;
mod occupancy;
mod profile;
mod recent_search;
mod replay;
mod report;
#[cfg(test)]
mod testing;
mod timeline;
mod unseen;
mod work_conserving;

pub use attribution::{AttributedRequest, CauseAttribution, CauseTimes};
pub use cause::{CAUSES, Cause};
pub use occupancy::{InterferingProcess, OccupyingThread};
pub use profile::{CauseProfile, EXPLAINED_PERCENTILES, IntendedWaits, PercentileCauses};
pub use replay::{
    Counterfactual, OvertakenRequests, ReplayDoubt, ReplayedPercentile, TakenOut, counterfactual, overtaken,
};
pub use report::{CauseObserver, CauseReport, REPLAYED_MAX};
pub use unseen::{UnseenCause, unseen_causes};

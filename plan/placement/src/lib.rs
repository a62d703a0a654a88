//! Deciding: which workload goes where, with which priority and which rate limits, and what latency each is then
//! guaranteed. Everything here is pure: no clock, no files; randomness is seeded.
//!
//! Three searches answer three questions. Each says more in the header of its module:
//!
//! - [`placement`] plans once for workloads that are all known, and guarantees latencies by rate limits. It takes a
//!   [`PlanningProblem`] of arrival curves and a [`LimitMethod`], and gives servers with limits (thesis §5.2.3).
//! - [`packing`] also plans once for workloads that are all known, but by the word of any
//!   [`AdmissionProcedure`](admission::AdmissionProcedure), such as a model that predicts percentiles. It gives
//!   servers without limits.
//! - [`admission`] decides at once on workloads that arrive and depart one by one or in groups, by the same procedures
//!   as packing, and never moves those that it has accepted (thesis §4).
//!
//! Reading order: [`PlanningProblem`] is the question that placement answers; [`LimitMethod`] chooses the limits of one
//! server (thesis §5.2.2 and the baselines of §5.3.1); `placement` decides which workloads share a server;
//! [`lower_bound()`] says how few servers any placement could need; [`advise`] says what would admit a refused
//! workload; [`client_links`] bounds what requests wait on the links of their hosts; [`migration`] leads from one placement
//! to another. Then `admission`, and `packing` on top of it. [`prioritise()`] and [`limiters()`] are used on their own:
//! priorities and limiters as PriorityMeister chooses them (thesis §3.2).

pub mod admission;
mod advice;
mod begun;
mod chain;
mod client_place;
mod clients;
mod dual_feasible;
mod effort;
mod levels;
mod limiters;
mod limits;
mod links;
mod lower_bound;
pub mod migration;
mod normalise;
pub mod packing;
pub mod placement;
mod prioritise;
mod problem;
mod rules;
mod server;
#[cfg(test)]
mod testing;

pub use advice::{ClassInputs, ClassVariant, RefusedPlace, SuggestedChange, advise, place_refused};
pub use calculus::{DeviceQueue, EnforcedClass};
pub use client_place::{ClientLinks, ClientPlace};
pub use clients::{HOLD_UP_SHARE, PlanningHost, client_links};
pub use effort::SearchEffort;
pub use levels::WorkloadLimits;
pub use limiters::{enforceable_limiters, limiters};
pub use limits::{FitRefusal, IdleTerms, LimitMethod};
pub use lower_bound::{LowerBound, lower_bound};
pub use normalise::Normalisation;
pub use placement::{
    CheapestFleet, CompanyRule, CurvePlacement, CurvePriorities, FailOver, FailOverServer, Fleet,
    MoreServers, OneClass, Placement, PlacementOrder, PlacementRefusal, SearchProgress, ServerId,
    SurvivingPlacement, UnplacedWorkload, fresh_numbers, place, place_by_rule, place_cheapest,
    place_first_fit, place_whole_curves, servers_to_survive, survive,
};
pub use prioritise::{LatencyOracle, Prioritisation, prioritise};
pub use problem::{
    FurtherSlo, PlanningClass, PlanningProblem, PlanningProblemError, PlanningWorkload, WorkloadOnClass,
};
pub use rules::{ClassRule, ExcludedServers, PlacementRules, RuleKind, ServerNumbers, WorkloadRule};
pub use server::{Guarantee, LoadShare, PlannedServer};

//! Judges observations against SLOs, limits and bounds, with confidence.
//!
//! [`examine`] judges all workloads of a run against their service agreements and returns [`Findings`]. It is made of parts
//! that are useful alone:
//!
//! - [`judge()`]: is an SLO met, not met, or are there too few requests to say? It takes into account that requests which
//!   meet in a queue depend on each other.
//! - [`judge_counted`]: the same for requests that were only counted, by latency and in periods.
//! - [`measure_conformance`], [`ConformanceMeter`]: does a stream of work conform to a token bucket, and if not, since when
//!   and by how much?
//! - [`summarize_lags`]: was load sent at its intended times, so that the measurement describes the
//!   system and not the generator?
//! - `stage_breakdown`: in which stages do requests spend their time, on average and in the tail?
//! - [`Findings::with_windows`]: is an SLO kept in every few minutes, and not only in the whole run?
//! - [`timeline()`], [`exceedance`]: latencies as points of charts.
//!
//! Nothing here knows whether the observations come from a machine or a simulation.

mod agreement;
mod conformance;
mod examine;
mod finding;
mod judge;
mod lag;
mod limit_check;
mod percentile;
mod slo_windows;
mod stage_breakdown;
mod timeline;

pub use agreement::ServiceAgreement;
pub use conformance::{Conformance, ConformanceMeter, ExcessPeriod, measure_conformance};
pub use examine::examine;
pub use finding::{BoundFinding, Finding, Findings, LagFinding, OverallVerdict, SloWindow, UnjudgedWorkload};
pub use judge::{CountedPeriod, Judgement, judge, judge_counted};
pub use lag::{LagSummary, summarize_lags};
pub use limit_check::{LimitFinding, WorkFunction};
pub use model::Verdict;
pub use stage_breakdown::{ELSEWHERE, StageFinding};
pub use timeline::{TimelineInterval, exceedance, timeline};

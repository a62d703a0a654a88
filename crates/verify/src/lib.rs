//! Judges observations against SLOs, limits and bounds, with confidence.
//!
//! - [`examine`]: all workloads of a run against what was promised to them, as [`Findings`]; from parts that are
//!   useful alone:
//! - [`judge()`]: is an SLO met, not met, or are there too few requests to say, when requests that meet in a queue
//!   depend on each other?
//! - [`conform`], [`Bucket`]: does a stream of work keep to a token bucket, and if not, since when and by how much?
//! - [`lag`]: was load sent when it was meant to be sent, so that what was measured is the system and not the generator?
//! - [`stages()`]: where do requests spend their time, and where those of the tail?
//! - [`timeline()`], [`exceedance`]: latencies as points of pictures.
//!
//! Nothing here knows whether the observations come from a machine or a simulation.

mod conform;
mod examine;
mod finding;
mod judge;
mod lag;
mod limits;
mod promise;
mod stages;
mod timeline;

pub use conform::{Bucket, Conformance, PERIODS_MAX, Period, conform};
pub use examine::examine;
pub use finding::{Answer, BoundFinding, Conclusion, Finding, Findings, LagFinding, Unjudged};
pub use judge::{Judgement, Verdict, judge};
pub use lag::{Lag, lag};
pub use limits::{LimitFinding, Work};
pub use promise::Promise;
pub use stages::{ELSEWHERE, StageFinding, stages};
pub use timeline::{Interval, exceedance, timeline};

//! Judges observations against SLOs, limits and bounds, with confidence.
//!
//! - [`judge()`]: is an SLO met, not met, or are there too few requests to say, when requests that meet in a queue
//!   depend on each other?
//! - [`conform`]: does a stream of work keep to a token bucket, and if not, since when and by how much?
//! - [`lag`]: was load sent when it was meant to be sent, so that what was measured is the system and not the generator?
//!
//! Nothing here knows whether the observations come from a machine or a simulation.

mod conform;
mod judge;
mod lag;

pub use conform::{Conformance, conform};
pub use judge::{Judgement, Verdict, judge};
pub use lag::{Lag, lag};

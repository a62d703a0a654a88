//! Verdict on an SLO.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Verdict on an SLO. `verify` takes it from an interval of the true percentile, a simulation from the
/// percentile that it measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The percentile is within the SLO.
    Met,
    /// The percentile is beyond the SLO.
    NotMet,
    /// Neither can be said with the required confidence: there are too few requests, or they were sent too late.
    TooFew,
}

impl Verdict {
    /// Returns the verdict as tables show it.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::NotMet => "not met",
            Self::TooFew => "too few",
        }
    }
}

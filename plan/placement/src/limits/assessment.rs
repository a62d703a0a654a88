//! Answer to a placement search that asks if workloads fit on a server.
//!
//! The exact method can decide without choosing limits, much faster, and its multipliers then price what other workloads
//! would cost. The other methods choose limits to decide.

use super::refusal::FitRefusal;
use crate::chain::Prices;
use crate::server::PlannedServer;

/// Evidence that workloads fit on a server.
#[derive(Debug, Clone)]
pub(crate) enum FittingServer {
    /// Limits exist, but none have been chosen yet.
    Assessed(Assessment),
    /// These limits have been chosen and verified.
    Fitted(PlannedServer),
}

/// A set of workloads on one server, judged by its tightest bound ÷ budget.
#[derive(Debug, Clone)]
pub(crate) struct Assessment {
    /// The least ratio that was found.
    pub(crate) ratio: f64,
    /// Increase of the ratio per unit of added workload.
    pub(crate) prices: Prices,
}

/// Why workloads do not fit on a server, as far as a search needs to know.
#[derive(Debug, Clone)]
pub(crate) enum AssessmentRefusal {
    /// The reason is known.
    Explained(FitRefusal),
    /// The optimiser stopped as soon as it was sure: enough to learn from, not to tell a user.
    Assessed(Assessment),
}

impl From<FitRefusal> for AssessmentRefusal {
    fn from(refusal: FitRefusal) -> Self {
        Self::Explained(refusal)
    }
}

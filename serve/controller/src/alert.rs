//! Alerts: states that an operator is told of when they begin and when they end.
//!
//! They follow from the history as everything does, so that a restart loses none. The latest [`ALERTS_MAX`] changes are
//! kept; a reader that is slower is told that some are missing.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Changes of alerts that are kept.
pub(crate) const ALERTS_MAX: usize = 10_000;

/// A state that needs an operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertKind {
    /// A workload missed its SLO in the last hour.
    SloMissed,
    /// A workload sends more than its limits.
    LimitsOutgrown,
    /// A workload uses up the error budget of a month within two days.
    BudgetBurnsFast,
    /// A workload uses up the error budget of a month within five days.
    BudgetBurnsSlowly,
    /// The agent of a host does not report.
    AgentSilent,
    /// A host enforces other than it had confirmed, or cannot apply what is wanted.
    EnforcementDiffers,
    /// The certificate of the controller ends soon, or has ended.
    CertificateEnds,
}

/// Beginning or end of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum AlertState {
    Firing,
    Resolved,
}

/// A change of an alert.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Alert {
    /// Position in the history. With `alert` and subject it identifies the change.
    pub seq: u64,
    /// Wall clock of the controller, nanoseconds since 1970.
    pub at_ns: u64,
    pub alert: AlertKind,
    pub state: AlertState,
    /// Tenant of the workload that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tenant: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workload: Option<String>,
    /// Host that it is about.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// Sentence with figures.
    pub reason: String,
}

/// Changes of alerts, and how many were forgotten.
#[derive(Debug, Clone, Default)]
pub(crate) struct AlertLog {
    latest: VecDeque<Alert>,
    /// Number of forgotten changes, and the position of the latest.
    forgotten: (u64, u64),
}

impl AlertLog {
    pub(crate) fn push(&mut self, alert: Alert) {
        if self.latest.len() >= ALERTS_MAX
            && let Some(oldest) = self.latest.pop_front()
        {
            self.forgotten = (self.forgotten.0 + 1, oldest.seq);
        }
        self.latest.push_back(alert);
    }

    /// Returns changes of alerts after a position, the oldest first, and true if some before them were forgotten. All of one
    /// event come together, at most `limit` events.
    pub(crate) fn after(&self, seq: u64, limit: usize) -> (Vec<Alert>, bool) {
        let Self { latest, forgotten } = self;
        let first = latest.partition_point(|alert| alert.seq <= seq);
        let mut found: Vec<Alert> = Vec::new();
        let mut events = 0;
        for alert in latest.range(first..) {
            let is_of_last = found.last().is_some_and(|last| last.seq == alert.seq);
            events += usize::from(!is_of_last);
            if events > limit {
                break;
            }
            found.push(alert.clone());
        }
        (found, forgotten.1 > seq)
    }
}

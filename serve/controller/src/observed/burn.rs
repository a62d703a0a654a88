//! Burn rates of error budgets, and their alerts, by the Site Reliability Workbook (ch. 5): a long window says that
//! budget is lost, a short one that it still is. The two pairs of windows alert independently of each other, as the
//! rules for Prometheus do.

use super::record::{FIVE_MINUTES, HALF_HOUR, HOUR, LateCounts, SIX_HOURS, WorkloadRecord};
use model::Slo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Least number of late requests in the long window for an alert.
const ALERT_LATE_MIN: u64 = 10;

/// Alert on the burn rate of the error budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BurnAlert {
    /// The budget of a month would last for two days: in the last hour and the last five minutes.
    Fast,
    /// It would last for five days: in the last six hours and the last half hour.
    Slow,
}

impl BurnAlert {
    pub const ALL: [Self; 2] = [Self::Fast, Self::Slow];

    /// Returns the long and the short window, and the burn rate above which both alert: 2 % of a month's budget in an
    /// hour, 5 % in six.
    fn windows(self) -> (Window, Window, f64) {
        match self {
            Self::Fast => ((HOUR, "hour"), (FIVE_MINUTES, "five minutes"), 14.4),
            Self::Slow => ((SIX_HOURS, "six hours"), (HALF_HOUR, "half hour"), 6.0),
        }
    }
}

/// Length in nanoseconds, and words for it.
type Window = (u64, &'static str);

/// The windows of an alert at an instant.
#[derive(Debug, Clone)]
pub(super) struct Burn {
    alert: BurnAlert,
    slo: Slo,
    long: LateCounts,
    short: LateCounts,
    /// True if the requests of all of the short window are known.
    pub(super) knows_short: bool,
}

impl Burn {
    pub(super) fn new(alert: BurnAlert, record: &WorkloadRecord, slo: Slo, now: u64) -> Self {
        let ((long, _), (short, _), _) = alert.windows();
        let knows_short = now.saturating_sub(record.since) >= short;
        let long = record.late(now, long);
        let short = record.late(now, short);
        Self { alert, slo, long, short, knows_short }
    }

    /// Returns the burn rate above which it alerts. With a large budget even a burn rate of all requests late is small.
    fn rate_max(&self) -> f64 {
        let (_, _, rate) = self.alert.windows();
        rate.min(0.5 / budget(self.slo))
    }

    /// Returns true if both windows are above it.
    pub(super) fn fires(&self) -> bool {
        let is_above =
            |counts: LateCounts| burn_rate(counts, self.slo).is_some_and(|burn| burn > self.rate_max());
        self.long.late >= ALERT_LATE_MIN && is_above(self.long) && is_above(self.short)
    }

    /// Returns the reason in a sentence, with figures.
    pub(super) fn reason(&self) -> String {
        let ((_, long), (_, short), _) = self.alert.windows();
        let rate = |counts: LateCounts| {
            burn_rate(counts, self.slo).map_or_else(|| "none".to_owned(), |burn| format!("{burn:.1}"))
        };
        let LateCounts { requests, late } = self.long;
        format!(
            "{late} of {requests} requests of the last {long} took longer than {}: the burn rate of the error budget was \
             {} in the last {long} and {} in the last {short}; above {:.1} in both is an alert",
            self.slo.latency,
            rate(self.long),
            rate(self.short),
            self.rate_max(),
        )
    }
}

/// Returns the most urgent alert.
pub(super) fn burn_alert(record: &WorkloadRecord, slo: Slo, now: u64) -> Option<BurnAlert> {
    BurnAlert::ALL.into_iter().find(|alert| Burn::new(*alert, record, slo, now).fires())
}

/// Share of requests that may be late.
pub(super) fn budget(slo: Slo) -> f64 {
    1.0 - slo.percentile.fraction()
}

/// Returns the share of late requests over the share that may be late: 1 uses up the budget exactly. `None` without
/// requests or budget.
pub(super) fn burn_rate(counts: LateCounts, slo: Slo) -> Option<f64> {
    let budget = budget(slo);
    (counts.requests > 0 && budget > 0.0).then(|| counts.late as f64 / counts.requests as f64 / budget)
}

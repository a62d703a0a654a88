//! Verdicts on the promise of a workload, from its requests.

use super::burn::{BurnAlert, budget, burn_alert};
use super::counts::Counts;
use super::record::{FIVE_MINUTES, HOUR, WorkloadRecord};
use model::{Slo, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;
use units::Seconds;
use verify::{Judgement, judge_counted};

/// Confidence of a verdict, that of `tailwright verify`.
pub(super) const CONFIDENCE: f64 = 0.95;
/// Verdict on an observed workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ObservedVerdict {
    /// No request was reported in the last hour.
    NoData,
    /// Too few requests for a verdict with the required confidence.
    TooFew,
    /// The SLO was met in the last hour.
    Met,
    /// The SLO was not met in the last hour.
    NotMet,
    /// The SLO was not missed in the last hour, but in the last five minutes more requests were beyond the limits than it
    /// allows to be late. Bounds do not cover them.
    Outgrows,
}

impl ObservedVerdict {
    pub const ALL: [Self; 5] = [Self::NoData, Self::TooFew, Self::Met, Self::NotMet, Self::Outgrows];

    /// Returns the word for it in documents.
    pub fn word(self) -> &'static str {
        match self {
            Self::NoData => "no_data",
            Self::TooFew => "too_few",
            Self::Met => "met",
            Self::NotMet => "not_met",
            Self::Outgrows => "outgrows",
        }
    }

    /// Returns true if requests decided it.
    pub(super) fn is_certain(self) -> bool {
        matches!(self, Self::Met | Self::NotMet | Self::Outgrows)
    }
}

impl fmt::Display for ObservedVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

/// A verdict with its evidence.
#[derive(Debug, Clone)]
pub(super) struct JudgedRecord {
    pub(super) verdict: ObservedVerdict,
    /// The requests of the last hour.
    pub(super) judgement: Judgement,
    /// Requests of the last five minutes.
    pub(super) recent: Counts,
    pub(super) alert: Option<BurnAlert>,
}

pub(super) fn judge_record(record: &WorkloadRecord, slo: Slo, now: u64) -> JudgedRecord {
    let judgement = judge_counted(&record.counted(now, HOUR, |counts| counts.late), slo, CONFIDENCE);
    let recent = record.counted(now, FIVE_MINUTES, |counts| counts.beyond_limits);
    let beyond = judge_counted(&recent, slo, CONFIDENCE).verdict;
    let verdict = match (beyond, judgement.verdict) {
        _ if judgement.requests == 0 => ObservedVerdict::NoData,
        // Requests that a stalled server holds up may exceed limits that the workload kept, so a miss comes first.
        (_, Verdict::NotMet) => ObservedVerdict::NotMet,
        (Verdict::NotMet, _) => ObservedVerdict::Outgrows,
        (_, Verdict::Met) => ObservedVerdict::Met,
        (_, Verdict::TooFew) => ObservedVerdict::TooFew,
    };
    let recent = record.window(now, FIVE_MINUTES);
    JudgedRecord { verdict, judgement, recent, alert: burn_alert(record, slo, now) }
}

impl JudgedRecord {
    /// Returns the reason in a sentence, with figures; where requests were beyond the limits, with limits that would have
    /// held.
    pub(super) fn reason(&self, slo: Slo, limits_needed: Option<&str>) -> String {
        let Judgement { requests, over, .. } = self.judgement;
        let hour = format!("{over} of {requests} requests of the last hour took longer than {}", slo.latency);
        let budget = format!("{} of requests may", percent(budget(slo)));
        let needed = || limits_needed.map_or_else(String::new, |needed| format!("; {needed}"));
        match self.verdict {
            ObservedVerdict::NoData => "no request was reported in the last hour".to_owned(),
            ObservedVerdict::TooFew => match self.judgement.needed_requests {
                Some(needed) if needed < u64::MAX => format!("{hour}; a verdict takes about {needed}"),
                _ => format!("{hour}; that does not decide"),
            },
            ObservedVerdict::NotMet if self.recent.beyond_limits > 0 => {
                format!("{hour}; {budget}; {}{}", self.beyond_limits(), needed())
            }
            ObservedVerdict::Met | ObservedVerdict::NotMet => format!("{hour}; {budget}"),
            ObservedVerdict::Outgrows => {
                let beyond = self.beyond_limits();
                format!("{beyond}; bounds do not cover them, and {budget} be late{}", needed())
            }
        }
    }

    /// Returns the figures of requests beyond the limits.
    fn beyond_limits(&self) -> String {
        let Counts { requests, beyond_limits, beyond_limits_waited_s, .. } = self.recent;
        let share = percent(beyond_limits as f64 / requests.max(1) as f64);
        let wait = Seconds(beyond_limits_waited_s / beyond_limits.max(1) as f64);
        format!(
            "{beyond_limits} of {requests} requests of the last five minutes ({share}) were beyond the limits and waited \
             for {wait} on average"
        )
    }
}

fn percent(share: f64) -> String {
    let text = format!("{:.3}", 100.0 * share);
    format!("{} %", text.trim_end_matches('0').trim_end_matches('.'))
}

#[cfg(test)]
mod tests {
    use super::super::latencies::LatencyCounts;
    use super::*;

    const S: u64 = 1_000_000_000;

    /// `seconds` of 200 requests each, of which so many are late and so many beyond the limits.
    fn play(record: &mut WorkloadRecord, from: u64, seconds: u64, late: u64, beyond_limits: u64) {
        for second in from..from + seconds {
            let mut latencies = LatencyCounts::default();
            latencies.add(Some(2_000_000), 200 - late);
            latencies.add(Some(300_000_000), late);
            let increment = Counts { requests: 200, late, beyond_limits, latencies, ..Counts::default() };
            record.add(second * S, &increment);
        }
    }

    fn judged(record: &WorkloadRecord, at: u64) -> (ObservedVerdict, Option<BurnAlert>) {
        let judged = judge_record(record, "99% < 100ms".parse().expect("an SLO"), at * S);
        (judged.verdict, judged.alert)
    }

    #[test]
    fn verdicts_follow_the_requests() {
        let mut record = WorkloadRecord::new(0);
        assert_eq!(judged(&record, 0), (ObservedVerdict::NoData, None));
        play(&mut record, 0, 1, 0, 0);
        assert_eq!(judged(&record, 1), (ObservedVerdict::TooFew, None));
        play(&mut record, 1, 600, 0, 0);
        assert_eq!(judged(&record, 601), (ObservedVerdict::Met, None));
        // Half of the requests of a minute and a half.
        play(&mut record, 601, 90, 100, 0);
        // One cluster of late requests decides nothing about the hour, and burns the budget.
        assert_eq!(judged(&record, 691), (ObservedVerdict::TooFew, Some(BurnAlert::Slow)));
        play(&mut record, 691, 300, 100, 0);
        assert_eq!(judged(&record, 991), (ObservedVerdict::NotMet, Some(BurnAlert::Fast)));
        // The short window ends the alert soon after the cause.
        play(&mut record, 991, 320, 0, 0);
        assert_ne!(judged(&record, 1311).1, Some(BurnAlert::Fast));
        // After silence there is nothing to judge.
        assert_eq!(judged(&record, 6 * 3600), (ObservedVerdict::NoData, None));
    }

    #[test]
    fn a_workload_outgrows_before_it_misses() {
        let mut record = WorkloadRecord::new(0);
        play(&mut record, 0, 300, 0, 1);
        assert_eq!(
            judged(&record, 300).0,
            ObservedVerdict::Met,
            "0.5 % beyond the limits is within the budget"
        );
        play(&mut record, 300, 300, 0, 20);
        assert_eq!(judged(&record, 600).0, ObservedVerdict::Outgrows);
        let slo = "99% < 100ms".parse().expect("an SLO");
        let reason = judge_record(&record, slo, 600 * S).reason(slo, None);
        assert!(reason.contains("(10 %) were beyond the limits"), "{reason}");
        play(&mut record, 600, 310, 0, 0);
        assert_eq!(judged(&record, 910).0, ObservedVerdict::Met);
    }

    #[test]
    fn a_large_budget_can_alert() {
        let mut record = WorkloadRecord::new(0);
        play(&mut record, 0, 300, 200, 0);
        let slo: Slo = "90% < 100ms".parse().expect("an SLO");
        assert_eq!(judge_record(&record, slo, 300 * S).alert, Some(BurnAlert::Fast));
    }
}

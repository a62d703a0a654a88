//! What was found, as plain data: what programs read and what experiments print.

use crate::{Judgement, Lag, LimitFinding, StageFinding, Verdict};
use model::Slo;
use serde::{Deserialize, Serialize};
use units::Nanos;

/// A verdict as files have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Conclusion {
    /// The percentile is within the SLO.
    Met,
    /// It is not.
    NotMet,
    /// Neither can be said: too few requests, or requests that were sent too late.
    TooFew,
}

/// What observations say about one workload with an SLO.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// The workload.
    pub name: String,
    /// The policy under which it ran, if any.
    pub policy: Option<String>,
    /// Whether the policy guarantees the SLO; true when there is no policy. Others are only compared.
    pub admitted: bool,
    /// As people write it.
    pub slo: Slo,
    /// Its latency, seconds.
    pub slo_s: f64,
    /// Its percentile, 0–100.
    pub percentile: f64,
    /// That percentile of the observations, seconds; none without requests or when that request got no answer.
    pub measured_s: Option<f64>,
    /// The true percentile is at least this, seconds; none as before.
    pub ci_low_s: Option<f64>,
    /// And at most this; none also when there are too few requests.
    pub ci_high_s: Option<f64>,
    /// What may be said.
    pub verdict: Conclusion,
    /// With too few: how many requests it would take, if that can be said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_requests: Option<u64>,
    /// And how long at the observed rate, seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_s: Option<f64>,
    /// How many were observed.
    pub requests: u64,
    /// How many of them took longer than the SLO allows, failed or were lost.
    pub over: u64,
    /// Answered with an error.
    #[serde(default)]
    pub failed: u64,
    /// Not answered.
    #[serde(default)]
    pub lost: u64,
    /// Requests per second; none when they have but one instant.
    #[serde(default)]
    pub per_s: Option<f64>,
    /// The longest latency of an answered request, seconds.
    #[serde(default)]
    pub max_s: Option<f64>,
    /// Requests that depend on each other as these do tell as much as this share of independent ones, 0 to 1.
    #[serde(default)]
    pub independent_share: f64,
    /// How late requests were sent.
    #[serde(default)]
    pub lag: Option<LagFinding>,
    /// The guarantee, if there is one.
    #[serde(default)]
    pub bound: Option<BoundFinding>,
    /// Whether the traffic, as it was meant to be sent, kept to all of its limits; none without limits, and when
    /// some could not be judged and the others were kept.
    #[serde(default)]
    pub kept_limits: Option<bool>,
    /// Traffic as it was meant to be sent against each limit that could be judged.
    #[serde(default)]
    pub limits: Vec<LimitFinding>,
    /// Traffic as it was sent.
    #[serde(default)]
    pub sent_limits: Vec<LimitFinding>,
    /// Time by stage; empty when no stages were observed.
    #[serde(default)]
    pub stages: Vec<StageFinding>,
}

/// A guaranteed latency against what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BoundFinding {
    /// Seconds.
    pub bound_s: f64,
    /// Requests that took longer, failed or were lost.
    pub beyond: u64,
    /// Those of them that came while the workload was within all limits that could be judged: the guarantee was for them.
    pub beyond_within_limits: u64,
}

/// [`Lag`] in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct LagFinding {
    /// Half of the requests were sent at most so late.
    pub median_s: f64,
    /// At the percentile of the SLO.
    pub at_percentile_s: f64,
    /// The latest.
    pub max_s: f64,
    /// Whether it is so large that no verdict can be given.
    pub spoils: bool,
}

/// A workload that was observed and has no SLO.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Unjudged {
    /// The workload.
    pub name: String,
    /// How many were observed.
    pub requests: u64,
    /// Answered with an error.
    pub failed: u64,
    /// Not answered.
    pub lost: u64,
    /// Requests per second; none when they have but one instant.
    pub per_s: Option<f64>,
    /// Half of the answered at most so long, seconds.
    pub p50_s: Option<f64>,
    /// 99 of 100.
    pub p99_s: Option<f64>,
    /// The longest.
    pub max_s: Option<f64>,
}

/// Everything that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// Of each verdict, 0 to 1.
    pub confidence: f64,
    /// By workload with an SLO, in the order in which they were promised.
    pub workloads: Vec<Finding>,
    /// The others, in the order of the observations.
    pub unjudged: Vec<Unjudged>,
}

/// What all workloads with a guarantee say together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// Every SLO is met.
    AllMet,
    /// Some SLO is not met.
    SomeNotMet,
    /// None is missed for sure, but some verdict is spoiled by requests that were sent too late.
    Spoiled,
    /// None is missed for sure, but there are too few requests for some verdict.
    TooFew,
}

impl Finding {
    /// What a judgement says, with nothing about bounds, limits, lag and stages.
    pub fn of(name: impl Into<String>, policy: Option<String>, judged: &Judgement) -> Self {
        let seconds = |at: Option<Nanos>| at.map(Nanos::as_secs);
        let (verdict, needed_requests) = match judged.verdict {
            Verdict::Met => (Conclusion::Met, None),
            Verdict::NotMet => (Conclusion::NotMet, None),
            Verdict::TooFew { needed } => (Conclusion::TooFew, needed),
        };
        Self {
            name: name.into(),
            policy,
            admitted: true,
            slo: judged.slo,
            slo_s: judged.slo.latency.0,
            percentile: judged.slo.percentile.percent(),
            measured_s: seconds(judged.measured),
            ci_low_s: seconds(judged.low),
            ci_high_s: seconds(judged.high),
            verdict,
            needed_requests,
            needed_s: None,
            requests: judged.requests,
            over: judged.over,
            failed: 0,
            lost: 0,
            per_s: None,
            max_s: None,
            independent_share: judged.independent_share,
            lag: None,
            bound: None,
            kept_limits: None,
            limits: Vec::new(),
            sent_limits: Vec::new(),
            stages: Vec::new(),
        }
    }

    /// Adds how late requests were sent. When that spoils the verdict, there is none.
    #[must_use]
    pub fn with_lag(mut self, lag: Option<Lag>) -> Self {
        let slo = Nanos::from_secs(self.slo_s).unwrap_or(Nanos(u64::MAX));
        self.lag = lag.map(|lag| LagFinding {
            median_s: lag.median.as_secs(),
            at_percentile_s: lag.at_percentile.as_secs(),
            max_s: lag.max.as_secs(),
            spoils: lag.spoils(slo),
        });
        if self.is_spoiled() {
            (self.verdict, self.needed_requests, self.needed_s) = (Conclusion::TooFew, None, None);
        }
        self
    }

    /// Whether requests were sent so late that no verdict can be given.
    pub fn is_spoiled(&self) -> bool {
        self.lag.is_some_and(|lag| lag.spoils)
    }
}

impl Findings {
    /// What the workloads with a guarantee say together; all is met where there are none.
    pub fn answer(&self) -> Answer {
        let all: Vec<&Finding> = self.workloads.iter().filter(|found| found.admitted).collect();
        let some = |verdict| all.iter().any(|found| found.verdict == verdict);
        match () {
            () if some(Conclusion::NotMet) => Answer::SomeNotMet,
            () if all.iter().any(|found| found.is_spoiled()) => Answer::Spoiled,
            () if some(Conclusion::TooFew) => Answer::TooFew,
            () => Answer::AllMet,
        }
    }
}

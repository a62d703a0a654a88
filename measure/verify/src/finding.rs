//! Results of verification as plain data, for JSON, tables and reports.

use crate::judge::Judgement;
use crate::lag::LagSummary;
use crate::limit_check::LimitFinding;
use crate::stage_breakdown::StageFinding;
use model::{Objective, Op, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Nanos;

/// Relative tolerance of a latency above a bound: simulated times are whole nanoseconds.
const ROUNDING: f64 = 1e-6;

/// Results for one SLO of a workload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Finding {
    /// The name of the workload.
    pub name: String,
    /// The direction of the requests that the SLO is about; absent if it is about all. Requests of the other direction
    /// count only in the limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub direction: Option<Op>,
    /// The policy under which it ran, if any.
    pub policy: Option<String>,
    /// True if the policy guarantees the SLO, or if there is no policy. Without a guarantee, observations
    /// are only compared with the SLO.
    pub admitted: bool,
    /// Comparison of the observations with the SLO.
    #[serde(flatten)]
    pub judgement: Judgement,
    /// Time for the number of requests that a verdict needs, at the observed rate, in seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_s: Option<f64>,
    /// The number of requests that were answered with an error.
    #[serde(default)]
    pub failed: u64,
    /// The number of requests that were not answered.
    #[serde(default)]
    pub lost: u64,
    /// Requests per second; `None` when all were intended at one instant.
    #[serde(default)]
    pub per_s: Option<f64>,
    /// The longest latency of an answered request in seconds.
    #[serde(default)]
    pub max_s: Option<f64>,
    /// Delay between the intended times and the sending of requests.
    #[serde(default)]
    pub lag: Option<LagFinding>,
    /// The guaranteed latency compared with the observations, if there is a guarantee.
    #[serde(default)]
    pub bound: Option<BoundFinding>,
    /// True if the traffic, as it was intended, conformed to all of its limits. `None` without limits,
    /// and when some could not be judged and the traffic conformed to the others.
    #[serde(default)]
    pub kept_limits: Option<bool>,
    /// The same of the traffic as it was sent.
    #[serde(default)]
    pub kept_limits_sent: Option<bool>,
    /// The traffic as it was intended, compared with each limit that could be judged. Only the first of several findings of
    /// a workload lists limits.
    #[serde(default)]
    pub limits: Vec<LimitFinding>,
    /// The traffic as it was sent, compared with the same limits.
    #[serde(default)]
    pub sent_limits: Vec<LimitFinding>,
    /// The time by stage; empty when no stages were observed.
    #[serde(default)]
    pub stages: Vec<StageFinding>,
    /// The percentile in windows of the length that [`Findings::window_s`] says; empty when the run is shorter than one.
    #[serde(default)]
    pub windows: Vec<SloWindow>,
}

/// Observations of a workload in one window of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SloWindow {
    /// When the window begins, in seconds of the run.
    pub from_s: f64,
    /// Number of requests whose intended time is in the window.
    pub requests: u64,
    /// Number of those requests that took longer than the SLO allows, failed or were lost.
    pub over: u64,
    /// The percentile of the SLO of their latencies in seconds; `None` without requests or when that request got no answer.
    pub measured_s: Option<f64>,
    /// Comparison of that percentile with the SLO. There are too few requests if the percentile is the
    /// longest latency: fewer than 1 ÷ (1 − the percentile's fraction).
    pub verdict: Verdict,
}

/// A guaranteed latency compared with what was measured.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BoundFinding {
    /// The guaranteed latency in seconds.
    pub bound_s: f64,
    /// The number of requests that took longer, failed or were lost.
    pub beyond: u64,
    /// The number of those requests that arrived while the workload was within all limits that could be judged. The
    /// guarantee covers only these.
    pub beyond_within_limits: u64,
    /// The number of answered requests that took longer from when they were sent, where the bound is about every request
    /// and the workload kept all its limits, as intended and as sent. Each of them breaks the bound.
    #[serde(default)]
    pub broken: u64,
    /// True if the bound covers every request; false if it is a percentile or assumes a server that
    /// interrupts all work.
    #[serde(default)]
    pub covers_every_request: bool,
}

impl BoundFinding {
    /// A latency beyond the bound: rounding of the parts that it is made of, a millionth in all, is not.
    pub fn is_beyond(bound_s: f64, latency_s: f64) -> bool {
        latency_s > bound_s * (1.0 + ROUNDING)
    }
}

/// A [`LagSummary`] in seconds, with its consequence.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LagFinding {
    /// The median lag in seconds.
    pub median_s: f64,
    /// The lag at the percentile of the SLO, in seconds.
    pub at_percentile_s: f64,
    /// The largest lag in seconds.
    pub max_s: f64,
    /// True if the lag is too large for a verdict.
    pub spoils: bool,
}

/// A workload that was observed and has no SLO.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct UnjudgedWorkload {
    /// The name of the workload.
    pub name: String,
    /// The number of observed requests.
    pub requests: u64,
    /// The number of requests that were answered with an error.
    pub failed: u64,
    /// The number of requests that were not answered.
    pub lost: u64,
    /// Requests per second; `None` when all were intended at one instant.
    pub per_s: Option<f64>,
    /// The median latency of answered requests in seconds.
    pub p50_s: Option<f64>,
    /// The 99th percentile of their latency in seconds.
    pub p99_s: Option<f64>,
    /// The longest of their latencies in seconds.
    pub max_s: Option<f64>,
}

/// Results of the verification of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Findings {
    /// The confidence of each verdict, 0 to 1.
    pub confidence: f64,
    /// The length of the windows in seconds; `None` where percentiles were not taken by window.
    #[serde(default)]
    pub window_s: Option<f64>,
    /// The workloads with an SLO, in the order of their agreements: a workload with several SLOs once for each.
    pub workloads: Vec<Finding>,
    /// The other workloads, in the order of the observations.
    pub unjudged: Vec<UnjudgedWorkload>,
}

/// Common verdict on all workloads with a guarantee.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OverallVerdict {
    /// Every SLO is met.
    #[serde(rename = "met")]
    AllMet,
    /// A request took longer than the bound of a workload that kept its limits. Either the guarantee is
    /// false, or the assumptions about clients and devices do not hold.
    BoundBroken,
    /// Some SLO is not met.
    #[serde(rename = "not_met")]
    SomeNotMet,
    /// No SLO is certainly missed, but some verdict is spoiled by requests that were sent too late.
    Spoiled,
    /// No SLO is certainly missed, but there are too few requests for some verdict.
    TooFew,
}

impl Finding {
    /// Makes a finding from a judgement, without bounds, limits, lag and stages.
    pub fn from_judgement(name: impl Into<String>, policy: Option<String>, judgement: Judgement) -> Self {
        Self {
            name: name.into(),
            direction: None,
            policy,
            admitted: true,
            judgement,
            needed_s: None,
            failed: 0,
            lost: 0,
            per_s: None,
            max_s: None,
            lag: None,
            bound: None,
            kept_limits: None,
            kept_limits_sent: None,
            limits: Vec::new(),
            sent_limits: Vec::new(),
            stages: Vec::new(),
            windows: Vec::new(),
        }
    }

    /// Adds the lag of requests. If the lag is too large, the verdict becomes [`Verdict::TooFew`].
    #[must_use]
    pub fn with_lag(mut self, lag: Option<LagSummary>) -> Self {
        let slo = Nanos::from_secs(self.judgement.slo_s).unwrap_or(Nanos(u64::MAX));
        self.lag = lag.map(|lag| LagFinding {
            median_s: lag.median.as_secs(),
            at_percentile_s: lag.at_percentile.as_secs(),
            max_s: lag.max.as_secs(),
            spoils: lag.spoils(slo),
        });
        if self.is_spoiled() {
            self.judgement.verdict = Verdict::TooFew;
            self.judgement.needed_requests = None;
            self.needed_s = None;
        }
        self
    }

    /// The SLO with the direction of its requests.
    pub fn objective(&self) -> Objective {
        Objective { slo: self.judgement.slo, requests: self.direction }
    }

    /// True if some request took longer than its bound although the workload kept its limits.
    pub fn is_bound_broken(&self) -> bool {
        self.bound.is_some_and(|bound| bound.broken > 0)
    }

    /// True if the lag of requests is too large for a verdict.
    pub fn is_spoiled(&self) -> bool {
        self.lag.is_some_and(|lag| lag.spoils)
    }
}

impl Findings {
    /// Returns a name for a finding that no other has: that of the workload, with the SLO if the workload has several.
    pub fn label(&self, finding: &Finding) -> String {
        match self.workloads.iter().filter(|other| other.name == finding.name).count() {
            0 | 1 => finding.name.clone(),
            _ => format!("{}: {}", finding.name, finding.objective()),
        }
    }

    /// Returns the common verdict on the workloads with a guarantee: the worst that is certain. Without
    /// any, all are met.
    pub fn overall(&self) -> OverallVerdict {
        let guaranteed: Vec<&Finding> = self.workloads.iter().filter(|finding| finding.admitted).collect();
        if guaranteed.iter().any(|finding| finding.is_bound_broken()) {
            OverallVerdict::BoundBroken
        } else if guaranteed.iter().any(|finding| finding.judgement.verdict == Verdict::NotMet) {
            OverallVerdict::SomeNotMet
        } else if guaranteed.iter().any(|finding| finding.is_spoiled()) {
            OverallVerdict::Spoiled
        } else if guaranteed.iter().any(|finding| finding.judgement.verdict == Verdict::TooFew) {
            OverallVerdict::TooFew
        } else {
            OverallVerdict::AllMet
        }
    }
}

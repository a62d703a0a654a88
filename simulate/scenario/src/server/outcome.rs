//! Judgement of a simulated workload's SLO.
//!
//! The percentile is that of all measured requests of all replications together, because an SLO is about requests.
//! Its interval is Woodruff's: the share of requests at or below the percentile differs from replication to
//! replication, Student's t says how well its mean is known, and the shares at both ends are read back as
//! latencies. So dependence among the requests of a replication is accounted for, and no distribution is assumed
//! of latencies. An end that would lie beyond the longest latency is not known.
//!
//! Too few requests: fewer than a distribution-free upper limit of the percentile needs, if requests were
//! independent ([`needed_for_tolerance`]); they are not quite, so more is better.

use crate::ScenarioRun;
use ::model::{Slo, Verdict};
use confidence::needed_for_tolerance;
use schemars::JsonSchema;
use serde::{Serialize, Serializer};
use sim::engine::{Estimate, Histogram};
use units::{Nanos, Percentile};

/// The percentile that is measured of a workload without an SLO.
const PERCENT_WITHOUT_SLO: f64 = 99.0;

/// Latencies of a workload in a simulation, with the verdict on its SLO.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WorkloadOutcome {
    /// The name of the workload.
    pub name: String,
    /// Latency of its SLO, in seconds; null for best effort.
    #[serde(rename = "slo_s", serialize_with = "slo_seconds")]
    #[schemars(with = "Option<f64>")]
    pub slo: Option<Slo>,
    /// Measured percentile, 0 to 100: that of the SLO, or 99.
    #[serde(serialize_with = "units::in_base_units")]
    #[schemars(with = "f64")]
    pub percentile: Percentile,
    /// That percentile of the response times, in seconds; null without requests.
    pub measured_s: Option<f64>,
    /// Lower end of its confidence interval, in seconds.
    pub ci_low_s: Option<f64>,
    /// Upper end of its confidence interval, in seconds.
    pub ci_high_s: Option<f64>,
    /// Verdict on the SLO by the measured percentile; null without an SLO.
    pub verdict: Option<Verdict>,
    /// Number of requests that a verdict needs, if there are too few; none for an SLO of 100 %, which no number
    /// of requests proves.
    #[serde(skip)]
    pub needed_requests: Option<u64>,
    /// Requests measured, of all replications.
    pub requests: u64,
    /// Share of the requests that took longer than the SLO; null without an SLO and without requests.
    pub over_slo: Option<f64>,
    /// Completions per second within the window.
    pub throughput_per_s: f64,
    /// Response times of all replications.
    #[serde(skip)]
    pub response: Histogram,
}

fn slo_seconds<S: Serializer>(slo: &Option<Slo>, serializer: S) -> Result<S::Ok, S::Error> {
    slo.map(|slo| slo.latency.0).serialize(serializer)
}

impl ScenarioRun {
    /// The outcome of each workload of a storage server; empty for other scenarios.
    pub fn workload_outcomes(&self) -> Vec<WorkloadOutcome> {
        (0..self.case.workloads.len()).map(|class| self.outcome(class)).collect()
    }

    fn outcome(&self, class: usize) -> WorkloadOutcome {
        let workload = &self.case.workloads[class];
        let confidence = self.report.confidence;
        let runs: Vec<&Histogram> = self.report.runs.iter().map(|run| run.response_of(class)).collect();
        let mut response = Histogram::default();
        runs.iter().for_each(|run| response.merge(run));
        let percentile = workload.slo.map_or_else(percentile_without_slo, |slo| slo.percentile);
        let measured = response.percentile(percentile);
        let interval = measured
            .and_then(|measured| woodruff_interval(&runs, &response, percentile, measured, confidence));
        let interval = interval.unwrap_or_default();
        let seconds: f64 = self.report.runs.iter().map(|run| run.duration.as_secs()).sum();
        let judged = workload.slo.map(|slo| verdict(slo, measured, response.count(), confidence));
        WorkloadOutcome {
            name: workload.name.clone(),
            slo: workload.slo,
            percentile,
            measured_s: measured.map(|measured| measured.0 as f64 / 1e9),
            ci_low_s: interval.low_ns.map(|ns| ns / 1e9),
            ci_high_s: interval.high_ns.map(|ns| ns / 1e9),
            verdict: judged.map(|(verdict, _)| verdict),
            needed_requests: judged.and_then(|(_, needed)| needed),
            requests: response.count(),
            over_slo: workload.slo.and_then(|slo| response.share_above(slo_ns(slo))),
            throughput_per_s: if seconds > 0.0 { response.count() as f64 / seconds } else { 0.0 },
            response,
        }
    }
}

fn percentile_without_slo() -> Percentile {
    Percentile::new(PERCENT_WITHOUT_SLO).expect("99 is a percentile")
}

/// The latency of the SLO in nanoseconds.
fn slo_ns(slo: Slo) -> u64 {
    // A float beyond u64 becomes the largest.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ns = (slo.latency.0 * 1e9).round() as u64;
    ns
}

/// Compares the measured percentile with the SLO. With too few requests, the second value is the number that
/// a verdict needs; an SLO of 100 % has none, because no number of requests proves it.
fn verdict(slo: Slo, measured: Option<Nanos>, requests: u64, confidence: f64) -> (Verdict, Option<u64>) {
    let coverage = slo.percentile.percent() / 100.0;
    let is_over = measured.is_some_and(|measured| measured.0 > slo_ns(slo));
    if coverage >= 1.0 {
        // A request may be longer than all before it: one shows that the SLO is missed, none that it is met.
        return (if is_over { Verdict::NotMet } else { Verdict::TooFew }, None);
    }
    let needed = needed_for_tolerance(coverage, confidence) as u64;
    if requests < needed || measured.is_none() {
        return (Verdict::TooFew, Some(needed));
    }
    (if is_over { Verdict::NotMet } else { Verdict::Met }, None)
}

/// A confidence interval of a percentile; an end that lies beyond the longest latency is not known.
#[derive(Debug, Clone, Copy, Default)]
struct PercentileInterval {
    low_ns: Option<f64>,
    high_ns: Option<f64>,
}

/// Woodruff's interval of a percentile that was measured; none with a single replication.
fn woodruff_interval(
    runs: &[&Histogram],
    all: &Histogram,
    percentile: Percentile,
    measured: Nanos,
    confidence: f64,
) -> Option<PercentileInterval> {
    let mean = all.count() as f64 / runs.len() as f64;
    let share = all.at_or_below(measured.0) as f64 / all.count() as f64;
    // A share is a ratio estimate: replications differ both in the number of requests and in the number
    // below.
    let residuals: Vec<f64> = runs
        .iter()
        .map(|run| (run.at_or_below(measured.0) as f64 - share * run.count() as f64) / mean)
        .collect();
    let half = Estimate::of(&residuals, confidence)?.half_width;
    if !half.is_finite() {
        return None;
    }
    let wanted = percentile.percent() / 100.0;
    let low_ns = latency_at_share(all, wanted - half);
    let high_ns = if half == 0.0 { Some(measured.0 as f64) } else { latency_at_share(all, wanted + half) };
    Some(PercentileInterval { low_ns, high_ns })
}

/// The latency at or below which this share of the requests is, nanoseconds.
fn latency_at_share(all: &Histogram, share: f64) -> Option<f64> {
    let percentile = Percentile::new(100.0 * share).filter(|_| share > 0.0 && share < 1.0)?;
    Some(all.percentile(percentile)?.0 as f64)
}

//! Whether a simulated workload keeps its SLO.
//!
//! The percentile is that of all measured requests of all replications together, because an SLO is about requests.
//! Its interval is Woodruff's: the share of requests at or below the percentile differs from replication to
//! replication, Student's t says how well its mean is known, and the shares at both ends are read back as
//! latencies. So dependence among the requests of a replication is accounted for, and no distribution is assumed
//! of latencies. An end that would lie beyond the longest latency is not known.
//!
//! Too few requests: fewer than a distribution-free upper limit of the percentile needs, if requests were
//! independent ([`needed_for_tolerance`]); they are not quite, so more is better.

use crate::Run;
use ::model::Slo;
use confidence::needed_for_tolerance;
use sim::engine::{Estimate, Histogram, Measures};
use units::{Nanos, Percentile};

/// Whether an SLO was kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// The percentile is at most the SLO.
    Met,
    /// It is not.
    Missed,
    /// There are too few requests for the percentile to mean anything.
    TooFew {
        /// How many there should be.
        needed: u64,
    },
}

/// What a workload saw.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// The workload.
    pub name: String,
    /// What it asks for; none for best effort.
    pub slo: Option<Slo>,
    /// The percentile that is measured: that of the SLO, or 99.
    pub percentile: Percentile,
    /// Requests measured, of all replications.
    pub requests: u64,
    /// Nanoseconds; none without requests.
    pub measured_ns: Option<f64>,
    /// Lower end of its confidence interval, nanoseconds.
    pub low_ns: Option<f64>,
    /// Upper end.
    pub high_ns: Option<f64>,
    /// Share of the requests that took longer than the SLO.
    pub over: Option<f64>,
    /// None without an SLO.
    pub kept: Option<Kept>,
    /// Completions per second within the window.
    pub per_second: f64,
    /// Response times of all replications.
    pub response: Histogram,
}

/// Of a workload without an SLO.
const PLAIN_PERCENT: f64 = 99.0;

impl Run {
    /// What each workload of a storage server saw; empty for other scenarios.
    pub fn workloads(&self) -> Vec<Outcome> {
        (0..self.case.tenants.len()).map(|class| self.outcome(class)).collect()
    }

    fn outcome(&self, class: usize) -> Outcome {
        let tenant = &self.case.tenants[class];
        let runs: Vec<&Histogram> = self.report.runs.iter().map(|run| of_class(run, class)).collect();
        let mut response = Histogram::default();
        runs.iter().for_each(|run| response.merge(run));
        let plain = || Percentile::new(PLAIN_PERCENT).expect("99 is a percentile");
        let percentile = tenant.slo.map_or_else(plain, |slo| slo.percentile);
        let measured = response.percentile(percentile);
        let interval =
            measured.and_then(|at| woodruff(&runs, &response, percentile, at, self.report.confidence));
        let seconds: f64 = self.report.runs.iter().map(|run| run.duration.as_secs()).sum();
        Outcome {
            name: tenant.name.clone(),
            slo: tenant.slo,
            percentile,
            requests: response.count(),
            measured_ns: measured.map(|at| at.0 as f64),
            low_ns: interval.and_then(|(low, _)| low),
            high_ns: interval.and_then(|(_, high)| high),
            over: tenant.slo.and_then(|slo| share_over(&response, limit(slo))),
            kept: tenant.slo.map(|slo| kept(slo, measured, response.count(), self.report.confidence)),
            per_second: if seconds > 0.0 { response.count() as f64 / seconds } else { 0.0 },
            response,
        }
    }
}

/// Response times of a class; the engine keeps them apart only where there are several.
fn of_class(run: &Measures, class: usize) -> &Histogram {
    if run.by_class.len() > 1 { &run.by_class[class] } else { &run.response }
}

/// The SLO in nanoseconds.
fn limit(slo: Slo) -> u64 {
    // Saturates.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let ns = (slo.latency.0 * 1e9).round() as u64;
    ns
}

fn share_over(response: &Histogram, limit: u64) -> Option<f64> {
    let count = response.count();
    (count > 0).then(|| (count - response.at_or_below(limit)) as f64 / count as f64)
}

fn kept(slo: Slo, measured: Option<Nanos>, requests: u64, confidence: f64) -> Kept {
    let coverage = slo.percentile.percent() / 100.0;
    // The largest of all is asked for: no number of requests says what it is.
    let needed = if coverage < 1.0 { needed_for_tolerance(coverage, confidence) as u64 } else { 1 };
    match measured {
        Some(at) if requests >= needed => {
            if at.0 <= limit(slo) {
                Kept::Met
            } else {
                Kept::Missed
            }
        }
        _ => Kept::TooFew { needed },
    }
}

type Interval = (Option<f64>, Option<f64>);

/// The ends of the interval of a percentile; none with a single replication.
fn woodruff(
    runs: &[&Histogram],
    all: &Histogram,
    percentile: Percentile,
    at: Nanos,
    confidence: f64,
) -> Option<Interval> {
    let mean = all.count() as f64 / runs.len() as f64;
    let share = all.at_or_below(at.0) as f64 / all.count() as f64;
    // A share of all is a ratio: replications differ in both, how many requests they have and how many are below.
    let residual = |run: &&Histogram| (run.at_or_below(at.0) as f64 - share * run.count() as f64) / mean;
    let half = Estimate::of(&runs.iter().map(residual).collect::<Vec<_>>(), confidence)?.half_width;
    if !half.is_finite() {
        return None;
    }
    let end = |share: f64| Some(all.percentile(Percentile::new(100.0 * share)?)?.0 as f64);
    let wanted = percentile.percent() / 100.0;
    let end = |share: f64| if share > 0.0 && share < 1.0 { end(share) } else { None };
    Some((end(wanted - half), if half == 0.0 { Some(at.0 as f64) } else { end(wanted + half) }))
}

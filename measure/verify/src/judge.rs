//! Compares observations with an SLO.
//!
//! An SLO "99.9 % < 50 ms" is met when at most 0.1 % of requests take longer than 50 ms in the long run,
//! not only in this sample. The verdict therefore depends on the interval of the true percentile: met
//! when all of it is within the SLO, not met when none of it is, and open in between. A request that
//! failed or was lost counts as infinitely long.
//!
//! Latencies of neighbours depend on each other. The intervals include the design effect of the requests
//! beyond the measured percentile, at least a hundred of them. Dependence over more than a twelfth of the
//! observations is not noticed.

use confidence::{design_effect, nearest_rank, quantile, t_quantile};
use model::{Slo, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::Nanos;

/// Minimum number of the longest latencies for an estimate of the dependence.
const TAIL_EVENTS_MIN: usize = 100;
/// The latency of a request without an answer, in nanoseconds: it is longer than any other.
const NO_ANSWER: u64 = u64::MAX;
/// Degrees of freedom at which Student's distribution is the normal distribution for all purposes.
const NORMAL_DEGREES: usize = 100_000;

/// Observations compared with an SLO.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Judgement {
    /// The SLO in its text form.
    pub slo: Slo,
    /// The latency of the SLO in seconds.
    pub slo_s: f64,
    /// The percentile of the SLO, 0 to 100.
    pub percentile: f64,
    /// That percentile of the observations by nearest rank, in seconds; `None` without requests or when that
    /// request got no answer.
    pub measured_s: Option<f64>,
    /// The lower end of the interval for the true percentile in seconds; `None` under the same conditions.
    pub ci_low_s: Option<f64>,
    /// The upper end of that interval in seconds; `None` also when there are too few requests.
    pub ci_high_s: Option<f64>,
    /// Comparison of the interval of the percentile with the SLO.
    pub verdict: Verdict,
    /// Minimum number of requests for a decision, if the share of slow requests stays the same. `None`
    /// after a decision, and when the measured percentile is too close to the SLO for an estimate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needed_requests: Option<u64>,
    /// The number of requests.
    pub requests: u64,
    /// The number of requests that took longer than the SLO allows, failed or were lost.
    pub over: u64,
    /// Information of each request relative to an independent one, 0 to 1: the inverse of the design
    /// effect.
    #[serde(default)]
    pub independent_share: f64,
}

impl Judgement {
    /// Returns a judgement without a decision.
    fn undecided(slo: Slo, requests: usize, over: usize) -> Self {
        Self {
            slo,
            slo_s: slo.latency.0,
            percentile: slo.percentile.percent(),
            measured_s: None,
            ci_low_s: None,
            ci_high_s: None,
            verdict: Verdict::TooFew,
            needed_requests: None,
            requests: requests as u64,
            over: over as u64,
            independent_share: 1.0,
        }
    }
}

/// Judges latencies in order of intended time, with this confidence for the verdict. `None` stands for a request without
/// an answer.
///
/// # Panics
/// Unless the confidence is strictly between 0 and 1.
pub fn judge(latencies: impl IntoIterator<Item = Option<Nanos>>, slo: Slo, confidence: f64) -> Judgement {
    let by_time: Vec<u64> =
        latencies.into_iter().map(|latency| latency.map_or(NO_ANSWER, |latency| latency.0)).collect();
    let mut sorted = by_time.clone();
    sorted.sort_unstable();
    let count = sorted.len();
    // An SLO beyond what fits into nanoseconds is exceeded only by requests without an answer.
    let allowed = Nanos::from_secs(slo.latency.0).map_or(NO_ANSWER - 1, |latency| latency.0);
    let over = count - sorted.partition_point(|latency| *latency <= allowed);
    let mut judgement = Judgement::undecided(slo, count, over);
    if count == 0 {
        judgement.needed_requests = Some(needed_for_upper_end(slo, confidence, 1.0));
        return judgement;
    }
    let fraction = slo.percentile.fraction();
    let rank = nearest_rank(slo.percentile.percent(), count);
    let effect = tail_design_effect(&by_time, &sorted, count - rank);
    judgement.measured_s = answered(sorted[rank - 1]);
    judgement.independent_share = 1.0 / effect;
    if fraction >= 1.0 {
        // A sample can show that something happens, but not that it never does.
        judgement.ci_low_s = answered(sorted[count - 1]);
        judgement.verdict = if over > 0 { Verdict::NotMet } else { Verdict::TooFew };
        return judgement;
    }
    let bounds = quantile(count, fraction, confidence, effect);
    judgement.ci_low_s = answered(sorted[bounds.low]);
    judgement.ci_high_s = bounds.high.ok().and_then(|high| answered(sorted[high]));
    if sorted[bounds.low] > allowed {
        judgement.verdict = Verdict::NotMet;
    } else if bounds.high.is_ok_and(|high| sorted[high] <= allowed) {
        judgement.verdict = Verdict::Met;
    } else {
        judgement.needed_requests = needed_for_verdict(over, count, slo, confidence, effect);
    }
    judgement
}

fn answered(latency: u64) -> Option<f64> {
    (latency != NO_ANSWER).then(|| Nanos(latency).as_secs())
}

/// The design effect of the longest latencies: the `beyond` ones above the percentile, or a few more.
fn tail_design_effect(by_time: &[u64], sorted: &[u64], beyond: usize) -> f64 {
    let events = beyond.max(TAIL_EVENTS_MIN).min(sorted.len() - 1);
    let threshold = sorted[sorted.len() - 1 - events];
    let longer = by_time.iter().enumerate().filter(|(_, latency)| **latency > threshold);
    design_effect(longer.map(|(index, _)| index), by_time.len())
}

/// The number of requests from which on the interval of the percentile has an upper end.
fn needed_for_upper_end(slo: Slo, confidence: f64, effect: f64) -> u64 {
    match slo.percentile.fraction() {
        fraction if fraction < 1.0 => confidence::needed_for_quantile(fraction, confidence, effect) as u64,
        _ => u64::MAX,
    }
}

/// Returns the number of requests for a decision, by the normal approximation, if the share beyond the
/// SLO stays the same; `None` if the number is absurdly large.
fn needed_for_verdict(over: usize, count: usize, slo: Slo, confidence: f64, effect: f64) -> Option<u64> {
    // More than the present number: that one did not decide.
    let at_least = needed_for_upper_end(slo, confidence, effect).max(count as u64 + 1);
    // The true share of an event that was never observed may be 0.
    if over == 0 {
        return Some(at_least);
    }
    let allowed_share = 1.0 - slo.percentile.fraction();
    let share = over as f64 / count as f64;
    let normal = t_quantile(NORMAL_DEGREES, confidence);
    let independent = normal * normal * share * (1.0 - share) / (share - allowed_share).powi(2);
    let needed = independent * effect;
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the number is positive and below 10¹²"
    )]
    let decides = (needed < 1e12).then(|| needed.ceil() as u64)?;
    Some(decides.max(at_least))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    fn slo(text: &str) -> Slo {
        text.parse().unwrap()
    }

    /// Independent latencies, uniform below 100 ms.
    fn uniform(count: usize) -> Vec<Option<Nanos>> {
        let mut random = StdRng::seed_from_u64(7);
        (0..count).map(|_| Some(Nanos(random.random_range(0..100_000_000)))).collect()
    }

    #[test]
    fn met_not_met_and_too_few() {
        let verdict = |count, text| judge(uniform(count), slo(text), 0.95).verdict;
        assert_eq!(verdict(20_000, "99% < 99.8ms"), Verdict::Met);
        assert_eq!(verdict(20_000, "99% < 98ms"), Verdict::NotMet);
        assert_eq!(verdict(20_000, "99% < 99.01ms"), Verdict::TooFew);
        let open = judge(uniform(1000), slo("99.9% < 1s"), 0.95);
        assert_eq!(open.verdict, Verdict::TooFew, "0 of 1000 say nothing about 99.9%");
        let needed = open.needed_requests.unwrap();
        assert!((3600..8000).contains(&needed), "{needed}");
        assert_eq!(judge([], slo("99.9% < 1s"), 0.95).measured_s, None);
    }

    #[test]
    fn the_verdict_says_what_the_interval_says() {
        let judgement = judge(uniform(20_000), slo("99% < 99.8ms"), 0.95);
        assert!(judgement.ci_low_s < judgement.measured_s && judgement.measured_s < judgement.ci_high_s);
        assert!(judgement.ci_high_s.unwrap() < 0.0998 && judgement.over < 200);
    }

    #[test]
    fn no_answer_takes_for_ever() {
        let mut latencies = uniform(20_000);
        (0..400).for_each(|index| latencies[index * 50] = None);
        let judgement = judge(latencies, slo("99% < 1h"), 0.95);
        assert_eq!((judgement.verdict, judgement.over, judgement.measured_s), (Verdict::NotMet, 400, None));
    }

    #[test]
    fn always_cannot_be_shown() {
        let always = judge(uniform(1000), slo("100% < 1s"), 0.95);
        assert_eq!((always.verdict, always.needed_requests), (Verdict::TooFew, None));
        assert_eq!(judge(uniform(1000), slo("100% < 50ms"), 0.95).verdict, Verdict::NotMet);
    }
}

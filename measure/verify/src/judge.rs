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

use confidence::{design_effect, design_effect_of_runs, nearest_rank, normal_quantile, quantile};
use model::{Slo, Verdict};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use units::Nanos;

/// Minimum number of the longest latencies for an estimate of the dependence.
const TAIL_EVENTS_MIN: usize = 100;
/// The latency of a request without an answer, in nanoseconds: it is longer than any other.
const NO_ANSWER: u64 = u64::MAX;

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
    let rank = nearest_rank(slo.percentile.percent(), count);
    let effect = tail_design_effect(&by_time, &sorted, count - rank);
    judgement.decide(count, over, effect, confidence, |place| SampledLatency::exact(answered(sorted[place])));
    judgement
}

/// A latency of a sample: an interval that holds it, seconds. An end is `None` if the latency is longer than any.
#[derive(Debug, Clone, Copy)]
struct SampledLatency {
    low: Option<f64>,
    high: Option<f64>,
}

impl SampledLatency {
    fn exact(latency: Option<f64>) -> Self {
        Self { low: latency, high: latency }
    }
}

/// Requests of a workload in a period, of which only numbers are known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CountedPeriod {
    pub requests: u64,
    /// Number of requests that took longer than the SLO allows.
    pub over: u64,
    /// Upper ends of buckets, ascending, with the number of requests in each alone. The end of a last bucket without
    /// one is `None`.
    pub latencies: Vec<(Option<Nanos>, u64)>,
}

/// Judges counted requests of consecutive periods as [`judge()`] judges single ones.
///
/// Requests over the SLO were counted exactly, so the verdict does not depend on the width of buckets. Latencies are
/// given outward: `measured_s` and `ci_high_s` as the upper end of their buckets, `ci_low_s` as the lower one. The order
/// within a period is not known. The longest requests of a period are taken to follow each other, which is the least
/// favourable order.
///
/// # Panics
/// Unless the confidence is strictly between 0 and 1.
pub fn judge_counted(periods: &[CountedPeriod], slo: Slo, confidence: f64) -> Judgement {
    let total = |of: fn(&CountedPeriod) -> u64| periods.iter().map(of).fold(0, u64::saturating_add);
    let count = as_count(total(|period| period.requests));
    let over = as_count(total(|period| period.over));
    let mut judgement = Judgement::undecided(slo, count, over);
    if count == 0 {
        judgement.needed_requests = Some(needed_for_upper_end(slo, confidence, 1.0));
        return judgement;
    }
    let latencies = merged(periods);
    let rank = nearest_rank(slo.percentile.percent(), count);
    let effect = counted_design_effect(periods, &latencies, count, count - rank);
    judgement.decide(count, over, effect, confidence, |place| bucket_of(&latencies, place as u64));
    judgement
}

fn as_count(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}

/// Buckets of all periods: upper ends, ascending, with the number of requests in each alone.
fn merged(periods: &[CountedPeriod]) -> Vec<(u64, u64)> {
    let mut buckets: BTreeMap<u64, u64> = BTreeMap::new();
    for (end, requests) in periods.iter().flat_map(|period| &period.latencies) {
        let sum = buckets.entry(end_ns(*end)).or_default();
        *sum = u64::saturating_add(*sum, *requests);
    }
    buckets.into_iter().collect()
}

fn end_ns(end: Option<Nanos>) -> u64 {
    end.map_or(NO_ANSWER, |end| end.0)
}

/// Returns the bucket of the request at a position of the ascending sample.
fn bucket_of(latencies: &[(u64, u64)], place: u64) -> SampledLatency {
    let mut below = 0;
    let mut low = Some(0.0);
    for (end, requests) in latencies {
        below = u64::saturating_add(below, *requests);
        if below > place {
            return SampledLatency { low, high: answered(*end) };
        }
        low = answered(*end);
    }
    SampledLatency { low, high: None }
}

/// The design effect of the longest latencies: the `beyond` ones above the percentile, or a few more, to the end of a
/// bucket.
fn counted_design_effect(
    periods: &[CountedPeriod],
    latencies: &[(u64, u64)],
    count: usize,
    beyond: usize,
) -> f64 {
    let events = beyond.max(TAIL_EVENTS_MIN).min(count - 1) as u64;
    let mut longer = 0;
    let mut threshold = 0;
    for (end, requests) in latencies.iter().rev() {
        if longer >= events {
            threshold = *end;
            break;
        }
        longer = u64::saturating_add(longer, *requests);
    }
    let long = |period: &CountedPeriod| {
        let long = period.latencies.iter().filter(|(end, _)| end_ns(*end) > threshold);
        long.map(|(_, requests)| requests).sum::<u64>()
    };
    // A bucket may hide that the few requests over the SLO follow each other.
    let over = clustered_design_effect(periods, count, |period| period.over);
    clustered_design_effect(periods, count, long).max(over)
}

/// The design effect of events of which each period has so many, one after the other.
fn clustered_design_effect(
    periods: &[CountedPeriod],
    count: usize,
    events: impl Fn(&CountedPeriod) -> u64,
) -> f64 {
    let mut first: usize = 0;
    let runs = periods.iter().map(|period| {
        let begin = first;
        first = begin.saturating_add(as_count(period.requests));
        begin..begin.saturating_add(as_count(events(period).min(period.requests)))
    });
    design_effect_of_runs(runs, count)
}

impl Judgement {
    /// Compares the interval of the percentile with the SLO: `count` requests with this design effect, of which `over`
    /// took longer than it allows. `at` returns the latency at a position of the ascending sample.
    fn decide(
        &mut self,
        count: usize,
        over: usize,
        effect: f64,
        confidence: f64,
        at: impl Fn(usize) -> SampledLatency,
    ) {
        let fraction = self.slo.percentile.fraction();
        // Positions from here on are over the SLO.
        let within = count - over;
        self.measured_s = at(nearest_rank(self.percentile, count) - 1).high;
        self.independent_share = 1.0 / effect;
        if fraction >= 1.0 {
            // A sample can show that something happens, but not that it never does.
            self.ci_low_s = at(count - 1).low;
            self.verdict = if over > 0 { Verdict::NotMet } else { Verdict::TooFew };
            return;
        }
        let bounds = quantile(count, fraction, confidence, effect);
        self.ci_low_s = at(bounds.low).low;
        self.ci_high_s = bounds.high.ok().and_then(|high| at(high).high);
        if bounds.low >= within {
            self.verdict = Verdict::NotMet;
        } else if bounds.high.is_ok_and(|high| high < within) {
            self.verdict = Verdict::Met;
        } else {
            self.needed_requests = needed_for_verdict(over, count, self.slo, confidence, effect);
        }
    }
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
    let normal = normal_quantile(confidence);
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

    /// Latencies in buckets a quarter of a doubling apart, in periods of this many requests.
    fn counted(latencies: &[Option<Nanos>], slo: Slo, period: usize) -> Vec<CountedPeriod> {
        let allowed = Nanos::from_secs(slo.latency.0).unwrap().0;
        let end = |step| Nanos::from_secs(1e-6 * (f64::from(step) / 4.0).exp2()).unwrap().0;
        let ends: Vec<u64> = (0..97).map(end).collect();
        let count = |latencies: &[Option<Nanos>]| {
            let mut buckets: BTreeMap<usize, u64> = BTreeMap::new();
            for latency in latencies {
                let at = latency.map_or(ends.len(), |latency| ends.partition_point(|end| *end < latency.0));
                *buckets.entry(at).or_default() += 1;
            }
            let over = latencies.iter().filter(|it| it.is_none_or(|it| it.0 > allowed)).count() as u64;
            let bucket = |(at, count): (usize, u64)| (ends.get(at).map(|end| Nanos(*end)), count);
            CountedPeriod {
                requests: latencies.len() as u64,
                over,
                latencies: buckets.into_iter().map(bucket).collect(),
            }
        };
        latencies.chunks(period).map(count).collect()
    }

    #[test]
    fn counted_requests_get_the_verdict_of_single_ones() {
        let latencies = uniform(20_000);
        for (text, verdict) in [
            ("99% < 99.8ms", Verdict::Met),
            ("99% < 98ms", Verdict::NotMet),
            ("99% < 99.01ms", Verdict::TooFew),
            ("100% < 1s", Verdict::TooFew),
            ("100% < 50ms", Verdict::NotMet),
        ] {
            let slo = slo(text);
            let single = judge(latencies.iter().copied(), slo, 0.95);
            // Periods of one request keep the order.
            let counted = judge_counted(&counted(&latencies, slo, 1), slo, 0.95);
            assert_eq!((single.verdict, counted.verdict), (verdict, verdict), "{text}");
            assert_eq!((single.over, single.requests), (counted.over, counted.requests));
            assert!(counted.measured_s >= single.measured_s && counted.ci_low_s <= single.ci_low_s);
        }
    }

    #[test]
    fn an_unknown_order_never_makes_a_verdict_more_certain() {
        let slo = slo("99% < 98.7ms");
        let latencies = uniform(20_000);
        let ordered = judge_counted(&counted(&latencies, slo, 1), slo, 0.95);
        assert_eq!(ordered.verdict, Verdict::NotMet);
        let hidden = judge_counted(&counted(&latencies, slo, 700), slo, 0.95);
        assert!(hidden.independent_share < 0.5 * ordered.independent_share, "{hidden:?}");
        assert_eq!((hidden.verdict, hidden.over), (Verdict::TooFew, ordered.over));
        assert_eq!(judge_counted(&[], slo, 0.95).requests, 0);
        // Counts as an agent may claim them take neither time nor memory.
        let claimed = CountedPeriod { requests: u64::MAX, over: u64::MAX, latencies: vec![(None, u64::MAX)] };
        assert_eq!(judge_counted(&[claimed.clone(), claimed], slo, 0.95).verdict, Verdict::NotMet);
    }
}

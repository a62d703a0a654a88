//! Whether an SLO is met.
//!
//! An SLO "99.9 % < 50 ms" is met when at most 0.1 % of requests take longer than 50 ms: in the long run, not in
//! this sample. So the verdict is about the interval in which the true percentile lies: met when all of it is within
//! the SLO, not met when none of it is, and open in between. A request that failed or was lost took for ever.
//!
//! Latencies of neighbours depend on each other. The design effect of those beyond the measured percentile, at least
//! a hundred of them, is taken into account; dependence over more than a twelfth of the
//! observations is not seen.

use confidence::{design_effect, nearest_rank, quantile, t_quantile};
use model::Slo;
use units::Nanos;

/// Dependence is estimated from at least so many of the longest latencies.
const EVENTS_LEAST: usize = 100;

/// What may be said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// The percentile is within the SLO.
    Met,
    /// It is not.
    NotMet,
    /// Neither can be said with that confidence.
    TooFew {
        /// How many requests it would take at least if everything went on like this; none when the measured
        /// percentile is so close to the SLO that this cannot be said.
        needed: Option<u64>,
    },
}

/// What observations say about an SLO.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Judgement {
    /// What was promised.
    pub slo: Slo,
    /// How many were observed.
    pub requests: u64,
    /// How many of them took longer than the SLO allows, failed or were lost.
    pub over: u64,
    /// The SLO's percentile of the sample, by nearest rank; none without requests or when that request got no answer.
    pub measured: Option<Nanos>,
    /// The true percentile is at least this; none without requests or when that request got no answer.
    pub low: Option<Nanos>,
    /// And at most this; none when there are too few requests to say, or when that request got no answer.
    pub high: Option<Nanos>,
    /// Requests that depend on each other as these do tell as much as this share of independent ones, 0 to 1.
    pub independent_share: f64,
    /// The conclusion.
    pub verdict: Verdict,
}

/// `None` as a latency: no answer. Sorts after everything.
const NEVER: u64 = u64::MAX;

/// Judges latencies in order of intended time, with this confidence for each verdict.
///
/// # Panics
/// Unless the confidence is strictly between 0 and 1.
pub fn judge(latencies: impl IntoIterator<Item = Option<Nanos>>, slo: Slo, confidence: f64) -> Judgement {
    let in_time: Vec<u64> =
        latencies.into_iter().map(|latency| latency.map_or(NEVER, |latency| latency.0)).collect();
    let mut sorted = in_time.clone();
    sorted.sort_unstable();
    let count = sorted.len();
    // A latency beyond what fits into nanoseconds is never exceeded.
    let allowed = Nanos::from_secs(slo.latency.0).map_or(NEVER - 1, |latency| latency.0);
    let over = count - sorted.partition_point(|latency| *latency <= allowed);
    let mut found = Judgement {
        slo,
        requests: count as u64,
        over: over as u64,
        measured: None,
        low: None,
        high: None,
        independent_share: 1.0,
        verdict: Verdict::TooFew { needed: None },
    };
    if count == 0 {
        found.verdict = Verdict::TooFew { needed: Some(needed_at_all(slo, confidence, 1.0)) };
        return found;
    }
    let fraction = slo.percentile.fraction();
    let at = |index: usize| Some(Nanos(sorted[index])).filter(|latency| latency.0 != NEVER);
    let rank = nearest_rank(slo.percentile.percent(), count);
    found.measured = at(rank - 1);
    let effect = effect(&in_time, &sorted, count - rank);
    found.independent_share = 1.0 / effect;
    if fraction >= 1.0 {
        // No sample says that something never happens.
        found.low = at(count - 1);
        found.verdict = if over > 0 { Verdict::NotMet } else { Verdict::TooFew { needed: None } };
        return found;
    }
    let bounds = quantile(count, fraction, confidence, effect);
    found.low = at(bounds.low);
    found.high = bounds.high.ok().and_then(at);
    found.verdict = if sorted[bounds.low] > allowed {
        Verdict::NotMet
    } else if bounds.high.is_ok_and(|high| sorted[high] <= allowed) {
        Verdict::Met
    } else {
        Verdict::TooFew { needed: needed(over, count, slo, confidence, effect) }
    };
    found
}

/// The design effect of the longest latencies: those beyond the percentile, or a few more.
fn effect(in_time: &[u64], sorted: &[u64], beyond: usize) -> f64 {
    let events = beyond.max(EVENTS_LEAST).min(sorted.len() - 1);
    let threshold = sorted[sorted.len() - 1 - events];
    let longer = in_time.iter().enumerate().filter(|(_, latency)| **latency > threshold);
    design_effect(longer.map(|(at, _)| at), in_time.len())
}

/// Requests for which there is an upper end at all.
fn needed_at_all(slo: Slo, confidence: f64, effect: f64) -> u64 {
    match slo.percentile.fraction() {
        fraction if fraction < 1.0 => confidence::needed_for_quantile(fraction, confidence, effect) as u64,
        _ => u64::MAX,
    }
}

/// How many requests decide, if the share beyond the SLO stays what it is: the normal approximation.
fn needed(over: usize, count: usize, slo: Slo, confidence: f64, effect: f64) -> Option<u64> {
    let least = needed_at_all(slo, confidence, effect).max(count as u64 + 1);
    // Nothing is known of a share of which nothing was seen, but that it may be 0.
    if over == 0 {
        return Some(least);
    }
    let allowed = 1.0 - slo.percentile.fraction();
    let share = over as f64 / count as f64;
    let normal = t_quantile(100_000, confidence);
    let independent = normal * normal * share * (1.0 - share) / (share - allowed).powi(2);
    let needed = independent * effect;
    // Checked to be small enough.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let decides = (needed < 1e12).then(|| needed.ceil() as u64)?;
    // It was not enough, whatever the approximation says.
    Some(decides.max(least))
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
        assert!(matches!(verdict(20_000, "99% < 99.01ms"), Verdict::TooFew { .. }));
        let Verdict::TooFew { needed: Some(needed) } = verdict(1000, "99.9% < 1s") else {
            panic!("0 of 1000 say nothing about 99.9%")
        };
        assert!((3600..8000).contains(&needed), "{needed}");
        assert_eq!(judge([], slo("99.9% < 1s"), 0.95).measured, None);
    }

    #[test]
    fn the_verdict_says_what_the_interval_says() {
        let found = judge(uniform(20_000), slo("99% < 99.8ms"), 0.95);
        assert!(found.low < found.measured && found.measured < found.high);
        assert!(found.high.unwrap() < Nanos(99_800_000) && found.over < 200);
    }

    #[test]
    fn no_answer_is_for_ever() {
        let mut latencies = uniform(20_000);
        (0..400).for_each(|index| latencies[index * 50] = None);
        let found = judge(latencies, slo("99% < 1h"), 0.95);
        assert_eq!((found.verdict, found.over, found.measured), (Verdict::NotMet, 400, None));
    }

    #[test]
    fn always_cannot_be_shown() {
        let verdict = |text| judge(uniform(1000), slo(text), 0.95).verdict;
        assert_eq!(verdict("100% < 1s"), Verdict::TooFew { needed: None });
        assert_eq!(verdict("100% < 50ms"), Verdict::NotMet);
    }
}

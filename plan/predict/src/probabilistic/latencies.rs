//! The search for the least latency that holds, and the test whether a latency does.
//!
//! Latencies are taken from a ladder of rungs, so that the same question always has the same answer and one that asks
//! for less never gets more.

use super::shares::SHARES;
use super::sketch::ProbabilisticSketch;

/// The number of rungs per octave of latency.
const RUNGS_PER_OCTAVE: i32 = 32;
/// The steps of the ladders, from coarse to fine, in rungs; each divides the one before it.
const LADDERS: [i32; 3] = [16, 4, 1];
/// The octaves of latency in which the bound is searched, as exponents of seconds.
const OCTAVES: (i32, i32) = (-20, 10);
/// A slack on probabilities: more than sums of them are off, less than any percentile asks for.
pub(super) const ROUNDING: f64 = 1e-12;

/// The index of a share of the queue under which P(latency > d) ≤ `allowed`, where `exceedance(share, room)` bounds what
/// the cross traffic does. The share with the index `first` is tried first.
pub(super) fn share_within(
    own: &ProbabilisticSketch,
    (latency, begun): (f64, f64),
    allowed: f64,
    first: usize,
    mut exceedance: impl FnMut(usize, f64) -> f64,
) -> Option<usize> {
    let mut proves = |share: usize| {
        let Some(law) = &own.own[share] else { return false };
        let mut sum = 0.0;
        // The worst first: what is certain to be late decides early.
        law.iter().rev().all(|atom| {
            let room = latency - begun - atom.work;
            sum += atom.probability * if room < 0.0 { 1.0 } else { exceedance(share, room) };
            sum <= allowed
        })
    };
    (first..SHARES.len()).chain((0..first).rev()).find(|share| proves(*share))
}

/// The first latency from `from` on that fits, in seconds: the first on a coarse ladder, then the first on a
/// finer one below it, and again. Going up, and not by bisection, because the bound of a probability need
/// not fall with the latency; so a request for less never gets more.
pub(super) fn least_latency(from: f64, fits: impl Fn(f64) -> bool) -> Option<f64> {
    let last = OCTAVES.1 * RUNGS_PER_OCTAVE;
    let mut first = rung_above(from);
    let mut found = None;
    for step in LADDERS {
        // Multiples of the step, whatever `from` is.
        let begin = first.div_euclid(step) * step;
        let end = found.unwrap_or(last);
        let rung = (begin..=end)
            .step_by(step as usize)
            .filter(|rung| *rung >= first)
            .find(|rung| found == Some(*rung) || fits(latency_of(*rung)))?;
        found = Some(rung);
        first = first.max(rung - step + 1);
    }
    found.map(latency_of)
}

/// The latency of a rung, seconds.
fn latency_of(rung: i32) -> f64 {
    (f64::from(rung) / f64::from(RUNGS_PER_OCTAVE)).exp2()
}

/// The first rung at or above a latency in seconds.
fn rung_above(latency: f64) -> i32 {
    let rung = (latency.max(0.0).log2() * f64::from(RUNGS_PER_OCTAVE) - 1e-9).ceil();
    let first = OCTAVES.0 * RUNGS_PER_OCTAVE;
    let last = OCTAVES.1 * RUNGS_PER_OCTAVE;
    #[allow(clippy::cast_possible_truncation, reason = "clamped, and −∞ becomes the first")]
    let rung = rung.clamp(f64::from(first), f64::from(last)) as i32;
    rung
}

/// The last rung at or below a latency, in seconds; 0 when there is none, as for what is left of an SLO that is shorter
/// than the base latency.
pub(super) fn rung_below(latency: f64) -> f64 {
    // A rung itself must not be lost to the rounding of its logarithm.
    let rung = (latency.max(0.0).log2() * f64::from(RUNGS_PER_OCTAVE) + 1e-9).floor();
    if rung < f64::from(OCTAVES.0 * RUNGS_PER_OCTAVE) {
        0.0
    } else {
        (rung / f64::from(RUNGS_PER_OCTAVE)).exp2()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_left_of_an_slo_below_the_base_latency() {
        for latency in [-1.0, -1e-9, -0.0, 0.0, 1e-9, f64::NEG_INFINITY] {
            assert_eq!(rung_below(latency), 0.0, "{latency}");
        }
        for rung in [-640, -100, 0, 7, 320] {
            let latency = latency_of(rung);
            assert_eq!((rung_below(latency), rung_below(latency * 1.001)), (latency, latency), "{rung}");
            assert!(rung_below(latency * 0.999) < latency, "{rung}");
        }
    }
}

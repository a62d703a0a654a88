//! Intervals for percentiles, without assumptions about the distribution.
//!
//! The number of n independent values above the φ-quantile is binomial with probability 1 − φ; so the order
//! statistics between which the quantile lies follow.
//! Dependent values enter with the number of independent ones that they are worth (Korn and Graubard): n ÷ the
//! design effect, less a little because that is itself an estimate from a few blocks.

use crate::binomial::{largest_within, smallest_reaching};
use crate::{BLOCKS, TooFew, normal_quantile, t_quantile};

/// More independent values count as so many, which only widens intervals: time grows with the root.
const WORTH_MAX: usize = 1_000_000_000;

/// The ends of a confidence interval of a quantile, as positions in the ascending sample, counted from 0. They enclose the
/// position of the sample's own quantile by [`nearest_rank`]: where few independent values leave an end beyond it, the
/// interval is widened to it, which only raises the confidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// The quantile is at least the value there, except with half of the probability that is left.
    pub low: usize,
    /// The quantile is at most the value there, with the same confidence; an error gives the number of
    /// values needed.
    pub high: Result<usize, TooFew>,
}

/// Returns the rank, 1 to `count`, of the nearest-rank percentile of `count` values: the least value that
/// at least `percent` in a hundred of them do not exceed. 100 is the maximum. A rank that exceeds a whole
/// number only by the rounding of a decimal fraction is that number.
///
/// # Panics
/// When there are no values.
pub fn nearest_rank(percent: f64, count: usize) -> usize {
    assert!(count > 0, "no values have no percentile");
    let exact = percent * count as f64 / 100.0;
    // The product is off by a few units in the last place at most.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let rank = (exact * (1.0 - 1e-14)).ceil() as usize;
    rank.clamp(1, count)
}

/// Returns the order statistics of `count` values that enclose the `fraction`-quantile with this
/// confidence. Values may depend on their neighbours with this design effect (1: independent).
///
/// # Panics
/// Unless fraction and confidence are strictly between 0 and 1, the effect is at least 1 and there is a value.
pub fn quantile(count: usize, fraction: f64, confidence: f64, effect: f64) -> Bounds {
    assert!(count > 0 && effect >= 1.0 && fraction > 0.0 && fraction < 1.0, "a sample and a quantile");
    let worth = worth(count, effect, confidence);
    let side = 0.5 * (1.0 - confidence);
    let scale = count as f64 / worth as f64;
    // Both outward: fewer above the upper end, more above the lower end.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let fewer = |s: usize| (s as f64 * scale) as usize;
    // The upper end, rounded outward too.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let more = |s: usize| (s as f64 * scale).ceil() as usize;
    let measured = nearest_rank(100.0 * fraction, count) - 1;
    let high = match largest_within(worth, 1.0 - fraction, side) {
        Some(above) => Ok((count - 1).saturating_sub(fewer(above)).max(measured)),
        None => Err(TooFew { given: count, needed: needed_for_quantile(fraction, confidence, effect) }),
    };
    let most = smallest_reaching(worth, 1.0 - fraction, 1.0 - side);
    let low = (count - 1).saturating_sub(more(most)).min(measured);
    Bounds { low, high }
}

/// The least number of values for which [`quantile`] has an upper end.
pub fn needed_for_quantile(fraction: f64, confidence: f64, effect: f64) -> usize {
    let side = 0.5 * (1.0 - confidence);
    let independent = (side.ln() / fraction.ln()).ceil();
    // A few more than exact when rounding is unlucky; a float beyond usize becomes the largest.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let needed = ((independent + 1.0) * effect * correction(effect, confidence)).ceil() as usize;
    needed
}

/// Independent values that `count` dependent ones are worth, at least 1 and at most [`WORTH_MAX`].
fn worth(count: usize, effect: f64, confidence: f64) -> usize {
    // Between 1 and the count.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let worth = (count as f64 / (effect * correction(effect, confidence))) as usize;
    worth.clamp(1, count.min(WORTH_MAX))
}

/// Returns (t ÷ z)², the cost of estimating the effect from few blocks; 1 if the effect is 1, which is
/// not estimated.
fn correction(effect: f64, confidence: f64) -> f64 {
    if effect <= 1.0 {
        return 1.0;
    }
    (t_quantile(BLOCKS[0] - 1, confidence) / normal_quantile(confidence)).powi(2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_sizes() {
        // ln(0.025)/ln(0.999) = 3687.03.
        let needed = needed_for_quantile(0.999, 0.95, 1.0);
        assert!((3688..=3690).contains(&needed), "{needed}");
        assert!(quantile(3687, 0.999, 0.95, 1.0).high.is_err());
        assert_eq!(quantile(needed, 0.999, 0.95, 1.0).high, Ok(needed - 1));
        assert_eq!(quantile(10, 0.999, 0.95, 1.0).high, Err(TooFew { given: 10, needed }));
    }

    #[test]
    fn the_median_of_ten() {
        // P(Bin(10, ½) ≤ 1) = 0.011, ≤ 2 = 0.055: the second and the ninth value.
        assert_eq!(quantile(10, 0.5, 0.95, 1.0), Bounds { low: 1, high: Ok(8) });
    }

    /// The interval contains the sample's own quantile even for few values.
    #[test]
    fn intervals_enclose_the_quantile_of_the_sample() {
        for count in [1, 2, 10, 100, 999, 5000] {
            for fraction in [0.001, 0.5, 0.9, 0.99, 0.999] {
                for (confidence, effect) in [(0.5, 1.0), (0.95, 1.0), (0.95, 30.0), (0.999, 1e6)] {
                    let Bounds { low, high } = quantile(count, fraction, confidence, effect);
                    let high = high.ok();
                    let measured = nearest_rank(100.0 * fraction, count) - 1;
                    let said = format!("{count} {fraction} {confidence} {effect}: {low} {measured} {high:?}");
                    assert!(
                        low <= measured && high.is_none_or(|high| measured <= high && high < count),
                        "{said}"
                    );
                }
            }
        }
    }

    #[test]
    fn dependence_widens() {
        let alone = quantile(100_000, 0.99, 0.95, 1.0);
        let clusters = quantile(100_000, 0.99, 0.95, 20.0);
        assert!(clusters.low < alone.low && clusters.high.unwrap() > alone.high.unwrap());
    }
}

//! Distribution-free inference from independent values.
//!
//! Tolerance limits are those of Wilks. Everything rests on one fact: the number of n independent values at or below
//! the β-quantile is binomial, at least as likely to be small as Bin(n, β) when the distribution has atoms. Sums are
//! exact but for rounding of the arithmetic, no normal approximation. Order statistics are counted from 1, ascending.

use crate::binomial::binomial_sums;
use std::fmt;

/// Too few values for the requested inference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFew {
    /// Number of values given.
    pub given: usize,
    /// Number of values needed.
    pub needed: usize,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there are too few values: {}, expected at least {}", self.given, self.needed)
    }
}

impl std::error::Error for TooFew {}

/// The number of values that an upper tolerance limit needs at least: the least n with 1 − βⁿ ≥ γ, n ≥
/// ln(1 − γ)/ln β; 59 for 95 % of the alignments with 95 % confidence.
///
/// # Panics
/// Unless coverage β and confidence γ are strictly between 0 and 1.
pub fn needed_for_tolerance(coverage: f64, confidence: f64) -> usize {
    check(coverage, confidence);
    let exact = (-confidence).ln_1p() / coverage.ln();
    // Not negative, and small for every coverage that differs from 1 as a floating-point number.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let mut n = exact.floor().max(1.0) as usize;
    while 1.0 - coverage.powf(n as f64) < confidence {
        n += 1;
    }
    n
}

/// The order statistic of n values that is an upper tolerance limit: with at least the given confidence, at least
/// the share `coverage` of the distribution is at or below it. The least such; the largest value is n.
///
/// # Panics
/// Unless coverage and confidence are strictly between 0 and 1.
pub fn tolerance_rank(n: usize, coverage: f64, confidence: f64) -> Result<usize, TooFew> {
    let needed = needed_for_tolerance(coverage, confidence);
    if n < needed {
        return Err(TooFew { given: n, needed });
    }
    // Rank n − s holds with probability P(Bin(n, β) ≤ n − s − 1) = 1 − P(Bin(n, 1 − β) ≤ s).
    let spare = binomial_sums(n, 1.0 - coverage).skip(1).take_while(|sum| 1.0 - sum >= confidence).count();
    Ok(n - spare)
}

/// The order statistics between which the median lies with at least the given confidence: the narrowest pair
/// (l, n + 1 − l).
///
/// # Panics
/// Unless the confidence is strictly between 0 and 1.
pub fn median_ranks(n: usize, confidence: f64) -> Result<(usize, usize), TooFew> {
    check(0.5, confidence);
    // Rank l misses the median when fewer than l values are on one side of it: 2 P(Bin(n, ½) ≤ l − 1).
    let allowed = 1.0 - confidence;
    let low = binomial_sums(n, 0.5).take_while(|sum| 2.0 * sum <= allowed).count();
    if n == 0 || low == 0 {
        // The widest pair: 2·2⁻ⁿ ≤ 1 − γ.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let needed = (1.0 - allowed.log2()).ceil() as usize;
        return Err(TooFew { given: n, needed });
    }
    Ok((low, n + 1 - low))
}

fn check(coverage: f64, confidence: f64) {
    let inside = |p: f64| p > 0.0 && p < 1.0;
    assert!(inside(coverage) && inside(confidence), "coverage and confidence are strictly between 0 and 1");
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    #[test]
    fn the_known_sizes() {
        // 1 − 0.95⁵⁹ = 0.9515 and 1 − 0.95⁵⁸ = 0.9490; 93 for two values above (Wilks).
        assert_eq!(needed_for_tolerance(0.95, 0.95), 59);
        assert_eq!(needed_for_tolerance(0.99, 0.99), 459);
        assert_eq!(needed_for_tolerance(0.5, 0.5), 1);
        assert_eq!(tolerance_rank(58, 0.95, 0.95), Err(TooFew { given: 58, needed: 59 }));
        assert_eq!(tolerance_rank(59, 0.95, 0.95), Ok(59));
        assert_eq!(tolerance_rank(92, 0.95, 0.95), Ok(92));
        assert_eq!(tolerance_rank(93, 0.95, 0.95), Ok(92));
        assert_eq!(tolerance_rank(124, 0.95, 0.95), Ok(122));
    }

    #[test]
    fn the_known_ranks_of_the_median() {
        // 2·2⁻⁶ = 0.03125; n = 20: (6, 15) at 95.86 %; n = 10: (2, 9) at 97.85 %.
        assert_eq!(median_ranks(5, 0.95), Err(TooFew { given: 5, needed: 6 }));
        assert_eq!(median_ranks(0, 0.95), Err(TooFew { given: 0, needed: 6 }));
        assert_eq!(median_ranks(6, 0.95), Ok((1, 6)));
        assert_eq!(median_ranks(10, 0.95), Ok((2, 9)));
        assert_eq!(median_ranks(20, 0.95), Ok((6, 15)));
        // One value is never beside itself.
        assert_eq!(median_ranks(1, 1e-9), Err(TooFew { given: 1, needed: 2 }));
    }

    #[test]
    fn sums_agree_with_pascals_triangle() {
        for n in 1..=60usize {
            let mut row = vec![1.0f64];
            for _ in 0..n {
                row = (0..=row.len())
                    .map(|i| row.get(i).unwrap_or(&0.0) + i.checked_sub(1).map_or(0.0, |j| row[j]))
                    .collect();
            }
            for p in [0.001, 0.05, 0.5, 0.95] {
                let mut sum = 0.0;
                for ((k, ways), got) in row.iter().enumerate().zip(binomial_sums(n, p)) {
                    let hits = i32::try_from(k).unwrap();
                    let misses = i32::try_from(n - k).unwrap();
                    sum += ways * f64::powi(p, hits) * f64::powi(1.0 - p, misses);
                    assert!((got - sum).abs() <= 1e-12, "n {n} p {p} k {k}: {got} instead of {sum}");
                }
            }
        }
    }

    #[test]
    fn large_samples_do_not_underflow() {
        // The first term is 2⁻¹⁰⁰⁰⁰⁰; the normal approximation is good to a few parts in a thousand here.
        let half = binomial_sums(100_000, 0.5).nth(50_000).unwrap();
        assert!((half - 0.5 - 0.5 * 0.002_523).abs() < 1e-5, "{half}");
        let (low, high) = median_ranks(100_000, 0.95).unwrap();
        assert!((49_680..49_700).contains(&low) && low + high == 100_001, "{low} {high}");
    }

    #[test]
    fn limits_cover_as_often_as_they_say() {
        let mut random = StdRng::seed_from_u64(11);
        for (n, coverage, confidence) in
            [(59, 0.95, 0.95), (93, 0.95, 0.95), (40, 0.8, 0.9), (200, 0.9, 0.99)]
        {
            let upper = tolerance_rank(n, coverage, confidence).unwrap();
            let (low, high) = median_ranks(n, confidence).unwrap();
            let mut covered = 0;
            let mut inside = 0;
            let runs = 4000;
            for _ in 0..runs {
                // The m-th value is at or above x when fewer than m are below.
                let mut below_coverage = 0;
                let mut below_half = 0;
                for _ in 0..n {
                    let value = random.random_range(0.0..1.0);
                    below_coverage += usize::from(value < coverage);
                    below_half += usize::from(value < 0.5);
                }
                covered += usize::from(below_coverage < upper);
                inside += usize::from((low..high).contains(&below_half));
            }
            // Four standard deviations of a frequency below, and not wastefully above: the next rank would fail.
            let slack = 4.0 * (confidence * (1.0 - confidence) / f64::from(runs)).sqrt();
            let share = |count: usize| count as f64 / f64::from(runs);
            assert!(share(covered) >= confidence - slack, "{n}: {}", share(covered));
            assert!(share(inside) >= confidence - slack, "{n}: {}", share(inside));
            let next = 1.0 - binomial_sums(n, 1.0 - coverage).nth(n - upper + 1).unwrap();
            assert!(upper == 1 || next < confidence, "{n}: rank {} would do", upper - 1);
        }
    }
}

//! The binomial distribution, summed from its small end.

use std::f64::consts::TAU;

/// Smaller numbers of successes are not skipped: see [`first_that_counts`].
const SKIPPED_MIN: usize = 1000;
/// Natural logarithm of the probability that may be skipped, 10⁻³⁰.
const SKIPPED_LN: f64 = -69.1;

/// The largest s with P(Bin(n, p) ≤ s) ≤ `sum`; none when even s = 0 is too likely.
pub(crate) fn largest_within(n: usize, p: f64, sum: f64) -> Option<usize> {
    sums(n, p).take_while(|(_, reached)| *reached <= sum).last().map(|(s, _)| s)
}

/// The smallest s with P(Bin(n, p) ≤ s) ≥ `sum`.
pub(crate) fn smallest_reaching(n: usize, p: f64, sum: f64) -> usize {
    sums(n, p).find(|(_, reached)| *reached >= sum).map_or(n, |(s, _)| s)
}

/// P(Bin(n, p) ≤ k) for k = 0, 1, …, n, for p strictly between 0 and 1.
pub(crate) fn binomial_sums(n: usize, p: f64) -> impl Iterator<Item = f64> {
    sums_from(0, n, p).map(|(_, sum)| sum)
}

/// k and P(Bin(n, p) ≤ k) for all k whose sum is at least 10⁻³⁰. About 12 √(n p) of them are below the mean.
fn sums(n: usize, p: f64) -> impl Iterator<Item = (usize, f64)> {
    sums_from(first_that_counts(n, p), n, p)
}

fn sums_from(first: usize, n: usize, p: f64) -> impl Iterator<Item = (usize, f64)> {
    let odds = (p / (1.0 - p)).ln();
    // Terms as logarithms: (1 − p)ⁿ underflows long before the sum does.
    let mut term = if first == 0 { n as f64 * (-p).ln_1p() } else { ln_probability(first, n, p) };
    let mut sum = 0.0f64;
    (first..=n).map(move |k| {
        sum += term.exp();
        term += ((n - k) as f64 / (k + 1) as f64).ln() + odds;
        (k, sum.min(1.0))
    })
}

/// Returns a k with P(Bin(n, p) < k) ≤ 10⁻³⁰ by Chernoff: P(Bin ≤ n p − δ) ≤ exp(−δ² ÷ 2 n p).
fn first_that_counts(n: usize, p: f64) -> usize {
    let mean = n as f64 * p;
    // Not above n, and 0 where it is negative.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let first = (mean - (-2.0 * mean * SKIPPED_LN).sqrt()) as usize;
    if first < SKIPPED_MIN { 0 } else { first }
}

/// ln P(Bin(n, p) = k) for k and n − k of at least [`SKIPPED_MIN`], as a deviance: differences of ln Γ would lose all digits
/// of a large n (C. Loader, *Fast and Accurate Computation of Binomial Probabilities*, 2000).
fn ln_probability(k: usize, n: usize, p: f64) -> f64 {
    let (successes, failures, total) = (k as f64, (n - k) as f64, n as f64);
    // The error of Stirling's formula; the next term of the series is below 10⁻¹⁰.
    let stirling = |x: f64| 1.0 / (12.0 * x);
    let deviance = |x: f64, mean: f64| x * (x / mean).ln() + mean - x;
    0.5 * (total / (TAU * successes * failures)).ln() + stirling(total)
        - stirling(successes)
        - stirling(failures)
        - deviance(successes, total * p)
        - deviance(failures, total * (1.0 - p))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_skipped_changes_nothing() {
        for (n, p) in [(20_000, 0.5), (1_000_000, 0.01), (1_000_000, 0.1), (300_000, 0.9)] {
            let first = first_that_counts(n, p);
            assert!(first > 0, "something is skipped for {n} {p}");
            let all: Vec<f64> = binomial_sums(n, p).collect();
            assert!(all[first - 1] < 1e-25, "{}", all[first - 1]);
            for (k, sum) in sums(n, p) {
                let exact = all[k];
                assert!((sum - exact).abs() <= 1e-7 * exact.max(1e-20), "{n} {p} {k}: {sum} beside {exact}");
            }
            for sum in [1e-5, 0.005, 0.025, 0.05, 0.25] {
                let within = all.iter().take_while(|reached| **reached <= sum).count().checked_sub(1);
                assert_eq!(largest_within(n, p, sum), within, "{n} {p} {sum}");
                let reaching = all.iter().take_while(|reached| **reached < 1.0 - sum).count();
                assert_eq!(smallest_reaching(n, p, 1.0 - sum), reaching, "{n} {p} {sum}");
            }
        }
    }

    /// The central limit theorem judges numbers that are too large to sum from zero.
    #[test]
    fn huge_numbers_are_normal() {
        let n = 1_000_000_000usize;
        let p = 0.3f64;
        let deviation = (n as f64 * p * (1.0 - p)).sqrt();
        let low = largest_within(n, p, 0.025).expect("an end") as f64;
        let high = smallest_reaching(n, p, 0.975) as f64;
        for (end, normal) in [(low, -1.959_964), (high, 1.959_964)] {
            let got = (end - n as f64 * p) / deviation;
            assert!((got - normal).abs() < 1e-3, "{got} instead of {normal}");
        }
    }
}

//! Sequential test for the symmetry of differences about zero: the result stays valid at any stopping time.
//!
//! If the difference within a pair has no effect and chance decided its order, the sign of each difference is
//! a fair coin, whatever the sizes and their dependence. A bettor on the next sign who knows all sizes and
//! the signs so far multiplies the stake by e^{±λa} ÷ cosh(λa), and the stake is a martingale. It ever
//! reaches 1 ÷ α with probability at most α (Ville's inequality), so that frequent looks and stopping at the
//! best moment gain nothing. These are the e-tests of symmetry of Vovk and Wang. The size a of a bet is the
//! rank of the difference among those so far, so that no single value dominates. The stake is shared by bets
//! of several strengths λ on either sign.

/// Strengths of the bets, found by simulation: 7 differences far from zero decide at 5 %, and 14 where the shift is as
/// large as a standard deviation.
const STRENGTHS: [f64; 4] = [1.0, 2.0, 4.0, 8.0];

/// Bets on the signs of differences.
#[derive(Debug, Clone, Default)]
pub struct SymmetryTest {
    sizes: Vec<f64>,
    /// Logarithms of the stakes, on positive and on negative signs.
    positive: [f64; STRENGTHS.len()],
    negative: [f64; STRENGTHS.len()],
    evidence_max: f64,
    /// True if positive signs had won the most when the stake was largest.
    is_positive: bool,
}

impl SymmetryTest {
    /// Takes the next difference.
    pub fn add(&mut self, difference: f64) {
        let size = difference.abs();
        self.sizes.push(size);
        let rank = self.sizes.iter().filter(|other| **other <= size).count();
        // Zero has no sign to bet on.
        let weight = if size > 0.0 { rank as f64 / self.sizes.len() as f64 } else { 0.0 };
        let signed = weight.copysign(difference);
        for (index, strength) in STRENGTHS.iter().enumerate() {
            self.positive[index] += log_gain(strength * signed);
            self.negative[index] += log_gain(-strength * signed);
        }
        if self.stake() > self.evidence_max {
            self.evidence_max = self.stake();
            self.is_positive = total(&self.positive) > total(&self.negative);
        }
    }

    fn stake(&self) -> f64 {
        (total(&self.positive) + total(&self.negative)) / (2 * STRENGTHS.len()) as f64
    }

    /// Returns true if bets on positive differences had gained the most when [`Self::evidence`] was reached.
    pub fn is_positive(&self) -> bool {
        self.is_positive
    }

    /// The largest stake that the bets have reached, of 1 at the beginning. The reciprocal is a p-value at any time.
    pub fn evidence(&self) -> f64 {
        self.evidence_max.max(1.0)
    }

    /// Returns true if the differences are not symmetric about zero, with this confidence.
    pub fn rejects(&self, confidence: f64) -> bool {
        self.evidence() * (1.0 - confidence) >= 1.0
    }
}

fn total(logarithms: &[f64]) -> f64 {
    logarithms.iter().map(|log| log.exp()).sum()
}

/// The logarithm of e^x ÷ cosh(x), without overflow.
fn log_gain(x: f64) -> f64 {
    std::f64::consts::LN_2
        - if x > 0.0 { (-2.0 * x).exp().ln_1p() } else { (2.0 * x).exp().ln_1p() - 2.0 * x }
}

/// Returns the minimum number of differences of one sign and growing size that rejects symmetry with this
/// confidence.
///
/// # Panics
/// Unless the confidence is strictly between 0 and 1.
pub fn needed_for_symmetry(confidence: f64) -> usize {
    assert!(confidence > 0.0 && confidence < 1.0, "a confidence");
    let mut test = SymmetryTest::default();
    let rejected = (1..).find(|count| {
        test.add(*count as f64);
        test.rejects(confidence)
    });
    rejected.expect("the stake grows by almost 2 each time")
}

/// The middle of the means of all pairs of differences, each with itself, too: the estimate of Hodges and Lehmann for
/// the shift. None without differences.
pub fn shift_estimate(differences: &[f64]) -> Option<f64> {
    let means = pair_means(differences);
    let middle = means.len() / 2;
    match means.len() {
        0 => None,
        count if count % 2 == 1 => Some(means[middle]),
        _ => Some(0.5 * (means[middle - 1] + means[middle])),
    }
}

/// The shifts that [`SymmetryTest`] does not reject, as an interval that has them all and [`shift_estimate`]: where the
/// differences, less the shift, are symmetric about zero, it holds the shift with this confidence at every number of
/// differences at once. Ends are infinite while there are too few.
pub fn shift_interval(differences: &[f64], confidence: f64) -> (f64, f64) {
    let edges = pair_means(differences);
    let Some(last) = edges.len().checked_sub(1) else { return (f64::NEG_INFINITY, f64::INFINITY) };
    // Signs and ranks of the differences less the shift change at these edges only.
    let cell = |index: usize| match index {
        0 => edges[0] - 1.0 - edges[0].abs(),
        index if index > last => edges[last] + 1.0 + edges[last].abs(),
        index => 0.5 * (edges[index - 1] + edges[index]),
    };
    let fits = |index: &usize| !is_rejected(differences, cell(*index), confidence);
    let low = (0..=last + 1).find(fits);
    let high = (0..=last + 1).rev().find(fits);
    // The running test may have left the estimate behind; an interval around something else would say nothing.
    let estimate = shift_estimate(differences).expect("there are edges");
    let low = low.map_or(estimate, |index| if index == 0 { f64::NEG_INFINITY } else { edges[index - 1] });
    let high = high.map_or(estimate, |index| if index > last { f64::INFINITY } else { edges[index] });
    (low.min(estimate), high.max(estimate))
}

fn is_rejected(differences: &[f64], shift: f64, confidence: f64) -> bool {
    let mut test = SymmetryTest::default();
    differences.iter().any(|difference| {
        test.add(difference - shift);
        test.rejects(confidence)
    })
}

/// The means of all pairs, ascending.
fn pair_means(differences: &[f64]) -> Vec<f64> {
    let with_later = |(index, first): (usize, &f64)| {
        differences[index..].iter().map(|second| 0.5 * (first + second)).collect::<Vec<f64>>()
    };
    let mut means: Vec<f64> = differences.iter().enumerate().flat_map(with_later).collect();
    means.sort_unstable_by(f64::total_cmp);
    means
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    /// The mean stake over all signs is 1 for any sizes, by enumeration.
    #[test]
    fn the_stake_is_fair() {
        let sizes = [3.0, 1.0, 4.0, 1.0, 0.0, 9.0, 2.0, 6.0];
        let mut sum = 0.0;
        for signs in 0..1 << sizes.len() {
            let mut test = SymmetryTest::default();
            for (index, size) in sizes.iter().enumerate() {
                test.add(if signs >> index & 1 == 1 { *size } else { -*size });
            }
            sum += test.stake();
        }
        assert!((sum / f64::from(1 << sizes.len()) - 1.0).abs() < 1e-12);
    }

    /// Ville's inequality, by enumeration of all signs of twelve differences.
    #[test]
    fn stopping_at_the_best_moment_gains_nothing() {
        let sizes: Vec<f64> = (1..=12).map(|index| f64::from(index * 7 % 13)).collect();
        for confidence in [0.8, 0.9, 0.95, 0.99] {
            let rejecting = (0..1u32 << 12).filter(|signs| {
                let signed =
                    |(index, size): (usize, &f64)| if signs >> index & 1 == 1 { *size } else { -size };
                let differences: Vec<f64> = sizes.iter().enumerate().map(signed).collect();
                is_rejected(&differences, 0.0, confidence)
            });
            let share = rejecting.count() as f64 / f64::from(1 << 12);
            assert!(share > 0.0 && share <= 1.0 - confidence, "{confidence}: {share}");
        }
    }

    #[test]
    fn few_differences_of_one_sign_decide() {
        assert_eq!([0.8, 0.9, 0.95, 0.99].map(needed_for_symmetry), [4, 5, 6, 8]);
        let mut test = SymmetryTest::default();
        (0..6).for_each(|index| test.add(-5.0 - f64::from(index)));
        assert!(test.rejects(0.95) && !test.rejects(0.99));
        (0..100).for_each(|_| test.add(0.0));
        assert!(test.rejects(0.95), "what was shown stays shown");
    }

    #[test]
    fn the_side_is_that_of_the_largest_stake() {
        for sign in [1.0, -1.0] {
            let mut test = SymmetryTest::default();
            (0..12).for_each(|index| test.add(sign * (5.0 + f64::from(index))));
            (0..20).for_each(|_| test.add(-sign * 20.0));
            assert_eq!((test.rejects(0.95), test.is_positive()), (true, sign > 0.0));
            (0..100).for_each(|_| test.add(-sign * 20.0));
            assert_eq!(test.is_positive(), sign < 0.0, "the others have won more since");
        }
    }

    #[test]
    fn the_estimate_is_the_middle_of_the_means_of_pairs() {
        assert_eq!(shift_estimate(&[]), None);
        assert_eq!(shift_estimate(&[3.0]), Some(3.0));
        // 1, 1.5, 2, 5.5, 6, 10.
        assert_eq!(shift_estimate(&[1.0, 10.0, 2.0]), Some(3.75));
    }

    #[test]
    fn too_few_differences_leave_every_shift_possible() {
        let infinite = (f64::NEG_INFINITY, f64::INFINITY);
        assert_eq!(shift_interval(&[], 0.95), infinite);
        assert_eq!(shift_interval(&[5.0; 3], 0.95), infinite);
        assert_eq!(shift_interval(&[5.0; 40], 0.95), (5.0, 5.0));
    }

    /// Holds at all lengths at once, in 400 sequences of skewed sums with symmetric differences.
    #[test]
    fn intervals_hold_the_shift_at_every_length() {
        let mut random = StdRng::seed_from_u64(3);
        let mut lost = 0;
        for _ in 0..400 {
            let skewed = |random: &mut StdRng| -random.random::<f64>().ln();
            let differences: Vec<f64> =
                (0..25).map(|_| 2.0 + skewed(&mut random) - skewed(&mut random)).collect();
            let holds = |count: usize| {
                let (low, high) = shift_interval(&differences[..count], 0.9);
                low <= 2.0 && 2.0 <= high
            };
            lost += usize::from(!(5..=25).step_by(5).all(holds));
        }
        // 40 are allowed; at the fifth standard deviation above that the test would be wrong.
        assert!(lost > 0 && lost <= 40, "{lost} of 400");
    }

    #[test]
    fn the_test_rejects_zero_where_the_interval_excludes_it() {
        let mut random = StdRng::seed_from_u64(4);
        for _ in 0..60 {
            let shift = random.random_range(-2.0..2.0);
            let differences: Vec<f64> =
                (0..20).map(|_| shift + random.random_range(-1.0..1.0) * 3.0).collect();
            let (low, high) = shift_interval(&differences, 0.95);
            let estimate = shift_estimate(&differences).expect("there are differences");
            assert!(low <= estimate && estimate <= high, "{low} {estimate} {high}");
            if low > 0.0 || high < 0.0 {
                assert!(is_rejected(&differences, 0.0, 0.95));
            }
        }
    }
}

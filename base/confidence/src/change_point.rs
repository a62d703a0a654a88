//! Test for a change in a sequence.
//!
//! The statistic is Pettitt's: the largest deviation of the cumulative sum of ranks from its expectation
//! without a change. Random permutations give its distribution under independence. Blocks of a sequence with
//! memory are dependent, so the statistic is divided by the root of the design effect: the variance of sums
//! over neighbours ÷ that of independent values, both about the means before and after the change. Memory as
//! long as the sequence cannot be told from a change; [`neighbour_correlation`] detects such values.

use crate::ranks::centred_ranks;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;

/// The most significant change in a sequence.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The index of the first value after the change.
    pub at: usize,
    /// The probability of a statistic as large without any change, above 0 and at most 1.
    pub p_value: f64,
}

/// Returns the most significant change in a sequence of at least two values, tested by seeded permutations.
/// The smallest p-value is 1 ÷ (permutations + 1).
///
/// # Panics
/// When there are fewer than two values.
pub fn change_point(values: &[f64], permutations: u32, seed: u64) -> ChangePoint {
    assert!(values.len() >= 2, "a change needs a before and an after");
    let mut ranks = centred_ranks(values);
    let (at, deviation) = largest_deviation(&ranks);
    let observed = deviation / variance_ratio(&residuals(&ranks, at)).sqrt();
    let mut random = StdRng::seed_from_u64(seed);
    let mut as_large = 1u32;
    for _ in 0..permutations {
        ranks.shuffle(&mut random);
        as_large += u32::from(largest_deviation(&ranks).1 >= observed);
    }
    ChangePoint { at, p_value: f64::from(as_large) / (f64::from(permutations) + 1.0) }
}

/// Returns the position at which the cumulative sum of centred ranks is furthest from zero, and its distance.
fn largest_deviation(ranks: &[f64]) -> (usize, f64) {
    let mut sum = 0.0f64;
    let mut at = 1;
    let mut largest = 0.0f64;
    for (index, rank) in ranks[..ranks.len() - 1].iter().enumerate() {
        sum += rank;
        if sum.abs() > largest {
            (at, largest) = (index + 1, sum.abs());
        }
    }
    (at, largest)
}

/// Ranks relative to the means of those before and from `at` on.
fn residuals(ranks: &[f64], at: usize) -> Vec<f64> {
    let mut residuals = ranks.to_vec();
    let (before, after) = residuals.split_at_mut(at.min(ranks.len()));
    for side in [before, after] {
        let mean = side.iter().sum::<f64>() / side.len().max(1) as f64;
        side.iter_mut().for_each(|rank| *rank -= mean);
    }
    residuals
}

/// Returns the variance of sums of neighbours ÷ that of independent values, at least 1: the largest ratio
/// over sums of a sixteenth, an eighth and a quarter of the values.
fn variance_ratio(residuals: &[f64]) -> f64 {
    let variance = residuals.iter().map(|rank| rank * rank).sum::<f64>() / residuals.len() as f64;
    let ratio = |length: usize| {
        let sums = residuals.windows(length).map(|neighbours| neighbours.iter().sum::<f64>().powi(2));
        let count = residuals.len() + 1 - length;
        sums.sum::<f64>() / count as f64 / (variance * length as f64)
    };
    let lengths = [16, 8, 4].map(|part| residuals.len() / part);
    lengths.into_iter().filter(|length| *length >= 2 && variance > 0.0).map(ratio).fold(1.0, f64::max)
}

/// Returns the correlation of neighbouring ranks, −1 to 1, after removing the means before and from `at`
/// on; 0 if undefined. Independent values have about −2/n, with a standard deviation of about 1/√n.
pub fn neighbour_correlation(values: &[f64], at: usize) -> f64 {
    let ranks = residuals(&centred_ranks(values), at);
    let squares: f64 = ranks.iter().map(|rank| rank * rank).sum();
    let products: f64 = ranks.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if squares > 0.0 { products / squares } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt as _;

    fn noise(count: usize, seed: u64) -> Vec<f64> {
        let mut random = StdRng::seed_from_u64(seed);
        // Heavy tails, which ranks do not mind.
        (0..count).map(|_| random.random::<f64>().powf(-0.7)).collect()
    }

    #[test]
    fn a_level_shift_is_found_where_it_is() {
        let mut values = noise(64, 3);
        values[40..].iter_mut().for_each(|value| *value *= 4.0);
        let change = change_point(&values, 999, 1);
        assert!(change.p_value < 0.01 && change.at.abs_diff(40) <= 4, "{change:?}");
    }

    #[test]
    fn the_level_is_kept() {
        let rejected = (0..400).filter(|seed| change_point(&noise(32, *seed), 199, *seed).p_value <= 0.05);
        // 20 expected; 34 has a probability below 0.2 %.
        assert!((7..=33).contains(&rejected.count()));
    }

    #[test]
    fn equal_values_do_not_change() {
        assert_eq!(change_point(&[2.0; 20], 99, 1).p_value, 1.0);
        assert_eq!(neighbour_correlation(&[2.0; 20], 10), 0.0);
    }

    #[test]
    fn neighbours_of_a_random_walk_are_alike_and_a_step_does_not_make_them_so() {
        let mut walk = noise(64, 5).iter().map(|value| value.ln() - 0.7).collect::<Vec<_>>();
        (1..walk.len()).for_each(|index| walk[index] += walk[index - 1]);
        assert!(neighbour_correlation(&walk, 32) > 0.5);
        let mut step = noise(64, 6);
        step[32..].iter_mut().for_each(|value| *value += 100.0);
        assert!(neighbour_correlation(&step, 32).abs() < 0.3);
        assert!(neighbour_correlation(&step, 64) > 0.6);
    }
}

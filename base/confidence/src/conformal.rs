//! Split conformal prediction: an upper bound on the next score from past scores.
//!
//! A score measures how far a prediction fell short; larger is worse. Suppose that n seen scores and the
//! next one are *exchangeable*: every order of the n + 1 is equally likely. The next one is then at most
//! the ⌈(n + 1) c⌉-th smallest with probability at least c, for any distribution (Vovk, Gammerman and
//! Shafer 2005).
//!
//! Scores of one source depend on each other. They form a *block*, and blocks are exchangeable: each
//! counts as much as one score, however many it has, and the next block as one that exceeds everything
//! (Lee, Barber and Willett 2023, hierarchical conformal prediction). The probability is over all blocks
//! and the next one together; for one given source it may be lower.

use crate::TooFew;

/// Tolerance for products that are whole numbers but computed slightly above.
const ROUNDING: f64 = 1e-9;

/// Returns the minimum number of exchangeable blocks for a bound on the next score: the least n with ⌈(n
/// + 1) c⌉ ≤ n, that is n ≥ c ÷ (1 − c); 19 for 95 %.
///
/// # Panics
/// Unless the coverage c is strictly between 0 and 1.
pub fn needed_for_conformal(coverage: f64) -> usize {
    check(coverage);
    let exact = coverage / (1.0 - coverage);
    // Positive; the cast saturates.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let needed = (exact * (1.0 - ROUNDING)).ceil() as usize;
    needed
}

/// Returns the least score that bounds a score of the next block with probability at least `coverage`.
/// With K non-empty blocks, the shares of scores at or below it, summed over blocks, reach (K + 1) c.
/// With one score per block it is the k-th smallest, k = ⌈(K + 1) c⌉.
///
/// # Errors
/// When there are too few blocks with scores; the error says how many would do.
///
/// # Panics
/// Unless the coverage is strictly between 0 and 1, or when a score is not a number.
pub fn conformal_quantile(blocks: &[Vec<f64>], coverage: f64) -> Result<f64, TooFew> {
    let count = blocks.iter().filter(|block| !block.is_empty()).count();
    let needed = needed_for_conformal(coverage);
    if count < needed {
        return Err(TooFew { given: count, needed });
    }
    let mut weighted = Vec::new();
    for block in blocks {
        weighted.extend(block.iter().map(|&score| (score, 1.0 / block.len() as f64)));
    }
    assert!(weighted.iter().all(|(score, _)| !score.is_nan()), "scores are numbers");
    weighted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let wanted = (count + 1) as f64 * coverage - ROUNDING;
    let mut sum = 0.0;
    let reached = weighted.iter().find(|(_, weight)| {
        sum += weight;
        sum >= wanted
    });
    // Rounding may keep the sum of all weights just below the target; the largest score reaches it by
    // definition.
    Ok(reached.or(weighted.last()).expect("there are blocks with scores").0)
}

/// Returns the coverage of a limit that was not chosen by these blocks: the shares of scores at or below
/// it, summed over the blocks, ÷ (K + 1). The inverse of [`conformal_quantile`]; 0 without scores.
pub fn conformal_coverage(blocks: &[Vec<f64>], limit: f64) -> f64 {
    let mut count = 0;
    let mut sum = 0.0;
    for block in blocks.iter().filter(|block| !block.is_empty()) {
        count += 1;
        sum += block.iter().filter(|score| **score <= limit).count() as f64 / block.len() as f64;
    }
    sum / (count + 1) as f64
}

fn check(coverage: f64) {
    assert!(coverage > 0.0 && coverage < 1.0, "a coverage is strictly between 0 and 1");
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    /// Returns the rank ⌈(n + 1) c⌉, from 1, ascending: the next score is at most the score of this rank among n
    /// exchangeable ones with probability at least `coverage`.
    fn conformal_rank(n: usize, coverage: f64) -> Result<usize, TooFew> {
        let needed = needed_for_conformal(coverage);
        if n < needed {
            return Err(TooFew { given: n, needed });
        }
        // Between 0 and n + 1.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rank = ((n + 1) as f64 * coverage - ROUNDING).ceil() as usize;
        Ok(rank.clamp(1, n))
    }

    #[test]
    fn the_known_sizes_and_ranks() {
        for (coverage, needed) in [(0.5, 1), (0.8, 4), (0.9, 9), (0.95, 19), (0.99, 99), (0.999, 999)] {
            assert_eq!(needed_for_conformal(coverage), needed, "{coverage}");
            assert_eq!(conformal_rank(needed, coverage), Ok(needed));
            let too_few = TooFew { given: needed - 1, needed };
            assert_eq!(conformal_rank(needed - 1, coverage), Err(too_few));
            assert_eq!(conformal_quantile(&vec![vec![1.0]; needed - 1], coverage), Err(too_few));
        }
        assert_eq!(conformal_rank(38, 0.95), Ok(38));
        assert_eq!(conformal_rank(39, 0.95), Ok(38));
        assert_eq!(conformal_rank(41, 0.95), Ok(40));
        assert_eq!(conformal_rank(99, 0.9), Ok(90));
    }

    #[test]
    fn blocks_of_one_score_are_ranked() {
        let blocks: Vec<Vec<f64>> = (1..=41u32).rev().map(|score| vec![f64::from(score)]).collect();
        for coverage in [0.5, 0.8, 0.9, 0.95] {
            let rank = conformal_rank(41, coverage).unwrap();
            let quantile = conformal_quantile(&blocks, coverage).unwrap();
            assert_eq!(quantile, rank as f64);
            assert!((conformal_coverage(&blocks, quantile) - rank as f64 / 42.0).abs() < 1e-12);
        }
        assert_eq!(conformal_coverage(&[], 1.0), 0.0);
    }

    #[test]
    fn a_block_counts_once_however_many_scores_it_has() {
        // Nine blocks of one score and one of a thousand: 11 · 0.9 = 9.9 blocks, the long one to 90 %.
        let mut blocks: Vec<Vec<f64>> = (1..=9u32).map(|score| vec![f64::from(score)]).collect();
        blocks.push((0..1000u32).map(|score| 10.0 + f64::from(score)).collect());
        blocks.push(Vec::new());
        assert_eq!(conformal_quantile(&blocks, 0.9), Ok(909.0));
    }

    /// Returns the share of runs in which the next score stays within the quantile. `score` draws scores
    /// for the level of a block, which all its scores share.
    fn covered(blocks: usize, size: usize, coverage: f64, shared: f64, runs: usize) -> f64 {
        let mut random = StdRng::seed_from_u64(5);
        let mut within = 0;
        for _ in 0..runs {
            let mut block = |size: usize| -> Vec<f64> {
                // Heavy tails: no mean exists.
                let level = random.random_range(0.0f64..1.0).recip();
                let own = (0..size).map(|_| random.random_range(0.0f64..1.0).recip());
                own.map(|own| shared * level + (1.0 - shared) * own).collect()
            };
            let seen: Vec<Vec<f64>> = (0..blocks).map(|_| block(size)).collect();
            within += usize::from(block(1)[0] <= conformal_quantile(&seen, coverage).unwrap());
        }
        within as f64 / runs as f64
    }

    #[test]
    fn the_next_score_is_covered_as_often_as_asked() {
        let runs = 4000;
        for (blocks, coverage) in [(19, 0.95), (39, 0.95), (20, 0.8), (41, 0.9), (99, 0.99)] {
            // Four standard deviations of a frequency.
            let slack = 4.0 * (coverage * (1.0 - coverage) / runs as f64).sqrt();
            let most = coverage + 1.0 / (blocks + 1) as f64;
            let single = covered(blocks, 1, coverage, 0.5, runs);
            assert!((coverage - slack..=most + slack).contains(&single), "{blocks} at {coverage}: {single}");
            for shared in [0.1, 0.9, 1.0] {
                let several = covered(blocks, 5, coverage, shared, runs);
                assert!(several >= coverage - slack, "{blocks} blocks of 5 at {coverage}: {several}");
            }
        }
    }

    #[test]
    fn scores_of_one_block_taken_for_independent_cover_less() {
        // Five blocks of 19 equal scores: ranked as 95 independent ones they promise 95 %, and keep 5/6.
        let mut random = StdRng::seed_from_u64(9);
        let runs = 4000;
        let mut within = 0;
        for _ in 0..runs {
            let levels: Vec<f64> = (0..5).map(|_| random.random_range(0.0..1.0)).collect();
            let mut scores: Vec<f64> = levels.iter().flat_map(|level| [*level; 19]).collect();
            scores.sort_by(f64::total_cmp);
            let limit = scores[conformal_rank(95, 0.95).unwrap() - 1];
            within += usize::from(random.random_range(0.0..1.0) <= limit);
        }
        assert!((within as f64 / runs as f64 - 5.0 / 6.0).abs() < 0.025, "{within}");
    }
}

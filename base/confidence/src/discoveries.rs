//! Which of many tests count.

/// Which hypotheses are rejected so that on average at most the share `rate` of the rejected ones is true: the procedure
/// of Benjamini and Hochberg, for p-values that are independent or depend positively on each other. Where all
/// hypotheses are true, the probability of rejecting any is at most `rate`.
pub fn discoveries(p_values: &[f64], rate: f64) -> Vec<bool> {
    let mut sorted = p_values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let allowed = |rank: usize| rate * (rank + 1) as f64 / sorted.len() as f64;
    let last = (0..sorted.len()).rev().find(|&rank| sorted[rank] <= allowed(rank));
    let limit = last.map_or(f64::NEG_INFINITY, |rank| sorted[rank]);
    p_values.iter().map(|p| *p <= limit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_rank_within_its_share_decides() {
        // Limits 0.0125, 0.025, 0.0375, 0.05: the third is within its own, and takes the second along.
        assert_eq!(discoveries(&[0.03, 0.2, 0.001, 0.036], 0.05), [true, false, true, true]);
        assert_eq!(discoveries(&[0.03, 0.2, 0.02, 0.06], 0.05), [false; 4]);
        assert!(discoveries(&[], 0.05).is_empty());
    }
}

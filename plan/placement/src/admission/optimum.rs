//! The offline optimum of thesis §4.4.2: the largest n such that the first n workloads meet their SLOs.
//!
//! Once a prefix fails, longer ones hardly ever hold again, but they may (a burst ahead of a slower stage can
//! be broken up by another workload), so bisection alone is not exact. The search doubles the step while
//! the prefix holds, bisects, and then looks at the next few prefixes above what it found; each that
//! holds starts that look again. What it returns holds; a longer one that holds would have to follow at
//! least as many that do not.

/// The longest admissible sequence of arrivals that a search found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AdmissiblePrefix {
    /// The largest n that was found.
    pub length: usize,
    /// The number of prefixes that were judged.
    pub judged: usize,
}

/// The largest n ≤ `total` for which `holds(n)`; no workload at all (0) always holds. Looks `look_ahead` prefixes beyond
/// the last that holds, so `total` makes the search exact.
pub fn largest_prefix(
    total: usize,
    look_ahead: usize,
    mut holds: impl FnMut(usize) -> bool,
) -> AdmissiblePrefix {
    let mut judged = 0;
    let mut holds = |n: usize| {
        judged += 1;
        holds(n)
    };
    let mut low = 0;
    let mut step = 1;
    while low + step <= total && holds(low + step) {
        low += step;
        step *= 2;
    }
    // It holds at `low` and does not at `high`, unless `high` is beyond the last workload.
    let mut high = (low + step).min(total + 1);
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        if holds(middle) { low = middle } else { high = middle }
    }
    let mut next = low + 1;
    while next <= total && next - low <= look_ahead {
        if next != high && holds(next) {
            low = next;
        }
        next += 1;
    }
    AdmissiblePrefix { length: low, judged }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn monotone_prefixes_cost_logarithmically_many_looks() {
        for total in [0, 1, 2, 180] {
            for limit in 0..=total {
                let found = largest_prefix(total, 3, |n| n <= limit);
                assert_eq!(found.length, limit);
                assert!(found.judged <= 2 * 8 + 3, "{found:?}");
            }
        }
    }

    #[test]
    fn a_short_gap_is_looked_across_and_a_long_one_is_not() {
        let holds = |n: usize| n <= 10 || (13..=14).contains(&n) || n == 18;
        assert_eq!(largest_prefix(30, 2, holds).length, 10);
        assert_eq!(largest_prefix(30, 3, holds).length, 14);
        assert_eq!(largest_prefix(30, 4, holds).length, 18);
    }

    proptest! {
        #[test]
        fn looking_at_everything_is_exact(holds in prop::collection::vec(any::<bool>(), 0..40)) {
            let expected = (1..=holds.len()).rev().find(|&n| holds[n - 1]).unwrap_or(0);
            let found = largest_prefix(holds.len(), holds.len(), |n| holds[n - 1]);
            prop_assert_eq!(found.length, expected);
        }
    }
}

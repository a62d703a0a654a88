//! The binomial distribution, summed from its small end.

use crate::binomial_sums;

/// The largest s with P(Bin(n, p) ≤ s) ≤ `sum`; none when even s = 0 is too likely.
pub(crate) fn largest_within(n: usize, p: f64, sum: f64) -> Option<usize> {
    let count = binomial_sums(n, p).take_while(|reached| *reached <= sum).count();
    count.checked_sub(1)
}

/// The smallest s with P(Bin(n, p) ≤ s) ≥ `sum`.
pub(crate) fn smallest_reaching(n: usize, p: f64, sum: f64) -> usize {
    binomial_sums(n, p).take_while(|reached| *reached < sum).count().min(n)
}

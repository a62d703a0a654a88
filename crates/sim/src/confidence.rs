//! What independent values say about the distribution that they come from, whatever that distribution is.
//!
//! Here a value is the percentile that one alignment gave, and the distribution is over all alignments. The
//! statements are about *how alignments vary*, and hold only as far as the recordings stand for the future.
//!
//! Everything rests on one fact: the number of n independent values at or below the β-quantile is binomial, at
//! least as likely to be small as Bin(n, β) when the distribution has atoms. Sums are exact but for rounding of
//! the arithmetic, no normal approximation. Order statistics are counted from 1, ascending.

use std::fmt;

/// Too few values for what is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooFew {
    /// How many there are.
    pub given: usize,
    /// How many would do.
    pub needed: usize,
}

impl fmt::Display for TooFew {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} alignments are too few: at least {} are needed", self.given, self.needed)
    }
}

impl std::error::Error for TooFew {}

/// P(Bin(n, p) ≤ k), for p strictly between 0 and 1.
pub fn binomial_at_most(n: usize, p: f64, k: usize) -> f64 {
    if k >= n {
        return 1.0;
    }
    let odds = (p / (1.0 - p)).ln();
    // Terms as logarithms: (1 − p)ⁿ underflows long before the sum does.
    let mut term = n as f64 * (-p).ln_1p();
    let mut sum = term.exp();
    for i in 0..k {
        term += ((n - i) as f64 / (i + 1) as f64).ln() + odds;
        sum += term.exp();
    }
    sum.min(1.0)
}

/// The number of values that an upper tolerance limit needs at least: the least n with 1 − βⁿ ≥ γ, n ≥
/// ln(1 − γ)/ln β; 59 for 95 % of the alignments with 95 % confidence.
///
/// # Panics
/// Unless coverage β and confidence γ are strictly between 0 and 1.
pub fn needed_for_tolerance(coverage: f64, confidence: f64) -> usize {
    check(coverage, confidence);
    let exact = (-confidence).ln_1p() / coverage.ln();
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
    // From the top: rank m holds with probability P(Bin(n, β) ≤ m − 1) = 1 − P(Bin(n, 1 − β) ≤ n − m).
    let mut rank = n;
    while rank > 1 && 1.0 - binomial_at_most(n, 1.0 - coverage, n - rank + 1) >= confidence {
        rank -= 1;
    }
    Ok(rank)
}

/// The order statistics between which the median lies with at least the given confidence: the narrowest pair
/// (l, n + 1 − l).
///
/// # Panics
/// Unless the confidence is strictly between 0 and 1.
pub fn median_ranks(n: usize, confidence: f64) -> Result<(usize, usize), TooFew> {
    check(0.5, confidence);
    // The median is outside when fewer than l values are on one side of it.
    let outside = |n: usize, l: usize| 2.0 * binomial_at_most(n, 0.5, l - 1);
    let allowed = 1.0 - confidence;
    if n == 0 || outside(n, 1) > allowed {
        // 2·2⁻ⁿ ≤ 1 − γ.
        let needed = (1..).find(|n| outside(*n, 1) <= allowed).expect("the sum falls with every value");
        return Err(TooFew { given: n, needed });
    }
    let mut low = 1;
    while low < n.div_ceil(2) && outside(n, low + 1) <= allowed {
        low += 1;
    }
    Ok((low, n + 1 - low))
}

fn check(coverage: f64, confidence: f64) {
    let inside = |p: f64| p > 0.0 && p < 1.0;
    assert!(inside(coverage) && inside(confidence), "coverage and confidence are strictly between 0 and 1");
}

//! Several rate limiters at once for a workload at a stage, as limits of a policy: [`calculus::limiters()`].

use calculus::ArrivalCurve;
use model::RateLimit;

/// The limiters of [`calculus::limiters()`] as limits.
///
/// # Panics
/// As that one.
pub fn limiters(curve: &ArrivalCurve, tolerance: f64) -> Vec<RateLimit> {
    limits(calculus::limiters(curve, tolerance))
}

/// The limiters of [`calculus::enforceable_limiters()`] as limits.
///
/// # Panics
/// As that one.
pub fn enforceable_limiters(curve: &ArrivalCurve, tolerance: f64) -> Vec<RateLimit> {
    limits(calculus::enforceable_limiters(curve, tolerance))
}

fn limits(buckets: Vec<(f64, f64)>) -> Vec<RateLimit> {
    buckets.into_iter().map(|(rate, burst)| RateLimit { rate, burst }).collect()
}

//! The latency that strict priority guarantees to token-bucket traffic over a path of stages.
//!
//! Thesis Eq. 5.1 for one stage and Eq. 5.5 for a path. Assumptions: each stage serves work preemptively
//! in strict priority order, first come first served within a priority; every workload is inside its
//! ⟨r, b⟩ at *every* stage, because a limiter re-shapes it there. Re-shaping to the curve that the
//! traffic had at its source adds nothing to the end-to-end worst case (Le Boudec and Thiran, *Network
//! Calculus*, §1.5.3), so per-stage delays add up without burst growth along the path.

use crate::{ArrivalCurve, round_up};

/// What one stage contributes to a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageTerm {
    /// The sum of bursts over workloads of the same or higher priority, seconds of capacity.
    pub burst_at_or_above: f64,
    /// The sum of rates over workloads of strictly higher priority, fraction of capacity.
    pub rate_above: f64,
    /// The bound on the stage's delay, seconds.
    pub delay: f64,
}

/// A latency bound with its derivation.
#[derive(Debug, Clone, PartialEq)]
pub struct PathBound {
    /// One term per stage, in path order.
    pub terms: Vec<StageTerm>,
    /// The sum of the delays, seconds; infinite when a stage is overloaded by higher priorities.
    pub total: f64,
}

/// Eq. 5.1: `Σ_{p_j ≥ p} b_j / (1 − Σ_{p_j > p} r_j)`. Maps the paper's sums to the two arguments.
/// Infinite when the higher priorities use the whole stage.
pub fn stage_delay(burst_at_or_above: f64, rate_above: f64) -> f64 {
    let left = 1.0 - rate_above;
    if left <= 0.0 {
        return f64::INFINITY;
    }
    round_up(burst_at_or_above / left)
}

/// The longest that a token bucket ⟨rate, burst⟩ delays traffic with curve α itself:
/// `max_k (work_k − rate·duration_k − burst) / rate`; zero when the bucket is on or above the r-b curve.
pub fn shaping_delay(curve: &ArrivalCurve, rate: f64, burst: f64) -> f64 {
    let excess = curve.burst(rate) - burst;
    if excess <= 0.0 { 0.0 } else { round_up(excess / rate) }
}

/// Eq. 5.5: the sum of Eq. 5.1 over the stages of a path, given `(burst_at_or_above, rate_above)` each.
pub fn path_bound(stages: impl IntoIterator<Item = (f64, f64)>) -> PathBound {
    let terms: Vec<StageTerm> = stages
        .into_iter()
        .map(|(burst_at_or_above, rate_above)| StageTerm {
            burst_at_or_above,
            rate_above,
            delay: stage_delay(burst_at_or_above, rate_above),
        })
        .collect();
    let total = round_up(terms.iter().map(|t| t.delay).sum());
    PathBound { terms, total }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CurveVertex;

    #[test]
    fn worked_example_of_two_priorities() {
        // High: r = 0.5, b = 0.1; low: b = 0.2. Low waits for both bursts on half the server.
        assert!((stage_delay(0.1, 0.0) - 0.1).abs() < 1e-12);
        assert!((stage_delay(0.3, 0.5) - 0.6).abs() < 1e-12);
        let bound = path_bound([(0.3, 0.5), (0.1, 0.0)]);
        assert!((bound.total - 0.7).abs() < 1e-12);
        assert!(bound.total >= bound.terms.iter().map(|t| t.delay).sum());
    }

    #[test]
    fn a_bucket_below_the_curve_delays_its_own_workload() {
        let vertices = [(0.0, 0.2), (1.0, 0.5)].map(|(duration, work)| CurveVertex { duration, work });
        let curve = ArrivalCurve::new(vertices.to_vec(), 0.0).unwrap();
        assert_eq!(shaping_delay(&curve, 0.3, 0.2), 0.0);
        assert!((shaping_delay(&curve, 0.4, 0.0) - 0.5).abs() < 1e-12);
        // The effective bandwidth for a delay shapes by exactly that delay.
        let rate = curve.rate_for_delay(0.4);
        assert!((shaping_delay(&curve, rate, 0.0) - 0.4).abs() < 1e-12);
    }

    #[test]
    fn an_overloaded_stage_guarantees_nothing() {
        assert_eq!(stage_delay(0.1, 1.0), f64::INFINITY);
        assert_eq!(path_bound([(0.1, 0.2), (0.0, 1.5)]).total, f64::INFINITY);
    }
}

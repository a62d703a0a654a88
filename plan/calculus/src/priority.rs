//! The latency that strict priority guarantees to token-bucket traffic over a path of stages.
//!
//! Thesis Eq. 5.1 for one stage and Eq. 5.5 for a path. Assumptions: each stage serves work in strict priority order,
//! first come first served within a priority; every workload is inside its
//! ⟨r, b⟩ at *every* stage, because a limiter re-shapes it there. The thesis has stages that preempt; what others have
//! begun already is [`StageLoad::blocking`], which [`crate::DeviceQueue`] derives for a device. Re-shaping to the curve that the
//! traffic had at its source adds nothing to the end-to-end worst case (Le Boudec and Thiran, *Network
//! Calculus*, §1.5.3), so per-stage delays add up without burst growth along the path.

use crate::{ArrivalCurve, round_up};

/// Load that a workload meets at one stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageLoad {
    /// The sum of bursts over workloads of the same or higher priority, seconds of capacity.
    pub burst_at_or_above: f64,
    /// The sum of rates over workloads of strictly higher priority, fraction of capacity.
    pub rate_above: f64,
    /// The most work of any priority that the stage has begun already and does not interrupt, seconds of capacity; 0 for a
    /// preemptive stage.
    pub blocking: f64,
}

impl StageLoad {
    /// The load of a stage that preempts, from both sums.
    pub fn preemptive(burst_at_or_above: f64, rate_above: f64) -> Self {
        Self { burst_at_or_above, rate_above, blocking: 0.0 }
    }
}

/// Contribution of one stage to a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StageTerm {
    pub load: StageLoad,
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

/// Eq. 5.1, `Σ_{p_j ≥ p} b_j / (1 − Σ_{p_j > p} r_j)`, with what is begun already among the bursts.
/// Infinite when the higher priorities use the whole stage.
pub fn stage_delay(load: StageLoad) -> f64 {
    let left = 1.0 - load.rate_above;
    if left <= 0.0 {
        return f64::INFINITY;
    }
    round_up((load.blocking + load.burst_at_or_above) / left)
}

/// The longest that a token bucket ⟨rate, burst⟩ delays traffic with curve α itself:
/// `max_k (work_k − rate·duration_k − burst) / rate`; zero when the bucket is on or above the r-b curve.
pub fn shaping_delay(curve: &ArrivalCurve, rate: f64, burst: f64) -> f64 {
    let excess = curve.burst(rate) - burst;
    if excess <= 0.0 { 0.0 } else { round_up(excess / rate) }
}

/// Eq. 5.5: the sum of Eq. 5.1 over the stages of a path.
pub fn path_bound(stages: impl IntoIterator<Item = StageLoad>) -> PathBound {
    let terms: Vec<StageTerm> =
        stages.into_iter().map(|load| StageTerm { load, delay: stage_delay(load) }).collect();
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
        assert!((stage_delay(StageLoad::preemptive(0.1, 0.0)) - 0.1).abs() < 1e-12);
        assert!((stage_delay(StageLoad::preemptive(0.3, 0.5)) - 0.6).abs() < 1e-12);
        let bound = path_bound([StageLoad::preemptive(0.3, 0.5), StageLoad::preemptive(0.1, 0.0)]);
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
    fn what_is_begun_already_waits_for_higher_priorities_too() {
        let blocked = StageLoad { blocking: 0.1, ..StageLoad::preemptive(0.3, 0.5) };
        assert!((stage_delay(blocked) - 0.8).abs() < 1e-12);
    }

    #[test]
    fn an_overloaded_stage_guarantees_nothing() {
        assert_eq!(stage_delay(StageLoad::preemptive(0.1, 1.0)), f64::INFINITY);
        assert_eq!(
            path_bound([StageLoad::preemptive(0.1, 0.2), StageLoad::preemptive(0.0, 1.5)]).total,
            f64::INFINITY
        );
    }
}

//! Baselines whose limits do not depend on who else is on the server (thesis §5.3.1).

use super::Method;
use crate::instance::Instance;
use crate::server::Limits;
use calculus::ArrivalCurve;
use model::{PerStage, RateLimit, Stage};

/// Limits of one workload under a fixed baseline. Its budget is positive.
pub(super) fn limits(method: Method, instance: &Instance, class: usize, workload: usize) -> Limits {
    let on = &instance.workloads[workload].on[class];
    let budget = instance.budget(workload, class);
    let on_curve = |stage: Stage, rate: f64| RateLimit { rate, burst: on.curves[stage].burst(rate) };
    match method {
        Method::EffectiveEven => shaped(&on.curves, &PerStage::from_fn(|_| budget / Stage::ALL.len() as f64)),
        Method::EffectiveBest => shaped(&on.curves, &best_split(&on.curves, budget)),
        Method::Knee => PerStage::from_fn(|stage| on_curve(stage, knee(&on.curves[stage]))),
        Method::Average(k) => PerStage::from_fn(|stage| on_curve(stage, k * on.mean_rate[stage])),
        Method::Exact | Method::Relaxed => unreachable!("these methods choose limits together"),
    }
}

/// The rate of the curve's knee: `min r + b` is α(1 s), reached where the curve is cut at one second.
fn knee(curve: &ArrivalCurve) -> f64 {
    curve.slopes_at(1.0).0
}

/// No burst passes a stage; each delays the workload by at most its share of the budget.
fn shaped(curves: &PerStage<ArrivalCurve>, delays: &PerStage<f64>) -> Limits {
    PerStage::from_fn(|stage| RateLimit { rate: curves[stage].rate_for_delay(delays[stage]), burst: 0.0 })
}

/// Splits the budget so that the largest rate over the stages is least: at that rate every stage shapes
/// for `b(r)/r` seconds, which falls with r, so the rate is found by bisection.
fn best_split(curves: &PerStage<ArrivalCurve>, budget: f64) -> PerStage<f64> {
    let delay_at = |stage: Stage, rate: f64| curves[stage].burst(rate) / rate;
    let total = |rate: f64| Stage::ALL.map(|stage| delay_at(stage, rate)).iter().sum::<f64>();
    let start = Stage::ALL.map(|stage| curves[stage].sustained_rate()).into_iter().fold(1e-12, f64::max);
    let (mut low, mut high) = (start, start.max(1.0));
    while total(high) > budget {
        (low, high) = (high, high * 2.0);
    }
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if total(middle) > budget { low = middle } else { high = middle }
    }
    let mut split = PerStage::from_fn(|stage| delay_at(stage, high));
    // What bisection left over goes to storage, usually the scarcest stage.
    split[Stage::Storage] += budget - split.iter().map(|(_, d)| d).sum::<f64>();
    split
}

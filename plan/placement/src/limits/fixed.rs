//! Baselines whose limits do not depend on who else is on the server (thesis §5.3.1).

use super::method::LimitMethod;
use crate::levels::WorkloadLimits;
use crate::problem::PlanningProblem;
use crate::server::PlannedServer;
use calculus::ArrivalCurve;
use model::{PerStage, RateLimit, Stage};

/// Factors on the wait for work begun already, as higher priorities take part of each stage. The published
/// methods ignore it, so the first factor with valid limits is used.
const WAITING_FACTORS: [f64; 5] = [1.0, 1.25, 2.0, 4.0, 8.0];

/// The limits of workloads under a fixed baseline. Their budgets are positive.
pub(super) fn fit(
    method: LimitMethod,
    problem: &PlanningProblem,
    class: usize,
    members: &[usize],
) -> Vec<WorkloadLimits> {
    let blocking: f64 = problem.least_blocking(class, members).iter().map(|(_, work)| work).sum();
    let limits_with = |waiting: f64| -> Vec<WorkloadLimits> {
        members.iter().map(|&w| limits(method, problem, class, w, waiting)).collect()
    };
    if blocking == 0.0 || !matches!(method, LimitMethod::EffectiveEven | LimitMethod::EffectiveBest) {
        return limits_with(0.0);
    }
    let least_budget = members.iter().map(|&w| problem.budget(w, class)).fold(f64::INFINITY, f64::min);
    for factor in WAITING_FACTORS.into_iter().filter(|factor| factor * blocking < least_budget) {
        let limits = limits_with(factor * blocking);
        let server = PlannedServer::with_limits(problem, class, members.to_vec(), limits);
        if server.verify(problem).is_ok() {
            return server.limits;
        }
    }
    limits_with(blocking)
}

/// The limits of one workload under a fixed baseline, whose requests wait `waiting` seconds for what is begun already.
fn limits(
    method: LimitMethod,
    problem: &PlanningProblem,
    class: usize,
    workload: usize,
    waiting: f64,
) -> WorkloadLimits {
    let description = &problem.workloads[workload].on_class[class];
    let curves = &description.curves;
    let budget = problem.budget(workload, class) - waiting;
    match method {
        LimitMethod::EffectiveEven => {
            without_bursts(curves, &PerStage::from_fn(|_| budget / Stage::ALL.len() as f64))
        }
        LimitMethod::EffectiveBest => without_bursts(curves, &best_split(curves, budget)),
        LimitMethod::Knee => {
            PerStage::from_fn(|stage| limit_at_knee(&curves[stage], description.mean_rate[stage]))
        }
        LimitMethod::Average(k) => {
            PerStage::from_fn(|stage| limit_on(&curves[stage], k * description.mean_rate[stage]))
        }
        LimitMethod::Exact | LimitMethod::Relaxed => unreachable!("these methods choose limits together"),
    }
}

/// The limit of this rate that never delays the workload.
fn limit_on(curve: &ArrivalCurve, rate: f64) -> RateLimit {
    RateLimit { rate, burst: curve.burst(rate) }
}

/// The limit at the curve's knee: `min r + b` is α(1 s), reached where the curve is cut at one second. A trace that is
/// shorter than that has no knee, since its curve is flat there; the mean rate is the least that can be sustained.
fn limit_at_knee(curve: &ArrivalCurve, mean_rate: f64) -> RateLimit {
    let rate = curve.slopes_at(1.0).0;
    limit_on(curve, if rate > 0.0 { rate } else { mean_rate })
}

/// Limits that let no burst pass; each delays the workload by at most its share of the budget.
fn without_bursts(curves: &PerStage<ArrivalCurve>, delays: &PerStage<f64>) -> WorkloadLimits {
    PerStage::from_fn(|stage| RateLimit { rate: curves[stage].rate_for_delay(delays[stage]), burst: 0.0 })
}

/// Splits the budget so that the largest rate over the stages is least: at that rate every stage delays by `b(r)/r`
/// seconds, which falls with r, so the rate is found by bisection.
fn best_split(curves: &PerStage<ArrivalCurve>, budget: f64) -> PerStage<f64> {
    let delay_at = |stage: Stage, rate: f64| curves[stage].burst(rate) / rate;
    let delay_over_stages = |rate: f64| Stage::ALL.map(|stage| delay_at(stage, rate)).iter().sum::<f64>();
    let start = Stage::ALL.map(|stage| curves[stage].sustained_rate()).into_iter().fold(1e-12, f64::max);
    let mut low = start;
    let mut high = start.max(1.0);
    while delay_over_stages(high) > budget {
        (low, high) = (high, high * 2.0);
    }
    // A hundred bisections exhaust the precision of the rates.
    for _ in 0..100 {
        let middle = 0.5 * (low + high);
        if delay_over_stages(middle) > budget { low = middle } else { high = middle }
    }
    let mut split = PerStage::from_fn(|stage| delay_at(stage, high));
    // Bisection leaves a remainder, which goes to storage, usually the scarcest stage.
    split[Stage::Storage] += budget - split.iter().map(|(_, d)| d).sum::<f64>();
    split
}

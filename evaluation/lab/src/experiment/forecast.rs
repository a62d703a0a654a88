//! Forecast of a run's verdicts: the run in simulated time, judged as the real one will be.

use super::case_plan::CasePlan;
use super::definition::{Bottleneck, PolicyName};
use super::device_simulation::simulate_on_device;
use super::link::simulate_on_link;
use super::plan::ExperimentPlan;
use super::result::CONFIDENCE;
use units::Nanos;
use verify::{Judgement, Verdict, judge};

/// Simulated result of a tenant under a policy.
#[derive(Debug, Clone, PartialEq)]
pub struct TenantForecast {
    /// The name of the tenant.
    pub name: &'static str,
    /// The judgement of the simulated latencies.
    pub judgement: Judgement,
    /// Observation time after which the verdict is decided if the run continues like this; `None` if it is
    /// decided already, or cannot be estimated.
    pub decides_after: Option<Nanos>,
}

/// Simulates a run of a case under a policy that is observed for `duration` after `warm_up`.
pub fn forecast(
    plan: &ExperimentPlan,
    case: &CasePlan,
    policy: PolicyName,
    warm_up: Nanos,
    duration: Nanos,
) -> Vec<TenantForecast> {
    let end = warm_up + duration;
    let latencies = match plan.experiment.bottleneck {
        Bottleneck::Device => simulate_on_device(plan, case, policy, warm_up, end),
        Bottleneck::Link => simulate_on_link(case, policy, warm_up, end),
    };
    let mut forecasts = Vec::new();
    for (tenant, latencies) in latencies.into_iter().enumerate() {
        let judgement = judge(latencies, case.slos[tenant], CONFIDENCE);
        let decides_after = judgement.needed_requests.and_then(|needed| {
            Nanos::from_secs(duration.as_secs() * needed as f64 / judgement.requests.max(1) as f64)
        });
        let decides_after = decides_after.filter(|_| judgement.verdict == Verdict::TooFew);
        forecasts.push(TenantForecast { name: case.case.tenants[tenant].name, judgement, decides_after });
    }
    forecasts
}

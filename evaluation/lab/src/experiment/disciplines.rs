//! Policies of an experiment on the device as disciplines: the baselines of the proxy, and its discipline
//! for a policy with priorities.

use super::baseline_queue::BaselineDiscipline;
use super::case_plan::CasePlan;
use super::definition::{PolicyName, RESERVE};
use super::plan::ExperimentPlan;
use discipline::Limit;
use discipline::enforce::{EnforcementRules, FlowRules, OutstandingBounds, OverLimit};
use discipline::serve::{DisciplineSpec, FeedbackClass, FeedbackParameters};
use model::{Policy, Slo, Stage};
use units::Nanos;

/// A deadline that never comes, in nanoseconds: 36 years.
const NEVER_NS: u64 = 1 << 60;
/// Interval at which feedback adapts its shares: a tenth of Cake's 10 s, because the device serves more than
/// ten times as many requests as a disk.
const FEEDBACK_INTERVAL_NS: u64 = 1_000_000_000;
/// A limit of outstanding requests that holds nothing back.
const UNBOUNDED: u32 = 1024;

/// The discipline of a policy that has neither priorities nor limits; `None` for the policies that have.
pub(super) fn baseline(slos: &[Slo], policy: PolicyName, outstanding: u32) -> Option<BaselineDiscipline> {
    let workloads = u32::try_from(slos.len()).expect("few workloads");
    let slos_ns: Vec<u64> = slos
        .iter()
        .map(|slo| Nanos::from_secs(slo.latency.0).map_or(NEVER_NS, |latency| latency.0))
        .collect();
    // Each list has one more entry than there are SLOs, for the copy.
    let kind = match policy {
        PolicyName::BySlo | PolicyName::Tailwright => return None,
        PolicyName::None => DisciplineSpec::Fifo,
        PolicyName::Proportional => DisciplineSpec::Proportional { weights: vec![1; slos.len() + 1] },
        PolicyName::Edf => DisciplineSpec::Deadline { allowed: [slos_ns, vec![NEVER_NS]].concat() },
        PolicyName::Feedback => {
            let slos = slos_ns.into_iter().map(Some).chain([None]);
            let classes = slos.map(|slo| FeedbackClass { weight: 1, slo }).collect();
            DisciplineSpec::Feedback(FeedbackParameters::new(classes, FEEDBACK_INTERVAL_NS))
        }
    };
    let outstanding = if policy == PolicyName::None { UNBOUNDED } else { outstanding };
    Some(BaselineDiscipline { kind, outstanding, workloads })
}

/// Returns the discipline of any policy, and its maximum number of requests at the device.
pub(super) fn discipline_of(
    plan: &ExperimentPlan,
    case: &CasePlan,
    policy: PolicyName,
) -> (DisciplineSpec, u32) {
    match baseline(&case.slos, policy, plan.outstanding) {
        Some(baseline) => (baseline.kind, baseline.outstanding),
        None => {
            let policy = if policy == PolicyName::Tailwright { &case.policy } else { &case.by_slo };
            let beside = (plan.outstanding / 2).max(1);
            let rules = enforced_rules(policy, plan.outstanding, beside, RESERVE);
            (DisciplineSpec::Enforced(rules), plan.outstanding)
        }
    }
}

/// Converts a policy to the proxy's rules, without the queues of control requests.
pub(crate) fn enforced_rules(
    policy: &Policy,
    outstanding: u32,
    beside: u32,
    reserve: u32,
) -> EnforcementRules {
    let mut rules = EnforcementRules {
        bounds: OutstandingBounds { requests: outstanding, bytes: u64::MAX },
        lower_levels: OutstandingBounds { requests: beside, bytes: u64::MAX },
        reserve,
        ..EnforcementRules::none()
    };
    for (flow, workload) in (0..).zip(&policy.workloads) {
        let Some(level) = workload.priority else { continue };
        let limits = workload.limits.iter().filter(|limit| limit.stage == Stage::Storage).map(|limit| {
            Limit { rate: nanoseconds(limit.rate_per_s), burst: nanoseconds(limit.bucket_work()) }
        });
        let limits = limits.collect();
        let over_limit = OverLimit::Demote;
        let largest = workload.largest_request.map(nanoseconds);
        let own = FlowRules { level, limits, over_limit, largest, shares_limits_of: None };
        rules.flows.insert(flow, own);
    }
    rules
}

/// Seconds of device time in nanoseconds, rounded up, at least 1.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
fn nanoseconds(seconds: f64) -> u64 {
    ((seconds * 1e9).ceil() as u64).max(1)
}

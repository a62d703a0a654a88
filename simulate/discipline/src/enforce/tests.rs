//! The enforcer against a slow obvious twin, and laws.

mod beyond;
mod change;
mod laws;
mod reference;
mod served;
mod steps;

use super::{
    ArrivingRequest, DeviceOperation, DispatchedRequest, EnforcementRules, Enforcer, FlowRules, OverLimit,
};
use crate::Limit;

/// `rate` in tenths of a unit per nanosecond.
fn limit(rate: u64, burst: u64) -> Limit {
    Limit { rate: rate * 100_000_000, burst }
}

fn flow(level: u32, over: OverLimit, limits: &[Limit]) -> FlowRules {
    FlowRules { level, limits: limits.to_vec(), over_limit: over, largest: None, shares_limits_of: None }
}

fn rules(flows: &[(u32, FlowRules)]) -> EnforcementRules {
    EnforcementRules { flows: flows.iter().cloned().collect(), ..EnforcementRules::none() }
}

fn arrival(id: u32, flow: u32, cost: u64) -> ArrivingRequest {
    ArrivingRequest { id, flow, operation: DeviceOperation::Read, cost, bytes: cost, is_estimate: false }
}

fn arrive_all(enforcer: &mut Enforcer, now: u64, arrivals: impl Iterator<Item = ArrivingRequest>) {
    for arrival in arrivals {
        enforcer.arrive(now, arrival);
    }
}

fn complete_all(enforcer: &mut Enforcer, dispatched: Vec<DispatchedRequest>) {
    for dispatch in dispatched {
        enforcer.complete(dispatch);
    }
}

/// All that may be sent now.
fn sent(enforcer: &mut Enforcer, now: u64) -> Vec<DispatchedRequest> {
    std::iter::from_fn(|| enforcer.dispatch_next(now)).collect()
}

fn ids(dispatched: &[DispatchedRequest]) -> Vec<u32> {
    dispatched.iter().map(|dispatch| dispatch.id).collect()
}

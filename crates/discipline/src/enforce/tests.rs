//! The enforcer against a slow obvious twin, and laws.

mod change;
mod laws;
mod twin;

use super::{Arrival, Dispatch, Enforcer, FlowRules, Operation, Over, Rules};
use crate::Limit;

/// `rate` in tenths of a unit per nanosecond.
fn limit(rate: u64, burst: u64) -> Limit {
    Limit { rate: rate * 100_000_000, burst }
}

fn flow(level: u32, over: Over, limits: &[Limit]) -> FlowRules {
    FlowRules { level, limits: limits.to_vec(), over }
}

fn rules(flows: &[(u32, FlowRules)]) -> Rules {
    Rules { flows: flows.iter().cloned().collect(), ..Rules::none() }
}

fn arrival(id: u32, flow: u32, cost: u64) -> Arrival {
    Arrival { id, flow, operation: Operation::Read, cost, bytes: cost }
}

/// All that may be sent now.
fn sent(enforcer: &mut Enforcer, now: u64) -> Vec<Dispatch> {
    std::iter::from_fn(|| enforcer.next(now)).collect()
}

fn ids(dispatched: &[Dispatch]) -> Vec<u32> {
    dispatched.iter().map(|dispatch| dispatch.id).collect()
}

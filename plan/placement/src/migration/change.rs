//! From one set of limits of a server to another, while its enforcers have either.
//!
//! Hosts take a new policy one after the other, and in any order. Meanwhile a workload may have its old limit at one stage
//! and the new one at another. Checking each mixture would take `2^(3n)` checks. One check covers all: every bound is computed
//! with the larger rate and the larger burst of both limits at every stage.
//!
//! *Proof.* The bound of a workload does not fall when a rate or burst of another workload rises, or its own burst, and none
//! falls when a workload joins. It is computed from the larger of both, and with the workloads of both, so it is no less than
//! that of any mixture, with either queue at the device. Two parts need more. A bucket on a link must not lose tokens, `b ≥ r·h`:
//! the h of a mixture is at most that with the larger limits, for which both pairs ⟨r, b⟩ are checked. The
//! delay in a workload's own limiters falls when its rate rises: both pairs must delay it no more than the larger one does.
//! Levels that are merged because enforcers have too few could be other ones in a mixture, so that is refused.

use crate::levels::{PriorityLevel, WorkloadLimits};
use crate::limits::FitRefusal;
use crate::problem::PlanningProblem;
use crate::server::PlannedServer;
use calculus::shaping_delay;
use model::{PerStage, RateLimit, Stage};

/// Reason why enforcers cannot change from one set of limits to another one by one.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ChangeRefusal {
    /// A promise would not hold in between.
    Promise(FitRefusal),
    /// Workloads would have other priorities relative to each other.
    Priorities,
}

impl From<FitRefusal> for ChangeRefusal {
    fn from(refusal: FitRefusal) -> Self {
        Self::Promise(refusal)
    }
}

/// Checks that every promise holds whichever of both limits each enforcer has for each workload, those included that only
/// one of the states has.
///
/// # Errors
/// The first promise that could be broken.
pub fn verify_change(
    problem: &PlanningProblem,
    old: &PlannedServer,
    new: &PlannedServer,
    is_promised: &dyn Fn(usize) -> bool,
) -> Result<(), ChangeRefusal> {
    let larger = with_larger_limits(old, new);
    let levels = larger.priority_levels(problem);
    for state in [old, new] {
        if members_of(&levels, state) != members_of(&state.priority_levels(problem), state) {
            return Err(ChangeRefusal::Priorities);
        }
    }
    for queue in [old.queue, new.queue] {
        let server = PlannedServer { queue, ..larger.clone() };
        server.verify_promises(problem, is_promised)?;
        for &stage in problem.shaped_stages() {
            for (workload, held_up) in server.held_up(problem, stage) {
                let loses_tokens =
                    |limits: &WorkloadLimits| limits[stage].burst < limits[stage].rate * held_up;
                let mut pairs = [old, new].into_iter().filter_map(|state| limits_in(state, workload));
                if is_promised(workload) && pairs.any(loses_tokens) {
                    let slo = problem.tightest_slo(workload, server.class).latency;
                    return Err(FitRefusal::Latency { slo, ratio: f64::INFINITY, stage }.into());
                }
            }
        }
    }
    for &workload in larger.members.iter().filter(|&&workload| is_promised(workload)) {
        let curves = &problem.workloads[workload].on_class[larger.class].curves;
        for stage in Stage::ALL {
            let delay = |limit: RateLimit| shaping_delay(&curves[stage], limit.rate, limit.burst);
            let longest = delay(larger.limits_of(workload)[stage]);
            let mut pairs = [old, new].into_iter().filter_map(|state| limits_in(state, workload));
            if pairs.any(|limits| delay(limits[stage]) > longest) {
                let slo = problem.tightest_slo(workload, larger.class).latency;
                return Err(FitRefusal::Latency { slo, ratio: f64::INFINITY, stage }.into());
            }
        }
    }
    Ok(())
}

/// Returns the server with the workloads of both states, and at each stage the limit with the lower rate. It has been one of
/// both, so that it delays no workload which neither of them delays. All rates from one state to this one fall, and all from
/// this one to the other rise.
pub(super) fn with_lower_rates(old: &PlannedServer, new: &PlannedServer) -> PlannedServer {
    let mut lower = PlannedServer { members: Vec::new(), limits: Vec::new(), ..old.clone() };
    for (&workload, own) in old.members.iter().zip(&old.limits) {
        let Some(other) = limits_in(new, workload) else { continue };
        let limits = PerStage::from_fn(|stage| {
            let [one, two] = [own[stage], other[stage]];
            let is_first = one.rate < two.rate || (one.rate == two.rate && one.burst >= two.burst);
            if is_first { one } else { two }
        });
        lower.members.push(workload);
        lower.limits.push(limits);
    }
    lower
}

/// Check of a change from one state to another.
pub(super) type ChangeCheck<'a> = dyn Fn(&PlannedServer, &PlannedServer) -> Result<(), ChangeRefusal> + 'a;

/// Returns the states through which enforcers get from one state to another, of which each pair passes `check`; none if
/// they get there at once. One state with the lower rates of both is tried first. Buckets on links are often just large
/// enough for what those above them have, so that limits of levels may have to change one after the other: from the lowest
/// level to the highest one to limits that suit both states, and back from the highest to the lowest one to the new limits.
///
/// # Errors
/// If the last state that was reached cannot be left.
pub(super) fn states_between(
    problem: &PlanningProblem,
    check: &ChangeCheck<'_>,
    old: &PlannedServer,
    new: &PlannedServer,
) -> Result<Vec<PlannedServer>, ChangeRefusal> {
    if check(old, new).is_ok() {
        return Ok(Vec::new());
    }
    let lower = with_lower_rates(old, new);
    if check(old, &lower).is_ok() && check(&lower, new).is_ok() {
        return Ok(vec![lower]);
    }
    let suiting = suiting_both(problem, old, new);
    let levels = with_larger_limits(old, new).priority_levels(problem);
    let mut states = Vec::new();
    // Workloads that leave are not promised anything any more; those to come are added by the last step.
    let mut state = restricted(old, &|workload| new.members.contains(&workload));
    if state != *old {
        check(old, &state)?;
        states.push(state.clone());
    }
    let upwards: Vec<&PriorityLevel> = levels.iter().rev().collect();
    let downwards: Vec<&PriorityLevel> = levels.iter().collect();
    for (target, levels) in [(&suiting, upwards), (new, downwards)] {
        let mut open = levels.as_slice();
        while let Some((next, rest)) = open.split_first() {
            let from = state.clone();
            let mut changed = with_limits_of(&state, target, &next.members);
            check(&from, &changed)?;
            open = rest;
            // As many levels as possible change at the same time.
            while let Some((next, rest)) = open.split_first() {
                let more = with_limits_of(&changed, target, &next.members);
                if check(&from, &more).is_err() {
                    break;
                }
                (changed, open) = (more, rest);
            }
            state = changed;
            states.push(state.clone());
        }
    }
    check(&state, new)?;
    Ok(states)
}

/// The server with the workloads of both states and their lower rates, and on links bursts that last whichever limits the
/// others have.
fn suiting_both(problem: &PlanningProblem, old: &PlannedServer, new: &PlannedServer) -> PlannedServer {
    let lasting = with_larger_limits(old, new).with_lasting_bursts(problem);
    let mut suiting = with_lower_rates(old, new);
    for (&workload, limits) in suiting.members.iter().zip(&mut suiting.limits) {
        for &stage in problem.shaped_stages() {
            limits[stage].burst = lasting.limits_of(workload)[stage].burst;
        }
    }
    suiting
}

/// The server with the limits of another state for some workloads.
fn with_limits_of(server: &PlannedServer, other: &PlannedServer, workloads: &[usize]) -> PlannedServer {
    let mut changed = server.clone();
    for (workload, limits) in changed.members.iter().zip(&mut changed.limits) {
        if let Some(wanted) = limits_in(other, *workload).filter(|_| workloads.contains(workload)) {
            *limits = *wanted;
        }
    }
    changed
}

/// The server with those of its workloads that `is_there` keeps; limits do not change.
pub(super) fn restricted(server: &PlannedServer, is_there: &dyn Fn(usize) -> bool) -> PlannedServer {
    let mut kept = PlannedServer { members: Vec::new(), limits: Vec::new(), ..server.clone() };
    for (&workload, limits) in server.members.iter().zip(&server.limits) {
        if is_there(workload) {
            kept.members.push(workload);
            kept.limits.push(*limits);
        }
    }
    kept
}

/// The server with the workloads of either state, and the larger rate and burst of both.
fn with_larger_limits(old: &PlannedServer, new: &PlannedServer) -> PlannedServer {
    let mut larger = old.clone();
    for (&workload, limits) in new.members.iter().zip(&new.limits) {
        match larger.members.iter().position(|&known| known == workload) {
            None => {
                larger.members.push(workload);
                larger.limits.push(*limits);
            }
            Some(position) => {
                let own = larger.limits[position];
                larger.limits[position] = PerStage::from_fn(|stage| RateLimit {
                    rate: own[stage].rate.max(limits[stage].rate),
                    burst: own[stage].burst.max(limits[stage].burst),
                });
            }
        }
    }
    larger
}

fn limits_in(state: &PlannedServer, workload: usize) -> Option<&WorkloadLimits> {
    let position = state.members.iter().position(|&known| known == workload)?;
    Some(&state.limits[position])
}

/// The workloads of a state by level, without empty levels, each level in ascending order.
fn members_of(levels: &[PriorityLevel], state: &PlannedServer) -> Vec<Vec<usize>> {
    let mut by_level = Vec::new();
    for level in levels {
        let mut members: Vec<usize> =
            level.members.iter().copied().filter(|member| state.members.contains(member)).collect();
        members.sort_unstable();
        if !members.is_empty() {
            by_level.push(members);
        }
    }
    by_level
}

//! From one set of limits of a server to another, while its enforcers have either.
//!
//! Hosts take a new policy one after the other, and in any order. Meanwhile a workload may have its old limit at one stage
//! and the new one at another. Of a few changes each mixture is checked. Of n workloads that would take `2^(3n)` checks, and one
//! covers all: every bound is computed with the larger rate and the larger burst of both limits at every stage.
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
use calculus::{round_up, shaping_delay};
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
    let changes = changed_limits(old, new);
    if changes.len() <= ENUMERATED_MAX {
        return verify_mixtures(problem, old, new, &changes, is_promised);
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

/// Changes of which all mixtures are checked one by one: 2 to this power.
const ENUMERATED_MAX: usize = 6;

/// The limits, by workload and stage, that both states have and that differ.
fn changed_limits(old: &PlannedServer, new: &PlannedServer) -> Vec<(usize, Stage)> {
    let mut changes = Vec::new();
    for (&workload, limits) in old.members.iter().zip(&old.limits) {
        if let Some(other) = limits_in(new, workload) {
            let changed = Stage::ALL.into_iter().filter(|&stage| limits[stage] != other[stage]);
            changes.extend(changed.map(|stage| (workload, stage)));
        }
    }
    changes
}

/// Checks every mixture of these changes, with the workloads of both states: without one of them no bound is longer.
fn verify_mixtures(
    problem: &PlanningProblem,
    old: &PlannedServer,
    new: &PlannedServer,
    changes: &[(usize, Stage)],
    is_promised: &dyn Fn(usize) -> bool,
) -> Result<(), ChangeRefusal> {
    let mut everybody = old.clone();
    for (&workload, limits) in new.members.iter().zip(&new.limits) {
        if limits_in(old, workload).is_none() {
            everybody.members.push(workload);
            everybody.limits.push(*limits);
        }
    }
    for mixture in 0..1_u32 << changes.len() {
        let mut mixed = everybody.clone();
        for (_, &(workload, stage)) in changes.iter().enumerate().filter(|(bit, _)| mixture >> bit & 1 == 1) {
            let position = mixed.members.iter().position(|&known| known == workload).expect("a member");
            mixed.limits[position][stage] = new.limits_of(workload)[stage];
        }
        let mut queues = vec![old.queue];
        queues.extend((new.queue != old.queue).then_some(new.queue));
        for queue in queues {
            PlannedServer { queue, ..mixed.clone() }.verify_promises(problem, is_promised)?;
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
/// they get there at once. One state with the lower rates of both is tried first.
///
/// Limits together use nearly all of a server, and buckets on links are often just large enough for what goes before them. So
/// the way that is left goes over [`with_least_rates`] of the old bursts and then of the new ones: to give rates up and to
/// get them changes no burst, and bursts change where there is room, if not of all workloads at the same time.
///
/// # Errors
/// If bursts cannot change even there.
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
    // Workloads that leave are not promised anything any more; those to come are added by the last step.
    let [given_up, wanted] = [(old, new), (new, old)].map(|(own, other)| {
        let kept = restricted(own, &|workload| other.members.contains(&workload));
        with_least_rates(problem, &kept)
    });
    let mut states = vec![given_up];
    if check(&states[0], &wanted).is_err() {
        states.extend(one_by_one(check, &states[0], &wanted)?);
    }
    states.push(wanted);
    states.dedup();
    let all: Vec<&PlannedServer> = [old].into_iter().chain(&states).chain([new]).collect();
    for pair in all.windows(2) {
        check(pair[0], pair[1])?;
    }
    Ok(states)
}

/// Returns states in which more and more workloads have the limits of `new`, as many at a time as pass `check`, those first
/// whose bursts fall.
///
/// # Errors
/// If no workload is left whose limits can change.
fn one_by_one(
    check: &ChangeCheck<'_>,
    old: &PlannedServer,
    new: &PlannedServer,
) -> Result<Vec<PlannedServer>, ChangeRefusal> {
    let growth = |&workload: &usize| -> f64 {
        let [before, after] = [old, new].map(|state| state.limits_of(workload));
        Stage::ALL.iter().map(|&stage| after[stage].burst - before[stage].burst).sum()
    };
    let mut open = old.members.clone();
    open.sort_by(|one, other| growth(one).total_cmp(&growth(other)));
    let mut states = Vec::new();
    let mut state = old.clone();
    while !open.is_empty() {
        let from = state.clone();
        let mut refusal = None;
        open.retain(|&workload| {
            let changed = with_limits_of(&state, new, workload);
            match check(&from, &changed) {
                Ok(()) => state = changed,
                Err(why) => refusal = refusal.or(Some(why)),
            }
            state.limits_of(workload) != new.limits_of(workload)
        });
        if let Some(why) = refusal.filter(|_| state == from) {
            return Err(why);
        }
        states.push(state.clone());
    }
    Ok(states)
}

/// The server with the limits of another state for a workload of both.
fn with_limits_of(server: &PlannedServer, other: &PlannedServer, workload: usize) -> PlannedServer {
    let mut changed = server.clone();
    for (member, limits) in changed.members.iter().zip(&mut changed.limits) {
        if *member == workload {
            *limits = *other.limits_of(workload);
        }
    }
    changed
}

/// The server with the same bursts, and the least rates that delay no workload more.
fn with_least_rates(problem: &PlanningProblem, server: &PlannedServer) -> PlannedServer {
    let mut least = server.clone();
    for (&workload, limits) in least.members.iter().zip(&mut least.limits) {
        let curves = &problem.workloads[workload].on_class[server.class].curves;
        for stage in Stage::ALL {
            let RateLimit { rate, burst } = limits[stage];
            if shaping_delay(&curves[stage], rate, burst) > 0.0 {
                continue;
            }
            let mut sufficient = curves[stage].sustained_rate();
            for vertex in curves[stage].vertices().iter().filter(|vertex| vertex.duration > 0.0) {
                sufficient = sufficient.max((vertex.work - burst) / vertex.duration);
            }
            let lower = round_up(sufficient.max(0.0));
            if lower > 0.0 && lower < rate && shaping_delay(&curves[stage], lower, burst) <= 0.0 {
                limits[stage].rate = lower;
            }
        }
    }
    least
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

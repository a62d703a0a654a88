//! The priority levels of a server's workloads, and the bound of Eq. 5.5 for each.

use crate::problem::PlanningProblem;
use calculus::{PathBound, StageLoad, path_bound};
use model::{PerStage, RateLimit, Stage};

/// The limits of one workload at each stage.
pub type WorkloadLimits = PerStage<RateLimit>;

/// Workloads that share a priority because they share an SLO.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct PriorityLevel {
    /// Part of the members' SLO left for queueing, seconds.
    pub budget: f64,
    /// The indices of the level's workloads in the problem.
    pub members: Vec<usize>,
}

/// Groups workloads into priorities by SLO, tightest first (thesis §5.2.1). Level 0 is served first; equal
/// SLOs share a level. Of several SLOs, the tightest counts. If a server of the class has fewer levels, those with
/// the closest budgets are merged.
pub(crate) fn priority_levels(
    problem: &PlanningProblem,
    class: usize,
    members: &[usize],
) -> Vec<PriorityLevel> {
    let mut levels = levels_by_slo(problem, class, members);
    let most = problem.classes[class].enforced.map_or(usize::MAX, |class| class.levels_max);
    while levels.len() > most {
        let factor = |pair: usize| levels[pair + 1].budget / levels[pair].budget;
        let closest = (0..levels.len() - 1).min_by(|&a, &b| factor(a).total_cmp(&factor(b)));
        let first = closest.expect("there are two levels at least");
        let merged = levels.remove(first + 1);
        levels[first].members.extend(merged.members);
    }
    levels
}

/// As [`priority_levels`], with one level per distinct SLO.
fn levels_by_slo(problem: &PlanningProblem, class: usize, members: &[usize]) -> Vec<PriorityLevel> {
    let slo = |w: usize| problem.latency_asked(w, class);
    let mut sorted = members.to_vec();
    // Stable, so equal SLOs keep the order of placement.
    sorted.sort_by(|&a, &b| slo(a).total_cmp(&slo(b)));
    let mut levels = Vec::new();
    for members in sorted.chunk_by(|&a, &b| slo(a) == slo(b)) {
        let budget = members.iter().map(|&w| problem.budget(w, class)).fold(f64::INFINITY, f64::min);
        levels.push(PriorityLevel { budget, members: members.to_vec() });
    }
    levels.sort_by(|a, b| a.budget.total_cmp(&b.budget));
    levels
}

/// Groups workloads by budget, ascending. On a server, the workloads up to a budget are served before all
/// others or wait no longer than that budget, so a property of these groups also holds for priorities.
pub(crate) fn levels_by_budget(
    problem: &PlanningProblem,
    class: usize,
    members: &[usize],
) -> Vec<PriorityLevel> {
    let mut sorted: Vec<(f64, usize)> = members.iter().map(|&w| (problem.budget(w, class), w)).collect();
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut levels = Vec::new();
    for members in sorted.chunk_by(|a, b| a.0 == b.0) {
        levels.push(PriorityLevel { budget: members[0].0, members: members.iter().map(|m| m.1).collect() });
    }
    levels
}

/// The bound of Eq. 5.5 for every level, from the limits alone and what each stage may have begun, seconds; `limits` maps
/// a workload's index to its limits.
pub(crate) fn level_bounds<'a>(
    levels: &[PriorityLevel],
    blocking: &PerStage<f64>,
    limits: impl Fn(usize) -> &'a WorkloadLimits,
) -> Vec<PathBound> {
    let mut rates_above = PerStage::from_fn(|_| 0.0);
    let mut bursts = PerStage::from_fn(|_| 0.0);
    let mut bounds = Vec::with_capacity(levels.len());
    for level in levels {
        let mut rates = rates_above;
        for &member in &level.members {
            for stage in Stage::ALL {
                bursts[stage] += limits(member)[stage].burst;
                rates[stage] += limits(member)[stage].rate;
            }
        }
        bounds.push(path_bound(Stage::ALL.map(|stage| StageLoad {
            burst_at_or_above: bursts[stage],
            rate_above: rates_above[stage],
            blocking: blocking[stage],
        })));
        rates_above = rates;
    }
    bounds
}

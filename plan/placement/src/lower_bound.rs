//! Lower bound on the number of servers of any placement.
//!
//! In a linear [`LatencyConstraint`] every server satisfies homogeneous inequalities, so their sum over M servers is the
//! same inequality for all workloads together with M times the budget, and the least such M bounds the number of servers.
//! Its multipliers price each workload: on any server the prices of its members add up to at most 1. With several
//! classes, each workload counts with its lowest price. Prices are sizes in a bin packing problem, so that dual feasible
//! functions of them are bounds, too: they count that workloads are not divided among servers.

use crate::chain::{Chain, ChainSolution, LatencyConstraint, Precision, Prices, minimise};
use crate::dual_feasible::servers_at_least;
use crate::levels::{PriorityLevel, levels_by_budget};
use crate::limits::{LimitMethod, chain_of};
use crate::problem::PlanningProblem;
use model::Stage;

#[cfg(test)]
mod covering;

/// A number of servers that no placement can do without, if it places all workloads that fit on some empty server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LowerBound {
    /// The bound if workloads could be divided among servers, before rounding up.
    pub fractional: f64,
    /// The bound as a whole number of servers.
    pub servers: usize,
}

/// The precision of the prices. Any prices give a valid bound, better ones a tighter one.
const PRECISION: f64 = 1e-6;

/// Returns a bound for placements whose limits `method` chooses. It serves levels in order of arrival, as in
/// Eq. 5.5 and in placements by [`LimitMethod::Exact`]. If members of a level take turns on a link, the other
/// methods may promise less, and the bound is not proven for them.
pub fn lower_bound(problem: &PlanningProblem, method: LimitMethod) -> LowerBound {
    let fits_alone = |w: usize, class: usize| method.assess(problem, class, &[w]).is_ok();
    let (fractional, undivided) = match method {
        LimitMethod::Exact | LimitMethod::Knee | LimitMethod::Average(_) => {
            by_prices(&lowest_prices(problem, LatencyConstraint::Outer, fits_alone))
        }
        LimitMethod::Relaxed => {
            by_prices(&lowest_prices(problem, LatencyConstraint::OuterRelaxed, fits_alone))
        }
        LimitMethod::EffectiveEven | LimitMethod::EffectiveBest => servers_by_reserved_rate(problem, method),
    };
    // A bound computed a hair above a whole number must not round up to the next; the number is small and positive.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let servers = (fractional * (1.0 - 1e-9)).ceil() as usize;
    LowerBound { fractional, servers: servers.max(undivided) }
}

/// The servers that workloads of these prices need, divided and undivided.
fn by_prices(prices: &[f64]) -> (f64, usize) {
    (prices.iter().sum(), servers_at_least(prices))
}

/// Returns the share of a server that each workload takes, by the prices of the relaxed constraint; 0 if its
/// own SLO allows no limits.
pub(crate) fn workload_sizes(problem: &PlanningProblem) -> Vec<f64> {
    lowest_prices(problem, LatencyConstraint::Relaxed, |w, class| {
        let mut curves = problem.relevant_curves(w, class).iter();
        let blocking: f64 = problem.least_blocking(class, &[w]).iter().map(|(_, work)| work).sum();
        problem.budget(w, class) > blocking
            && curves.all(|(_, curve)| curve.sustained_rate() <= problem.max_rate)
    })
}

/// Returns each workload's lowest price over the classes that it may use; 0 without such a class.
fn lowest_prices(
    problem: &PlanningProblem,
    constraint: LatencyConstraint,
    may_use: impl Fn(usize, usize) -> bool,
) -> Vec<f64> {
    let mut lowest: Vec<Option<f64>> = vec![None; problem.workloads.len()];
    for class in 0..problem.classes.len() {
        let members: Vec<usize> = (0..problem.workloads.len()).filter(|&w| may_use(w, class)).collect();
        let levels = levels_by_budget(problem, class, &members);
        let Some(prices) = class_prices(problem, class, &levels, constraint) else { continue };
        let begun = problem.begun_by_member(class);
        for level in levels {
            for w in level.members {
                let price = prices.cost(level.budget, problem.relevant_curves(w, class), &begun);
                lowest[w] = Some(lowest[w].map_or(price, |l| l.min(price)));
            }
        }
    }
    lowest.into_iter().map(|price| price.unwrap_or(0.0)).collect()
}

/// Prices at the least number of servers of one class that could carry the members of these levels.
fn class_prices(
    problem: &PlanningProblem,
    class: usize,
    levels: &[PriorityLevel],
    constraint: LatencyConstraint,
) -> Option<Prices> {
    if levels.is_empty() {
        return None;
    }
    match minimise(&bounding_chain(problem, class, levels, constraint), Precision::Within(PRECISION)) {
        ChainSolution::Solved { prices, .. } => Some(prices),
        ChainSolution::Overloaded(_) => None,
    }
}

/// Builds the chain of servers of one class that together carry the members of these levels. Each has begun
/// at least as much as a server without members, plus the contributions of its members. A server without
/// members of a level satisfies the level's constraints through its next tighter level: the bursts and
/// contributions up to that level are within the tighter SLO, and the server has no others up to the level.
pub(crate) fn bounding_chain(
    problem: &PlanningProblem,
    class: usize,
    levels: &[PriorityLevel],
    constraint: LatencyConstraint,
) -> Chain {
    let begun = problem.least_blocking(class, &[]);
    let by_member = problem.begun_by_member(class);
    let mut chain = chain_of(problem, class, levels, constraint, &begun);
    let mut count = 0;
    chain.begun_by_workloads = levels
        .iter()
        .map(|level| {
            count += level.members.len();
            Stage::ALL.map(|stage| count as f64 * by_member[stage])
        })
        .collect();
    chain
}

/// The servers that the least reserved rates need, divided and undivided, for methods whose limits let no burst pass.
fn servers_by_reserved_rate(problem: &PlanningProblem, method: LimitMethod) -> (f64, usize) {
    let mut lowest: Vec<Option<[f64; 3]>> = vec![None; problem.workloads.len()];
    // The best split falls back to the even one, which may reserve less at a stage.
    let splits = [method, LimitMethod::EffectiveEven];
    for (class, split) in (0..problem.classes.len()).flat_map(|class| splits.map(|split| (class, split))) {
        for (w, lowest) in lowest.iter_mut().enumerate() {
            let Ok(server) = split.fit(problem, class, vec![w]) else { continue };
            let rates = server.reserved_rate().into_array();
            *lowest = Some(lowest.map_or(rates, |l| std::array::from_fn(|s| l[s].min(rates[s]))));
        }
    }
    let mut most = (0.0_f64, 0);
    for stage in Stage::ALL {
        let sizes = lowest.iter().flatten().map(|rates| rates[stage as usize] / problem.max_rate);
        let (fractional, undivided) = by_prices(&sizes.collect::<Vec<f64>>());
        most = (most.0.max(fractional), most.1.max(undivided));
    }
    most
}

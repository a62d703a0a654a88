//! Lower bound on the number of servers of any placement.
//!
//! In a linear [`LatencyConstraint`] every server satisfies homogeneous inequalities, so their sum over M servers is the
//! same inequality for all workloads together with M times the budget, and the least such M bounds the number of servers.
//! Its multipliers price each workload: on any server the prices of its members add up to at most 1. With several
//! classes, each workload counts with its lowest price. Where servers of the classes cost money, each workload counts with
//! its lowest price times that of a server, and the sum bounds the money that any placement costs. Prices are sizes in a
//! bin packing problem, so that dual feasible functions of them are bounds, too: they count that workloads are not
//! divided among servers.

use crate::chain::{Chain, ChainSolution, LatencyConstraint, Precision, Prices, minimise};
use crate::dual_feasible::{PricedSize, price_at_least, servers_at_least};
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
    /// A price that no placement is cheaper than; 0 if servers have no prices.
    pub price: f64,
}

/// The precision of the prices. Any prices give a valid bound, better ones a tighter one.
const PRECISION: f64 = 1e-6;

/// Returns a bound for placements whose limits `method` chooses. It serves levels in order of arrival, as in
/// Eq. 5.5 and in placements by [`LimitMethod::Exact`]. If members of a level take turns on a link, the other
/// methods may promise less, and the bound is not proven for them. What workloads wait on the links of their hosts counts
/// as nothing, because other limits there may make it shorter.
pub fn lower_bound(problem: &PlanningProblem, method: LimitMethod) -> LowerBound {
    let fits_alone = |w: usize, class: usize| {
        problem.rules.allows_class(w, class) && method.assess(problem, class, &[w]).is_ok()
    };
    let links = problem.without_clients();
    let shares = match method {
        LimitMethod::Exact | LimitMethod::Knee | LimitMethod::Average(_) => {
            vec![shares_by_class(&links, LatencyConstraint::Outer, fits_alone)]
        }
        LimitMethod::Relaxed => vec![shares_by_class(&links, LatencyConstraint::OuterRelaxed, fits_alone)],
        LimitMethod::EffectiveEven | LimitMethod::EffectiveBest => reserved_shares(&links, method),
    };
    let mut fractional = 0.0_f64;
    let mut undivided = 0;
    for shares in &shares {
        let lowest = lowest(problem, shares);
        fractional = fractional.max(lowest.iter().sum());
        undivided = undivided.max(servers_at_least(&lowest));
    }
    // A bound computed a hair above a whole number must not round up to the next; the number is small and positive.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let servers = (fractional * (1.0 - 1e-9)).ceil() as usize;
    let servers = servers.max(undivided).max(servers_by_rules(problem, fits_alone));
    let price = shares.iter().map(|shares| least_price(problem, shares)).fold(0.0, f64::max);
    LowerBound {
        fractional,
        servers,
        price: least_fleet_price(problem, price, servers, &least_counts(problem, &shares)),
    }
}

/// The share of a server that each workload takes at least, by class and then workload; `None` where it may not be.
pub(crate) type ClassShares = Vec<Vec<Option<f64>>>;

/// The least price of servers that hold workloads of these shares, whatever the numbers of servers; 0 without prices.
fn least_price(problem: &PlanningProblem, shares: &ClassShares) -> f64 {
    let on_classes = |workload: usize| -> Vec<PricedSize> {
        let classes = problem.prices.iter().zip(shares);
        classes
            .filter_map(|(&price, of_class)| Some(PricedSize { price, size: of_class[workload]? }))
            .collect()
    };
    let items: Vec<Vec<PricedSize>> = (0..problem.workloads.len()).map(on_classes).collect();
    let divided = |item: &Vec<PricedSize>| {
        item.iter().map(|class| class.price * class.size).min_by(f64::total_cmp).unwrap_or(0.0)
    };
    let sum: f64 = items.iter().map(divided).sum();
    sum.max(price_at_least(&items)) * (1.0 - 1e-9)
}

/// Combinations of numbers of servers above which a price is not rounded up.
const COMBINATIONS_MAX: usize = 100_000;

/// The servers of each class that the workloads need which no other class suits.
fn least_counts(problem: &PlanningProblem, shares: &[ClassShares]) -> Vec<usize> {
    let mut least = vec![0; problem.classes.len()];
    for shares in shares {
        for (class, count) in least.iter_mut().enumerate() {
            let suits_alone =
                |w: &usize| shares.iter().enumerate().all(|(other, of)| of[*w].is_some() == (other == class));
            let only: Vec<f64> =
                (0..problem.workloads.len()).filter(suits_alone).filter_map(|w| shares[class][w]).collect();
            *count = servers_at_least(&only).max(usize::from(!only.is_empty())).max(*count);
        }
    }
    least
}

/// The least price of at least so many servers, and of each class at least so many, that is not below a price; a lower one
/// if there are too many combinations of classes to look through, or none.
fn least_fleet_price(problem: &PlanningProblem, price: f64, servers: usize, least_counts: &[usize]) -> f64 {
    let Some((&last, prices)) = problem.prices.split_last() else { return 0.0 };
    let counts: Vec<usize> = problem.classes.iter().map(|class| class.count).collect();
    let (&last_count, counts) = counts.split_last().expect("as many as prices");
    let (&least_last, least_counts) = least_counts.split_last().expect("as many as prices");
    let combinations = counts.iter().fold(1_usize, |product, count| product.saturating_mul(count + 1));
    let cheapest = problem.prices.iter().copied().fold(f64::INFINITY, f64::min);
    let unrounded = price.max(servers as f64 * cheapest);
    if combinations > COMBINATIONS_MAX {
        return unrounded;
    }
    let mut least = f64::INFINITY;
    let mut chosen = least_counts.to_vec();
    loop {
        let before: f64 = chosen.iter().zip(prices).map(|(count, price)| *count as f64 * price).sum();
        // A hair above a whole number must not round up to the next; the number is cut to the count.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let by_price = ((price - before) / last * (1.0 - 1e-9)).ceil().clamp(0.0, 1e9) as usize;
        let by_number = servers.saturating_sub(chosen.iter().sum());
        let of_last = by_price.max(by_number).max(least_last);
        if of_last <= last_count {
            least = least.min(before + of_last as f64 * last);
        }
        let Some(position) = (0..counts.len()).find(|&position| chosen[position] < counts[position]) else {
            break;
        };
        chosen[position] += 1;
        chosen[..position].copy_from_slice(&least_counts[..position]);
    }
    if least.is_finite() { least } else { unrounded }
}

/// The servers that the rules on workloads that fit on some empty server need.
fn servers_by_rules(problem: &PlanningProblem, fits_alone: impl Fn(usize, usize) -> bool) -> usize {
    if problem.rules.is_empty() {
        return 0;
    }
    let fits = |w: &usize| (0..problem.classes.len()).any(|class| fits_alone(*w, class));
    let workloads: Vec<usize> = (0..problem.workloads.len()).filter(fits).collect();
    problem.rules.servers_at_least(&workloads)
}

/// Returns the share of a server that each workload takes, by the prices of the relaxed constraint; 0 if its
/// own SLO allows no limits.
pub(crate) fn workload_sizes(problem: &PlanningProblem) -> Vec<f64> {
    lowest(problem, &shares_on_classes(problem))
}

/// Returns the share of a server that each workload takes on each class, as [`workload_sizes`] has it.
pub(crate) fn shares_on_classes(problem: &PlanningProblem) -> ClassShares {
    shares_by_class(problem, LatencyConstraint::Relaxed, |w, class| {
        let mut curves = problem.relevant_curves(w, class).iter();
        let blocking: f64 = problem.least_blocking(class, &[w]).iter().map(|(_, work)| work).sum();
        problem.rules.allows_class(w, class)
            && problem.budget(w, class) > blocking
            && curves.all(|(_, curve)| curve.sustained_rate() <= problem.max_rate)
    })
}

/// Returns each workload's least share over the classes; 0 without one.
fn lowest(problem: &PlanningProblem, shares: &ClassShares) -> Vec<f64> {
    let least = |w: usize| shares.iter().filter_map(|of_class| of_class[w]).reduce(f64::min);
    (0..problem.workloads.len()).map(|w| least(w).unwrap_or(0.0)).collect()
}

/// Returns each workload's price, as a share of a server, on each class that it may use.
fn shares_by_class(
    problem: &PlanningProblem,
    constraint: LatencyConstraint,
    may_use: impl Fn(usize, usize) -> bool,
) -> ClassShares {
    let mut shares = vec![vec![None; problem.workloads.len()]; problem.classes.len()];
    for (class, of_class) in shares.iter_mut().enumerate() {
        let members: Vec<usize> = (0..problem.workloads.len()).filter(|&w| may_use(w, class)).collect();
        let levels = levels_by_budget(problem, class, &members);
        let Some(prices) = class_prices(problem, class, &levels, constraint) else { continue };
        let begun = problem.begun_by_member(class);
        for level in levels {
            for w in level.members {
                of_class[w] = Some(prices.cost(level.budget, problem.relevant_curves(w, class), &begun));
            }
        }
    }
    shares
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

/// Returns the least shares of each stage's rate that workloads reserve, for methods whose limits let no burst pass.
fn reserved_shares(problem: &PlanningProblem, method: LimitMethod) -> Vec<ClassShares> {
    let none = vec![vec![None; problem.workloads.len()]; problem.classes.len()];
    let mut shares = Stage::ALL.map(|_| none.clone());
    // The best split falls back to the even one, which may reserve less at a stage.
    let splits = [method, LimitMethod::EffectiveEven];
    for (class, split) in (0..problem.classes.len()).flat_map(|class| splits.map(|split| (class, split))) {
        for w in 0..problem.workloads.len() {
            let Ok(server) = split.fit(problem, class, vec![w]) else { continue };
            let rates = server.reserved_rate();
            for (stage, of_stage) in Stage::ALL.into_iter().zip(&mut shares) {
                let share = rates[stage] / problem.max_rate;
                let least = &mut of_stage[class][w];
                *least = Some(least.map_or(share, |least: f64| least.min(share)));
            }
        }
    }
    shares.into()
}

//! Limits under Eq. 5.5 itself, by the chain solver.

use super::share::share_rate;
use super::{Assessment, Blocked, Rejection};
use crate::chain::{Chain, LatencyModel, Lines, Outcome, Point, Precision, minimise};
use crate::instance::Instance;
use crate::server::{Level, Limits, levels};
use calculus::ArrivalCurve;
use model::{PerStage, RateLimit, Stage};

/// Relative precision of the objective when limits are handed out.
const PRECISION: f64 = 1e-4;

/// The chain of a set of workloads on one class.
pub(crate) fn chain_of(instance: &Instance, class: usize, levels: &[Level], model: LatencyModel) -> Chain {
    let curve = |level: &Level, stage: Stage| {
        Lines::of(&ArrivalCurve::sum(level.members.iter().map(|&w| &instance.relevant(w, class)[stage])))
    };
    Chain {
        budgets: levels.iter().map(|l| l.budget).collect(),
        curves: levels.iter().map(|level| PerStage::from_fn(|stage| curve(level, stage))).collect(),
        max_rate: instance.max_rate,
        model,
    }
}

/// Solves the exact model for these members; `Err` when a stage cannot carry their sustained rates.
/// Budgets are positive.
fn solve(
    instance: &Instance,
    class: usize,
    levels: &[Level],
    precision: Precision,
) -> Result<(Point, Assessment), Blocked> {
    let chain = chain_of(instance, class, levels, LatencyModel::Exact);
    match minimise(&chain, precision) {
        Outcome::Solved { point, prices } => {
            let assessment = Assessment { ratio: point.t, prices };
            Ok((point, assessment))
        }
        Outcome::Overloaded(stage) => {
            let needed: f64 = chain.curves.iter().map(|c| c[stage].least_rate).sum();
            Err(Blocked::Capacity { stage, ratio: needed / instance.max_rate })
        }
    }
}

/// Whether limits exist for these members.
pub(super) fn assess(instance: &Instance, class: usize, members: &[usize]) -> Result<Assessment, Rejection> {
    let levels = levels(instance, class, members);
    let (_, assessment) = solve(instance, class, &levels, Precision::Decide)?;
    if assessment.ratio < 1.0 { Ok(assessment) } else { Err(Rejection::Assessed(assessment)) }
}

/// Limits that minimise the largest bound ÷ budget. They may still exceed it: the caller checks.
pub(super) fn fit(instance: &Instance, class: usize, members: &[usize]) -> Result<Vec<Limits>, Blocked> {
    let levels = levels(instance, class, members);
    let (mut point, _) = solve(instance, class, &levels, Precision::Within(PRECISION))?;
    if point.t >= 1.0 {
        // Within its precision of the limit the path to a decision may have ended on the right side.
        let (decided, _) = solve(instance, class, &levels, Precision::Decide)?;
        if decided.t < point.t {
            point = decided;
        }
    }
    Ok(limits_at(instance, class, members, &levels, &point))
}

/// Turns level rates into limits of single workloads, each exactly on its curve.
fn limits_at(
    instance: &Instance,
    class: usize,
    members: &[usize],
    levels: &[Level],
    point: &Point,
) -> Vec<Limits> {
    let mut limits: Vec<Limits> = vec![PerStage::default(); members.len()];
    for (index, level) in levels.iter().enumerate() {
        for stage in Stage::ALL {
            let curve = |&w: &usize| &instance.relevant(w, class)[stage];
            let curves: Vec<&ArrivalCurve> = level.members.iter().map(curve).collect();
            let rates = share_rate(&curves, point.level_rate(index, stage as usize));
            for ((member, curve), rate) in level.members.iter().zip(curves).zip(rates) {
                let position = members.iter().position(|m| m == member).expect("levels hold members only");
                limits[position][stage] = RateLimit { rate, burst: curve.burst(rate) };
            }
        }
    }
    limits
}

//! Limits under Eq. 5.5 itself, by the solver of [`crate::chain`].

use super::assessment::{Assessment, AssessmentRefusal};
use super::fixed;
use super::method::LimitMethod;
use super::refusal::FitRefusal;
use super::share::share_rate;
use crate::chain::{
    Chain, ChainPoint, ChainSolution, CurveLines, LatencyConstraint, Precision, balance, minimise,
};
use crate::levels::{PriorityLevel, WorkloadLimits, priority_levels};
use crate::problem::PlanningProblem;
use crate::server::PlannedServer;
use calculus::{ArrivalCurve, DeviceQueue};
use model::{PerStage, RateLimit, Stage};

/// The relative precision of the objective when limits are handed out.
const PRECISION: f64 = 1e-4;

/// The chain of a set of workloads on one class, whose stages may have begun so much, seconds.
pub(crate) fn chain_of(
    problem: &PlanningProblem,
    class: usize,
    levels: &[PriorityLevel],
    constraint: LatencyConstraint,
    blocking: &PerStage<f64>,
) -> Chain {
    let mut curves = Vec::with_capacity(levels.len());
    for level in levels {
        curves.push(PerStage::from_fn(|stage| {
            let members = level.members.iter();
            let sum = ArrivalCurve::sum(members.map(|&w| &problem.relevant_curves(w, class)[stage]));
            CurveLines::from_curve(&sum)
        }));
    }
    Chain {
        budgets: levels.iter().map(|level| level.budget).collect(),
        curves,
        max_rate: problem.max_rate,
        constraint,
        blocking: Stage::ALL.map(|stage| blocking[stage]),
        begun_by_workloads: Vec::new(),
    }
}

/// Solves the exact chain for these members and a queue at the device; refuses when a stage cannot carry their sustained
/// rates. Budgets are positive.
fn solve(
    problem: &PlanningProblem,
    class: usize,
    levels: &[PriorityLevel],
    queue: DeviceQueue,
    precision: Precision,
) -> Result<(Chain, ChainPoint, Assessment), FitRefusal> {
    let members: Vec<usize> = levels.iter().flat_map(|level| level.members.iter().copied()).collect();
    let blocking = problem.blocking(class, &members, queue);
    let chain = chain_of(problem, class, levels, LatencyConstraint::Exact, &blocking);
    match minimise(&chain, precision) {
        ChainSolution::Solved { point, prices } => {
            let assessment = Assessment { ratio: point.t, prices };
            Ok((chain, point, assessment))
        }
        ChainSolution::Overloaded(stage) => {
            let needed: f64 = chain.curves.iter().map(|c| c[stage].least_rate).sum();
            Err(FitRefusal::Capacity { stage, ratio: needed / problem.max_rate })
        }
    }
}

/// Decides if limits exist for these members.
pub(super) fn assess(
    problem: &PlanningProblem,
    class: usize,
    members: &[usize],
) -> Result<Assessment, AssessmentRefusal> {
    let levels = priority_levels(problem, class, members);
    let queue = problem.shortest_queue(class);
    let (_, point, assessment) = solve(problem, class, &levels, queue, Precision::Decide)?;
    // The chain ignores details of links, so the limits themselves are verified last.
    let is_kept = assessment.ratio < 1.0
        && (problem.classes[class].enforced.is_none()
            || server_at(problem, class, members, &levels, &point).verify(problem).is_ok()
            || knee_server(problem, class, members).verify(problem).is_ok());
    if is_kept { Ok(assessment) } else { Err(AssessmentRefusal::Assessed(assessment)) }
}

/// Limits of the largest product of slacks ([`balance`]), for the longest queue at the device that has some. Where a
/// link's demands leave none, limits that minimise the largest bound ÷ budget. They may still exceed it: the caller checks.
pub(super) fn fit(
    problem: &PlanningProblem,
    class: usize,
    members: &[usize],
) -> Result<Vec<WorkloadLimits>, FitRefusal> {
    let levels = priority_levels(problem, class, members);
    for queue in problem.queues(class) {
        let (chain, point, assessment) = solve(problem, class, &levels, queue, Precision::Fit)?;
        if assessment.ratio >= 1.0 {
            continue;
        }
        let weights: Vec<f64> = levels.iter().map(|level| level.members.len() as f64).collect();
        let point = balance(&chain, point, &weights);
        let server = PlannedServer { queue, ..server_at(problem, class, members, &levels, &point) };
        if server.verify(problem).is_ok() {
            return Ok(server.limits);
        }
    }
    let queue = problem.shortest_queue(class);
    let (_, point, _) = solve(problem, class, &levels, queue, Precision::Within(PRECISION))?;
    let server = server_at(problem, class, members, &levels, &point);
    if server.verify(problem).is_ok() {
        return Ok(server.limits);
    }
    // Within its precision of the limit the path to a decision may have ended on the right side.
    let (_, point, _) = solve(problem, class, &levels, queue, Precision::Decide)?;
    let decided = server_at(problem, class, members, &levels, &point);
    if decided.verify(problem).is_ok() {
        return Ok(decided.limits);
    }
    let knees = knee_server(problem, class, members);
    Ok(if knees.verify(problem).is_ok() { knees.limits } else { server.limits })
}

/// The server with limits at the knees of curves, which take little rate: on a link much rate asks for large bursts.
fn knee_server(problem: &PlanningProblem, class: usize, members: &[usize]) -> PlannedServer {
    let limits = fixed::fit(LimitMethod::Knee, problem, class, members);
    PlannedServer::with_limits(problem, class, members.to_vec(), limits)
}

/// The server with the limits of a point.
fn server_at(
    problem: &PlanningProblem,
    class: usize,
    members: &[usize],
    levels: &[PriorityLevel],
    point: &ChainPoint,
) -> PlannedServer {
    let limits = limits_at(problem, class, members, levels, point);
    PlannedServer::with_limits(problem, class, members.to_vec(), limits)
}

/// Turns the rates of levels into limits of single workloads, each exactly on its curve.
fn limits_at(
    problem: &PlanningProblem,
    class: usize,
    members: &[usize],
    levels: &[PriorityLevel],
    point: &ChainPoint,
) -> Vec<WorkloadLimits> {
    let mut limits: Vec<WorkloadLimits> = vec![PerStage::default(); members.len()];
    for (index, level) in levels.iter().enumerate() {
        for stage in Stage::ALL {
            let members_of_level = level.members.iter();
            let curves: Vec<&ArrivalCurve> =
                members_of_level.map(|&w| &problem.relevant_curves(w, class)[stage]).collect();
            let rates = share_rate(&curves, point.level_rate(index, stage as usize));
            for ((member, curve), rate) in level.members.iter().zip(curves).zip(rates) {
                let position = members.iter().position(|m| m == member).expect("levels hold members only");
                limits[position][stage] = RateLimit { rate, burst: curve.burst(rate) };
            }
        }
    }
    limits
}

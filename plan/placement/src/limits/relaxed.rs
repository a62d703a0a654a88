//! The linear program of thesis §5.2.2 (Eq. 5.2–5.7), one ⟨r, b⟩ per workload and stage, handed to a
//! general solver.

use super::refusal::FitRefusal;
use crate::levels::{WorkloadLimits, priority_levels};
use crate::problem::PlanningProblem;
use good_lp::{Expression, ProblemVariables, Solution, SolverModel, Variable, constraint, microlp, variable};
use model::{PerStage, RateLimit, Stage};

/// The least rate of a limit, a fraction of capacity: a bucket that never fills again cannot be enforced.
const RATE_MIN: f64 = 1e-6;

/// The variables ⟨r, b⟩ of one workload at one stage.
#[derive(Clone, Copy)]
struct BucketVariables {
    rate: Variable,
    burst: Variable,
}

/// Limits that satisfy Eq. 5.7 with the least sum of rates.
pub(super) fn fit(
    problem: &PlanningProblem,
    class: usize,
    members: &[usize],
) -> Result<Vec<WorkloadLimits>, FitRefusal> {
    let levels = priority_levels(problem, class, members);
    let mut variables = ProblemVariables::new();
    let mut buckets: Vec<PerStage<BucketVariables>> = Vec::with_capacity(members.len());
    for &w in members {
        let curves = &problem.workloads[w].on_class[class].curves;
        buckets.push(PerStage::from_fn(|stage| {
            let least = curves[stage].sustained_rate().max(RATE_MIN);
            BucketVariables {
                rate: variables.add(variable().min(least).max(problem.max_rate.max(least))),
                burst: variables.add(variable().min(0.0)),
            }
        }));
    }
    let common_rates: Vec<Variable> =
        levels.iter().map(|_| variables.add(variable().min(0.0).max(1.0))).collect();
    let sum_of_rates: Expression = buckets.iter().flat_map(|b| b.iter().map(|(_, b)| b.rate)).sum();
    let mut program = variables.minimise(sum_of_rates).using(microlp);

    for (&w, bucket) in members.iter().zip(&buckets) {
        for (stage, BucketVariables { rate, burst }) in bucket.iter() {
            for v in problem.workloads[w].on_class[class].curves[stage].vertices() {
                program.add_constraint(constraint!(*burst + v.duration * *rate >= v.work));
            }
        }
    }
    let blocking: f64 = problem.least_blocking(class, members).iter().map(|(_, work)| work).sum();
    let mut rates = PerStage::from_fn(|_| Expression::default());
    let mut bursts = Expression::default();
    for (level, &common) in levels.iter().zip(&common_rates) {
        for stage in Stage::ALL {
            program.add_constraint(constraint!(rates[stage].clone() <= common));
        }
        for member in &level.members {
            let position = members.iter().position(|m| m == member).expect("levels hold members only");
            for (stage, BucketVariables { rate, burst }) in buckets[position].iter() {
                rates[stage] += *rate;
                bursts += *burst;
            }
        }
        // Eq. 5.7: Σ b over all stages + R_p · SLO ≤ SLO, with what the stages may have begun among the bursts.
        program
            .add_constraint(constraint!(bursts.clone() + level.budget * common <= level.budget - blocking));
    }
    for stage in Stage::ALL {
        program.add_constraint(constraint!(rates[stage].clone() <= problem.max_rate));
    }
    let solution = program.solve().map_err(|_| FitRefusal::NoLimits)?;
    let mut limits = Vec::with_capacity(members.len());
    for (&w, bucket) in members.iter().zip(&buckets) {
        let curves = &problem.workloads[w].on_class[class].curves;
        limits.push(PerStage::from_fn(|stage| {
            // The solver meets lines within its tolerance; the burst is put exactly on the curve.
            let rate = solution.value(bucket[stage].rate).max(curves[stage].sustained_rate()).max(RATE_MIN);
            RateLimit { rate, burst: curves[stage].burst(rate) }
        }));
    }
    Ok(limits)
}

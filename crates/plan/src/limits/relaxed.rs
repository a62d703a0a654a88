//! The linear program of thesis §5.2.2 (Eq. 5.2–5.7), one ⟨r, b⟩ per workload and stage, handed to a
//! general solver.

use super::Blocked;
use crate::instance::Instance;
use crate::server::{Limits, levels};
use good_lp::{Expression, ProblemVariables, Solution, SolverModel, Variable, constraint, microlp, variable};
use model::{PerStage, RateLimit, Stage};

#[derive(Clone, Copy)]
struct Bucket {
    rate: Variable,
    burst: Variable,
}

/// Limits that satisfy Eq. 5.7 with the least sum of rates.
pub(super) fn fit(instance: &Instance, class: usize, members: &[usize]) -> Result<Vec<Limits>, Blocked> {
    let levels = levels(instance, class, members);
    let mut variables = ProblemVariables::new();
    let new_bucket = |variables: &mut ProblemVariables, least: f64| Bucket {
        rate: variables.add(variable().min(least).max(instance.max_rate.max(least))),
        burst: variables.add(variable().min(0.0)),
    };
    let buckets: Vec<PerStage<Bucket>> = members
        .iter()
        .map(|&w| {
            let curves = &instance.workloads[w].on[class].curves;
            PerStage::from_fn(|stage| new_bucket(&mut variables, curves[stage].sustained_rate()))
        })
        .collect();
    let common_rates: Vec<Variable> =
        levels.iter().map(|_| variables.add(variable().min(0.0).max(1.0))).collect();
    let sum_of_rates: Expression = buckets.iter().flat_map(|b| b.iter().map(|(_, b)| b.rate)).sum();
    let mut problem = variables.minimise(sum_of_rates).using(microlp);

    for (&w, bucket) in members.iter().zip(&buckets) {
        for (stage, Bucket { rate, burst }) in bucket.iter() {
            for v in instance.workloads[w].on[class].curves[stage].vertices() {
                problem.add_constraint(constraint!(*burst + v.duration * *rate >= v.work));
            }
        }
    }
    let position = |w: usize| members.iter().position(|&m| m == w).expect("levels hold members only");
    let (mut rates, mut bursts) = (PerStage::from_fn(|_| Expression::default()), Expression::default());
    for (level, &common) in levels.iter().zip(&common_rates) {
        for stage in Stage::ALL {
            problem.add_constraint(constraint!(rates[stage].clone() <= common));
        }
        for bucket in level.members.iter().map(|&w| &buckets[position(w)]) {
            for (stage, Bucket { rate, burst }) in bucket.iter() {
                rates[stage] += *rate;
                bursts += *burst;
            }
        }
        // Eq. 5.7: Σ b over all stages + R_p · SLO ≤ SLO.
        problem.add_constraint(constraint!(bursts.clone() + level.budget * common <= level.budget));
    }
    for stage in Stage::ALL {
        problem.add_constraint(constraint!(rates[stage].clone() <= instance.max_rate));
    }
    let solution = problem.solve().map_err(|_| Blocked::NoLimits)?;
    // The solver meets lines within its tolerance; the burst is put exactly on the curve.
    let limit = |w: usize, stage: Stage, rate: Variable| {
        let curve = &instance.workloads[w].on[class].curves[stage];
        let rate = solution.value(rate).max(curve.sustained_rate());
        RateLimit { rate, burst: curve.burst(rate) }
    };
    Ok(members.iter().zip(&buckets).map(|(&w, b)| PerStage::from_fn(|s| limit(w, s, b[s].rate))).collect())
}

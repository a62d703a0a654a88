//! The same problem planned by other methods.

use super::recipe::PlanningRecipe;
use super::search::plan;
use super::solution::PlannedCluster;
use crate::cluster::ClusterProblem;
use crate::footprints::Footprints;
use crate::observer::ProgressObserver;
use model::OperationError;
use plan::LimitMethod;
use serde::Serialize;

/// The published methods that a plan is compared with.
const BASELINES: [LimitMethod; 5] = [
    LimitMethod::Relaxed,
    LimitMethod::EffectiveBest,
    LimitMethod::EffectiveEven,
    LimitMethod::Knee,
    LimitMethod::Average(1.5),
];

/// What one method makes of a problem.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MethodComparison {
    /// Name of the method.
    pub policy_name: String,
    /// How many servers it needs.
    pub servers_used: usize,
    /// How many workloads it admits.
    pub workloads_admitted: usize,
    /// CPU time that it took, seconds.
    pub cpu_s: f64,
}

impl MethodComparison {
    fn new(planned: &PlannedCluster) -> Self {
        Self {
            policy_name: planned.recipe.method.name(),
            servers_used: planned.placement.servers.len(),
            workloads_admitted: planned.admitted(),
            cpu_s: planned.cpu.as_secs_f64(),
        }
    }
}

/// Plans the problem by the published methods, with the effort of the plan; the plan itself is first.
///
/// # Errors
///
/// When the problem cannot be planned.
pub fn compare(
    problem: &ClusterProblem,
    footprints: &Footprints,
    planned: &PlannedCluster,
    observer: &dyn ProgressObserver,
) -> Result<Vec<MethodComparison>, OperationError> {
    let mut rows = vec![MethodComparison::new(planned)];
    for method in BASELINES.into_iter().filter(|method| *method != planned.recipe.method) {
        let recipe = PlanningRecipe {
            effort: planned.recipe.effort,
            preemptive: planned.recipe.preemptive,
            ..PlanningRecipe::of(method)
        };
        rows.push(MethodComparison::new(&plan(problem, footprints, &recipe, None, observer)?));
    }
    Ok(rows)
}

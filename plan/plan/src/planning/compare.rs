//! Plans the same problem by other methods, each by first fit in order of arrival and in its best order, so
//! that a method is not credited with the effect of the order.

use crate::cluster::ClusterProblem;
use crate::footprints::Footprints;
use crate::planning::recipe::PlanningRecipe;
use crate::planning::search::{cpu_time, instance, search, verify};
use crate::planning::solution::PlannedCluster;
use model::OperationError;
use operation::ProgressObserver;
use placement::{CurvePriorities, LimitMethod, PlacementOrder, PlanningProblem};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;

/// The methods that choose one limit by stage, in the order of the table.
const METHODS: [LimitMethod; 7] = [
    LimitMethod::Exact,
    LimitMethod::Relaxed,
    LimitMethod::EffectiveBest,
    LimitMethod::EffectiveEven,
    LimitMethod::Knee,
    LimitMethod::Average(1.5),
    LimitMethod::Average(2.0),
];

/// Several limiters at once (thesis §5.4.7): with the priorities of the plan, and with PriorityMeister's.
const SEVERAL_LIMITERS: [(&str, CurvePriorities); 2] =
    [("several-limiters", CurvePriorities::BySlo), ("priority-meister", CurvePriorities::Searched)];

/// Workloads above which the best order is not searched for methods that solve a program per trial; it would
/// take minutes.
const BEST_ORDER_MAX: usize = 100;
/// Workloads above which priorities are not searched; it would take minutes.
const SEARCHED_PRIORITIES_MAX: usize = 60;

/// Result of one method; `None` for orders not tried with so many workloads.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MethodComparison {
    /// Name of the method.
    pub policy_name: String,
    /// The method with first fit in the order of arrival.
    pub first_fit: Option<OrderComparison>,
    /// The method with the best order that is found.
    pub best_order: Option<OrderComparison>,
}

/// Result of one method in one order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct OrderComparison {
    pub servers_used: usize,
    pub workloads_admitted: usize,
    /// CPU time that it took, seconds.
    pub cpu_s: f64,
}

impl OrderComparison {
    fn of_plan(planned: &PlannedCluster) -> Self {
        Self::new(planned.placement.servers.len(), planned.admitted(), planned.cpu)
    }

    fn new(servers_used: usize, workloads_admitted: usize, cpu: Duration) -> Self {
        Self { servers_used, workloads_admitted, cpu_s: cpu.as_secs_f64() }
    }
}

/// Plans the problem by all methods in both orders, with the effort of the plan, whose own result comes
/// first. All start from an empty placement, even if the plan keeps a policy.
///
/// # Errors
///
/// If the problem cannot be planned.
pub fn compare(
    problem: &ClusterProblem,
    footprints: &Footprints,
    planned: &PlannedCluster,
    observer: &dyn ProgressObserver,
) -> Result<Vec<MethodComparison>, OperationError> {
    let own = planned.recipe.method;
    let PlanningRecipe { effort, preemptive, .. } = planned.recipe;
    let count = planned.instance.workloads.len();
    let mut rows = Vec::new();
    for method in [own].into_iter().chain(METHODS.into_iter().filter(|method| *method != own)) {
        let recipe = if method == own {
            planned.recipe
        } else {
            PlanningRecipe { effort, preemptive, ..PlanningRecipe::of(method) }
        };
        let instance = instance(problem, footprints, &recipe)?;
        let in_order = |order: PlacementOrder| {
            if method == own && order == recipe.order && planned.changed.is_none() {
                return Some(OrderComparison::of_plan(planned));
            }
            let is_tried = order != PlacementOrder::Best || count <= BEST_ORDER_MAX;
            is_tried.then(|| by_limits(&instance, &PlanningRecipe { order, ..recipe }, observer))
        };
        let is_fast = recipe.order == PlacementOrder::GivenFast;
        rows.push(MethodComparison {
            policy_name: method.name(),
            first_fit: in_order(if is_fast { recipe.order } else { PlacementOrder::Given }),
            best_order: in_order(PlacementOrder::Best),
        });
    }
    for (name, priorities) in SEVERAL_LIMITERS {
        // With the priorities of the plan, only the number of limits differs from the plan.
        let sustained = priorities == CurvePriorities::BySlo;
        let recipe = PlanningRecipe { sustained, preemptive, ..PlanningRecipe::of(LimitMethod::Exact) };
        let instance = instance(problem, footprints, &recipe)?;
        let in_order = |order: PlacementOrder, count_max: usize| {
            (count <= count_max).then(|| by_whole_curves(&instance, priorities, order))
        };
        let (given_max, best_max) = match priorities {
            CurvePriorities::BySlo => (usize::MAX, BEST_ORDER_MAX),
            CurvePriorities::Searched => (SEARCHED_PRIORITIES_MAX, SEARCHED_PRIORITIES_MAX),
        };
        rows.push(MethodComparison {
            policy_name: name.to_owned(),
            first_fit: in_order(PlacementOrder::Given, given_max),
            best_order: in_order(PlacementOrder::Best, best_max),
        });
    }
    Ok(rows)
}

fn by_limits(
    instance: &PlanningProblem,
    recipe: &PlanningRecipe,
    observer: &dyn ProgressObserver,
) -> OrderComparison {
    let start = cpu_time();
    let goal = placement::lower_bound(instance, recipe.method).servers;
    let placement = search(instance, recipe, goal, observer);
    let cpu = cpu_time().saturating_sub(start);
    verify(instance, &placement.servers);
    let admitted = instance.workloads.len() - placement.refused.len();
    OrderComparison::new(placement.servers.len(), admitted, cpu)
}

fn by_whole_curves(
    instance: &PlanningProblem,
    priorities: CurvePriorities,
    order: PlacementOrder,
) -> OrderComparison {
    let start = cpu_time();
    let placement = placement::place_whole_curves(instance, priorities, order);
    let cpu = cpu_time().saturating_sub(start);
    let admitted = instance.workloads.len() - placement.refused.len();
    OrderComparison::new(placement.servers.len(), admitted, cpu)
}

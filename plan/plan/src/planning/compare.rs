//! Plans the same problem by other methods, each by first fit in order of arrival and in its best order, so
//! that a method is not credited with the effect of the order.
//!
//! All are counted by the same rules: what enforcers do not interrupt, turns of equal priorities, tokens that full buckets
//! lose, and the limits that enforcers keep. Where one needs fewer servers than the plan, a note says why.

use crate::cluster::ClusterProblem;
use crate::footprints::Footprints;
use crate::planning::enforced_curves::EnforcedCurves;
use crate::planning::names::{fresh_names, names_of};
use crate::planning::recipe::PlanningRecipe;
use crate::planning::search::{cpu_time, instance, search, verify, verify_rules};
use crate::planning::solution::PlannedCluster;
use model::OperationError;
use operation::ProgressObserver;
use placement::{CurvePlacement, CurvePriorities, LimitMethod, PlacementOrder, PlanningProblem};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;
use units::plural;

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

/// Several limiters at once (thesis §5.4.7): with the priorities of the plan, with those and bounds that are conservative
/// for equal priorities, as in the thesis, and with PriorityMeister's priorities.
const SEVERAL_LIMITERS: [(&str, CurvePriorities); 3] = [
    ("several-limiters", CurvePriorities::BySlo),
    ("several-limiters-equals-first", CurvePriorities::EqualsFirst),
    ("priority-meister", CurvePriorities::Searched),
];

/// Workloads above which the best order is not searched for methods that solve a program per trial; it would
/// take minutes.
const BEST_ORDER_MAX: usize = 100;
/// Workloads above which several limiters are not counted; it would take minutes.
const SEVERAL_LIMITERS_MAX: usize = 1_000;
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
    /// Why the method has fewer servers than `tailwright`, if it has in one of the orders.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl MethodComparison {
    /// Returns true if the method has fewer servers than `own` in one of the orders, or cheaper ones where they have prices.
    fn is_smaller_than(&self, own: &Self) -> bool {
        let is_smaller = |one: Option<OrderComparison>, own: Option<OrderComparison>| {
            one.zip(own).is_some_and(|(one, own)| match (one.price, own.price) {
                (Some(one), Some(own)) => one < own * (1.0 - 1e-9),
                _ => one.servers_used < own.servers_used,
            })
        };
        is_smaller(self.first_fit, own.first_fit) || is_smaller(self.best_order, own.best_order)
    }

    /// The number of workloads that `own` admits beyond those of the method, in the order with more of them.
    fn refused_beside(&self, own: &Self) -> usize {
        let refused = |one: Option<OrderComparison>, own: Option<OrderComparison>| {
            let (one, own) = one.zip(own)?;
            Some(own.workloads_admitted.saturating_sub(one.workloads_admitted))
        };
        let [first, best] =
            [refused(self.first_fit, own.first_fit), refused(self.best_order, own.best_order)];
        first.max(best).unwrap_or(0)
    }
}

/// Result of one method in one order.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct OrderComparison {
    pub servers_used: usize,
    /// Price of the servers, if they have prices.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    pub workloads_admitted: usize,
    /// CPU time that it took, seconds.
    pub cpu_s: f64,
}

impl OrderComparison {
    fn of_plan(planned: &PlannedCluster) -> Self {
        let classes = planned.placement.servers.iter().map(|server| server.class).collect();
        Self::new(&planned.instance, classes, planned.admitted(), planned.cpu)
    }

    /// The result of servers of these classes.
    fn new(
        instance: &PlanningProblem,
        classes: Vec<usize>,
        workloads_admitted: usize,
        cpu: Duration,
    ) -> Self {
        let servers_used = classes.len();
        let price = (!instance.prices.is_empty()).then(|| instance.price(classes));
        Self { servers_used, price, workloads_admitted, cpu_s: cpu.as_secs_f64() }
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
            is_tried.then(|| by_limits(problem, &instance, &PlanningRecipe { order, ..recipe }, observer))
        };
        let is_fast = recipe.order == PlacementOrder::GivenFast;
        rows.push(MethodComparison {
            policy_name: method.name(),
            first_fit: in_order(if is_fast { recipe.order } else { PlacementOrder::Given }),
            best_order: in_order(PlacementOrder::Best),
            note: None,
        });
    }
    // Only the number of limits and the priorities differ from those of `tailwright`.
    let recipe = PlanningRecipe { preemptive: true, ..PlanningRecipe::of(LimitMethod::Exact) };
    let whole = instance(problem, footprints, &recipe)?;
    for (name, priorities) in SEVERAL_LIMITERS {
        // No enforcer needs that analysis.
        if priorities == CurvePriorities::EqualsFirst && !preemptive {
            continue;
        }
        let enforced = (!preemptive).then(|| EnforcedCurves::new(problem, footprints, &whole, priorities));
        let in_order = |order: PlacementOrder, count_max: usize| {
            (count <= count_max).then(|| {
                timed(problem, &whole, || match &enforced {
                    None => placement::place_whole_curves(&whole, priorities, order),
                    Some(rule) => placement::place_by_rule(&whole, rule, order),
                })
            })
        };
        let (given_max, best_max) = match priorities {
            CurvePriorities::BySlo | CurvePriorities::EqualsFirst => (SEVERAL_LIMITERS_MAX, BEST_ORDER_MAX),
            CurvePriorities::Searched => (SEARCHED_PRIORITIES_MAX, SEARCHED_PRIORITIES_MAX),
        };
        rows.push(MethodComparison {
            policy_name: name.to_owned(),
            first_fit: in_order(PlacementOrder::Given, given_max),
            best_order: in_order(PlacementOrder::Best, best_max),
            note: None,
        });
    }
    let ours = rows.iter().find(|row| row.policy_name == LimitMethod::Exact.name()).cloned();
    let ours = ours.expect("the first of the methods");
    for row in rows.iter_mut().filter(|row| row.is_smaller_than(&ours)) {
        let lasting = match METHODS.into_iter().find(|method| method.name() == row.policy_name) {
            Some(method) if row.refused_beside(&ours) == 0 => {
                let recipe =
                    PlanningRecipe { sustained: true, effort, preemptive, ..PlanningRecipe::of(method) };
                let instance = instance(problem, footprints, &recipe)?;
                let in_order = |order| {
                    Some(by_limits(problem, &instance, &PlanningRecipe { order, ..recipe }, observer))
                };
                let first_fit = row.first_fit.and_then(|_| in_order(PlacementOrder::Given));
                let best_order = row.best_order.and_then(|_| in_order(PlacementOrder::Best));
                Some(MethodComparison { first_fit, best_order, ..row.clone() })
            }
            _ => None,
        };
        row.note = Some(note(row, &ours, lasting.as_ref()));
    }
    Ok(rows)
}

/// Says why a method has fewer servers than `tailwright`; `lasting` has it with limits that hold for ever.
fn note(row: &MethodComparison, ours: &MethodComparison, lasting: Option<&MethodComparison>) -> String {
    let refused = row.refused_beside(ours);
    if refused > 0 {
        return format!("{} that `tailwright` admits are refused", plural(refused, "workload"));
    }
    match (row.policy_name.as_str(), lasting) {
        ("priority-meister", _) => {
            "priorities differ by stage, and each workload has several limits; `admit --model priority-meister` writes such \
             policies"
        }
        (_, None) => {
            "each workload has several limits at a stage; `plan --model worst-case` writes such policies"
        }
        (_, Some(lasting)) if lasting.is_smaller_than(ours) => {
            "its placement is better than what the search of `tailwright` found"
        }
        (_, Some(_)) => {
            "its limits hold for the length of the traces only; with limits that hold for ever it has no fewer"
        }
    }
    .to_owned()
}

fn by_limits(
    problem: &ClusterProblem,
    instance: &PlanningProblem,
    recipe: &PlanningRecipe,
    observer: &dyn ProgressObserver,
) -> OrderComparison {
    let start = cpu_time();
    let goal = placement::lower_bound(instance, recipe.method);
    let placement = search(instance, recipe, &goal, observer).placement;
    let cpu = cpu_time().saturating_sub(start);
    verify(problem, instance, &placement.servers, &names_of(instance, &placement));
    let admitted = instance.workloads.len() - placement.refused.len();
    let classes = placement.servers.iter().map(|server| server.class).collect();
    OrderComparison::new(instance, classes, admitted, cpu)
}

fn timed(
    problem: &ClusterProblem,
    instance: &PlanningProblem,
    place: impl FnOnce() -> CurvePlacement,
) -> OrderComparison {
    let start = cpu_time();
    let placement = place();
    let cpu = cpu_time().saturating_sub(start);
    let classes = placement.servers.iter().map(|(class, _)| *class);
    let names = fresh_names(instance, classes, &placement.numbers);
    let members = placement.servers.iter().map(|(class, members)| (*class, members.as_slice()));
    verify_rules(problem, members, &names);
    let admitted = instance.workloads.len() - placement.refused.len();
    let classes = placement.servers.iter().map(|(class, _)| *class).collect();
    OrderComparison::new(instance, classes, admitted, cpu)
}

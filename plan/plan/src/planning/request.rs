//! The questions of planning from files to answers.

use crate::cluster::{ClusterProblem, ClusterSource, find_workload};
use crate::footprints::characterise;
use crate::planning::compare::{MethodComparison, compare};
use crate::planning::derivation::{GuaranteeDerivation, derive, derive_refused};
use crate::planning::recipe::PlanningRecipe;
use crate::planning::search::plan;
use crate::planning::solution::PlannedCluster;
use crate::planning::survival::{PlanSurvival, survive_failures};
use crate::refusal::RefusedWorkload;
use model::{OperationError, Policy};
use operation::text::time;
use operation::{Notice, ProgressObserver};
use schemars::JsonSchema;
use serde::Serialize;
use std::time::Duration;
use units::plural;

/// Parameters of a plan.
#[derive(Debug, Clone, Copy)]
pub struct PlanningQuestion<'a> {
    pub source: &'a ClusterSource,
    /// The choices that decide the plan.
    pub recipe: &'a PlanningRecipe,
    /// A policy whose workloads stay where they are.
    pub keep: Option<&'a Policy>,
    /// True if the plan has to survive the failure of any server, or of any failure domain.
    pub survive: bool,
    /// True to plan by the published methods too.
    pub compare: bool,
}

/// A plan with what it was made from.
#[derive(Debug)]
pub struct PlanRun {
    /// The cluster that was planned.
    pub problem: ClusterProblem,
    /// The plan for it.
    pub planned: PlannedCluster,
    /// Wall time of reading traces, or of finding what was read before.
    pub characterise: Duration,
    /// Failures of servers, and where their workloads go; `None` unless that was asked for.
    pub survival: Option<PlanSurvival>,
    /// The plan beside those of other methods; empty unless they were asked for.
    pub compared: Vec<MethodComparison>,
}

/// Reads a cluster, plans it and, if asked, compares.
///
/// # Errors
///
/// When a file cannot be read, or the cluster cannot be planned.
pub fn plan_cluster(
    question: &PlanningQuestion,
    observer: &dyn ProgressObserver,
) -> Result<PlanRun, OperationError> {
    let problem = ClusterProblem::read(question.source, observer)?;
    let footprints = characterise(&problem, observer)?;
    if question.survive && problem.servers.iter().any(|class| class.price.is_some()) {
        let message = "--survive looks for few servers, not for cheap ones";
        return Err(OperationError::input(message).hint("leave `price` out of the cluster file for it"));
    }
    let mut planned = plan(&problem, &footprints, question.recipe, question.keep, observer)?;
    let survival = question.survive.then(|| survive_failures(&problem, &mut planned));
    let compared =
        if question.compare { compare(&problem, &footprints, &planned, observer)? } else { Vec::new() };
    Ok(PlanRun { problem, planned, characterise: footprints.elapsed, survival, compared })
}

impl PlanRun {
    /// Says in one sentence who fits where.
    pub fn summary(&self) -> String {
        match &self.survival {
            None => self.planned.summary(),
            Some(survival) => {
                let all = self.planned.instance.workloads.len();
                let admitted = self.planned.admitted();
                let refused = all - admitted;
                let without = match refused {
                    0 => String::new(),
                    1 => "; 1 has no guarantee".to_owned(),
                    refused => format!("; {refused} have no guarantee"),
                };
                format!("{admitted} of {} fit on {}{without}", plural(all, "workload"), survival.summary())
            }
        }
    }
}

/// A refused workload with the derivation of its latency.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct RefusalExplanation {
    /// The workload, the reason and the remedies.
    #[serde(flatten)]
    pub refused: RefusedWorkload,
    /// Derivation of the least bound that any server could give it; absent if none could give it one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub derivation: Option<GuaranteeDerivation>,
}

/// Why a workload is promised what it is promised, or why nothing.
#[derive(Debug)]
pub enum GuaranteeExplanation {
    /// The workload is admitted, and this is the derivation of its bound.
    Admitted(Box<GuaranteeDerivation>),
    /// The workload is not admitted.
    Refused(Box<RefusalExplanation>),
}

/// Derives the bound of one workload in the plan for a cluster, or in a kept policy.
///
/// # Errors
///
/// If a file cannot be read, the workload does not exist, the cluster cannot be planned, or the kept policy
/// does not have the workload or gives it limits that do not hold for these inputs.
pub fn explain(
    workload: &str,
    source: &ClusterSource,
    recipe: &PlanningRecipe,
    keep: Option<&Policy>,
    observer: &dyn ProgressObserver,
) -> Result<GuaranteeExplanation, OperationError> {
    let problem = ClusterProblem::read(source, observer)?;
    let names: Vec<&str> = problem.workloads.iter().map(|spec| spec.name.as_str()).collect();
    let workload = find_workload(workload, &names)?;
    let footprints = characterise(&problem, observer)?;
    let planned = plan(&problem, &footprints, recipe, keep, observer)?;
    let derivation = derive(&planned, workload);
    if let Some(policy) = keep {
        check_kept(policy, &planned, names[workload], observer)?;
    }
    Ok(match derivation {
        Some(derivation) => {
            if let Some(difference) = keep.and_then(|policy| difference(policy, &derivation)) {
                observer.notice(Notice::Warning(difference));
            }
            GuaranteeExplanation::Admitted(Box::new(derivation))
        }
        None => {
            let mut refused = planned.refused().into_iter();
            let refused = refused.find(|refused| refused.index == workload);
            let refused = refused.expect("a workload without a place was refused");
            let derivation = derive_refused(&planned, workload);
            GuaranteeExplanation::Refused(Box::new(RefusalExplanation { refused, derivation }))
        }
    })
}

/// Refuses a policy that lacks the workload, or whose limits on its server do not hold for these inputs: the
/// derivation would belong to another plan. Changes of other servers are a warning.
fn check_kept(
    policy: &Policy,
    planned: &PlannedCluster,
    name: &str,
    observer: &dyn ProgressObserver,
) -> Result<(), OperationError> {
    let hint = "`tailwright plan --keep` fits a plan to its inputs; without --plan, a new plan is explained";
    let Some(stated) = policy.workloads.iter().find(|stated| stated.name == name) else {
        return Err(
            OperationError::input(format_args!("the plan does not have workload '{name}'")).hint(hint)
        );
    };
    let changed = planned.changed.as_ref().map_or(&[][..], |changed| &changed.servers);
    if let Some(server) = stated.server.as_ref().filter(|server| changed.contains(server)) {
        return Err(OperationError::input(format_args!(
            "the plan's limits on server '{server}' do not hold for these inputs"
        ))
        .hint(hint));
    }
    if !changed.is_empty() {
        let servers = changed.join(", ");
        observer
            .notice(Notice::Warning(format!("the plan's limits on {servers} do not hold for these inputs")));
    }
    Ok(())
}

/// Largest relative difference between a printed bound and the computed one, due to rounding.
const ROUNDING: f64 = 1e-9;

/// Describes the difference between a policy's figures for a workload and the derivation from its limits;
/// `None` if they agree.
fn difference(policy: &Policy, derivation: &GuaranteeDerivation) -> Option<String> {
    let GuaranteeDerivation { workload, bound_s, priority, .. } = derivation;
    let stated = policy.workloads.iter().find(|stated| stated.name == *workload)?;
    let promised = stated.bound_s.filter(|promised| (promised - bound_s).abs() > bound_s * ROUNDING);
    if let Some(promised) = promised {
        let promised = time(promised);
        let bound = time(*bound_s);
        return Some(format!(
            "the policy guarantees {workload} {promised}, but what follows from these inputs is {bound}"
        ));
    }
    let used = stated.priority.map(usize::try_from)?.ok()?;
    (used != *priority).then(|| {
        format!(
            "the policy serves {workload} with priority {used}, but the derivation is for priority {priority}"
        )
    })
}

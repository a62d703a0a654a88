//! Bounds of workloads with several SLOs.

use model::Objective;
use placement::PlanningProblem;
use schemars::JsonSchema;
use serde::Serialize;

/// One of several SLOs of a workload, and the bound of the requests that it is about.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, JsonSchema)]
pub struct ObjectiveBound {
    /// The SLO.
    pub slo: Objective,
    /// Guaranteed latency of its requests, seconds.
    pub bound_s: f64,
    /// SLO less the bound, seconds.
    pub slack_s: f64,
}

impl ObjectiveBound {
    fn new(slo: Objective, bound_s: f64) -> Self {
        Self { slo, bound_s, slack_s: slo.slo.latency.0 - bound_s }
    }
}

/// Returns the bound of each SLO of a workload; none if it has one SLO only.
pub(super) fn objectives(
    instance: &PlanningProblem,
    class: usize,
    workload: usize,
    total: f64,
) -> Vec<ObjectiveBound> {
    let further = instance.further_slos(workload);
    if further.is_empty() {
        return Vec::new();
    }
    let mut objectives = vec![ObjectiveBound::new(instance.workloads[workload].slo.into(), total)];
    objectives.extend(further.iter().map(|it| ObjectiveBound::new(it.slo, it.bound(class, total))));
    objectives
}

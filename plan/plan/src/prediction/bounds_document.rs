//! The document of the models' bounds for the workloads of one server.

use crate::prediction::bounds::WorkloadBound;
use crate::prediction::calibration::CalibrationReport;
use crate::prediction::model_name::ModelName;
use crate::prediction::problem::PredictionProblem;
use schemars::JsonSchema;
use serde::Serialize;

/// The models' bounds for the workloads of one server, an entry per workload and model.
#[derive(Serialize, JsonSchema)]
pub struct BoundsDocument<'a> {
    class: &'a str,
    link_only: bool,
    network_bytes_per_s: f64,
    safety_margin: f64,
    workloads: Vec<BoundDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calibration: Option<&'a CalibrationReport>,
}

#[derive(Serialize, JsonSchema)]
struct BoundDocument<'a> {
    name: &'a str,
    model: ModelName,
    percentile: f64,
    priority: u32,
    group: usize,
    /// Null where the model has no bound; `reason` says why.
    bound_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate_low_s: Option<f64>,
    slo_s: f64,
    within_slo: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

impl<'a> BoundsDocument<'a> {
    /// Describes the bounds of a problem, with the evidence of the calibrated model if it was asked for.
    pub fn new(
        problem: &'a PredictionProblem,
        bounds: &[WorkloadBound],
        calibration: Option<&'a CalibrationReport>,
    ) -> Self {
        Self {
            class: &problem.server().class,
            link_only: problem.profile().is_none(),
            network_bytes_per_s: problem.server().network.bytes_per_sec(),
            safety_margin: problem.cluster.safety_margin,
            workloads: bounds.iter().map(|bound| BoundDocument::new(problem, bound)).collect(),
            calibration,
        }
    }
}

impl<'a> BoundDocument<'a> {
    fn new(problem: &'a PredictionProblem, bound: &WorkloadBound) -> Self {
        let workload = &problem.cluster.workloads[bound.workload];
        let slo_s = workload.spec.slo.latency.0;
        let prediction = bound.latency.ok();
        let estimate = prediction.and_then(|prediction| prediction.estimate);
        Self {
            name: &workload.spec.name,
            model: bound.model,
            percentile: bound.percentile.percent(),
            priority: bound.priority,
            group: workload.group,
            bound_s: prediction.map(|prediction| prediction.bound),
            estimate_s: estimate.map(|estimate| estimate.latency),
            estimate_low_s: estimate.map(|estimate| estimate.low),
            slo_s,
            within_slo: bound.seconds() <= slo_s,
            reason: bound.latency.err().map(|why| why.to_string()),
        }
    }
}

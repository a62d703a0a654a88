//! The document of a placement by a model: the policy, with the forecast of each workload.

use crate::prediction::assignment::server_name;
use crate::prediction::forecast::WorkloadForecast;
use crate::prediction::model_name::ModelName;
use crate::prediction::placement::{ModelPlacement, placement_policy};
use crate::prediction::problem::PredictionProblem;
use crate::prediction::slo_calibration::{SloCalibrationReport, report_slo_calibration};
use model::Policy;
use operation::Silent;
use schemars::JsonSchema;
use serde::Serialize;

/// A placement by a model as a document, which is itself a policy file.
#[derive(Serialize, JsonSchema)]
pub struct PlacementDocument<'a> {
    #[serde(flatten)]
    policy: Policy,
    servers_used: usize,
    servers_lower_bound: usize,
    workloads_admitted: usize,
    model: &'a str,
    assumption: &'a str,
    /// Wall time from the start of the program to this answer, seconds.
    elapsed_s: f64,
    /// The part of it that searched for servers, without reading traces and without forecasts.
    search_s: f64,
    forecasts: Vec<ForecastDocument<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    slo_calibration: Option<SloCalibrationReport>,
}

#[derive(Serialize, JsonSchema)]
struct ForecastDocument<'a> {
    name: &'a str,
    server: String,
    bound_s: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    estimate_s: Option<f64>,
    bursts_together_s: Option<f64>,
    worst_case_s: Option<f64>,
}

impl ModelPlacement {
    /// Returns the placement as a document; `elapsed_s` tells the wall time of the whole run, and is asked last.
    pub fn document<'a>(
        &'a self,
        problem: &'a PredictionProblem,
        elapsed_s: impl FnOnce() -> f64,
    ) -> PlacementDocument<'a> {
        let servers = self.servers.iter().enumerate();
        let forecasts = servers.flat_map(|(number, all)| all.iter().map(move |forecast| (number, forecast)));
        // The limits take a part of the time, so they precede `elapsed_s`.
        let policy = placement_policy(problem, self);
        let slo_calibration = self.calibration(problem);
        PlacementDocument {
            servers_used: self.packing.servers.len(),
            servers_lower_bound: self.packing.lower_bound,
            workloads_admitted: problem.cluster.workloads.len() - self.packing.refused.len(),
            model: self.model.name(),
            assumption: self.model.row().assumption,
            elapsed_s: elapsed_s(),
            search_s: self.search.as_secs_f64(),
            forecasts: forecasts.map(|(number, forecast)| entry(problem, number, forecast)).collect(),
            slo_calibration,
            policy,
        }
    }

    /// Returns the evidence that a placement by the calibrated model rests on.
    pub fn calibration(&self, problem: &PredictionProblem) -> Option<SloCalibrationReport> {
        (self.model == ModelName::Calibrated).then(|| report_slo_calibration(problem, &Silent))
    }
}

fn entry<'a>(
    problem: &'a PredictionProblem,
    server: usize,
    forecast: &WorkloadForecast,
) -> ForecastDocument<'a> {
    ForecastDocument {
        name: &problem.spec(forecast.bound.workload).name,
        server: server_name(problem, server),
        bound_s: forecast.bound.latency.ok().map(|p| p.bound),
        estimate_s: forecast.bound.latency.ok().and_then(|p| p.estimate).map(|e| e.latency),
        bursts_together_s: forecast.bursts_together,
        worst_case_s: forecast.worst_case_s().filter(|s| s.is_finite()),
    }
}

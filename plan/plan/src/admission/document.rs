//! The document of an admission: every decision, and the workloads that are present in the end.

use crate::admission::decide::{AdmissionAnswer, AdmissionDecision, AdmissionOutcome};
use crate::admission::events::AdmissionEvent;
use crate::prediction::{
    ModelName, PredictionProblem, SloCalibrationReport, report_slo_calibration, server_name,
};
use crate::refusal::RefusedWorkload;
use model::Stage;
use operation::Silent;
use placement::admission::AdmissionGuarantee;
use schemars::JsonSchema;
use serde::Serialize;

/// Decisions on arrivals and departures, and the workloads that are present in the end.
#[derive(Serialize, JsonSchema)]
pub struct AdmissionDocument<'a> {
    model: &'a str,
    servers: usize,
    /// The servers that have a workload in the end.
    servers_used: usize,
    link_only: bool,
    admitted: Vec<&'a str>,
    refused: Vec<RefusedDocument>,
    workloads: Vec<AdmittedDocument<'a>>,
    decisions: Vec<DecisionDocument<'a>>,
    /// Wall time of making sketches of the traces, seconds.
    sketching_s: f64,
    /// Wall time from the start of the program to this answer, seconds.
    elapsed_s: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    slo_calibration: Option<SloCalibrationReport>,
}

#[derive(Serialize, JsonSchema)]
struct RefusedDocument {
    name: String,
    reason: String,
}

#[derive(Serialize, JsonSchema)]
struct AdmittedDocument<'a> {
    name: &'a str,
    server: String,
    model: &'a str,
    percentile: f64,
    priority: u32,
    priority_by_stage: [u32; 3],
    bound_s: Option<f64>,
    slo_s: f64,
}

#[derive(Serialize, JsonSchema)]
struct DecisionDocument<'a> {
    event: &'static str,
    names: Vec<&'a str>,
    accepted: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    server: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Wall time of this decision alone, seconds.
    elapsed_s: f64,
}

impl AdmissionOutcome {
    /// Returns decisions and workloads as a document; `elapsed_s` tells the wall time of the whole run, and is asked last.
    pub fn document<'a>(
        &'a self,
        problem: &'a PredictionProblem,
        elapsed_s: impl FnOnce() -> f64,
    ) -> AdmissionDocument<'a> {
        let model = self.procedure.name();
        let slo_calibration = self.calibration(problem);
        AdmissionDocument {
            model,
            servers: problem.server().count,
            servers_used: self.servers_used(),
            link_only: problem.profile().is_none(),
            admitted: self.guarantees.iter().map(|g| g.name.as_str()).collect(),
            refused: self.refused(problem).into_iter().map(refused).collect(),
            workloads: self.guarantees.iter().map(|g| entry(problem, model, g)).collect(),
            decisions: self.decisions.iter().map(|d| decided(problem, d)).collect(),
            sketching_s: self.sketching.as_secs_f64(),
            elapsed_s: elapsed_s(),
            slo_calibration,
        }
    }

    /// Returns the evidence that decisions by the calibrated model rest on.
    pub fn calibration(&self, problem: &PredictionProblem) -> Option<SloCalibrationReport> {
        (self.procedure == ModelName::Calibrated.into()).then(|| report_slo_calibration(problem, &Silent))
    }
}

fn refused(refused: RefusedWorkload) -> RefusedDocument {
    RefusedDocument { name: refused.workload, reason: refused.reason }
}

fn entry<'a>(
    problem: &PredictionProblem,
    model: &'a str,
    guaranteed: &'a AdmissionGuarantee,
) -> AdmittedDocument<'a> {
    AdmittedDocument {
        name: &guaranteed.name,
        server: server_name(problem, guaranteed.server),
        model,
        percentile: guaranteed.slo.percentile.percent(),
        priority: guaranteed.priority[Stage::NetworkIn],
        priority_by_stage: guaranteed.priority.into_array(),
        bound_s: guaranteed.latency.ok(),
        slo_s: guaranteed.slo.latency.0,
    }
}

fn decided<'a>(problem: &'a PredictionProblem, decision: &AdmissionDecision) -> DecisionDocument<'a> {
    let (event, who) = match &decision.event {
        AdmissionEvent::Arrive(who) => ("arrive", &who[..]),
        AdmissionEvent::Depart(who) => ("depart", std::slice::from_ref(who)),
    };
    let server = match &decision.answer {
        AdmissionAnswer::Accepted(server) => Some(server_name(problem, *server)),
        _ => None,
    };
    let reason = match &decision.answer {
        AdmissionAnswer::Refused(why) => Some(why.clone()),
        AdmissionAnswer::Absent => Some("it was not there".to_owned()),
        _ => None,
    };
    DecisionDocument {
        event,
        names: who.iter().map(|&w| problem.spec(w).name.as_str()).collect(),
        accepted: reason.is_none(),
        server,
        reason,
        elapsed_s: decision.elapsed.as_secs_f64(),
    }
}

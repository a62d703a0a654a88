//! Bounds of each model for workloads that share one server.

use crate::prediction::applicant::{applicants, server_members};
use crate::prediction::model_name::{ModelName, ModelVisitor};
use crate::prediction::problem::PredictionProblem;
use model::{LatencyModel, Prediction, ServerMember, Stage, UndefinedLatency};
use operation::ProgressObserver;
use placement::admission::Applicant;
use predict::EnforcedModel;
use units::Percentile;

/// Bound of one model for one workload.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadBound {
    /// Index into the workloads of the problem.
    pub workload: usize,
    pub model: ModelName,
    /// Part of the latency distribution.
    pub percentile: Percentile,
    /// Priority of the workload; 0 is served first.
    pub priority: u32,
    /// Latency including base latency, or the reason why the model has none.
    pub latency: Result<Prediction, UndefinedLatency>,
}

impl WorkloadBound {
    /// Returns the guaranteed latency, seconds; infinite without a bound.
    pub fn seconds(&self) -> f64 {
        self.latency.map_or(f64::INFINITY, |prediction| prediction.bound)
    }
}

/// Workloads that share one server, with priorities by SLO.
pub(super) struct ServerCompany<'a> {
    pub(super) problem: &'a PredictionProblem,
    /// Indices into the workloads of the problem.
    pub(super) members: &'a [usize],
    /// Percentile of all workloads, instead of that of each SLO.
    pub(super) percentile: Option<Percentile>,
    pub(super) observer: &'a dyn ProgressObserver,
}

impl ServerCompany<'_> {
    /// Hands the members with the model's sketches to `ask`.
    pub(super) fn with_members<M: LatencyModel, T>(
        &self,
        model: &M,
        ask: impl FnOnce(&[ServerMember<'_, M::Sketch>]) -> T,
    ) -> T {
        let members = self.members.iter().copied();
        let applicants =
            applicants(self.problem, members, self.observer, |workload| model.sketch(&workload.traffic));
        let applicants: Vec<&Applicant<M::Sketch>> = applicants.iter().collect();
        let mut members = server_members(self.problem, &applicants);
        if let Some(percentile) = self.percentile {
            members.iter_mut().for_each(|member| member.percentile = percentile);
        }
        ask(&members)
    }
}

/// Predicts the latency of every member of a shared server, at `percentile` or each at that of its SLO.
/// Bounds are ordered by model, then by member.
pub fn predict_bounds(
    problem: &PredictionProblem,
    members: &[usize],
    models: &[ModelName],
    percentile: Option<Percentile>,
    observer: &dyn ProgressObserver,
) -> Vec<WorkloadBound> {
    let mut bounds = Vec::new();
    for &name in models {
        let server = ServerCompany { problem, members, percentile, observer };
        bounds.extend(name.visit(problem, percentile, observer, PredictMembers { server, name }));
    }
    bounds
}

struct PredictMembers<'a> {
    server: ServerCompany<'a>,
    name: ModelName,
}

impl ModelVisitor for PredictMembers<'_> {
    type Output = Vec<WorkloadBound>;

    fn visit<M: LatencyModel>(self, model: &EnforcedModel<M>) -> Vec<WorkloadBound> {
        let Self { server, name } = self;
        server.with_members(model, |members| {
            member_bounds(server.problem, model.predict(members), name, members, server.members)
        })
    }
}

/// Returns the bounds of a model for the members of a server, including the latency of the idle server. The members are
/// these workloads of the problem.
pub(super) fn member_bounds<S>(
    problem: &PredictionProblem,
    predictions: Vec<Result<Prediction, UndefinedLatency>>,
    name: ModelName,
    members: &[ServerMember<'_, S>],
    workloads: &[usize],
) -> Vec<WorkloadBound> {
    let mut bounds = Vec::new();
    for ((&workload, member), latency) in workloads.iter().zip(members).zip(predictions) {
        bounds.push(WorkloadBound {
            workload,
            model: name,
            percentile: member.percentile,
            priority: member.priority[Stage::NetworkIn],
            latency: latency.map(|prediction| prediction.later_by(problem.base_latency(workload))),
        });
    }
    bounds
}

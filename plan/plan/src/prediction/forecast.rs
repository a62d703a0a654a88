//! Forecasts of the workloads of a placement, server by server.

use crate::prediction::applicant::{of_members, server_members, sketched_by, without_traffic};
use crate::prediction::bounds::{WorkloadBound, member_bounds};
use crate::prediction::enforced_models::{replaying, worst_case};
use crate::prediction::model_name::{ModelName, ModelVisitor};
use crate::prediction::problem::PredictionProblem;
use model::{LatencyModel, Prediction, Stage, UndefinedLatency};
use operation::ProgressObserver;
use placement::admission::Applicant;
use predict::{CorrelatedLatency, EnforcedModel, EnforcedSketch, Replayed, WorstCase};

/// Forecast for a placed workload.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadForecast {
    /// The latency by the model that decided.
    pub bound: WorkloadBound,
    /// Latency without any assumption on how bursts meet; unknown if the forecast was cut short.
    pub worst_case: Option<WorkloadBound>,
    /// Longest latency in the replays of the server, base latency included, seconds. One of them aligns the
    /// ends of all worst bursts. Not a bound over all alignments: that is `worst_case`. See `in_order`.
    pub bursts_together: Option<f64>,
}

/// Parameters of the forecasts of a placement.
pub(super) struct ForecastQuestion<'a> {
    pub(super) problem: &'a PredictionProblem,
    pub(super) model: ModelName,
    /// The workloads of each server.
    pub(super) servers: &'a [Vec<usize>],
    /// Returns true to stop: servers without a forecast get the certain one.
    pub(super) interrupted: &'a (dyn Fn() -> bool + Sync),
    /// Returns true if the model is known to keep every SLO on a server.
    pub(super) is_kept: &'a (dyn Fn(&[usize]) -> bool + Sync),
    pub(super) observer: &'a dyn ProgressObserver,
}

impl WorkloadForecast {
    /// Builds a forecast in which no replay is longer than `bursts_together`, and that is not longer than the
    /// worst case.
    ///
    /// The alignment in which worst bursts end together is one of many, and another one may be worse for a
    /// workload. So `together` is raised to the model's estimate, or to the bound of `replayed`, which is a
    /// replay too. The work in service is added to a replay without a proof, so the sum may exceed the worst
    /// case, which is then used.
    fn in_order(bound: WorkloadBound, worst_case: WorkloadBound, together: Option<f64>) -> Self {
        let together = together.map(|together| {
            let replayed = match bound.latency {
                Ok(found) if bound.model == ModelName::Replayed => found.bound,
                Ok(Prediction { estimate: Some(estimate), .. }) => estimate.latency,
                _ => 0.0,
            };
            together.max(replayed).min(worst_case.seconds())
        });
        Self { bound, worst_case: Some(worst_case), bursts_together: together }
    }

    /// Replaces the bound by the SLO if the SLO is what the model promises, and the workload keeps it by the model.
    pub(super) fn promise(&mut self, slo: Option<f64>) {
        if let (Some(slo), Ok(prediction)) = (slo, &mut self.bound.latency)
            && prediction.bound <= slo
        {
            prediction.bound = slo;
        }
    }

    /// Returns the latency without any assumption on how bursts meet, seconds; infinite without a bound.
    pub fn worst_case_s(&self) -> Option<f64> {
        self.worst_case.map(|bound| bound.seconds())
    }
}

impl ForecastQuestion<'_> {
    /// The forecasts of each server, one per member, and how many servers were cut short by an interruption.
    pub(super) fn answer(self) -> (Vec<Vec<WorkloadForecast>>, usize) {
        self.model.visit(self.problem, None, self.observer, self)
    }

    /// The same, by the model that the search has used.
    pub(super) fn answer_by<M: LatencyModel>(
        self,
        model: &EnforcedModel<M>,
    ) -> (Vec<Vec<WorkloadForecast>>, usize) {
        self.visit(model)
    }

    /// Returns the certain forecasts of a server without computing: the SLO as the bound if the model is
    /// known to keep it, no bound otherwise.
    fn certain_forecasts(&self, members: &[usize]) -> Vec<WorkloadForecast> {
        let is_kept = (self.is_kept)(members);
        let applicants = without_traffic(self.problem, members);
        let company: Vec<&Applicant<()>> = applicants.iter().collect();
        let mut forecasts = Vec::new();
        for (member, &workload) in server_members(self.problem, &company).iter().zip(members) {
            let slo = self.problem.spec(workload).slo.latency.0;
            let within_slo = Prediction { bound: slo, estimate: None };
            let bound = WorkloadBound {
                workload,
                model: self.model,
                percentile: member.percentile,
                priority: member.priority[Stage::NetworkIn],
                latency: if is_kept { Ok(within_slo) } else { Err(UndefinedLatency::NoBound) },
            };
            forecasts.push(WorkloadForecast { bound, worst_case: None, bursts_together: None });
        }
        forecasts
    }
}

impl ModelVisitor for ForecastQuestion<'_> {
    type Output = (Vec<Vec<WorkloadForecast>>, usize);

    fn visit<M: LatencyModel>(self, model: &EnforcedModel<M>) -> Self::Output {
        if (self.interrupted)() {
            let certain = self.servers.iter().map(|members| self.certain_forecasts(members));
            return (certain.collect(), self.servers.len());
        }
        let enforced = self.problem.enforced;
        let replayed = replaying(Replayed::default(), enforced);
        let worst_case = worst_case(enforced);
        let forecaster = Forecaster {
            question: &self,
            model,
            sketches: sketched_by(self.problem, model, self.observer),
            replayed: sketched_by(self.problem, &replayed, self.observer),
            worst_case: sketched_by(self.problem, &worst_case, self.observer),
            by_replay: replayed,
            at_worst: worst_case,
        };
        let task = self.observer.begin("forecasting", self.servers.len() as u64, "servers");
        let forecasts = machine::parallel::map(self.servers, |members| {
            let forecasts = forecaster.forecasts(members);
            task.advance();
            forecasts
        });
        let cut_short = forecasts.iter().filter(|(_, cut_short)| *cut_short).count();
        (forecasts.into_iter().map(|(forecasts, _)| forecasts).collect(), cut_short)
    }
}

struct Forecaster<'a, M: LatencyModel> {
    question: &'a ForecastQuestion<'a>,
    model: &'a EnforcedModel<M>,
    /// All workloads of the problem as the model that decided sees them.
    sketches: Vec<Applicant<EnforcedSketch<M::Sketch>>>,
    by_replay: EnforcedModel<Replayed>,
    replayed: Vec<Applicant<EnforcedSketch<<Replayed as LatencyModel>::Sketch>>>,
    at_worst: EnforcedModel<WorstCase>,
    worst_case: Vec<Applicant<EnforcedSketch<<WorstCase as LatencyModel>::Sketch>>>,
}

impl<M: LatencyModel> Forecaster<'_, M> {
    /// Returns the forecasts of a server's members. The flag is true after an interruption; then they are the
    /// certain ones, without replays.
    fn forecasts(&self, members: &[usize]) -> (Vec<WorkloadForecast>, bool) {
        let problem = self.question.problem;
        let Some((chosen, together)) = self.replayed_latencies(members) else {
            return (self.question.certain_forecasts(members), true);
        };
        let worst = server_members(problem, &of_members(&self.worst_case, members));
        let worst =
            member_bounds(problem, self.at_worst.predict(&worst), ModelName::WorstCase, &worst, members);
        let mut forecasts = Vec::new();
        for ((bound, worst_case), bursts_together) in chosen.into_iter().zip(worst).zip(together) {
            forecasts.push(WorkloadForecast::in_order(bound, worst_case, bursts_together));
        }
        (forecasts, false)
    }

    /// The latency of each member by the model that decided, and when all bursts come together; `None` when it is interrupted.
    fn replayed_latencies(&self, members: &[usize]) -> Option<(Vec<WorkloadBound>, Vec<Option<f64>>)> {
        let question = self.question;
        let problem = question.problem;
        let own = server_members(problem, &of_members(&self.sketches, members));
        let predictions = self.model.predict_unless(question.interrupted, &own)?;
        let chosen = member_bounds(problem, predictions, question.model, &own, members);
        let replayed = server_members(problem, &of_members(&self.replayed, members));
        let begun = self.by_replay.begun(&replayed);
        let replayed = EnforcedModel::<Replayed>::inner_members(&replayed);
        let correlated = self.by_replay.inner().correlated(&replayed).into_iter().zip(begun);
        let later = |((latency, begun), &workload): ((Result<CorrelatedLatency, _>, f64), &usize)| {
            let latency = latency.ok()?;
            let base = problem.base_latency(workload);
            Some(latency.bursts_together.max(latency.recorded) + begun + base)
        };
        Some((chosen, correlated.zip(members).map(later).collect()))
    }
}

//! Few servers for everybody, under a model.

use super::applicant::{admission_host, applicants};
use super::assignment::{WorkloadAssignment, assignment_policy};
use super::bounds::{WorkloadBound, predict_bounds, predict_correlated};
use super::model_name::ModelName;
use super::problem::{PredictionProblem, TracedWorkload};
use super::procedure_name::ProcedureVisitor;
use super::refusal::describe_refusal;
use crate::observer::ProgressObserver;
use ::plan::SearchEffort;
use ::plan::admission::{AdmissionProcedure, ByModel};
use ::plan::packing::{Packing, PackingProblem, pack};
use model::{LatencyModel as _, PerStage, Policy};
use predict::Replayed;
use std::time::{Duration, Instant};

/// A placement, what each server's workloads will see, and what a correlated day would do to it.
#[derive(Debug)]
pub struct ModelPlacement {
    /// The model that decided.
    pub model: ModelName,
    /// Who is on which server, and who was refused.
    pub packing: Packing,
    /// The forecasts of each server, one per member in the order of the packing.
    pub servers: Vec<Vec<WorkloadForecast>>,
    /// Wall time of the search, without forecasts.
    pub elapsed: Duration,
}

/// What a placed workload will see.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadForecast {
    /// The latency by the model that decided.
    pub bound: WorkloadBound,
    /// The latency without any assumption on how bursts meet.
    pub worst_case: WorkloadBound,
    /// The latency when everybody's worst burst comes at the same time, base latency included, seconds.
    pub bursts_together: Option<f64>,
}

impl ModelPlacement {
    /// Whether everybody who has a place keeps the SLO there.
    pub fn is_kept(&self, problem: &PredictionProblem) -> bool {
        self.servers.iter().flatten().all(|forecast| {
            let slo = problem.workloads[forecast.bound.workload].spec.slo;
            forecast.bound.seconds() <= slo.latency.0
        })
    }
}

/// Places everybody that fits.
///
/// A search by replays is repeated with one more server than before as long as what it finds does not hold
/// under other alignments and servers are left.
pub fn place(
    problem: &PredictionProblem,
    model: ModelName,
    observer: &dyn ProgressObserver,
) -> ModelPlacement {
    let start = Instant::now();
    if model != ModelName::Replayed {
        let everybody = PackEverybody { problem, servers_min: 1, effort: SearchEffort::Exhaustive, observer };
        let packing = model.as_procedure().visit(problem.network, everybody);
        return forecast(problem, model, packing, start, observer);
    }
    let mut at_least = 1;
    loop {
        let packing = search_by_replay(problem, at_least, observer);
        let placement = forecast(problem, model, packing, start, observer);
        let used = placement.packing.servers.len();
        if placement.is_kept(problem) || used < at_least || used >= problem.count {
            return placement;
        }
        at_least = used + 1;
    }
}

/// A search by replays uses few alignments, and does not squeeze; what it finds is judged by other alignments.
/// Whoever picks the placement that looks good in some alignments must not quote these.
fn search_by_replay(
    problem: &PredictionProblem,
    at_least: usize,
    observer: &dyn ProgressObserver,
) -> Packing {
    let few = Replayed::new(SEARCHED_ALIGNMENTS, SEARCHED_COVERAGE, 0.95, SEARCH_SEED);
    let few = few.expect("enough alignments for this coverage");
    let everybody =
        PackEverybody { problem, servers_min: at_least, effort: SearchEffort::FirstFound, observer };
    everybody.visit(ByModel::by_slo(&few), |workload| few.sketch(&workload.traffic))
}

/// 14 alignments cover 80 % of all with 95 % confidence.
const SEARCHED_ALIGNMENTS: usize = 14;
const SEARCHED_COVERAGE: f64 = 0.8;
/// The seed of alignments that are not those of the default, by which the result is judged.
const SEARCH_SEED: u64 = 2;

struct PackEverybody<'a> {
    problem: &'a PredictionProblem,
    servers_min: usize,
    effort: SearchEffort,
    observer: &'a dyn ProgressObserver,
}

impl ProcedureVisitor for PackEverybody<'_> {
    type Output = Packing;

    fn visit<P: AdmissionProcedure<Sketch: Send> + Clone>(
        self,
        procedure: P,
        sketch: impl Fn(&TracedWorkload) -> P::Sketch + Sync,
    ) -> Packing {
        let Self { problem, servers_min, effort, observer } = self;
        let applicants = applicants(problem, 0..problem.workloads.len(), observer, sketch);
        let loads: Vec<_> = problem.workloads.iter().map(|workload| workload.traffic.utilisation()).collect();
        let total = problem.count as u64;
        let task = observer.begin("packing", total, "servers tried");
        let mut watch = |servers: usize| task.update(servers as u64, total);
        let packing_problem = PackingProblem {
            servers: admission_host(problem),
            applicants: &applicants,
            loads: &loads,
            servers_min,
        };
        pack(&procedure, &packing_problem, effort, &mut watch)
    }
}

fn forecast(
    problem: &PredictionProblem,
    model: ModelName,
    packing: Packing,
    start: Instant,
    observer: &dyn ProgressObserver,
) -> ModelPlacement {
    let elapsed = start.elapsed();
    let servers = packing.servers.iter().map(|members| forecasts(problem, members, model, observer));
    ModelPlacement { model, servers: servers.collect(), packing, elapsed }
}

/// What each member of a server will see.
fn forecasts(
    problem: &PredictionProblem,
    members: &[usize],
    model: ModelName,
    observer: &dyn ProgressObserver,
) -> Vec<WorkloadForecast> {
    let chosen = predict_bounds(problem, members, &[model], None, observer);
    let worst = match model {
        ModelName::WorstCase => chosen.clone(),
        _ => predict_bounds(problem, members, &[ModelName::WorstCase], None, observer),
    };
    let correlated = predict_correlated(problem, members, observer);
    let mut forecasts = Vec::new();
    for ((bound, worst_case), correlated) in chosen.into_iter().zip(worst).zip(correlated) {
        let bursts_together = correlated.map(|latency| latency.bursts_together);
        forecasts.push(WorkloadForecast { bound, worst_case, bursts_together });
    }
    forecasts
}

/// The forecasts of a server, whoever is served first before the others.
pub fn by_priority(forecasts: &[WorkloadForecast]) -> Vec<WorkloadForecast> {
    let mut sorted = forecasts.to_vec();
    sorted.sort_by_key(|forecast| (forecast.bound.priority, forecast.bound.workload));
    sorted
}

/// The placement as the document that enforcing and simulating take.
pub fn placement_policy(problem: &PredictionProblem, placement: &ModelPlacement) -> Policy {
    let mut assignments = vec![None; problem.workloads.len()];
    for (server, forecasts) in placement.servers.iter().enumerate() {
        for WorkloadForecast { bound, .. } in forecasts {
            let priority = PerStage::from_fn(|_| bound.priority);
            assignments[bound.workload] =
                Some(Ok(WorkloadAssignment { server, priority, bound_s: bound.seconds() }));
        }
    }
    for (workload, refusal) in &placement.packing.refused {
        assignments[*workload] = Some(Err(describe_refusal(problem, refusal)));
    }
    assignment_policy(problem, placement.model.name(), &assignments)
}

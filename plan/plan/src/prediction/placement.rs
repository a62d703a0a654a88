//! Places all workloads on few servers under a model.

use crate::prediction::applicant::{admission_host, of_members, server_members, sketched_by};
use crate::prediction::assignment::{WorkloadAssignment, assignment_policy, describe_prediction_refusal};
use crate::prediction::enforced_models::{filled_by, replaying, worst_case};
use crate::prediction::forecast::{ForecastQuestion, WorkloadForecast};
use crate::prediction::model_name::{ModelName, ModelVisitor};
use crate::prediction::problem::PredictionProblem;
use crate::prediction::slo_calibration::{filling_model, promised_slo, slo_calibration};
use crate::refusal::RefusedWorkload;
use model::{LatencyModel, PerStage, Policy};
use operation::ProgressObserver;
use placement::SearchEffort;
use placement::admission::{AdmissionProcedure, Applicant, ByModel};
use placement::packing::{
    Packing, PackingControl, PackingPhase, PackingProblem, PackingProgress, SecondJudgement, pack,
};
use predict::{EnforcedModel, LoadedReplays, Replayed};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::{Duration, Instant};
use units::{Nanos, plural};

/// A placement with forecasts for each server, and the effect of correlated bursts.
#[derive(Debug)]
pub struct ModelPlacement {
    /// The model that decided.
    pub model: ModelName,
    /// Members of each server, and refused workloads.
    pub packing: Packing,
    /// The forecasts of each server, one per member in the order of the packing.
    pub servers: Vec<Vec<WorkloadForecast>>,
    /// Wall time of the search, without reading traces and without forecasts.
    pub search: Duration,
    /// True if the search was interrupted. The placement holds, but refused workloads may have had a place,
    /// and bounds not computed are given as the SLOs, which they do not exceed.
    pub interrupted: bool,
}

impl ModelPlacement {
    /// Returns true if every placed workload keeps its SLO.
    pub fn is_kept(&self, problem: &PredictionProblem) -> bool {
        self.servers.iter().flatten().all(|forecast| {
            let slo = problem.spec(forecast.bound.workload).slo;
            forecast.bound.seconds() <= slo.latency.0
        })
    }

    /// Returns the workloads without a place.
    pub fn refused(&self, problem: &PredictionProblem) -> Vec<RefusedWorkload> {
        let mut refused = Vec::new();
        for (index, refusal) in &self.packing.refused {
            let spec = problem.spec(*index);
            refused.push(RefusedWorkload {
                index: *index,
                workload: spec.name.clone(),
                slo: spec.slo,
                reason: describe_prediction_refusal(problem, refusal),
                remedies: Vec::new(),
            });
        }
        refused
    }
}

/// Places as many workloads as fit. `interrupted` is polled; from its first `true` on, the result is what is
/// certain by then.
///
/// A search by replays uses few alignments, and its result is judged by other alignments. A server that fails
/// there drops the workload that misses its SLO by the largest factor, until it passes. A second set is
/// needed because a placement selected by some alignments looks better in them than it is.
pub fn place(
    problem: &PredictionProblem,
    model: ModelName,
    interrupted: &(dyn Fn() -> bool + Sync),
    observer: &dyn ProgressObserver,
) -> ModelPlacement {
    let start = Instant::now();
    let question = PlacementQuestion { problem, interrupted, observer };
    let judged = JudgedServers::default();
    let enforced = problem.enforced;
    let load = if model == ModelName::Calibrated { slo_calibration(problem, observer).load } else { None };
    let packing = match model {
        ModelName::Replayed => {
            let few = many(|| replaying(searching().remembering(), enforced));
            let judge = replaying(Replayed::default().remembering(), enforced);
            question.pack_by_replay(&few, &judge, &judged)
        }
        ModelName::Calibrated => match load {
            Some(load) => {
                let filling = LoadedReplays::new(problem.calibration, load);
                let few = many(|| {
                    let model = filling.clone().with_replays(searching());
                    filled_by(model, enforced).map(LoadedReplays::remembering)
                });
                let judge = filling_model(problem, load).map(LoadedReplays::remembering);
                question.pack_by_replay(&few, &judge, &judged)
            }
            None => question.visit(&worst_case(enforced)),
        },
        _ => model.visit(problem, None, observer, question),
    };
    let search = start.elapsed();
    let is_judged = model.row().replays && !(model == ModelName::Calibrated && load.is_none());
    let is_kept = |members: &[usize]| !is_judged || judged.is_kept(members);
    let servers = &packing.servers;
    let question = ForecastQuestion { problem, model, servers, interrupted, is_kept: &is_kept, observer };
    let (mut servers, cut_short) = match (model, load) {
        (ModelName::Calibrated, Some(load)) => question.answer_by(&filling_model(problem, load)),
        (ModelName::Calibrated, None) => question.answer_by(&worst_case(enforced)),
        _ => question.answer(),
    };
    for forecast in servers.iter_mut().flatten().filter(|_| model == ModelName::Calibrated) {
        forecast.promise(promised_slo(problem, forecast.bound.workload));
    }
    let interrupted = packing.interrupted || cut_short > 0;
    ModelPlacement { model, packing, servers, search, interrupted }
}

/// 14 alignments cover 80 % of all with 95 % confidence.
const SEARCHED_ALIGNMENTS: usize = 14;
const SEARCHED_COVERAGE: f64 = 0.8;
/// Seed of the alignments that judge the result, which differ from the default ones.
const SEARCH_SEED: u64 = 2;

/// Servers and whether the judge found every SLO kept, by their members.
#[derive(Debug, Default)]
struct JudgedServers(Mutex<BTreeMap<Vec<usize>, bool>>);

impl JudgedServers {
    fn known(&self, members: &[usize]) -> Option<bool> {
        self.0.lock().expect("no thread panics while it holds the lock").get(members).copied()
    }

    /// Returns true if the judge found every SLO kept on a server.
    fn is_kept(&self, members: &[usize]) -> bool {
        self.known(members) == Some(true)
    }

    /// Returns the judgement on a server, cached by its members.
    fn judge(&self, members: &[usize], judgement: impl FnOnce() -> bool) -> bool {
        if let Some(known) = self.known(members) {
            return known;
        }
        let kept = judgement();
        self.0.lock().expect("no thread panics while it holds the lock").insert(members.to_vec(), kept);
        kept
    }
}

#[derive(Clone, Copy)]
struct PlacementQuestion<'a> {
    problem: &'a PredictionProblem,
    interrupted: &'a (dyn Fn() -> bool + Sync),
    observer: &'a dyn ProgressObserver,
}

impl PlacementQuestion<'_> {
    fn pack_by_replay<M: LatencyModel>(self, few: &[M], model: &M, judged: &JudgedServers) -> Packing {
        let problem = self.problem;
        let applicants = sketched_by(problem, model, self.observer);
        let judge = ReplayJudge { problem, model, applicants: &applicants };
        let confirms = |members: &[usize]| judged.judge(members, || judge.is_kept(members));
        let missing = |members: &[usize]| judge.missing(members);
        let judgement = SecondJudgement { confirms: &confirms, missing: &missing };
        let procedures: Vec<_> = few.iter().map(ByModel::by_slo).collect();
        let packing = self.pack(&procedures, &applicants, SearchEffort::FirstFound, Some(judgement));
        if packing.interrupted || (packing.refused.is_empty() && packing.servers.len() <= packing.lower_bound)
        {
            return packing;
        }
        // The worst case caps every bound, so that its servers keep their SLOs here, too. A search by few alignments may
        // still end with more servers: the better of the two is taken.
        let guaranteed = self.visit(&worst_case(problem.enforced));
        let extent = |packing: &Packing| (packing.refused.len(), packing.servers.len());
        let is_better = !guaranteed.interrupted && extent(&guaranteed) < extent(&packing);
        if is_better && guaranteed.servers.iter().all(|members| confirms(members)) {
            return Packing { asked: packing.asked + guaranteed.asked, ..guaranteed };
        }
        packing
    }

    fn pack<P: AdmissionProcedure<Sketch: Send + Sync> + Sync>(
        self,
        procedures: &[P],
        applicants: &[Applicant<P::Sketch>],
        effort: SearchEffort,
        judgement: Option<SecondJudgement<'_>>,
    ) -> Packing {
        let workloads = &self.problem.cluster.workloads;
        let task = self.observer.begin("packing", workloads.len() as u64, "done");
        let phase = Mutex::new(None);
        let watch = |progress: PackingProgress| {
            let mut phase = phase.lock().expect("no thread panics while it holds the lock");
            if phase.replace(progress.phase) != Some(progress.phase) {
                task.rename(&phase_name(progress.phase));
            }
            task.update(progress.done as u64, progress.total as u64);
        };
        let packing_problem = PackingProblem {
            servers: admission_host(self.problem),
            applicants,
            loads: &workloads.iter().map(|workload| workload.traffic.utilisation()).collect::<Vec<_>>(),
            servers_min: 1,
        };
        let control = PackingControl { interrupted: &self.interrupted, watch: &watch, judgement };
        pack(procedures, &packing_problem, effort, &control)
    }
}

impl ModelVisitor for PlacementQuestion<'_> {
    type Output = Packing;

    fn visit<M: LatencyModel>(self, model: &EnforcedModel<M>) -> Packing {
        let applicants = sketched_by(self.problem, model, self.observer);
        let procedures = many(|| ByModel::by_slo(model));
        self.pack(&procedures, &applicants, SearchEffort::Exhaustive, None)
    }
}

/// Maximum number of servers filled at once: each thread caches replays, several hundred megabytes.
const THREADS_MAX: usize = 16;

/// Creates one value per thread of the search.
fn many<T>(make: impl Fn() -> T) -> Vec<T> {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(THREADS_MAX);
    (0..threads).map(|_| make()).collect()
}

/// The replays of a search.
fn searching() -> Replayed {
    let few = Replayed::new(SEARCHED_ALIGNMENTS, SEARCHED_COVERAGE, 0.95, SEARCH_SEED);
    few.expect("enough alignments for this coverage")
}

/// Judges servers by a model with the alignments of the default, which no search has seen.
struct ReplayJudge<'a, M: LatencyModel> {
    problem: &'a PredictionProblem,
    model: &'a M,
    applicants: &'a [Applicant<M::Sketch>],
}

impl<M: LatencyModel> ReplayJudge<'_, M> {
    fn is_kept(&self, members: &[usize]) -> bool {
        let company = of_members(self.applicants, members);
        self.model.all_within(&server_members(self.problem, &company), &self.limits(&company))
    }

    /// Returns the members that miss their SLOs, largest factor first; ties in reverse order.
    fn missing(&self, members: &[usize]) -> Vec<usize> {
        let company = of_members(self.applicants, members);
        let mut missing = Vec::new();
        let late = self.model.bounds_above(&server_members(self.problem, &company), &self.limits(&company));
        for (member, bound) in late {
            let applicant = company[member];
            missing.push(((bound + applicant.base_latency) / applicant.slo.latency.0, members[member]));
        }
        missing.sort_by(|a, b| b.0.total_cmp(&a.0).then(b.1.cmp(&a.1)));
        missing.into_iter().map(|(_, member)| member).collect()
    }

    /// The longest latency without the base latency that each SLO allows, seconds.
    fn limits<S>(&self, company: &[&Applicant<S>]) -> Vec<f64> {
        let limit = |member: &&Applicant<S>| queueing_limit(member.slo.latency.0, member.base_latency);
        company.iter().map(limit).collect()
    }
}

/// Returns the longest latency that stays within an SLO when `base` is added to it, both in seconds; half a
/// nanosecond above an integer, so that the direction of rounding does not matter.
fn queueing_limit(slo: f64, base: f64) -> f64 {
    let is_within = |ns: u64| Nanos(ns).as_secs() + base <= slo;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` saturates")]
    let mut ns = ((slo - base) * 1e9).max(0.0) as u64;
    if !is_within(0) {
        return -1.0;
    }
    while !is_within(ns) {
        ns -= 1;
    }
    while is_within(ns + 1) {
        ns += 1;
    }
    (ns as f64 + 0.5) * 1e-9
}

/// Returns the name of a phase of the search, for progress reports.
fn phase_name(phase: PackingPhase) -> String {
    match phase {
        PackingPhase::Alone => "each one alone".to_owned(),
        PackingPhase::Spread(servers) => format!("trying {}", plural(servers, "server")),
        PackingPhase::Confirm(servers) => format!("judging {}", plural(servers, "server")),
        PackingPhase::FirstFit(_) => "filling servers".to_owned(),
        PackingPhase::Offer => "offering to other servers".to_owned(),
        PackingPhase::Explain => "reasons of refusals".to_owned(),
    }
}

/// Returns the forecasts of a server in order of service.
pub fn by_priority(forecasts: &[WorkloadForecast]) -> Vec<WorkloadForecast> {
    let mut sorted = forecasts.to_vec();
    sorted.sort_by_key(|forecast| (forecast.bound.priority, forecast.bound.workload));
    sorted
}

/// Converts the placement to the policy that the enforcers and the simulator read.
pub fn placement_policy(problem: &PredictionProblem, placement: &ModelPlacement) -> Policy {
    let mut assignments = vec![None; problem.cluster.workloads.len()];
    for (server, forecasts) in placement.servers.iter().enumerate() {
        for WorkloadForecast { bound, .. } in forecasts {
            let priority = PerStage::from_fn(|_| bound.priority);
            assignments[bound.workload] =
                Some(Ok(WorkloadAssignment { server, priority, bound_s: bound.seconds() }));
        }
    }
    for refused in placement.refused(problem) {
        assignments[refused.index] = Some(Err(refused.reason));
    }
    assignment_policy(problem, placement.model.into(), &assignments)
}

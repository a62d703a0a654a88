//! The load by which servers are filled so that SLOs are kept in the next window of traffic, from held-out windows.
//!
//! Each round holds out one window of every trace and fills servers in a random order, as long as every workload keeps its
//! SLO on the rest of the traces: by `replayed` with some times the work, or by the worst case. Then the window is replayed,
//! and each SLO is kept or missed. Servers are filled by the least load with which enough are kept. If no load suffices, or
//! there are too few windows to tell, the worst case decides.
//!
//! Selecting by replays makes the selected servers look better than they are. Trials have the same bias, so that the misses
//! in the held-out windows contain it.

use crate::prediction::applicant::{of_members, server_members, sketched};
use crate::prediction::calibration::{calibration_traces, scope_name};
use crate::prediction::enforced_models::{filled_by, replaying, worst_case};
use crate::prediction::problem::PredictionProblem;
use model::LatencyModel;
use operation::ProgressObserver;
use operation::text::{percent, time};
use placement::admission::Applicant;
use predict::{
    CalibrationGoal, CalibrationScope, CalibrationTrace, CompanyMember, EnforcedModel, LoadedReplays,
    Replayed, SloCalibration, SloCoverage, SloTrial, TrialCompany, WorstCase, slo_coverage,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use units::plural;

/// Minimum number of rounds. Each window is held out in equally many.
const ROUNDS: usize = 4;
/// Maximum number of workloads that take part in a round.
const PARTICIPANTS_MAX: usize = 200;
/// 14 alignments cover 80 % of all with 95 % confidence; a trial needs no more.
const FILLING_ALIGNMENTS: usize = 14;
const FILLING_COVERAGE: f64 = 0.8;
const SEED: u64 = 4;

/// Load factors to try, ascending: multiples of the work of the traces.
const LOADS: [f64; 7] = [1.0, 1.25, 1.5, 2.0, 3.0, 4.0, 8.0];

type ReplaySketch = <EnforcedModel<Replayed> as LatencyModel>::Sketch;
type WorstSketch = <EnforcedModel<WorstCase> as LatencyModel>::Sketch;

/// Returns the calibration of a problem. The first call learns it.
pub(crate) fn slo_calibration(
    problem: &PredictionProblem,
    observer: &dyn ProgressObserver,
) -> Arc<SloCalibration> {
    calibration_unless(problem, &|| false, observer).expect("nothing interrupts it")
}

/// Learns the calibration of a problem in advance. `interrupted` is polled; from its first `true` on, nothing is
/// learnt, and the result is false.
pub fn calibrate_slos(
    problem: &PredictionProblem,
    interrupted: &(dyn Fn() -> bool + Sync),
    observer: &dyn ProgressObserver,
) -> bool {
    calibration_unless(problem, interrupted, observer).is_some()
}

fn calibration_unless(
    problem: &PredictionProblem,
    interrupted: &(dyn Fn() -> bool + Sync),
    observer: &dyn ProgressObserver,
) -> Option<Arc<SloCalibration>> {
    let mut known = problem.slo_calibration.lock().expect("no thread panics while it learns");
    if known.is_none() {
        *known = Some(Arc::new(LoadLearner { problem, interrupted, observer }.learn()?));
    }
    known.clone()
}

/// Learns the load by which servers are filled.
struct LoadLearner<'a> {
    problem: &'a PredictionProblem,
    interrupted: &'a (dyn Fn() -> bool + Sync),
    observer: &'a dyn ProgressObserver,
}

impl LoadLearner<'_> {
    /// Returns the least load that suffices; none if there is none, or after an interruption no answer.
    fn learn(&self) -> Option<SloCalibration> {
        let traces = calibration_traces(self.problem);
        let goal = &self.problem.calibration;
        let mut first = None;
        for load in LOADS {
            let trials = self.coverage(Some(load), &traces)?;
            let unloaded = *first.get_or_insert(trials);
            if trials.suffices(goal) {
                return Some(SloCalibration { load: Some(load), trials, unloaded });
            }
            if !trials.has_enough_blocks() {
                break;
            }
        }
        let trials = self.coverage(None, &traces)?;
        Some(SloCalibration { load: None, trials, unloaded: first.expect("there are loads to try") })
    }

    /// Returns how often held-out windows keep the SLOs of servers that are filled by this load, or by the worst case
    /// alone. `None` after an interruption.
    fn coverage(&self, load: Option<f64>, traces: &[CalibrationTrace<'_>]) -> Option<SloCoverage> {
        let Self { problem, interrupted, observer } = *self;
        let goal = problem.calibration;
        let windows = traces.iter().map(|trace| goal.windows(trace.traffic)).max().unwrap_or(0);
        let filling = Replayed::new(FILLING_ALIGNMENTS, FILLING_COVERAGE, 0.95, SEED);
        let filling = replaying(filling.expect("enough alignments for this coverage"), problem.enforced);
        let guarantee = worst_case(problem.enforced);
        // Replays of the traces as they are admit nearly all that the worst case does, and it takes time.
        let is_capped = load.is_none_or(|load| load > 1.0);
        let mut trials = Vec::new();
        for window in 0..windows {
            // The sketches without the held-out window are the same in all rounds.
            let all = sketched(problem, observer, |traffic| {
                let rest = goal.rest(traffic, window).unwrap_or_else(|| traffic.clone());
                match load {
                    Some(load) if load > 1.0 => filling.sketch(&rest.with_work(load)),
                    _ => filling.sketch(&rest),
                }
            });
            let guaranteed = is_capped.then(|| {
                sketched(problem, observer, |traffic| {
                    guarantee.sketch(&goal.rest(traffic, window).unwrap_or_else(|| traffic.clone()))
                })
            });
            for repetition in 0..ROUNDS.div_ceil(windows) {
                if interrupted() {
                    return None;
                }
                let round = FillingRound {
                    problem,
                    round: repetition * windows + window,
                    window,
                    filling: load.map(|_| &filling),
                    all: &all,
                    guarantee: guaranteed.as_ref().map(|guaranteed| (&guarantee, guaranteed.as_slice())),
                    begun: &filling,
                    interrupted,
                };
                trials.extend(round.trials());
            }
        }
        let task = observer.begin("calibrating", trials.len() as u64, "servers");
        let go_on = || {
            task.advance();
            !interrupted()
        };
        let coverage = slo_coverage(&goal, traces, &trials, &go_on);
        (!interrupted()).then_some(coverage)
    }
}

/// One round of trials.
struct FillingRound<'a> {
    problem: &'a PredictionProblem,
    round: usize,
    window: usize,
    /// Absent if the worst case alone decides.
    filling: Option<&'a EnforcedModel<Replayed>>,
    /// Model of the work that stages may have started.
    begun: &'a EnforcedModel<Replayed>,
    /// All workloads, by the rest of the traces.
    all: &'a [Applicant<ReplaySketch>],
    /// The worst case, and all workloads by the rest of the traces; absent where it is not needed.
    guarantee: Option<(&'a EnforcedModel<WorstCase>, &'a [Applicant<WorstSketch>])>,
    /// From the first true on, no workload fits any more, and the round is discarded.
    interrupted: &'a (dyn Fn() -> bool + Sync),
}

impl FillingRound<'_> {
    /// Returns servers as they are filled by the workloads that keep their SLOs alone.
    fn trials(&self) -> Vec<SloTrial> {
        let Self { problem, round, window, all, .. } = *self;
        let mut order = shuffled(problem.cluster.workloads.len(), round as u64);
        order.retain(|&workload| self.fits(&[workload]));
        order.truncate(PARTICIPANTS_MAX);
        let (_, numbers) = problem.distinct_traces();
        let mut trials = Vec::new();
        let mut begin = 0;
        while begin < order.len() {
            let count = self.fitting(&order[begin..]);
            let workloads = &order[begin..begin + count];
            let company = of_members(all, workloads);
            let server = server_members(problem, &company);
            let begun = self.begun.begun(&server);
            let mut members = Vec::new();
            let mut limits = Vec::new();
            for (number, (member, &workload)) in server.iter().zip(workloads).enumerate() {
                members.push(CompanyMember {
                    trace: numbers[workload],
                    priority: member.priority,
                    group: member.group,
                    percentile: member.percentile,
                });
                limits.push(self.limit(workload) - begun[number]);
            }
            trials.push(SloTrial { company: TrialCompany { round, window, members }, limits });
            begin += count;
        }
        trials
    }

    /// The longest latency without the base latency that the SLO of a workload allows, seconds.
    fn limit(&self, workload: usize) -> f64 {
        self.problem.spec(workload).slo.latency.0 - self.problem.base_latency(workload)
    }

    /// Returns true if these workloads keep their SLOs together.
    fn fits(&self, workloads: &[usize]) -> bool {
        if (self.interrupted)() {
            return false;
        }
        let company = of_members(self.all, workloads);
        let members = server_members(self.problem, &company);
        let guarantees = self.guarantees(workloads);
        let mut limits = Vec::with_capacity(workloads.len());
        for (number, &workload) in workloads.iter().enumerate() {
            let is_tested =
                self.problem.calibration.windows(&self.problem.cluster.workloads[workload].traffic) > 0;
            let limit = self.limit(workload);
            limits.push(match guarantees[number] <= limit {
                true => f64::INFINITY,
                false if is_tested => limit,
                false => -1.0,
            });
        }
        limits.iter().all(|limit| *limit == f64::INFINITY)
            || self.filling.is_some_and(|filling| filling.all_within(&members, &limits))
    }

    /// The worst case of each of these on one server, base latency excluded, seconds; infinite where it is not asked for.
    fn guarantees(&self, workloads: &[usize]) -> Vec<f64> {
        let Some((model, all)) = self.guarantee else { return vec![f64::INFINITY; workloads.len()] };
        let company = of_members(all, workloads);
        let predictions = model.predict(&server_members(self.problem, &company)).into_iter();
        predictions
            .map(|prediction| prediction.map_or(f64::INFINITY, |prediction| prediction.bound))
            .collect()
    }

    /// Returns the length of the longest prefix that keeps its SLOs, at least 1. Doubles and bisects,
    /// assuming that a workload that does not fit beside few others does not fit beside more.
    fn fitting(&self, candidates: &[usize]) -> usize {
        let fits = |count: usize| self.fits(&candidates[..count]);
        let mut fitting = 1;
        let mut beyond = candidates.len() + 1;
        while fitting + 1 < beyond {
            let next = (2 * fitting).min(usize::midpoint(fitting, beyond).max(fitting + 1)).min(beyond - 1);
            if fits(next) { fitting = next } else { beyond = next }
        }
        fitting
    }
}

/// The numbers below `count` in a random order.
fn shuffled(count: usize, round: u64) -> Vec<usize> {
    let mut keyed: Vec<(u64, usize)> =
        (0..count).map(|number| (arrivals::split_seed(SEED + round, number as u64), number)).collect();
    keyed.sort_unstable();
    keyed.into_iter().map(|(_, number)| number).collect()
}

/// Evidence for the promise of a plan or an admission by the calibrated model.
#[derive(Debug, Serialize, JsonSchema)]
pub struct SloCalibrationReport {
    /// The probability that SLOs are kept in the next window.
    pub coverage: f64,
    /// Unit that the coverage counts: workload, server or plan.
    pub coverage_of: &'static str,
    /// Length of the next window of the trace with the shortest one, seconds.
    pub window_s: f64,
    /// Multiple of the work of the traces by which servers are filled; absent if the worst case decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_factor: Option<f64>,
    /// Number of exchangeable blocks.
    pub blocks: usize,
    /// Number of blocks that the coverage needs.
    pub blocks_needed: usize,
    /// Share of blocks of held-out windows that kept the SLOs, where one block to come counts as a miss.
    pub shown_coverage: f64,
    /// Share of workloads that kept the SLO in held-out windows.
    pub kept_workloads: f64,
    /// Share of servers of the trials on which all workloads kept their SLOs.
    pub kept_servers: f64,
    /// Share of rounds of trials in which all workloads of all servers kept their SLOs.
    pub kept_plans: f64,
    /// Workloads whose traces are too short for two windows: only the worst case gives them a place.
    pub untested: Vec<String>,
    /// Why the worst case decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
}

/// Returns the evidence for plans and admissions by the calibrated model.
pub fn report_slo_calibration(
    problem: &PredictionProblem,
    observer: &dyn ProgressObserver,
) -> SloCalibrationReport {
    let SloCalibration { load, trials, unloaded } = *slo_calibration(problem, observer);
    let goal = &problem.calibration;
    let lengths =
        problem.cluster.workloads.iter().map(|workload| goal.window_length(&workload.traffic).as_secs());
    let window_s = lengths.fold(f64::INFINITY, f64::min);
    let untested = problem.cluster.workloads.iter().filter(|workload| goal.windows(&workload.traffic) == 0);
    let [kept_workloads, kept_servers, kept_plans] = trials.kept;
    SloCalibrationReport {
        coverage: goal.coverage,
        coverage_of: scope_name(goal.scope),
        window_s: if window_s.is_finite() { window_s } else { 0.0 },
        load_factor: load,
        blocks: trials.blocks,
        blocks_needed: trials.needed,
        shown_coverage: trials.coverage,
        kept_workloads,
        kept_servers,
        kept_plans,
        untested: untested.map(|workload| workload.spec.name.clone()).collect(),
        fallback: load.is_none().then(|| fallback(goal, &unloaded)),
    }
}

/// Describes why the worst case decides.
fn fallback(goal: &CalibrationGoal, unloaded: &SloCoverage) -> String {
    let coverage = percent(goal.coverage);
    if unloaded.has_enough_blocks() {
        let most = LOADS[LOADS.len() - 1];
        return format!(
            "with no load factor up to {most} did held-out windows keep the SLOs in {coverage} of {} blocks; without more work {} did",
            unloaded.blocks,
            percent(unloaded.coverage),
        );
    }
    let blocks = match goal.scope {
        CalibrationScope::Workload => "windows of independent traces",
        CalibrationScope::Server => "windows of servers without a common workload",
        CalibrationScope::Plan => "windows of all traces together",
    };
    format!(
        "a coverage of {coverage} needs {} {blocks}, and there are {}; longer traces or a shorter --horizon give more",
        unloaded.needed, unloaded.blocks,
    )
}

impl SloCalibrationReport {
    /// Describes the promise and its evidence.
    pub fn sentences(&self) -> Vec<String> {
        let coverage = percent(self.coverage);
        let Self { coverage_of, blocks, .. } = self;
        let window = time(self.window_s);
        let mean = match *coverage_of {
            "plan" => "windows".to_owned(),
            unit => format!("{unit}s and windows"),
        };
        let mut sentences = Vec::new();
        match (self.load_factor, &self.fallback) {
            (Some(load), _) => sentences.push(format!(
                "next window of {window}: a {coverage_of} keeps its SLOs with a probability of {coverage}, in the mean over {mean}, \
                 on servers filled by {load} times the work of the traces; held-out windows show {} of {}, one to come counted \
                 as a miss",
                percent(self.shown_coverage),
                plural(*blocks, "block"),
            )),
            (None, why) => sentences.push(format!(
                "placed by worst-case, without a probability for the next window: {}",
                why.as_deref().unwrap_or_default()
            )),
        }
        sentences.push(format!(
            "in held-out windows {} of workloads kept the SLO, all workloads of a server on {} of servers, and all workloads in {} of \
             plans",
            percent(self.kept_workloads),
            percent(self.kept_servers),
            percent(self.kept_plans),
        ));
        if let Some(first) = self.untested.first() {
            sentences.push(format!(
                "{} placed by worst-case only, {first} first: the trace is shorter than two windows of {window}",
                plural(self.untested.len(), "workload"),
            ));
        }
        sentences
    }
}

/// Returns the model that fills servers by this load.
pub(crate) fn filling_model(problem: &PredictionProblem, load: f64) -> EnforcedModel<LoadedReplays> {
    filled_by(LoadedReplays::new(problem.calibration, load), problem.enforced)
}

/// Returns the promise of the calibrated model to a workload that has a place: its SLO, seconds. `None` if the
/// promise is a bound of the model.
pub(crate) fn promised_slo(problem: &PredictionProblem, workload: usize) -> Option<f64> {
    let known = problem.slo_calibration.lock().expect("no thread panics while it learns");
    known.as_ref()?.load?;
    let workload = &problem.cluster.workloads[workload];
    (problem.calibration.windows(&workload.traffic) > 0).then_some(workload.spec.slo.latency.0)
}

#[cfg(test)]
mod tests;

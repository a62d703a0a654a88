//! Training data of the calibrated model for a prediction problem: groups of workloads as servers are filled.
//!
//! Each round holds out one window of every trace and fills servers in a random order, as long as `replayed`
//! finds every workload within its SLO on the rest of the traces. Selecting by replays makes the selected
//! groups look better than they are. The calibration has the same bias, so the scores of the held-out windows
//! contain it.

use crate::prediction::applicant::{of_members, server_members, sketched};
use crate::prediction::enforced_models::{replaying, worst_case};
use crate::prediction::problem::{PredictionProblem, TracedWorkload};
use model::LatencyModel;
use operation::ProgressObserver;
use operation::text::{percent, time};
use placement::admission::Applicant;
use predict::{
    Calibrated, CalibrationGoal, CalibrationScope, CalibrationTrace, CompanyMember, EnforcedModel,
    KeptShares, MarginAnswer, MarginBasis, Replayed, TrialCompany, WorstCase,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use units::{Percentile, plural};

/// Minimum number of rounds. Each window is held out in equally many.
const ROUNDS: usize = 4;
/// Maximum number of workloads that take part in a round.
const PARTICIPANTS_MAX: usize = 200;
/// 14 alignments cover 80 % of all with 95 % confidence; a trial needs no more.
const FILLING_ALIGNMENTS: usize = 14;
const FILLING_COVERAGE: f64 = 0.8;
const SEED: u64 = 4;

/// Load factors to try, ascending: multiples of the work of the traces.
const LOADS: [f64; 10] = [1.0, 1.1, 1.25, 1.5, 2.0, 2.5, 3.0, 4.0, 6.0, 8.0];

/// Maximum number of times that margins are widened to those of the groups admitted with them, before a
/// higher load is assumed.
const WIDENINGS: usize = 4;

type ReplaySketch = <EnforcedModel<Replayed> as LatencyModel>::Sketch;
type WorstSketch = <EnforcedModel<WorstCase> as LatencyModel>::Sketch;

/// Returns the calibrated model for the workloads of a problem, at `percentile` or each at that of its SLO.
/// The first call learns it.
pub(crate) fn calibrated(
    problem: &PredictionProblem,
    percentile: Option<Percentile>,
    observer: &dyn ProgressObserver,
) -> Arc<Calibrated> {
    calibrated_unless(problem, percentile, &|| false, observer).expect("nobody interrupts it")
}

/// Learns the calibrated model of a problem in advance. `interrupted` is polled; from its first `true` on,
/// nothing is learnt, and the result is false.
pub fn learn_calibration(
    problem: &PredictionProblem,
    percentile: Option<Percentile>,
    interrupted: &(dyn Fn() -> bool + Sync),
    observer: &dyn ProgressObserver,
) -> bool {
    calibrated_unless(problem, percentile, interrupted, observer).is_some()
}

fn calibrated_unless(
    problem: &PredictionProblem,
    percentile: Option<Percentile>,
    interrupted: &(dyn Fn() -> bool + Sync),
    observer: &dyn ProgressObserver,
) -> Option<Arc<Calibrated>> {
    let mut learnt = problem.learnt.lock().expect("no thread panics while it learns");
    if let Some((_, model)) = learnt.iter().find(|(known, _)| *known == percentile) {
        return Some(Arc::clone(model));
    }
    let learner = CalibrationLearner { problem, percentile, interrupted, observer };
    let model = Arc::new(learner.learn()?);
    learnt.push((percentile, Arc::clone(&model)));
    Some(model)
}

/// Learns margins for the workloads of a problem, at `percentile` or at that of each SLO.
struct CalibrationLearner<'a> {
    problem: &'a PredictionProblem,
    percentile: Option<Percentile>,
    interrupted: &'a (dyn Fn() -> bool + Sync),
    observer: &'a dyn ProgressObserver,
}

impl CalibrationLearner<'_> {
    /// Returns the model with margins that suffice for the groups that it admits; else the one with the least
    /// load factor whose predictions hold for the groups that it admits; else the guarantee.
    fn learn(&self) -> Option<Calibrated> {
        let traces = calibration_traces(self.problem);
        let first = self.learn_at(LOADS[0], &traces, None)?;
        if first.needs_no_margin() {
            return Some(first);
        }
        if let Some(model) = self.widened(first.clone(), &traces)? {
            return Some(model);
        }
        for load in &LOADS[1..] {
            let model = self.learn_at(*load, &traces, None)?;
            if model.needs_no_margin() {
                return Some(model);
            }
        }
        Some(first.at_the_guarantee())
    }

    /// Returns the model with margins as large as needed by the groups that it admits, which differ from
    /// those it has learnt from. `Some(None)` if no margins are found, `None` after an interruption.
    fn widened(&self, mut model: Calibrated, traces: &[CalibrationTrace<'_>]) -> Option<Option<Calibrated>> {
        for _ in 0..WIDENINGS {
            if !model.has_finite_margins() {
                break;
            }
            let needed = self.learn_at(LOADS[0], traces, Some(&model))?;
            if model.margins_cover(&needed) {
                return Some(Some(model));
            }
            model = model.with_margins_of_at_least(&needed);
        }
        Some(None)
    }

    /// Returns the model at a load factor, learnt from groups that are filled by it, and by `margins` if
    /// known.
    fn learn_at(
        &self,
        load: f64,
        traces: &[CalibrationTrace<'_>],
        margins: Option<&Calibrated>,
    ) -> Option<Calibrated> {
        let Self { problem, percentile, interrupted, observer } = *self;
        let goal = problem.calibration;
        let windows = traces.iter().map(|trace| goal.windows(trace.traffic)).max().unwrap_or(0);
        let filling = Replayed::new(FILLING_ALIGNMENTS, FILLING_COVERAGE, 0.95, SEED);
        let filling = replaying(filling.expect("enough alignments for this coverage"), problem.enforced);
        let factors = self.filling_factors(margins);
        let guarantee = worst_case(problem.enforced);
        // Without margins and more load, replays decide.
        let is_capped = load > 1.0 || margins.is_some();
        let mut companies = Vec::new();
        for window in 0..windows {
            // The sketches without the held-out window are the same in all rounds.
            let all = sketched(problem, observer, |traffic| {
                let rest = goal.rest(traffic, window).unwrap_or_else(|| traffic.clone());
                filling.sketch(&if load > 1.0 { rest.with_work(load) } else { rest })
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
                let round = repetition * windows + window;
                let round = CompanyRound {
                    problem,
                    round,
                    window,
                    percentile,
                    filling: &filling,
                    all: &all,
                    factors: &factors,
                    guarantee: guaranteed.as_ref().map(|guaranteed| (&guarantee, guaranteed.as_slice())),
                    interrupted,
                };
                companies.extend(round.companies());
            }
        }
        let task = observer.begin("calibrating", companies.len() as u64, "companies");
        let go_on = || {
            task.advance();
            !interrupted()
        };
        let model = Calibrated::learn(goal, load, traces, &companies, &go_on);
        (!interrupted()).then_some(model)
    }

    /// Returns the factor on each workload's bound when servers are filled.
    fn filling_factors(&self, margins: Option<&Calibrated>) -> Vec<f64> {
        let workloads = self.problem.workloads.iter();
        let factor = |model: &Calibrated, workload: &TracedWorkload| {
            let percentile = self.percentile.unwrap_or(workload.spec.slo.percentile);
            model.margin_of(&workload.traffic, percentile).map_or(1.0, |margin| margin.factor)
        };
        workloads.map(|workload| margins.map_or(1.0, |model| factor(model, workload))).collect()
    }
}

/// The distinct traces of a problem. Those whose workloads are in one group are one block.
fn calibration_traces(problem: &PredictionProblem) -> Vec<CalibrationTrace<'_>> {
    let (distinct, numbers) = problem.distinct_traces();
    let mut traces = Vec::new();
    for (block, traffic) in distinct.into_iter().enumerate() {
        traces.push(CalibrationTrace { traffic, block });
    }
    for (a, &number) in numbers.iter().enumerate() {
        for (b, &other) in numbers.iter().enumerate().skip(a + 1) {
            let kept = traces[number].block;
            let replaced = traces[other].block;
            if problem.workloads[a].group == problem.workloads[b].group && kept != replaced {
                traces.iter_mut().filter(|t| t.block == replaced).for_each(|t| t.block = kept);
            }
        }
    }
    traces
}

/// One round of trials.
struct CompanyRound<'a> {
    problem: &'a PredictionProblem,
    round: usize,
    window: usize,
    percentile: Option<Percentile>,
    filling: &'a EnforcedModel<Replayed>,
    /// All workloads, by the rest of the traces.
    all: &'a [Applicant<ReplaySketch>],
    /// Factor on the bound of each workload.
    factors: &'a [f64],
    /// The worst case, which caps bounds, and all workloads by what is left of the traces; absent where it cannot be less.
    guarantee: Option<(&'a EnforcedModel<WorstCase>, &'a [Applicant<WorstSketch>])>,
    /// From the first true on, no workload fits any more, and the round is discarded.
    interrupted: &'a (dyn Fn() -> bool + Sync),
}

impl CompanyRound<'_> {
    /// Returns single workloads that keep their SLO alone, then groups as they are filled.
    fn companies(&self) -> Vec<TrialCompany> {
        let Self { problem, round, window, all, .. } = *self;
        let mut order = shuffled(problem.workloads.len(), round as u64);
        order.retain(|&workload| self.fits(&[workload]));
        order.truncate(PARTICIPANTS_MAX);
        let (_, numbers) = problem.distinct_traces();
        let mut companies = Vec::new();
        let mut begin = 0;
        while begin < order.len() {
            let count = self.fitting(&order[begin..]);
            let company = &order[begin..begin + count];
            let mut members = Vec::new();
            for (member, &workload) in server_members(problem, &of_members(all, company)).iter().zip(company)
            {
                members.push(CompanyMember {
                    trace: numbers[workload],
                    priority: member.priority,
                    group: member.group,
                    percentile: self.percentile.unwrap_or(member.percentile),
                });
            }
            companies.push(TrialCompany { round, window, members });
            begin += count;
        }
        companies
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
            let limit = company[number].slo.latency.0 - self.problem.base_latency();
            limits.push(if guarantees[number] <= limit {
                f64::INFINITY
            } else {
                limit / self.factors[workload]
            });
        }
        limits.iter().all(|limit| *limit == f64::INFINITY) || self.filling.all_within(&members, &limits)
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

/// Bounds of the calibrated model for a problem, with their evidence.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CalibrationReport {
    /// The probability that a prediction holds in the next window.
    pub coverage: f64,
    /// Unit that the coverage counts: workload, server or plan.
    pub coverage_of: &'static str,
    /// Factor on the work of the traces that the bounds assume.
    pub load_factor: f64,
    /// The shares of held-out windows in which the margins were kept. They chose the margins, so that this is no prediction.
    pub kept_workloads: f64,
    /// Share of servers of the trials on which all workloads kept their margins.
    pub kept_servers: f64,
    /// Share of rounds of trials in which all workloads of all servers kept their margins.
    pub kept_plans: f64,
    /// The shares of held-out windows within the worst case by the burst curves of the rest of the traces: of workloads.
    pub guaranteed_workloads: f64,
    /// Of servers of the trials, all members.
    pub guaranteed_servers: f64,
    /// Of rounds of trials, all members of all servers.
    pub guaranteed_plans: f64,
    /// One entry per workload of the problem.
    pub workloads: Vec<WorkloadCalibration>,
}

/// The margin of a workload, or why it has none.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct WorkloadCalibration {
    /// The name of the workload.
    pub name: String,
    /// The percentile that is predicted, 0 to 100.
    pub percentile: f64,
    /// The length of the next window, seconds.
    pub window_s: f64,
    /// Factor on the replayed bound; null where the bound is the worst case.
    pub margin: Option<f64>,
    /// Set of scores of which the margin is a quantile: `windows` of its trace, or a `pool` of the windows of
    /// all traces or servers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub basis: Option<&'static str>,
    /// Number of exchangeable blocks of scores.
    pub blocks: usize,
    /// Why the bound is the worst case, and how many windows a margin needs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<String>,
}

/// The margins that a problem's workloads have, or lack.
pub fn report_calibration(
    problem: &PredictionProblem,
    percentile: Option<Percentile>,
    observer: &dyn ProgressObserver,
) -> CalibrationReport {
    let model = calibrated(problem, percentile, observer);
    let kept: KeptShares = model.kept();
    let goal = model.goal();
    let mut entries = Vec::new();
    for workload in &problem.workloads {
        let percentile = percentile.unwrap_or(workload.spec.slo.percentile);
        let answer = model.margin_of(&workload.traffic, percentile);
        let window_s = goal.window_length(&workload.traffic).as_secs();
        entries.push(WorkloadCalibration {
            name: workload.spec.name.clone(),
            percentile: percentile.percent(),
            window_s,
            margin: answer.ok().map(|margin| margin.factor).filter(|factor| factor.is_finite()),
            basis: answer.ok().map(|margin| basis_name(margin.basis)),
            blocks: answer.map_or_else(|few| few.pool.given, |margin| margin.blocks),
            fallback: fallback(&goal, answer, window_s),
        });
    }
    CalibrationReport {
        coverage: goal.coverage,
        coverage_of: scope_name(goal.scope),
        load_factor: model.load(),
        kept_workloads: kept.workloads,
        kept_servers: kept.servers,
        kept_plans: kept.plans,
        guaranteed_workloads: kept.guaranteed_workloads,
        guaranteed_servers: kept.guaranteed_servers,
        guaranteed_plans: kept.guaranteed_plans,
        workloads: entries,
    }
}

/// Returns the name of a margin's basis in reports.
fn basis_name(basis: MarginBasis) -> &'static str {
    match basis {
        MarginBasis::Windows => "windows",
        MarginBasis::Pool => "pool",
    }
}

/// Returns the name of the coverage's unit in options.
fn scope_name(scope: CalibrationScope) -> &'static str {
    match scope {
        CalibrationScope::Workload => "workload",
        CalibrationScope::Server => "server",
        CalibrationScope::Plan => "plan",
    }
}

/// Why a workload has no margin, and what it would take.
fn fallback(goal: &CalibrationGoal, answer: MarginAnswer, window_s: f64) -> Option<String> {
    let few = answer.err()?;
    if few.windows.given == 0 && few.pool.given >= few.pool.needed {
        let window = time(window_s);
        return Some(format!("bounded by worst-case: the trace is shorter than two windows of {window}"));
    }
    let pooled = match goal.scope {
        CalibrationScope::Workload => "windows of independent traces",
        CalibrationScope::Server => "windows of servers without a common workload",
        CalibrationScope::Plan => "plans without a common workload",
    };
    Some(format!(
        "bounded by worst-case: a coverage of {} needs {} windows of {}, a trace of {} (there are {} windows), or {} {pooled} (there are {})",
        percent(goal.coverage),
        few.windows.needed,
        time(window_s),
        time(window_s * few.windows.needed.max(2) as f64),
        few.windows.given,
        few.pool.needed,
        few.pool.given,
    ))
}

impl CalibrationReport {
    /// Describes the promise: number of workloads, margins, and the reasons why others have none.
    pub fn sentences(&self) -> Vec<String> {
        let calibrated = self.workloads.iter().filter(|workload| workload.fallback.is_none());
        let (with, unbounded): (Vec<_>, Vec<_>) = calibrated.partition(|workload| workload.margin.is_some());
        let coverage = percent(self.coverage);
        let all = self.workloads.len();
        let mut sentences = Vec::new();
        if let (Some(least), Some(most)) = (margin_among(&with, f64::min), margin_among(&with, f64::max)) {
            let shortest = with.iter().map(|workload| workload.window_s).fold(f64::INFINITY, f64::min);
            let blocks = with.iter().map(|workload| workload.blocks).min().unwrap_or(0);
            let load = if self.load_factor > 1.0 {
                format!("{} times the work, ", self.load_factor)
            } else {
                String::new()
            };
            sentences.push(format!(
                "next window of {}, coverage {coverage} of each {}: {load}margins of {least:.2} to {most:.2} for {} of {}, from {} or more",
                time(shortest),
                self.coverage_of,
                with.len(),
                plural(all, "workload"),
                plural(blocks, "block")
            ));
            sentences.push(self.kept_shares());
        }
        if let Some(first) = unbounded.first() {
            sentences.push(format!(
                "{} bounded by worst-case, {} first: no margin was found with which held-out windows of {} kept the coverage",
                plural(unbounded.len(), "workload"),
                first.name,
                time(first.window_s)
            ));
        }
        let without: Vec<&WorkloadCalibration> =
            self.workloads.iter().filter(|workload| workload.fallback.is_some()).collect();
        if with.len() < all {
            sentences.push(format!(
                "a bound by worst-case holds as long as traffic stays within the burst curves of its trace; held-out windows were within \
                 that of the rest for {} of workloads, for all workloads of a server on {} of servers",
                percent(self.guaranteed_workloads),
                percent(self.guaranteed_servers),
            ));
        }
        if let Some(first) = without.first() {
            let why = first.fallback.as_deref().unwrap_or_default();
            sentences.push(format!(
                "{} without a margin, {} first: {why}",
                plural(without.len(), "workload"),
                first.name
            ));
        }
        sentences
    }

    /// Describes how often the margins were kept, and the consequence for all workloads if the promise is
    /// about one.
    fn kept_shares(&self) -> String {
        let mut sentence = format!(
            "in held-out windows, from which the margins come, they held for {} of workloads, for all workloads of a server on {} of servers \
             and in {} of plans",
            percent(self.kept_workloads),
            percent(self.kept_servers),
            percent(self.kept_plans),
        );
        if self.coverage_of == scope_name(CalibrationScope::Workload) {
            let missed = percent(1.0 - self.coverage);
            sentence.push_str(&format!("; they hold for n workloads at once with at least 1 - n × {missed}"));
        }
        sentence
    }
}

/// The least or largest of margins.
fn margin_among(workloads: &[&WorkloadCalibration], choose: impl Fn(f64, f64) -> f64) -> Option<f64> {
    workloads.iter().filter_map(|workload| workload.margin).reduce(choose)
}

#[cfg(test)]
mod tests;

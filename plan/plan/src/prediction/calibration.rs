//! Margins for bounds of the workloads of a problem on one server, from held-out windows of their traces.

use crate::prediction::applicant::{server_members, without_traffic};
use crate::prediction::problem::PredictionProblem;
use operation::ProgressObserver;
use operation::text::{percent, time};
use placement::admission::Applicant;
use predict::{
    Calibrated, CalibrationGoal, CalibrationScope, CalibrationTrace, CompanyMember, KeptShares, MarginAnswer,
    MarginBasis, TrialCompany,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::sync::Arc;
use units::{Percentile, plural};

/// Returns the calibrated model for the workloads of a problem on one server, at `percentile` or each at that of its
/// SLO. The first call learns it.
pub(crate) fn calibrated(
    problem: &PredictionProblem,
    percentile: Option<Percentile>,
    observer: &dyn ProgressObserver,
) -> Arc<Calibrated> {
    let mut learnt = problem.learnt.lock().expect("no thread panics while it learns");
    if let Some((_, model)) = learnt.iter().find(|(known, _)| *known == percentile) {
        return Arc::clone(model);
    }
    let traces = calibration_traces(problem);
    let companies = everybody(problem, percentile, &traces);
    let task = observer.begin("calibrating", companies.len() as u64, "windows");
    let go_on = || {
        task.advance();
        true
    };
    let model = Arc::new(Calibrated::learn(problem.calibration, &traces, &companies, &go_on));
    learnt.push((percentile, Arc::clone(&model)));
    model
}

/// All workloads on one server, once for each window.
fn everybody(
    problem: &PredictionProblem,
    percentile: Option<Percentile>,
    traces: &[CalibrationTrace<'_>],
) -> Vec<TrialCompany> {
    let windows = traces.iter().map(|trace| problem.calibration.windows(trace.traffic)).max().unwrap_or(0);
    let all: Vec<usize> = (0..problem.cluster.workloads.len()).collect();
    let applicants = without_traffic(problem, &all);
    let company: Vec<&Applicant<()>> = applicants.iter().collect();
    let (_, numbers) = problem.distinct_traces();
    let mut members = Vec::new();
    for (workload, member) in server_members(problem, &company).iter().enumerate() {
        members.push(CompanyMember {
            trace: numbers[workload],
            priority: member.priority,
            group: problem.cluster.workloads[workload].group,
            percentile: percentile.unwrap_or(member.percentile),
        });
    }
    (0..windows).map(|window| TrialCompany { round: window, window, members: members.clone() }).collect()
}

/// The distinct traces of a problem. Those whose workloads are in one group are one block.
pub(super) fn calibration_traces(problem: &PredictionProblem) -> Vec<CalibrationTrace<'_>> {
    let (distinct, numbers) = problem.distinct_traces();
    let mut traces = Vec::new();
    for (block, traffic) in distinct.into_iter().enumerate() {
        traces.push(CalibrationTrace { traffic, block });
    }
    for (a, &number) in numbers.iter().enumerate() {
        for (b, &other) in numbers.iter().enumerate().skip(a + 1) {
            let kept = traces[number].block;
            let replaced = traces[other].block;
            if problem.cluster.workloads[a].group == problem.cluster.workloads[b].group && kept != replaced {
                traces.iter_mut().filter(|t| t.block == replaced).for_each(|t| t.block = kept);
            }
        }
    }
    traces
}

/// Bounds of the calibrated model for a problem, with their evidence.
#[derive(Debug, Serialize, JsonSchema)]
pub struct CalibrationReport {
    /// The probability that a prediction holds in the next window.
    pub coverage: f64,
    /// Unit that the coverage counts: workload, server or plan.
    pub coverage_of: &'static str,
    /// Factor on the work of the traces that the bounds assume: 1.
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
    for workload in &problem.cluster.workloads {
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
        load_factor: 1.0,
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
pub(super) fn scope_name(scope: CalibrationScope) -> &'static str {
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
            sentences.push(format!(
                "next window of {}, coverage {coverage} of each {}: margins of {least:.2} to {most:.2} for {} of {}, from {} or more",
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

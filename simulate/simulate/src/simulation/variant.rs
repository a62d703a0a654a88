//! The variants of a scenario, simulated, and what was measured in each.

use crate::simulation::figures::{
    LatencyFigures, PERCENTILES, SimulatedFigure, intervals, percentile, serialize_value,
};
use crate::simulation::policy::are_slos_met;
use crate::simulation::replication_progress::{ReplicationProgress, SeriesPlace, nothing_complete};
use model::{Condition, OperationError};
use operation::ProgressObserver;
use operation::text::overload;
use operation::{ServerRun, check_conditions};
use scenario::server::WorkloadOutcome;
use scenario::{ScenarioRun, SimulationCase, Variant};
use schemars::JsonSchema;
use serde::Serialize;
use sim::engine::{
    Histogram, Measures, ReplicationVerdict, SLOWDOWN_UNIT, SimulationReport, StationMeasures,
};
use std::time::Instant;
use units::Percentile;
use workload::profile_file::profile_hash;

/// A variant that was simulated, and for how long.
pub struct SimulatedVariant {
    /// What was simulated, and what came of it.
    pub run: ScenarioRun,
    /// Wall time of the simulation, seconds.
    pub elapsed_s: f64,
    /// Why the bounds of its policy do not apply, where they do not.
    pub broken_bounds: Option<String>,
}

/// Compares a storage server that keeps a policy with what the policy's bounds assume.
fn check_case(
    case: &SimulationCase,
    without_bounds: bool,
    observer: &dyn ProgressObserver,
) -> Result<Option<String>, OperationError> {
    let Some((policy, server, conditions)) = case.policy_conditions() else { return Ok(None) };
    let hash = case.server.as_ref().map(|server| profile_hash(server.profile()));
    let conditions = conditions.with(Condition::ProfileContent, hash.as_deref());
    let runs = [ServerRun { server: server.to_owned(), conditions }];
    check_conditions(policy, &runs, without_bounds, observer)
}

/// Simulates variants of a scenario one after the other, until `interrupted` says so: then those that were complete are
/// returned, the last one with the replications that were.
///
/// # Errors
///
/// When a variant cannot be simulated, the bounds of its policy do not apply to it (unless `without_bounds`), or nothing was complete when it was interrupted.
pub fn simulate_variants(
    variants: &[Variant],
    seed: u64,
    without_bounds: bool,
    interrupted: &(dyn Fn() -> bool + Sync),
    observer: &dyn ProgressObserver,
) -> Result<Vec<SimulatedVariant>, OperationError> {
    let task = observer.begin("simulating", 1, "replications");
    let mut simulated: Vec<SimulatedVariant> = Vec::new();
    for (index, variant) in variants.iter().enumerate() {
        if interrupted() {
            break;
        }
        if variants.len() > 1 {
            task.rename(&format!("variant {} of {}", index + 1, variants.len()));
        }
        let place = SeriesPlace { index, count: variants.len() };
        let watch = ReplicationProgress { task: task.as_ref(), interrupted, place };
        let start = Instant::now();
        let case = variant.document.case()?;
        let broken_bounds = check_case(&case, without_bounds, observer)?;
        let run = variant.run_case(case, seed, &watch)?;
        if !run.report.runs.is_empty() || run.report.verdict != ReplicationVerdict::Interrupted {
            simulated.push(SimulatedVariant { run, elapsed_s: start.elapsed().as_secs_f64(), broken_bounds });
        }
    }
    if simulated.is_empty() {
        return Err(nothing_complete());
    }
    Ok(simulated)
}

/// Relative change of a percentile of a variant against its base, the first variant that differs from it on the
/// last axis only. `None` for the base itself, and where one of the two is unstable.
pub fn change(variants: &[SimulatedVariant], variant: &SimulatedVariant, percent: f64) -> SimulatedFigure {
    let base = variants.iter().find(|other| has_same_prefix(other, variant)).unwrap_or(&variants[0]);
    if std::ptr::eq(base, variant) || !base.run.is_stable() || !variant.run.is_stable() {
        return None;
    }
    let percentile = Percentile::new(percent)?;
    let figure = |run: &Measures| Some(run.response.percentile(percentile)?.0 as f64);
    variant.run.report.change(&base.run.report, figure)
}

/// Whether two variants differ on the last axis at most.
fn has_same_prefix(one: &SimulatedVariant, other: &SimulatedVariant) -> bool {
    let one = one.run.choices.split_last();
    let other = other.run.choices.split_last();
    one.map(|(_, others)| others) == other.map(|(_, others)| others)
}

impl SimulatedVariant {
    /// What was measured, ready to be shown.
    pub fn figures(&self, seed: u64) -> VariantFigures<'_> {
        VariantFigures {
            case: &self.run.case,
            report: &self.run.report,
            seed,
            elapsed_s: self.elapsed_s,
            broken_bounds: self.broken_bounds.as_deref(),
            overloaded: self.run.overloaded(),
            workloads: self.run.workload_outcomes(),
        }
    }

    /// Whether the run ended as its scenario wants, with nobody's SLO missed or left open.
    pub fn is_as_wanted(&self, seed: u64) -> bool {
        let figures = self.figures(seed);
        matches!(figures.verdict(), "done" | "transient") && are_slos_met(&figures.workloads)
    }
}

/// What was measured in a variant, with what it was.
pub struct VariantFigures<'a> {
    /// The case that was simulated.
    pub case: &'a SimulationCase,
    /// The measurements of all replications.
    pub report: &'a SimulationReport,
    /// The seed of everything that is random.
    pub seed: u64,
    /// Wall time of the simulation, seconds.
    pub elapsed_s: f64,
    /// Why the bounds of its policy do not apply, where they do not.
    pub broken_bounds: Option<&'a str>,
    /// The station that cannot keep up, with its utilisation, whatever was measured.
    pub overloaded: Option<(&'a str, f64)>,
    /// What the workloads of a storage server saw.
    pub workloads: Vec<WorkloadOutcome>,
}

/// How busy a station is, and how many requests are there.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct StationOccupancy {
    /// Work that came to it ÷ what its workers can do, as measured.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub utilisation: SimulatedFigure,
    /// Requests there, in service or not, on average over time.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub present_mean: SimulatedFigure,
    /// Most requests there at once in any replication.
    pub present_max: Option<u64>,
    /// Share of the workers' time spent on switching, the dispatcher and other work.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub overhead: SimulatedFigure,
}

impl StationOccupancy {
    /// The figures that may have intervals, by name.
    pub fn named(&self) -> [(&'static str, SimulatedFigure); 3] {
        [("utilisation", self.utilisation), ("present_mean", self.present_mean), ("overhead", self.overhead)]
    }
}

/// How requests fare beside each other.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct RequestEvenness {
    /// Requests that are complete after one that is later in the ideal order, percent.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub overtaken_pct: SimulatedFigure,
    /// Jain's index of slowdowns.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub fairness: SimulatedFigure,
    /// 99th percentile of the latency of the shortest 1 % of requests, seconds.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub shortest_p99_s: SimulatedFigure,
    /// The longest that any request was longer in the system than it would have been alone, seconds.
    pub longest_wait_s: Option<f64>,
}

impl RequestEvenness {
    /// The figures that may have intervals, by name.
    pub fn named(&self) -> [(&'static str, SimulatedFigure); 3] {
        [
            ("overtaken_pct", self.overtaken_pct),
            ("fairness", self.fairness),
            ("shortest_p99_s", self.shortest_p99_s),
        ]
    }
}

/// What the requests of one class saw.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ClassFigures<'a> {
    /// The name of the class.
    pub name: &'a str,
    /// The time from entry to deadline, seconds; none for a class without an SLO.
    pub slo_s: Option<f64>,
    /// Requests that took longer than the SLO, percent; one that takes up to 0.4 % longer may count as in time.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub late_pct: SimulatedFigure,
    /// The figures of its requests, end to end.
    #[serde(flatten)]
    pub figures: LatencyFigures,
}

impl<'a> VariantFigures<'a> {
    /// One word for the verdict.
    pub fn verdict(&self) -> &'static str {
        match self.report.verdict {
            _ if self.overloaded.is_some() => "unstable",
            ReplicationVerdict::Unbounded { .. } => "unstable",
            ReplicationVerdict::Imprecise { .. } => "imprecise",
            ReplicationVerdict::Done => "done",
            ReplicationVerdict::Transient => "transient",
            ReplicationVerdict::Interrupted => "interrupted",
        }
    }

    /// Whether figures mean something.
    fn is_stable(&self) -> bool {
        self.verdict() != "unstable"
    }

    /// The verdict with its reason.
    pub fn message(&self) -> String {
        match self.overloaded {
            Some((name, load)) => format!(
                "unstable: grows without bound; station '{name}' gets {} of the work that it can do",
                overload(load)
            ),
            None => self.report.verdict.to_string(),
        }
    }

    /// Figures end to end; without values when they would mean nothing.
    pub fn end_to_end(&self) -> LatencyFigures {
        let runs = &self.report.runs;
        let requests = runs.iter().map(|run| run.response.count()).sum();
        if !self.is_stable() {
            return LatencyFigures { requests, ..LatencyFigures::default() };
        }
        let played: u64 = runs.iter().map(|run| run.played).sum();
        LatencyFigures {
            slowdown_p99: self.report.estimate(|run| slowdown_p99(&run.slowdown)),
            reordering_pct: self.report.estimate(Measures::displaced_pct),
            throughput_per_s: self.report.estimate(Measures::throughput_per_s),
            requests_per_wall_s: (self.elapsed_s > 0.0).then(|| played as f64 / self.elapsed_s),
            ..self.times(requests, |run| &run.response)
        }
        .with_intervals()
    }

    /// Figures of a station: time from arrival there to departure, one value per visit.
    pub fn station(&self, station: usize) -> LatencyFigures {
        let requests = self.report.runs.iter().map(|run| run.stations[station].time.count()).sum();
        if !self.is_stable() {
            return LatencyFigures { requests, ..LatencyFigures::default() };
        }
        LatencyFigures {
            slowdown_p99: self.report.estimate(|run| slowdown_p99(&run.stations[station].slowdown)),
            reordering_pct: self.report.estimate(|run| run.stations[station].displaced_pct()),
            throughput_per_s: self.report.estimate(|run| per_second(run, &run.stations[station].time)),
            ..self.times(requests, |run| &run.stations[station].time)
        }
        .with_intervals()
    }

    /// How busy a station is; the load is there even when the system is unstable.
    pub fn occupancy(&self, station: usize) -> StationOccupancy {
        let estimate = |figure: fn(&StationMeasures) -> f64| {
            self.report.estimate(|run| Some(figure(&run.stations[station])))
        };
        let utilisation = estimate(|at| at.offered);
        if !self.is_stable() {
            return StationOccupancy { utilisation, ..StationOccupancy::default() };
        }
        StationOccupancy {
            utilisation,
            present_mean: estimate(|at| at.present_mean),
            present_max: self.report.runs.iter().map(|run| run.stations[station].present_max).max(),
            overhead: estimate(|at| at.overhead),
        }
    }

    /// How all requests fare beside each other; without values when they would mean nothing.
    pub fn evenness(&self) -> RequestEvenness {
        if !self.is_stable() {
            return RequestEvenness::default();
        }
        let waits = self.report.runs.iter().map(|run| run.longest_wait.as_secs());
        RequestEvenness {
            overtaken_pct: self.report.estimate(Measures::overtaken_pct),
            fairness: self.report.estimate(Measures::fairness),
            shortest_p99_s: self.report.estimate(|run| percentile(&run.shortest, 99.0).map(|ns| ns / 1e9)),
            longest_wait_s: waits.max_by(f64::total_cmp),
        }
    }

    /// Figures by class; none where there is but one, unless it has an SLO.
    pub fn classes(&self) -> Vec<ClassFigures<'a>> {
        let names: &'a [String] = &self.case.classes;
        if names.len() < 2 && self.case.slos.iter().all(Option::is_none) {
            return Vec::new();
        }
        let mut classes = Vec::new();
        for (class, name) in names.iter().enumerate() {
            let slo = self.case.slos.get(class).copied().flatten();
            let late_pct = slo.and_then(|slo| self.late_pct(class, slo.ns()));
            let mut figures = self.class(class);
            figures.ci.extend(intervals(&[("late_pct", late_pct)]));
            let slo_s = slo.map(|slo| slo.ns() as f64 / 1e9);
            classes.push(ClassFigures { name, slo_s, late_pct, figures });
        }
        classes
    }

    fn class(&self, class: usize) -> LatencyFigures {
        let requests = self.report.runs.iter().map(|run| run.response_of(class).count()).sum();
        if !self.is_stable() {
            return LatencyFigures { requests, ..LatencyFigures::default() };
        }
        LatencyFigures {
            slowdown_p99: self.report.estimate(|run| slowdown_p99(run.slowdown_of(class))),
            throughput_per_s: self.report.estimate(|run| per_second(run, run.response_of(class))),
            ..self.times(requests, |run| run.response_of(class))
        }
        .with_intervals()
    }

    /// Requests of a class that took longer than its SLO, percent; nothing of an unstable system.
    fn late_pct(&self, class: usize, slo_ns: u64) -> SimulatedFigure {
        if !self.is_stable() {
            return None;
        }
        self.report.estimate(|run| Some(100.0 * run.response_of(class).share_above(slo_ns)?))
    }

    /// Mean and percentiles of the latencies that `histogram` picks, without intervals.
    fn times(&self, requests: u64, histogram: impl Fn(&Measures) -> &Histogram) -> LatencyFigures {
        let [p50_s, p90_s, p99_s, p99_9_s] = PERCENTILES.map(|(_, percent)| {
            self.report.estimate(|run| percentile(histogram(run), percent).map(|ns| ns / 1e9))
        });
        let mean_s = self.report.estimate(|run| histogram(run).mean().map(|ns| ns / 1e9));
        LatencyFigures { requests, mean_s, p50_s, p90_s, p99_s, p99_9_s, ..LatencyFigures::default() }
    }
}

fn slowdown_p99(slowdowns: &Histogram) -> Option<f64> {
    percentile(slowdowns, 99.0).map(|units| units * SLOWDOWN_UNIT)
}

/// The measured requests of a run per second of it.
fn per_second(run: &Measures, latencies: &Histogram) -> Option<f64> {
    let seconds = run.duration.as_secs();
    (seconds > 0.0).then(|| latencies.count() as f64 / seconds)
}

//! Simulation of the variants of a scenario, and the measurements of each.

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

/// A simulated variant and the duration of its simulation.
pub struct SimulatedVariant {
    /// The scenario's run.
    pub run: ScenarioRun,
    /// Wall time of the simulation, seconds.
    pub elapsed_s: f64,
    /// Reason why the bounds of its policy do not apply; `None` when they do.
    pub broken_bounds: Option<String>,
}

/// Compares a storage server that keeps a policy with the assumptions of the policy's bounds.
fn check_case(
    case: &SimulationCase,
    without_bounds: bool,
    observer: &dyn ProgressObserver,
) -> Result<Option<String>, OperationError> {
    let Some((policy, server, conditions)) = case.policy_conditions() else { return Ok(None) };
    let hash = case.server.as_ref().map(|server| profile_hash(server.profile()));
    let conditions = conditions.with(Condition::ProfileContent, hash.as_deref());
    let runs = [ServerRun { server: server.to_owned(), conditions }];
    Ok(check_conditions(policy, &runs, without_bounds, observer)?.map(|broken| broken.sentence))
}

/// Simulates variants of a scenario one after the other. Once `interrupted` returns true, it returns the
/// variants that were complete and the last one with its complete replications.
///
/// # Errors
///
/// When a variant cannot be simulated, the bounds of its policy do not apply to it (unless `without_bounds`),
/// or nothing was complete at the interruption.
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

/// Returns the relative change of a percentile of a variant against its base, the first variant that differs
/// from it only on the last axis. `None` for the base itself, and if either is unstable.
pub fn change(variants: &[SimulatedVariant], variant: &SimulatedVariant, percent: f64) -> SimulatedFigure {
    let base = variants.iter().find(|other| has_same_prefix(other, variant)).unwrap_or(&variants[0]);
    if std::ptr::eq(base, variant) || !base.run.is_stable() || !variant.run.is_stable() {
        return None;
    }
    let percentile = Percentile::new(percent)?;
    let figure = |run: &Measures| Some(run.response.percentile(percentile)?.0 as f64);
    variant.run.report.change(&base.run.report, figure)
}

/// Returns true if two variants differ at most on the last axis.
fn has_same_prefix(one: &SimulatedVariant, other: &SimulatedVariant) -> bool {
    let one = one.run.choices.split_last();
    let other = other.run.choices.split_last();
    one.map(|(_, others)| others) == other.map(|(_, others)| others)
}

impl SimulatedVariant {
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

    /// Returns true if the run ended as its scenario wants, and no SLO is missed or undecided.
    pub fn is_as_wanted(&self, seed: u64) -> bool {
        let figures = self.figures(seed);
        matches!(figures.verdict(), "done" | "transient") && are_slos_met(&figures.workloads)
    }
}

/// Measurements of a variant, with its case.
pub struct VariantFigures<'a> {
    /// The simulated case.
    pub case: &'a SimulationCase,
    /// The measurements of all replications.
    pub report: &'a SimulationReport,
    /// Seed of all random numbers.
    pub seed: u64,
    /// Wall time of the simulation, seconds.
    pub elapsed_s: f64,
    /// Reason why the bounds of its policy do not apply; `None` when they do.
    pub broken_bounds: Option<&'a str>,
    /// The station that cannot keep up and its utilisation, independent of the measurements.
    pub overloaded: Option<(&'a str, f64)>,
    /// Results of the workloads of a storage server.
    pub workloads: Vec<WorkloadOutcome>,
}

/// Utilisation of a station and number of requests at it.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct StationOccupancy {
    /// Offered work ÷ capacity of the workers, as measured.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub utilisation: SimulatedFigure,
    /// Time average of the requests at the station, in service or waiting.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub present_mean: SimulatedFigure,
    /// Maximum number of requests at the station at once, over all replications.
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

/// Order and fairness among requests.
#[derive(Debug, Clone, Default, Serialize, JsonSchema)]
pub struct RequestEvenness {
    /// Requests that complete after one that is later in the ideal order, percent.
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
    /// Maximum over all requests of the time in the system minus the time it would have taken alone, seconds.
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

/// Measurements of the requests of one class.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ClassFigures<'a> {
    /// The name of the class.
    pub name: &'a str,
    /// Time from entry to deadline, seconds; none for a class without an SLO.
    pub slo_s: Option<f64>,
    /// Requests that took longer than the SLO, percent; one that takes up to 0.4 % longer may count as in time.
    #[serde(serialize_with = "serialize_value")]
    #[schemars(with = "Option<f64>")]
    pub late_pct: SimulatedFigure,
    /// Latency figures of its requests, end to end.
    #[serde(flatten)]
    pub figures: LatencyFigures,
}

impl<'a> VariantFigures<'a> {
    /// Returns the verdict as one word.
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

    /// Returns true if the figures are meaningful.
    fn is_stable(&self) -> bool {
        self.verdict() != "unstable"
    }

    /// Returns the verdict with its reason.
    pub fn message(&self) -> String {
        match self.overloaded {
            Some((name, load)) => format!(
                "unstable: grows without bound; station '{name}' gets {} of the work that it can do",
                overload(load)
            ),
            None => match self.short_warm_up() {
                Some(needed) => format!(
                    "{}; too short to tell: the busiest station takes some {needed} arrivals to settle, and the \
                     warm-up has {}",
                    self.report.verdict, self.case.plan.window.warm_up
                ),
                None if self.is_stable() && self.case.lacks_variance() => format!(
                    "{}; service times have no variance, so that means may be infinite: read percentiles",
                    self.report.verdict
                ),
                None => self.report.verdict.to_string(),
            },
        }
    }

    /// Returns the arrivals that the busiest station takes to settle, if the warm-up has fewer.
    fn short_warm_up(&self) -> Option<u64> {
        let window = &self.case.plan.window;
        let settling = self.case.settling();
        let is_judged = self.verdict() == "done" && window.span.is_none() && settling.is_finite();
        // The cast saturates, and is not negative.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let needed = settling.ceil() as u64;
        (is_judged && window.warm_up < needed).then_some(needed)
    }

    /// Returns the figures end to end; without values when the system is unstable.
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

    /// Returns the figures of a station: time from arrival there to departure, one value per visit.
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

    /// Returns the occupancy of a station; the utilisation is present even when the system is unstable.
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

    /// Returns order and fairness over all requests; without values when the system is unstable.
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

    /// Returns the figures by class; empty for a single class without an SLO.
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

    /// Returns the share of requests of a class that took longer than its SLO, percent; `None` when the
    /// system is unstable.
    fn late_pct(&self, class: usize, slo_ns: u64) -> SimulatedFigure {
        if !self.is_stable() {
            return None;
        }
        self.report.estimate(|run| Some(100.0 * run.response_of(class).share_above(slo_ns)?))
    }

    /// Returns mean and percentiles of the latencies in the histogram, without intervals.
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

/// Returns the measured requests of a run per second of simulated time.
fn per_second(run: &Measures, latencies: &Histogram) -> Option<f64> {
    let seconds = run.duration.as_secs();
    (seconds > 0.0).then(|| latencies.count() as f64 / seconds)
}

//! A scenario as network and load: names become indices, rates are scaled, and each replication gets entries of its
//! own seed.

use crate::classes;
use crate::file::{EntrySpec, RunSpec, Scenario, StationSpec, StepSpec};
use crate::kinds::{Delays, Kinds};
use crate::replay::{self, Recording};
use crate::server::{StorageServer, Tenant};
use crate::source::{Load, Source, split};
use ::model::Stage;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use sim::engine::{
    MeasurementWindow, NetworkStation, NetworkStep, PrecisionGoal, QueueingNetwork, RequestEntry,
    SimulationPlan,
};
use std::path::Path;
use std::sync::Arc;
use units::Nanos;

/// A scenario that can be run.
pub struct Case {
    /// The name that the file gives, or its own.
    pub name: String,
    /// Stations and steps.
    pub network: QueueingNetwork,
    /// Names of the classes, as many as the network has.
    pub classes: Vec<String>,
    /// Its seed is that of no run yet.
    pub plan: SimulationPlan,
    /// Workloads of a storage server; empty for other scenarios. The position is the class.
    pub tenants: Vec<Tenant>,
    /// The storage server, if it is one.
    pub server: Option<StorageServer>,
    pub(crate) sources: Vec<Source>,
}

const WORKERS_MAX: u32 = 100_000;
pub(crate) const CLASSES_MAX: u32 = 1000;
const COPIES_MAX: u32 = 1000;

type Result<T> = std::result::Result<T, String>;

impl Case {
    /// Files that the scenario names are relative to `folder`.
    pub(crate) fn build(name: String, mut scenario: Scenario, folder: &Path) -> Result<Self> {
        if scenario.server.is_some() || !scenario.workloads.is_empty() {
            scenario.move_to(folder);
            return Self::of_server(name, &scenario);
        }
        scenario.stations = copies(&scenario.stations)?;
        let recording = replay::attach(&mut scenario, folder)?;
        let classes = classes::names(&scenario)?;
        let (network, delays) = network(&scenario, recording.as_deref(), classes.len(), folder)?;
        network.check().map_err(|invalid| invalid.to_string())?;
        let names = step_names(&scenario);
        let load = |entry: &EntrySpec| match &recording {
            Some(recording) if entry.service.is_none() && entry.kinds.is_empty() && entry.class.is_none() => {
                Ok(Load::Replay(Arc::clone(recording)))
            }
            Some(_) => {
                Err("expected no service, kinds or class: requests are those of the call_graph".into())
            }
            None => {
                let class = |kind: &_| classes::number(&scenario, kind);
                Ok(Load::Kinds(Kinds::new(entry, &names, folder, class)?, delays.clone()))
            }
        };
        let source = |(index, entry): (usize, &EntrySpec)| {
            let source = load(entry).and_then(|load| Source::new(entry, load, folder));
            source.map_err(|fault| match &entry.name {
                Some(name) => format!("entry {} ('{name}'): {fault}", index + 1),
                None => format!("entry {}: {fault}", index + 1),
            })
        };
        let sources = scenario.entries.iter().enumerate().map(source).collect::<Result<Vec<_>>>()?;
        if sources.is_empty() {
            return Err("at least one [[entry]] is needed".into());
        }
        let (tenants, server) = (Vec::new(), None);
        let mut case = Self { name, network, classes, plan: plan(&scenario)?, tenants, server, sources };
        if let Some(load) = scenario.run.load {
            case.scale(load)?;
        }
        Ok(case)
    }

    /// Entries with the randomness of a seed.
    pub fn entries(&self, seed: u64) -> Vec<RequestEntry> {
        let mut seeds = StdRng::seed_from_u64(seed);
        if let Some(server) = &self.server {
            let tenants = (0..).zip(&self.tenants);
            let until = self.plan.window.span.map_or(Nanos(u64::MAX), until);
            return tenants
                .map(|(class, at)| at.entry(class, server.channels(), until, &mut seeds))
                .collect();
        }
        self.sources.iter().map(|source| source.entry(&mut seeds)).collect()
    }

    /// Work that open entries bring to a station ÷ what its workers can do, in the long run.
    pub fn utilisation(&self, station: usize) -> f64 {
        if self.server.is_some() {
            return self.tenants.iter().filter_map(|at| at.utilisation(Stage::ALL[station])).sum();
        }
        let at = |source: &Source| {
            let work = source.work(|step| self.network.steps[step].station == station);
            // No work is no load, at an infinite rate, too.
            if work == 0.0 { 0.0 } else { work * source.rate() }
        };
        let workers = f64::from(self.network.stations[station].workers);
        self.sources.iter().map(at).sum::<f64>() / workers
    }

    /// The station with the highest utilisation.
    pub fn busiest(&self) -> (usize, f64) {
        let all = (0..self.network.stations.len()).map(|station| (station, self.utilisation(station)));
        all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
    }

    /// All arrivals by one factor, so that the busiest station is utilised to this degree.
    pub(crate) fn scale(&mut self, load: f64) -> Result<()> {
        let present = self.busiest().1;
        if !(load > 0.0 && load <= 100.0) {
            return Err(format!("expected a load above 0 and at most 100, such as 0.8, found {load}"));
        }
        if !(present > 0.0 && present.is_finite()) {
            return Err("a load needs open arrivals and service of positive, finite mean".into());
        }
        let factor = load / present;
        for source in &mut self.sources {
            source.scale(factor)?;
        }
        for tenant in &mut self.tenants {
            tenant.scale(factor)?;
        }
        Ok(())
    }
}

fn step_names(scenario: &Scenario) -> Vec<String> {
    if scenario.steps.is_empty() {
        return scenario.stations.iter().map(|station| station.name.clone()).collect();
    }
    scenario.steps.iter().map(|step| step.name().to_owned()).collect()
}

/// Stations of which there are several, as so many.
fn copies(specs: &[StationSpec]) -> Result<Vec<StationSpec>> {
    let mut all = Vec::new();
    for spec in specs {
        match spec.copies {
            None => all.push(spec.clone()),
            Some(count) if (1..=COPIES_MAX).contains(&count) => all.extend((1..=count).map(|number| {
                StationSpec { name: format!("{}-{number}", spec.name), copies: None, ..spec.clone() }
            })),
            Some(_) => return Err(format!("station '{}': expected 1 to {COPIES_MAX} copies", spec.name)),
        }
    }
    Ok(all)
}

fn network(
    scenario: &Scenario,
    recording: Option<&Recording>,
    classes: usize,
    folder: &Path,
) -> Result<(QueueingNetwork, Delays)> {
    let stations: Vec<NetworkStation> = (scenario.stations.iter())
        .map(|spec| NetworkStation {
            switch: spec.switch,
            dispatch: spec.dispatch,
            interference: spec.interference.map(Into::into),
            ..NetworkStation::new(&spec.name, spec.workers, spec.discipline.0.clone())
        })
        .collect();
    stations.iter().try_for_each(affordable)?;
    unique(scenario.stations.iter().map(|spec| spec.name.as_str()), "stations")?;
    unique(scenario.classes.iter().map(|spec| spec.name.as_str()), "classes")?;
    let mut network = QueueingNetwork::chain(stations);
    let mut delays = Delays::default();
    if !scenario.steps.is_empty() {
        unique(scenario.steps.iter().map(StepSpec::name), "steps")?;
        network.steps = scenario.steps.iter().map(|spec| step(spec, scenario)).collect::<Result<_>>()?;
        for (step, spec) in network.steps.iter_mut().zip(&scenario.steps) {
            let law = spec.delay.as_ref().map(|delay| delay.0.law(folder)).transpose();
            let (fixed, random) = split(law.map_err(|fault| format!("step '{}': {fault}", spec.name()))?);
            step.delay = fixed;
            delays.steps.push(random);
        }
    }
    if let Some(recording) = recording {
        network.steps = recording.steps().to_vec();
    }
    // Below the largest class.
    network.classes = u32::try_from(classes).unwrap_or(u32::MAX);
    Ok((network, delays))
}

/// Workers and levels have memory of their own.
fn affordable(station: &NetworkStation) -> Result<()> {
    let name = &station.name;
    if station.workers > WORKERS_MAX {
        return Err(format!("station '{name}': expected at most {WORKERS_MAX} workers"));
    }
    match station.discipline.classes() {
        Some(classes) if classes > CLASSES_MAX as usize => {
            Err(format!("station '{name}': expected at most {CLASSES_MAX} classes, found {classes}"))
        }
        _ => Ok(()),
    }
}

pub(crate) fn unique<'a>(names: impl Iterator<Item = &'a str>, what: &str) -> Result<()> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two {what} have the name '{}'", pair[0])),
        None => Ok(()),
    }
}

fn step(spec: &StepSpec, scenario: &Scenario) -> Result<NetworkStep> {
    let fault = |what: &str, name: &str| format!("step '{}': no {what} has the name '{name}'", spec.name());
    let station = scenario.stations.iter().position(|station| station.name == spec.station);
    let after = |name: &String| {
        let found = scenario.steps.iter().position(|step| step.name() == name);
        found.ok_or_else(|| fault("step", name))
    };
    Ok(NetworkStep {
        station: station.ok_or_else(|| fault("station", &spec.station))?,
        after: spec.after.iter().map(after).collect::<Result<_>>()?,
        delay: Nanos::ZERO,
    })
}

pub(crate) fn plan(scenario: &Scenario) -> Result<SimulationPlan> {
    let run = &scenario.run;
    let mut plan = SimulationPlan::of_requests(run.requests.unwrap_or(100_000), 0);
    let warm_up = if run.transient { 0 } else { plan.window.warm_up };
    let warm_up = run.warm_up.unwrap_or(warm_up);
    plan.window = MeasurementWindow { warm_up, by_station: true, span: span(run)?, ..plan.window };
    plan.transient = run.transient;
    plan.replications = run.replications.unwrap_or(8);
    plan.replications_max = run.replications_max.unwrap_or(64).max(plan.replications);
    plan.confidence = run.confidence.unwrap_or(0.95);
    plan.goal =
        run.precision.as_ref().map(|goal| PrecisionGoal { statistic: goal.of.0, relative: goal.relative });
    if plan.window.measured == 0 || plan.replications == 0 {
        return Err("run: at least one request and one replication".into());
    }
    if !(plan.confidence > 0.0 && plan.confidence < 1.0) {
        return Err(format!("run: expected a confidence between 0 and 1, found {}", plan.confidence));
    }
    match plan.goal {
        Some(goal) if !(goal.relative > 0.0 && goal.relative.is_finite()) => {
            Err(format!("run: expected a relative precision above 0, such as 0.05, found {}", goal.relative))
        }
        _ => Ok(plan),
    }
}

/// Traces go on for as long again after the window, so that what arrived within it meets the load that it would meet,
/// and then end: who gets less than it asks for is served at last.
fn until((begin, end): (Nanos, Nanos)) -> Nanos {
    Nanos(end.0.saturating_add(end.0 - begin.0))
}

/// The window as times, if the scenario says so.
fn span(run: &RunSpec) -> Result<Option<(Nanos, Nanos)>> {
    let Some(duration) = run.duration else {
        return match run.warm_up_duration {
            Some(_) => Err("run: warm_up_duration needs duration".into()),
            None => Ok(None),
        };
    };
    if run.requests.is_some() || run.warm_up.is_some() {
        return Err("run: expected requests and warm_up, or duration and warm_up_duration".into());
    }
    let begin = run.warm_up_duration.unwrap_or(Nanos(duration.0 / 10));
    match begin.0.checked_add(duration.0) {
        Some(end) if duration > Nanos::ZERO => Ok(Some((begin, Nanos(end)))),
        _ => Err("run: expected a duration above 0 and below 500 years".into()),
    }
}

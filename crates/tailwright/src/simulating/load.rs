//! A scenario as network and load: names become indices, rates are scaled, and each replication gets entries of its
//! own seed.

use super::scenario::{EntrySpec, Scenario, StepSpec};
use super::text::Service;
use crate::failure::Failure;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::engine::{Arrivals, Draft, Entry, Goal, Network, Plan, SKIP, Station, Step, Window};
use sim::source::{Arrival, Law, Sampler};
use std::path::Path;
use std::sync::Arc;
use units::Nanos;

/// A scenario that can be run.
pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) network: Network,
    /// Its seed is that of no run yet.
    pub(crate) plan: Plan,
    sources: Vec<Source>,
}

/// An entry without its randomness.
struct Source {
    arrivals: Coming,
    /// By step; `None` leaves it out.
    service: Vec<Option<Law>>,
    class: u32,
    window: Option<u32>,
    skew_ns: i64,
    delay: Nanos,
}

enum Coming {
    Random(Arrival),
    Recorded(Recorded),
    Closed { clients: u32, think: Law },
}

/// A measured stream that repeats for ever; a replication begins anywhere in it.
#[derive(Clone)]
struct Recorded {
    instants: Arc<Vec<Nanos>>,
    period_ns: f64,
    /// Its rate is multiplied by this.
    factor: f64,
}

const WORKERS_MAX: u32 = 100_000;
const CLASSES_MAX: u32 = 1000;
const CLIENTS_MAX: u32 = 1_000_000;

type Result<T> = std::result::Result<T, String>;

impl Case {
    pub(super) fn new(
        name: String,
        scenario: &Scenario,
        fault: impl Fn(&str) -> Failure,
    ) -> std::result::Result<Self, Failure> {
        Self::build(name, scenario).map_err(|message| fault(&message))
    }

    fn build(name: String, scenario: &Scenario) -> Result<Self> {
        let network = network(scenario)?;
        network.check().map_err(|invalid| invalid.to_string())?;
        let names = step_names(scenario);
        let numbered = scenario.entries.iter().enumerate();
        let sources = numbered
            .map(|(index, entry)| {
                Source::new(entry, &names).map_err(|fault| format!("entry {}: {fault}", index + 1))
            })
            .collect::<Result<Vec<_>>>()?;
        if sources.is_empty() {
            return Err("at least one [[entry]] is needed".into());
        }
        let mut case = Self { name, network, plan: plan(scenario)?, sources };
        if let Some(load) = scenario.run.load {
            case.scale(load)?;
        }
        Ok(case)
    }

    /// Entries with the randomness of a seed.
    pub(crate) fn entries(&self, seed: u64) -> Vec<Entry> {
        let mut seeds = StdRng::seed_from_u64(seed);
        self.sources.iter().map(|source| source.entry(&mut seeds)).collect()
    }

    /// Work that open entries bring to a station ÷ what its workers can do, in the long run.
    pub(crate) fn utilisation(&self, station: usize) -> f64 {
        let at = |source: &Source| {
            let steps = self.network.steps.iter().zip(&source.service);
            let visits = steps.filter(|(step, _)| step.station == station);
            let work: f64 = visits.filter_map(|(_, law)| law.as_ref()).map(|law| law.mean().0).sum();
            // No work is no load, at an infinite rate, too.
            if work == 0.0 { 0.0 } else { work * source.rate() }
        };
        let workers = f64::from(self.network.stations[station].workers);
        self.sources.iter().map(at).sum::<f64>() / workers
    }

    /// The station with the highest utilisation.
    pub(crate) fn busiest(&self) -> (usize, f64) {
        let all = (0..self.network.stations.len()).map(|station| (station, self.utilisation(station)));
        all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
    }

    /// All arrivals by one factor, so that the busiest station is utilised to this degree.
    fn scale(&mut self, load: f64) -> Result<()> {
        let present = self.busiest().1;
        if !(load > 0.0 && load <= 100.0) {
            return Err(format!("expected a load above 0 and at most 100, such as 0.8, found {load}"));
        }
        if !(present > 0.0 && present.is_finite()) {
            return Err("a load needs open arrivals and service of positive, finite mean".into());
        }
        let factor = load / present;
        for source in &mut self.sources {
            match &mut source.arrivals {
                Coming::Random(arrival) => {
                    *arrival = arrival.scaled(factor).map_err(|error| error.to_string())?;
                    arrival.instants(0).map(drop).map_err(|error| error.to_string())?;
                }
                Coming::Recorded(recorded) => recorded.factor *= factor,
                Coming::Closed { .. } => return Err("a load cannot be set where clients wait".into()),
            }
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

fn network(scenario: &Scenario) -> Result<Network> {
    let stations: Vec<Station> = (scenario.stations.iter())
        .map(|spec| Station {
            switch: spec.switch,
            dispatch: spec.dispatch,
            interference: spec.interference.map(Into::into),
            ..Station::new(&spec.name, spec.workers, spec.discipline.0.clone())
        })
        .collect();
    stations.iter().try_for_each(affordable)?;
    unique(scenario.stations.iter().map(|spec| spec.name.as_str()), "stations")?;
    let mut network = Network::chain(stations);
    if !scenario.steps.is_empty() {
        unique(scenario.steps.iter().map(StepSpec::name), "steps")?;
        network.steps = scenario.steps.iter().map(|spec| step(spec, scenario)).collect::<Result<_>>()?;
    }
    let highest = scenario.entries.iter().map(|entry| entry.class).max().unwrap_or(0);
    if highest >= CLASSES_MAX {
        return Err(format!("class {highest}: classes count from 0 and are below {CLASSES_MAX}"));
    }
    network.classes = highest + 1;
    Ok(network)
}

/// Workers and levels have memory of their own.
fn affordable(station: &Station) -> Result<()> {
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

fn unique<'a>(names: impl Iterator<Item = &'a str>, what: &str) -> Result<()> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("two {what} have the name '{}'", pair[0])),
        None => Ok(()),
    }
}

fn step(spec: &StepSpec, scenario: &Scenario) -> Result<Step> {
    let fault = |what: &str, name: &str| format!("step '{}': no {what} has the name '{name}'", spec.name());
    let station = scenario.stations.iter().position(|station| station.name == spec.station);
    let after = |name: &String| {
        let found = scenario.steps.iter().position(|step| step.name() == name);
        found.ok_or_else(|| fault("step", name))
    };
    Ok(Step {
        station: station.ok_or_else(|| fault("station", &spec.station))?,
        after: spec.after.iter().map(after).collect::<Result<_>>()?,
        delay: spec.delay,
    })
}

fn plan(scenario: &Scenario) -> Result<Plan> {
    let run = &scenario.run;
    let mut plan = Plan::of(run.requests.unwrap_or(100_000), 0);
    plan.window = Window { warm_up: run.warm_up.unwrap_or(plan.window.warm_up), ..plan.window };
    plan.replications = run.replications.unwrap_or(8);
    plan.replications_max = run.replications_max.unwrap_or(64).max(plan.replications);
    plan.confidence = run.confidence.unwrap_or(0.95);
    plan.goal = run.precision.as_ref().map(|goal| Goal { of: goal.of.0, relative: goal.relative });
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

impl Source {
    fn new(entry: &EntrySpec, names: &[String]) -> Result<Self> {
        if let Some(unknown) = entry.service.keys().find(|name| !names.contains(name)) {
            return Err(format!("service: no step has the name '{unknown}'; there are {}", names.join(", ")));
        }
        let service = |name: &String| match entry.service.get(name).map(|text| &text.0) {
            Some(Service::Draw(law)) => Ok(Some(law.clone())),
            Some(Service::Skip) => Ok(None),
            None => Err(format!("service: expected a law or \"skip\" for '{name}'")),
        };
        if entry.window == Some(0) {
            return Err("window: expected at least 1".into());
        }
        Ok(Self {
            arrivals: Coming::new(entry)?,
            service: names.iter().map(service).collect::<Result<_>>()?,
            class: entry.class,
            window: entry.window,
            skew_ns: entry.skew.as_ref().map_or(0, |skew| skew.0.0),
            delay: entry.delay,
        })
    }

    /// Arrivals per second; 0 where clients wait for answers.
    fn rate(&self) -> f64 {
        match &self.arrivals {
            Coming::Random(arrival) => arrival.mean_rate(),
            Coming::Recorded(recorded) => {
                recorded.instants.len() as f64 / recorded.period_ns * 1e9 * recorded.factor
            }
            Coming::Closed { .. } => 0.0,
        }
    }

    fn entry(&self, seeds: &mut StdRng) -> Entry {
        let (arrivals, mut random) = (seeds.random(), StdRng::seed_from_u64(seeds.random()));
        let samplers: Vec<Option<Sampler>> =
            self.service.iter().map(|law| law.as_ref().map(Law::sampler)).collect();
        let class = self.class;
        let draw = move |draft: &mut Draft<'_>| {
            draft.class = class;
            for (demand, sampler) in draft.demands.iter_mut().zip(&samplers) {
                *demand = sampler.as_ref().map_or(SKIP, |sampler| sampler.draw(&mut random));
            }
        };
        Entry {
            arrivals: self.arrivals.begin(arrivals),
            draw: Box::new(draw),
            window: self.window,
            skew_ns: self.skew_ns,
            delay: self.delay,
        }
    }
}

impl Coming {
    fn new(entry: &EntrySpec) -> Result<Self> {
        match (&entry.arrivals, &entry.trace, entry.clients, &entry.think) {
            (Some(arrival), None, None, None) => Ok(Self::Random(arrival.0.clone())),
            (None, Some(path), None, None) => Recorded::read(path).map(Self::Recorded),
            (None, None, Some(clients), Some(think)) if (1..=CLIENTS_MAX).contains(&clients) => {
                Ok(Self::Closed { clients, think: think.0.clone() })
            }
            (None, None, Some(_), Some(_)) => Err(format!("clients: expected 1 to {CLIENTS_MAX}")),
            _ => Err("expected one of: arrivals; trace; clients and think".into()),
        }
    }

    fn begin(&self, seed: u64) -> Arrivals {
        match self {
            Self::Random(arrival) => {
                Arrivals::Open(arrival.instants(seed).expect("checked when it was read"))
            }
            Self::Recorded(recorded) => Arrivals::Open(Box::new(recorded.clone().instants(seed))),
            Self::Closed { clients, think } => {
                let (sampler, mut random) = (think.sampler(), StdRng::seed_from_u64(seed));
                let think = std::iter::repeat_with(move || sampler.draw(&mut random));
                Arrivals::Closed { clients: *clients, think: Box::new(think) }
            }
        }
    }
}

impl Recorded {
    fn read(path: &Path) -> Result<Self> {
        let instants = arrivals_of(path).map_err(|(message, _)| message)?;
        let span = instants.last().zip(instants.first()).map_or(0, |(last, first)| (*last - *first).0);
        if span == 0 {
            return Err(format!("{}: expected requests at two instants at least", path.display()));
        }
        // The gap from the last to the first is the mean of the others.
        let period_ns = span as f64 * instants.len() as f64 / (instants.len() - 1) as f64;
        Ok(Self { instants: Arc::new(instants), period_ns, factor: 1.0 })
    }

    fn instants(self, seed: u64) -> impl Iterator<Item = Nanos> {
        let count = self.instants.len();
        let start = StdRng::seed_from_u64(seed).random_range(0..count);
        (start..).map(move |index| {
            let since = (self.instants[index % count] - self.instants[0]).0 as f64;
            let first = (self.instants[start] - self.instants[0]).0 as f64;
            let at = (index / count) as f64 * self.period_ns + since - first;
            // Not negative: the start is the first; a float beyond u64 becomes the largest.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            let at = (at / self.factor) as u64;
            Nanos(at)
        })
    }
}

/// When the requests of a trace arrive; otherwise what is wrong and what to do about it.
pub(crate) fn arrivals_of(path: &Path) -> std::result::Result<Vec<Nanos>, (String, String)> {
    let reader = trace::open(path, &trace::OpenOptions::default());
    let requests = reader.and_then(|reader| {
        reader
            .map(|request| request.map(|request| request.arrival))
            .collect::<std::result::Result<Vec<_>, _>>()
    });
    let arrivals = requests.map_err(|error| (error.to_string(), error.hint().to_string()))?;
    if arrivals.is_empty() {
        let hint = "give a trace with requests, or --arrivals".to_owned();
        return Err((format!("{}: the trace is empty", path.display()), hint));
    }
    Ok(arrivals)
}

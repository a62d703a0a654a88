//! A scenario as network and load: names become indices, rates are scaled, and each replication gets entries of its
//! own seed.

use crate::file::{Scenario, StepSpec};
use crate::source::Source;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use sim::engine::{Entry, Goal, Network, Plan, Station, Step, Window};

/// A scenario that can be run.
pub struct Case {
    /// The name that the file gives, or its own.
    pub name: String,
    /// Stations and steps.
    pub network: Network,
    /// Its seed is that of no run yet.
    pub plan: Plan,
    sources: Vec<Source>,
}

const WORKERS_MAX: u32 = 100_000;
const CLASSES_MAX: u32 = 1000;

type Result<T> = std::result::Result<T, String>;

impl Case {
    pub(crate) fn build(name: String, scenario: &Scenario) -> Result<Self> {
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
    pub fn entries(&self, seed: u64) -> Vec<Entry> {
        let mut seeds = StdRng::seed_from_u64(seed);
        self.sources.iter().map(|source| source.entry(&mut seeds)).collect()
    }

    /// Work that open entries bring to a station ÷ what its workers can do, in the long run.
    pub fn utilisation(&self, station: usize) -> f64 {
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
            source.scale(factor)?;
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
    let warm_up = if run.transient { 0 } else { plan.window.warm_up };
    plan.window = Window { warm_up: run.warm_up.unwrap_or(warm_up), ..plan.window };
    plan.transient = run.transient;
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

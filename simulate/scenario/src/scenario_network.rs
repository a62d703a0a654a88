//! The stations and steps of a scenario as a queueing network: names become indices.

use crate::classes::{self, CLASSES_MAX};
use crate::file::{Scenario, StationSpec, StepSpec};
use crate::recorded_calls::RecordedCalls;
use crate::request_kinds::RandomDelays;
use crate::unique_names::check_unique;
use arrivals::{DistributionFamily, TimeDistribution};
use gat::RequestSlo;
use sim::engine::{NetworkStation, NetworkStep, QueueingNetwork};
use std::path::Path;
use units::Nanos;

const WORKERS_MAX: u32 = 100_000;
const COPIES_MAX: u32 = 1000;

/// The names of the steps of a scenario, or of its stations where it has no steps.
pub(crate) fn step_names(scenario: &Scenario) -> Vec<String> {
    if scenario.steps.is_empty() {
        return scenario.stations.iter().map(|station| station.name.clone()).collect();
    }
    scenario.steps.iter().map(|step| step.name().to_owned()).collect()
}

/// Expands each station with `copies` into that many stations.
///
/// # Errors
/// When the number of copies is 0, or in the thousands.
pub(crate) fn expand_copies(specs: &[StationSpec]) -> Result<Vec<StationSpec>, String> {
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

/// Returns the network of a scenario, with the steps of recorded calls if there are any, and the random
/// delays before its steps. Only the names and the SLOs of the classes matter here.
///
/// # Errors
/// When names do not match, a delay cannot be read, or there are too many workers.
pub(crate) fn scenario_network(
    scenario: &Scenario,
    recorded: Option<&RecordedCalls>,
    (classes, slos): (&[String], &[Option<RequestSlo>]),
    folder: &Path,
) -> Result<(QueueingNetwork, RandomDelays), String> {
    let mut stations: Vec<NetworkStation> = scenario.stations.iter().map(network_station).collect();
    for station in &mut stations {
        classes::give_slos(&mut station.discipline, classes, slos)
            .map_err(|error| format!("station '{}': {error}", station.name))?;
    }
    stations.iter().try_for_each(check_memory)?;
    check_unique(scenario.stations.iter().map(|spec| spec.name.as_str()), "stations")?;
    check_unique(scenario.classes.iter().map(|spec| spec.name.as_str()), "classes")?;
    let mut network = QueueingNetwork::chain(stations);
    let mut delays = RandomDelays::default();
    if !scenario.steps.is_empty() {
        check_unique(scenario.steps.iter().map(StepSpec::name), "steps")?;
        let steps = scenario.steps.iter().map(|spec| network_step(spec, scenario));
        network.steps = steps.collect::<Result<_, String>>()?;
        for (step, spec) in network.steps.iter_mut().zip(&scenario.steps) {
            let delay = spec.delay.as_ref().map(|delay| delay.0.distribution(folder)).transpose();
            let delay = delay.map_err(|error| format!("step '{}': {error}", spec.name()))?;
            let (fixed, random) = fixed_or_random(delay);
            step.delay = fixed;
            delays.steps.push(random);
        }
    }
    if let Some(recorded) = recorded {
        network.steps = recorded.steps().to_vec();
    }
    // Class numbers are below `CLASSES_MAX`.
    network.classes = u32::try_from(classes.len()).unwrap_or(u32::MAX);
    Ok((network, delays))
}

/// A delay as a fixed time and, if it is random, its distribution.
pub(crate) fn fixed_or_random(delay: Option<TimeDistribution>) -> (Nanos, Option<TimeDistribution>) {
    match delay.as_ref().map(TimeDistribution::family) {
        None => (Nanos::ZERO, None),
        Some(DistributionFamily::Constant(time)) => {
            (Nanos::from_secs(time.0).unwrap_or(Nanos(u64::MAX)), None)
        }
        Some(_) => (Nanos::ZERO, delay),
    }
}

fn network_station(spec: &StationSpec) -> NetworkStation {
    NetworkStation {
        switch: spec.switch,
        dispatch: spec.dispatch,
        interference: spec.interference.map(Into::into),
        ..NetworkStation::new(&spec.name, spec.workers, spec.discipline.0.clone())
    }
}

/// Checks that a station has few enough workers and levels: each takes memory.
fn check_memory(station: &NetworkStation) -> Result<(), String> {
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

fn network_step(spec: &StepSpec, scenario: &Scenario) -> Result<NetworkStep, String> {
    let station = scenario.stations.iter().position(|station| station.name == spec.station);
    let station = station.ok_or_else(|| unknown_name(spec, "station", &spec.station))?;
    let mut after = Vec::with_capacity(spec.after.len());
    for name in &spec.after {
        let step = scenario.steps.iter().position(|step| step.name() == name);
        after.push(step.ok_or_else(|| unknown_name(spec, "step", name))?);
    }
    Ok(NetworkStep { station, after, delay: Nanos::ZERO })
}

fn unknown_name(step: &StepSpec, what: &str, name: &str) -> String {
    format!("step '{}': no {what} has the name '{name}'", step.name())
}

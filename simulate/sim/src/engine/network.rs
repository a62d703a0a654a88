//! Simulated networks: stations, and the steps of a request through them.

use super::error::InvalidSimulationError;
use discipline::serve::DisciplineSpec;
use units::Nanos;

/// Workers that share a queueing discipline.
#[derive(Debug, Clone)]
pub struct NetworkStation {
    /// Name in reports.
    pub name: String,
    /// Number of workers, at least 1.
    pub workers: u32,
    /// Discipline that decides which request is served.
    pub discipline: DisciplineSpec,
    /// Time that a worker loses when it takes up an item other than its last one.
    pub switch: Nanos,
    /// Time that the station's single dispatcher needs for each item that it puts on a worker, which waits
    /// meanwhile. Zero means that there is no dispatcher.
    pub dispatch: Nanos,
    /// Other work that takes workers away, if any.
    pub interference: Option<Interference>,
}

impl NetworkStation {
    /// A station without costs of switching or dispatching, and without interference.
    pub fn new(name: &str, workers: u32, discipline: DisciplineSpec) -> Self {
        let switch = Nanos::ZERO;
        let dispatch = Nanos::ZERO;
        Self { name: name.to_owned(), workers, discipline, switch, dispatch, interference: None }
    }
}

/// Other work on a worker. It stops the worker's item and cannot be preempted itself. On each worker,
/// exponential gaps separate the end of one interference from the start of the next. While an idle worker is
/// away, it gets nothing from a shared queue. Disciplines with a queue per worker do not notice, and the
/// items that they assign wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interference {
    /// Mean time between the end of one and the next, at least 1 ns.
    pub gap: Nanos,
    /// Duration of each interference.
    pub length: Nanos,
    /// True if a displaced item goes back to a queue, if the discipline has one for that
    /// ([`DisciplineSpec::requeues`]); otherwise it waits on its worker.
    pub requeue: bool,
}

/// One visit to a station.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkStep {
    /// Index of the station.
    pub station: usize,
    /// Steps that end before this one begins; all of lower index. Empty: it begins when the request enters.
    pub after: Vec<usize>,
    /// Network delay between the last of those and the arrival here.
    pub delay: Nanos,
}

/// Stations and steps. A request's steps form a feed-forward graph: several steps that follow one are a
/// fan-out, and one step that follows several is a join. A step that a request skips ([`super::SKIP`]) ends
/// in the instant in which it could begin, without its delay; requests branch by skipping. Several steps may
/// visit one station.
#[derive(Debug, Clone)]
pub struct QueueingNetwork {
    /// Stations at which requests are served.
    pub stations: Vec<NetworkStation>,
    /// Steps of a request, each after those that it waits for.
    pub steps: Vec<NetworkStep>,
    /// Number of classes of requests, at least 1.
    pub classes: u32,
}

impl QueueingNetwork {
    /// Creates a chain: one step at each station, in order, without delays and with one class.
    pub fn chain(stations: Vec<NetworkStation>) -> Self {
        let step = |station: usize| NetworkStep {
            station,
            after: station.checked_sub(1).into_iter().collect(),
            delay: Nanos::ZERO,
        };
        Self { steps: (0..stations.len()).map(step).collect(), stations, classes: 1 }
    }

    /// Checks that the network can be simulated.
    ///
    /// # Errors
    /// Describes the first reason why it cannot.
    pub fn check(&self) -> Result<(), InvalidSimulationError> {
        let classes = self.classes as usize;
        if self.steps.is_empty() || self.classes == 0 {
            return Err(InvalidSimulationError("a network needs at least one step and one class".into()));
        }
        self.stations.iter().try_for_each(|station| check_station(station, classes))?;
        for (index, step) in self.steps.iter().enumerate() {
            if step.station >= self.stations.len() {
                let count = self.stations.len();
                return Err(InvalidSimulationError(format!(
                    "step {index}: no station {}; there are {count}",
                    step.station
                )));
            }
            if let Some(later) = step.after.iter().find(|earlier| **earlier >= index) {
                return Err(InvalidSimulationError(format!(
                    "step {index} cannot wait for step {later}: only for earlier ones"
                )));
            }
        }
        Ok(())
    }
}

fn check_station(station: &NetworkStation, classes: usize) -> Result<(), InvalidSimulationError> {
    let invalid = |what: &str| Err(InvalidSimulationError(format!("station '{}': {what}", station.name)));
    if station.workers == 0 {
        return invalid("at least one worker is needed");
    }
    if station.interference.is_some_and(|interference| interference.gap == Nanos::ZERO) {
        return invalid("the gap between interferences is at least 1 ns");
    }
    if station.interference.is_some_and(|other| other.requeue) && !station.discipline.requeues() {
        return invalid(
            "only round-robin, limited, orf and edf-limited have a queue for what other work displaces",
        );
    }
    let costs = station.switch.0 > 0 || station.dispatch.0 > 0 || station.interference.is_some();
    if costs
        && matches!(
            station.discipline,
            DisciplineSpec::Sharing { .. } | DisciplineSpec::WeightedSharing { .. }
        )
    {
        return invalid("ideal processor sharing has no switches, no dispatcher and no interference");
    }
    match station.discipline.classes() {
        Some(told_apart) if told_apart < classes => {
            invalid(&format!("the discipline knows {told_apart} classes; requests have {classes}"))
        }
        _ => station.discipline.check().or_else(|reason| invalid(&reason)),
    }
}

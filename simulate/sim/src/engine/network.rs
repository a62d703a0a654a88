//! What is simulated: stations, and the steps that a request takes through them.

use super::error::InvalidSimulationError;
use discipline::serve::DisciplineSpec;
use units::Nanos;

/// Workers that share a queueing discipline.
#[derive(Debug, Clone)]
pub struct NetworkStation {
    /// The name by which reports call it.
    pub name: String,
    /// Number of workers, at least 1.
    pub workers: u32,
    /// The discipline that decides which request is served.
    pub discipline: DisciplineSpec,
    /// The time that a worker loses when it takes up an item that it did not serve last.
    pub switch: Nanos,
    /// The time that the station's one dispatcher needs for each item that it puts on a worker, which waits for it.
    /// Zero means that there is no dispatcher.
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

/// Other work on a worker, which stops whatever runs there and cannot be stopped: exponential gaps on each worker
/// between the end of one and the beginning of the next. An idle worker that is taken away gets nothing from a queue
/// that it shares with others; disciplines with a queue per worker do not notice, and what they give it waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interference {
    /// Mean time between the end of one and the next, at least 1 ns.
    pub gap: Nanos,
    /// How long each interference takes.
    pub length: Nanos,
    /// Whether an item that it displaces goes back to the queue of a discipline that has one for that
    /// ([`DisciplineSpec::requeues`]); otherwise it waits on its worker.
    pub requeue: bool,
}

/// One visit to a station.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkStep {
    /// Index of the station.
    pub station: usize,
    /// The steps that end before this one begins; all of lower index. None: it begins when the request enters.
    pub after: Vec<usize>,
    /// Network delay between the last of those and the arrival here.
    pub delay: Nanos,
}

/// Stations and steps. A request's steps are a feed-forward graph: several that follow one step are a fan-out, one
/// that follows several is a join, and a step that a request leaves out ([`super::SKIP`]) is over in the instant
/// in which it could begin, without its delay: that is how requests branch. A station may be visited by several
/// steps.
#[derive(Debug, Clone)]
pub struct QueueingNetwork {
    /// The stations at which requests are served.
    pub stations: Vec<NetworkStation>,
    /// The steps that a request takes, each after those that it waits for.
    pub steps: Vec<NetworkStep>,
    /// Number of classes of requests, at least 1.
    pub classes: u32,
}

impl QueueingNetwork {
    /// One step at each station, one after the other, without delays; one class.
    pub fn chain(stations: Vec<NetworkStation>) -> Self {
        let step = |station: usize| NetworkStep {
            station,
            after: station.checked_sub(1).into_iter().collect(),
            delay: Nanos::ZERO,
        };
        Self { steps: (0..stations.len()).map(step).collect(), stations, classes: 1 }
    }

    /// Whether the network can be simulated.
    ///
    /// # Errors
    /// With the first reason why it cannot.
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

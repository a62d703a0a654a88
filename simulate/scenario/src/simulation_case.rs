//! A scenario as network and load: names become indices, rates are scaled, and each replication gets entries of its
//! own seed.

use crate::classes;
use crate::entry_load::{EntryLoad, RequestContent};
use crate::file::{EntrySpec, RunSpec, Scenario};
use crate::recorded_calls::{self, RecordedCalls};
use crate::request_kinds::{RandomDelays, RequestKinds};
use crate::scenario_network::{expand_copies, scenario_network, step_names};
use crate::server::{SimulatedWorkload, StorageServer};
use crate::simulation_plan::simulation_plan;
use ::model::{Policy, Stage};
use gat::RequestSlo;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use sim::engine::{QueueingNetwork, RequestEntry, SimulationPlan};
use sim::{settling_arrivals, settling_window};
use std::path::Path;
use std::sync::Arc;
use units::Nanos;

/// Longest warm-up that is chosen for a station near saturation, in arrivals of each replication.
const SETTLING_MAX: u64 = 1_000_000;

/// A scenario that can be run.
pub struct SimulationCase {
    /// The name that the file gives, or its own.
    pub name: String,
    /// The stations, and the steps of requests through them.
    pub network: QueueingNetwork,
    /// Names of the classes, as many as the network has.
    pub classes: Vec<String>,
    /// The SLO of each class: the time from entry to deadline, above 0 and at most a day; none for a class without, and for
    /// workloads of a storage server, which have SLOs of their own.
    pub slos: Vec<Option<RequestSlo>>,
    /// Plan of the run; its seed is replaced by that of the run.
    pub plan: SimulationPlan,
    /// Workloads of a storage server; empty for other scenarios. The position is the class.
    pub workloads: Vec<SimulatedWorkload>,
    /// The storage server, if the scenario is one.
    pub server: Option<StorageServer>,
    /// The policy that the storage server keeps, if it keeps one.
    pub(crate) policy: Option<Box<Policy>>,
    /// The load of each entry; empty for a storage server.
    pub(crate) loads: Vec<EntryLoad>,
}

impl SimulationCase {
    /// The case of a scenario. Files that it names are relative to `folder`.
    pub(crate) fn build(name: String, mut scenario: Scenario, folder: &Path) -> Result<Self, String> {
        if scenario.server.is_some() || !scenario.workloads.is_empty() {
            scenario.move_to(folder);
            return Self::from_server_scenario(name, &scenario);
        }
        scenario.stations = expand_copies(&scenario.stations)?;
        let recorded = recorded_calls::attach(&mut scenario, folder)?;
        let classes = classes::names(&scenario)?;
        let slos = classes::slos(&scenario, &classes, folder)?;
        let (network, delays) = scenario_network(&scenario, recorded.as_deref(), (&classes, &slos), folder)?;
        network.check().map_err(|error| error.to_string())?;
        let loads = entry_loads(&scenario, recorded.as_ref(), &delays, folder)?;
        if loads.is_empty() {
            return Err("at least one [[entry]] is needed".into());
        }
        let workloads = Vec::new();
        let server = None;
        let plan = simulation_plan(&scenario)?;
        let mut case = Self { name, network, classes, slos, plan, workloads, server, policy: None, loads };
        if let Some(load) = scenario.run.load {
            case.scale(load)?;
        }
        case.settle(&scenario.run);
        Ok(case)
    }

    /// Gives each replication a warm-up in which the busiest station settles, and twice that to measure,
    /// unless the scenario chooses either: latencies of a shorter window depend on each other as if they were one
    /// sample.
    fn settle(&mut self, run: &RunSpec) {
        let settling = self.settling();
        let window = &mut self.plan.window;
        if run.transient || window.span.is_some() || settling.is_infinite() {
            return;
        }
        if run.warm_up.is_none() {
            window.warm_up = settling_window(window.warm_up, settling, SETTLING_MAX);
        }
        if run.requests.is_none() {
            window.measured = settling_window(window.measured, 2.0 * settling, 2 * SETTLING_MAX);
        }
    }

    /// Entries with the randomness of a seed.
    pub fn entries(&self, seed: u64) -> Vec<RequestEntry> {
        let mut seeds = StdRng::seed_from_u64(seed);
        let Some(server) = &self.server else {
            return self.loads.iter().map(|load| load.entry(&mut seeds)).collect();
        };
        let until = self.plan.window.span.map_or(Nanos(u64::MAX), end_of_traces);
        let workloads = (0..).zip(&self.workloads);
        workloads.map(|(class, workload)| workload.entry(class, server, until, &mut seeds)).collect()
    }

    /// Work that open entries bring to a station ÷ what its workers can do, in the long run.
    pub fn utilisation(&self, station: usize) -> f64 {
        if self.server.is_some() {
            let stage = Stage::ALL[station];
            return self.workloads.iter().filter_map(|workload| workload.utilisation(stage)).sum();
        }
        let workers = f64::from(self.network.stations[station].workers);
        self.loads.iter().map(|load| self.work_per_second(load, station)).sum::<f64>() / workers
    }

    /// Work per second that an open entry brings to a station, seconds.
    fn work_per_second(&self, load: &EntryLoad, station: usize) -> f64 {
        let work = load.work(|step| self.network.steps[step].station == station);
        // No work is no load, even at an infinite rate.
        if work == 0.0 { 0.0 } else { work * load.rate() }
    }

    /// The station with the highest utilisation.
    pub fn busiest(&self) -> (usize, f64) {
        let all = (0..self.network.stations.len()).map(|station| (station, self.utilisation(station)));
        all.max_by(|a, b| a.1.total_cmp(&b.1)).unwrap_or((0, 0.0))
    }

    /// Returns the number of arrivals that the busiest station needs to settle, infinite in overload; 0 if
    /// nothing is random, or the requests of a storage server repeat.
    pub fn settling(&self) -> f64 {
        if self.server.is_some() || self.is_deterministic() {
            return 0.0;
        }
        settling_arrivals(self.busiest().1, 1.0)
    }

    /// Returns true if service times have no variance, so that means of latencies may be infinite.
    pub fn lacks_variance(&self) -> bool {
        self.loads.iter().any(|load| load.tail_exponent() <= 2.0)
    }

    /// Returns true if nothing in the scenario is random, so that a station can be busy all the time.
    pub fn is_deterministic(&self) -> bool {
        self.server.is_none() && self.loads.iter().all(EntryLoad::is_deterministic)
    }

    /// Multiplies the rate of all arrivals by one factor, so that the busiest station has this utilisation.
    pub(crate) fn scale(&mut self, load: f64) -> Result<(), String> {
        let present = self.busiest().1;
        if !(load > 0.0 && load <= 100.0) {
            return Err(format!("expected a load above 0 and at most 100, such as 0.8, found {load}"));
        }
        if !(present > 0.0 && present.is_finite()) {
            return Err("a load needs open arrivals and service of positive, finite mean".into());
        }
        let factor = load / present;
        for load in &mut self.loads {
            load.scale(factor)?;
        }
        for workload in &mut self.workloads {
            workload.scale(factor)?;
        }
        Ok(())
    }
}

/// Returns the load of each entry; an error names the entry.
fn entry_loads(
    scenario: &Scenario,
    recorded: Option<&Arc<RecordedCalls>>,
    delays: &RandomDelays,
    folder: &Path,
) -> Result<Vec<EntryLoad>, String> {
    let steps = step_names(scenario);
    let mut loads = Vec::with_capacity(scenario.entries.len());
    for (entry, number) in scenario.entries.iter().zip(1..) {
        let content = match recorded {
            Some(recorded) => recorded_content(entry, recorded),
            None => RequestKinds::new(entry, &steps, folder, |kind| classes::number(scenario, kind))
                .map(|kinds| RequestContent::Kinds(kinds, delays.clone())),
        };
        let load = content.and_then(|content| EntryLoad::new(entry, content, folder));
        loads.push(load.map_err(|error| match &entry.name {
            Some(name) => format!("entry {number} ('{name}'): {error}"),
            None => format!("entry {number}: {error}"),
        })?);
    }
    Ok(loads)
}

/// Requests as they were recorded, where the entry does not say itself what they are.
fn recorded_content(entry: &EntrySpec, recorded: &Arc<RecordedCalls>) -> Result<RequestContent, String> {
    if entry.service.is_none() && entry.kinds.is_empty() && entry.class.is_none() {
        Ok(RequestContent::Recorded(Arc::clone(recorded)))
    } else {
        Err("expected no service, kinds or class: requests are those of the call_graph".into())
    }
}

/// The end of the traces of a storage server: for as long again after the window as it lasts. What arrived within it
/// then meets the load that it would meet, and workloads that get less than they ask for are served in the end.
fn end_of_traces((begin, end): (Nanos, Nanos)) -> Nanos {
    Nanos(end.0.saturating_add(end.0 - begin.0))
}

//! Reading traces into footprints, in parallel, reusing what is known.

use super::Problem;
use super::cache::{Cache, Entry, key};
use super::parallel::in_parallel;
use model::OperationError;
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use units::Seconds;
use workload::device::{NetworkModel, StorageProfile};
use workload::{Footprint, FootprintBuilder};

/// What every workload asks of every class of server.
#[derive(Debug)]
pub(crate) struct Footprints {
    known: Vec<Footprint>,
    /// By class, then workload: index into `known`.
    index: Vec<Vec<usize>>,
    /// Wall time of reading.
    pub(crate) elapsed: Duration,
}

impl Footprints {
    /// A workload's footprint with the storage of a class.
    pub(crate) fn of(&self, class: usize, workload: usize) -> &Footprint {
        &self.known[self.index[class][workload]]
    }
}

/// A trace to be read for a device.
struct Job<'a> {
    trace: &'a Path,
    profile: &'a StorageProfile,
}

/// Where a footprint came from.
struct Outcome {
    entry: Entry,
    reused: bool,
}

/// Reads the traces of a problem, each once per kind of device, and says on stderr how that went.
pub(crate) fn characterise(problem: &Problem) -> Result<Footprints, OperationError> {
    let start = Instant::now();
    let (jobs, index) = jobs(problem);
    let cache = if problem.cached { Cache::of_user() } else { Cache::off() };
    let outcomes = in_parallel("reading traces", &jobs, |job| job.run(problem, &cache))?;
    let elapsed = start.elapsed();
    report(&jobs, &outcomes, elapsed);
    let known = outcomes.into_iter().map(|outcome| outcome.entry.footprint).collect();
    Ok(Footprints { known, index, elapsed })
}

/// Each trace once per work model: workloads and classes may share.
fn jobs(problem: &Problem) -> (Vec<Job<'_>>, Vec<Vec<usize>>) {
    let mut jobs = Vec::new();
    let mut numbers = BTreeMap::new();
    let mut index = Vec::new();
    for profile in &problem.profiles {
        let device = profile.work_key();
        let row = problem.cluster.workloads.iter().map(|workload| {
            *numbers.entry((device.clone(), workload.trace.as_path())).or_insert_with(|| {
                jobs.push(Job { trace: &workload.trace, profile });
                jobs.len() - 1
            })
        });
        index.push(row.collect());
    }
    (jobs, index)
}

impl Job<'_> {
    fn run(&self, problem: &Problem, cache: &Cache) -> Result<Outcome, OperationError> {
        let network = NetworkModel::default();
        // A trace that cannot be hashed is reported by whoever reads it as a trace.
        let key =
            cache.is_on().then(|| key(self.trace, &problem.options, self.profile, &network).ok()).flatten();
        if let Some(entry) = key.as_ref().and_then(|key| cache.get(key)) {
            return Ok(Outcome { entry, reused: true });
        }
        let entry = self.read(problem, network)?;
        if let Some(key) = key {
            cache.put(&key, &entry);
        }
        Ok(Outcome { entry, reused: false })
    }

    fn read(&self, problem: &Problem, network: NetworkModel) -> Result<Entry, OperationError> {
        let wrong = |error: trace::TraceError| OperationError::input(&error).hint(error.hint());
        let mut reader = trace::open(self.trace, &problem.options).map_err(wrong)?;
        let mut builder = FootprintBuilder::new(network, self.profile);
        let burst = |error| OperationError::input(format_args!("{}: {error}", self.trace.display()));
        for request in reader.by_ref() {
            builder.push(&request.map_err(wrong)?).map_err(burst)?;
        }
        Ok(Entry { skipped: reader.skipped(), footprint: builder.finish().map_err(burst)? })
    }
}

fn report(jobs: &[Job], outcomes: &[Outcome], elapsed: Duration) {
    let reused = outcomes.iter().filter(|outcome| outcome.reused).count();
    let requests: u64 = outcomes.iter().map(|outcome| outcome.entry.footprint.requests()).sum();
    eprintln!(
        "traces: {} read, {reused} reused, {requests} requests in {}",
        outcomes.len() - reused,
        Seconds(elapsed.as_secs_f64())
    );
    for (job, outcome) in jobs.iter().zip(outcomes) {
        if outcome.entry.skipped > 0 {
            eprintln!("warning: {}: {} requests skipped", job.trace.display(), outcome.entry.skipped);
        }
    }
}

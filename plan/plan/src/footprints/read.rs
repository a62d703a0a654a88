//! Reading traces into footprints, in parallel, reusing what is known.

use crate::cluster::ClusterProblem;
use crate::footprints::cache::{CachedFootprint, FootprintCache, key};
use crate::footprints::stored;
use model::{OperationError, Stage};
use operation::parallel::in_parallel;
use operation::{Notice, ProgressObserver};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};
use units::{Seconds, plural};
use workload::device::{NetworkModel, StorageProfile};
use workload::{Footprint, FootprintBuilder};

/// Demand of every workload on every class of server.
#[derive(Debug)]
pub struct Footprints {
    /// One per trace and kind of device.
    known: Vec<Footprint>,
    /// Indices into `known`, by class and then workload.
    index: Vec<Vec<usize>>,
    /// Wall time that reading took.
    pub elapsed: Duration,
}

impl Footprints {
    /// Returns the footprint of a workload on a class; both are indices into the cluster.
    pub fn get(&self, class: usize, workload: usize) -> &Footprint {
        &self.known[self.index[class][workload]]
    }
}

/// A trace to read for one device.
struct FootprintJob<'a> {
    /// The first workload that has the trace.
    workload: &'a str,
    trace: &'a Path,
    profile: &'a StorageProfile,
}

/// A footprint, and whether it was known before.
struct FoundFootprint {
    entry: CachedFootprint,
    reused: bool,
}

/// Reads the traces of a problem, each once per kind of device, and tells the observer how that went.
///
/// # Errors
///
/// When a trace cannot be read or its bursts cannot be counted.
pub fn characterise(
    problem: &ClusterProblem,
    observer: &dyn ProgressObserver,
) -> Result<Footprints, OperationError> {
    let start = Instant::now();
    let (jobs, index) = jobs(problem);
    let cache = if problem.cached { FootprintCache::of_user() } else { FootprintCache::disabled() };
    let outcomes = in_parallel(observer, "reading traces", &jobs, |job| job.run(problem, &cache, observer))?;
    let elapsed = start.elapsed();
    report(&jobs, &outcomes, elapsed, observer);
    let known = outcomes.into_iter().map(|outcome| outcome.entry.footprint).collect();
    Ok(Footprints { known, index, elapsed })
}

/// Each trace once per work model: workloads and classes may share.
fn jobs(problem: &ClusterProblem) -> (Vec<FootprintJob<'_>>, Vec<Vec<usize>>) {
    let mut jobs = Vec::new();
    let mut numbers = BTreeMap::new();
    let mut index = Vec::new();
    for profile in &problem.profiles {
        let device = profile.work_key();
        let row = problem.workloads.iter().map(|workload| {
            *numbers.entry((device.clone(), workload.trace.as_path())).or_insert_with(|| {
                jobs.push(FootprintJob { workload: &workload.name, trace: &workload.trace, profile });
                jobs.len() - 1
            })
        });
        index.push(row.collect());
    }
    (jobs, index)
}

impl FootprintJob<'_> {
    fn run(
        &self,
        problem: &ClusterProblem,
        cache: &FootprintCache,
        observer: &dyn ProgressObserver,
    ) -> Result<FoundFootprint, OperationError> {
        let of_workload = |error: OperationError| {
            let workload = self.workload;
            error.about(format_args!("workload '{workload}'"))
        };
        if let Some(footprint) = stored::read(self.trace, self.profile).map_err(of_workload)? {
            return Ok(FoundFootprint { entry: CachedFootprint { skipped: 0, footprint }, reused: true });
        }
        let network = NetworkModel::default();
        // A file that cannot be hashed is not reported here: opening it as a trace fails with a better error.
        let key = cache
            .is_enabled()
            .then(|| key(self.trace, &problem.options, self.profile, &network).ok())
            .flatten();
        if let Some(entry) = key.as_ref().and_then(|key| cache.get(key)) {
            return Ok(FoundFootprint { entry, reused: true });
        }
        let entry = self.read(problem, network).map_err(of_workload)?;
        if let Some(key) = key {
            cache.put(&key, &entry, observer);
        }
        Ok(FoundFootprint { entry, reused: false })
    }

    fn read(
        &self,
        problem: &ClusterProblem,
        network: NetworkModel,
    ) -> Result<CachedFootprint, OperationError> {
        let wrong = |error: trace::TraceError| OperationError::input(&error).hint(error.hint());
        let mut reader = trace::open(self.trace, &problem.options).map_err(wrong)?;
        let mut builder = FootprintBuilder::new(network, self.profile);
        let burst = |error| OperationError::input(format_args!("{}: {error}", self.trace.display()));
        for request in reader.by_ref() {
            builder.push(&request.map_err(wrong)?).map_err(burst)?;
        }
        Ok(CachedFootprint { skipped: reader.skipped(), footprint: builder.finish().map_err(burst)? })
    }
}

fn report(
    jobs: &[FootprintJob],
    outcomes: &[FoundFootprint],
    elapsed: Duration,
    observer: &dyn ProgressObserver,
) {
    let reused = outcomes.iter().filter(|outcome| outcome.reused).count();
    let requests: u64 = outcomes.iter().map(|outcome| outcome.entry.footprint.requests()).sum();
    observer.notice(Notice::Done(format!(
        "traces: {} read, {reused} reused, {} in {}",
        outcomes.len() - reused,
        plural(requests, "request"),
        Seconds(elapsed.as_secs_f64())
    )));
    for (job, outcome) in jobs.iter().zip(outcomes) {
        if outcome.entry.skipped > 0 {
            let trace = job.trace.display();
            let skipped = outcome.entry.skipped;
            observer.notice(Notice::Warning(format!("{trace}: {} skipped", plural(skipped, "request"))));
        }
        let curve = outcome.entry.footprint.curve(Stage::NetworkIn);
        if curve.first() == curve.last() {
            let workload = job.workload;
            let trace = job.trace.display();
            observer.notice(Notice::Warning(format!(
                "workload '{workload}': all requests of {trace} arrive at one instant, which does not show how often that \
                 comes back: bounds hold for as much and no more"
            )));
        }
    }
}

//! A prediction problem: one kind of server with the traffic of every workload.

use crate::cluster::{
    ClusterProblem, ClusterSource, enforced_path, has_rules, read_groups, warn_of_preemption,
};
use model::{CircularTrace, Job, OperationError, ServerClass, Stage, WorkloadSpec};
use operation::parallel::in_parallel;
use operation::{Notice, ProgressObserver};
use predict::{Calibrated, CalibrationGoal, EnforcedPath, SloCalibration};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Instant;
use trace::OpenOptions;
use units::{Nanos, Percentile, Seconds, plural};
use workload::device::{NetworkModel, PathWork, StorageProfile};

/// Sources of a prediction problem: cluster, traces, and the stages of requests.
#[derive(Debug, Clone)]
pub struct PredictionSource {
    pub cluster: ClusterSource,
    /// Class of server; by default the first one with servers.
    pub class: Option<String>,
    /// True if requests pass only a network link, in both directions, and no storage.
    pub link_only: bool,
    /// File of the groups that may burst together; without it all workloads are independent.
    pub groups: Option<PathBuf>,
    /// True for preemptive servers, as in published formulas; no real server preempts.
    pub preemptive: bool,
    /// Promise of the calibrated model.
    pub calibration: CalibrationGoal,
}

impl PredictionSource {
    /// Independent workloads on enforced servers of the first class.
    pub fn new(cluster: ClusterSource) -> Self {
        let calibration = CalibrationGoal::default();
        Self { cluster, class: None, link_only: false, groups: None, preemptive: false, calibration }
    }
}

/// A workload and its requests.
#[derive(Debug, Clone)]
pub struct TracedWorkload {
    /// Name, trace and SLO of the workload.
    pub spec: WorkloadSpec,
    /// Workloads of the same group may burst together.
    pub group: usize,
    /// The requests of its trace as time at each stage; workloads with the same trace share them.
    pub traffic: Arc<CircularTrace<Job>>,
    /// Latency of its requests on the idle storage stack, seconds; added to every prediction.
    pub base_latency: f64,
    /// Arrival of its first request by the clock of the trace; `None` if the format counts from the first
    /// request.
    pub recorded_from: Option<Nanos>,
}

/// A cluster of one class of servers, with the traces of its workloads and the promise that models make.
#[derive(Debug)]
pub struct PredictionProblem {
    /// One class of servers, and all workloads that ask for a place. For a link alone, only name, number and bandwidth
    /// of the class count.
    pub cluster: ClusterProblem<TracedWorkload>,
    /// Enforcers' configuration of a server; `None` for preemptive servers, which serve for comparison.
    pub enforced: Option<EnforcedPath>,
    /// Promise of the calibrated model.
    pub calibration: CalibrationGoal,
    /// Calibrated models learnt so far, by a common percentile of all workloads if there is one.
    pub(super) learnt: Mutex<Vec<(Option<Percentile>, Arc<Calibrated>)>>,
    /// Load by which the calibrated model fills servers, once learnt.
    pub(super) slo_calibration: Mutex<Option<Arc<SloCalibration>>>,
}

impl PredictionProblem {
    /// Reads everything, the traces in parallel.
    ///
    /// # Errors
    ///
    /// If a file cannot be read, or the class of servers does not exist.
    pub fn read(source: &PredictionSource, observer: &dyn ProgressObserver) -> Result<Self, OperationError> {
        let class = source.class.as_deref();
        let described = ClusterProblem::read_class(&source.cluster, class, source.link_only, observer)?;
        if !described.hosts.is_empty() {
            return Err(OperationError::input(format_args!(
                "{}: there are client hosts ([[host]]), whose links predictions by a model do not count",
                described.origin.display()
            ))
            .hint(
                "`tailwright plan` and `tailwright explain` count them; leave out [[host]] and `host` to predict servers alone",
            ));
        }
        if let Some(spec) = described.workloads.iter().find(|spec| !spec.further_slos.is_empty()) {
            return Err(OperationError::input(format_args!(
                "{}: workload '{}' has several SLOs, of which predictions by a model count only one",
                described.origin.display(),
                spec.name
            ))
            .hint(format_args!(
                "`tailwright plan` and `tailwright explain` count all; leave one in the file to predict it, such as \
                 slo = \"{}\"",
                spec.slo
            )));
        }
        let class = &described.servers[0];
        let profile = described.profiles.first();
        let enforced = (!source.preemptive).then(|| enforced_path(class, profile));
        if source.preemptive {
            warn_of_preemption(observer);
        }
        let names: Vec<&str> = described.workloads.iter().map(|spec| spec.name.as_str()).collect();
        let groups = match &source.groups {
            Some(path) => read_groups(path, &names)?,
            None => (0..names.len()).collect(),
        };
        let path = PathWork::new(NetworkModel::default(), class.network, profile, described.safety_margin);
        let traffic = read_traces(&described.workloads, &path, &described.options, observer)?;
        let mut workloads = Vec::new();
        for ((spec, group), traffic) in described.workloads.iter().zip(groups).zip(traffic) {
            let RecordedTraffic { traffic, recorded_from, .. } = traffic;
            let longest = traffic.items().iter().map(|job| job.work[Stage::Storage]).max();
            let longest = Seconds(longest.map_or(0.0, Nanos::as_secs));
            let base_latency = profile.map_or(0.0, |profile| profile.base_latency_within(longest).0);
            workloads.push(TracedWorkload {
                spec: spec.clone(),
                group,
                traffic,
                base_latency,
                recorded_from,
            });
        }
        Ok(Self::new(described.with_workloads(workloads), enforced, source.calibration))
    }

    /// A problem of which no model has learnt anything yet.
    pub(super) fn new(
        cluster: ClusterProblem<TracedWorkload>,
        enforced: Option<EnforcedPath>,
        calibration: CalibrationGoal,
    ) -> Self {
        Self { cluster, enforced, calibration, learnt: Mutex::default(), slo_calibration: Mutex::default() }
    }

    /// Refuses a cluster file that says where workloads may go, for a search that does not keep that.
    ///
    /// # Errors
    ///
    /// If it does.
    pub fn check_without_rules(&self) -> Result<(), OperationError> {
        let ruled = self.cluster.workloads.iter().find(|workload| has_rules([&workload.spec]));
        let Some(TracedWorkload { spec, .. }) = ruled else { return Ok(()) };
        Err(OperationError::input(format_args!(
            "{}: workload '{}' has a rule on where it may go (size, on, apart or together), which plans by a model do not \
             keep",
            self.cluster.origin.display(),
            spec.name
        ))
        .hint("plan without --model, or admit one workload after the other (`tailwright admit`); both keep the rules"))
    }

    /// The class of the servers.
    pub fn server(&self) -> &ServerClass {
        &self.cluster.servers[0]
    }

    /// The storage of a server; `None` for a link alone.
    pub fn profile(&self) -> Option<&StorageProfile> {
        self.cluster.profiles.first()
    }

    /// The name, trace and SLO of a workload.
    pub fn spec(&self, workload: usize) -> &WorkloadSpec {
        &self.cluster.workloads[workload].spec
    }

    /// Returns the maximum number of priority levels at a stage of a server.
    pub(crate) fn levels_max(&self) -> usize {
        self.enforced.map_or(usize::MAX, |path| path.class.levels_max)
    }

    /// The distinct traces in order of appearance, and the number of each workload's among them.
    pub(super) fn distinct_traces(&self) -> (Vec<&Arc<CircularTrace<Job>>>, Vec<usize>) {
        let (mut distinct, mut numbers): (Vec<&Arc<_>>, Vec<usize>) = (Vec::new(), Vec::new());
        for workload in &self.cluster.workloads {
            let known = distinct.iter().position(|traffic| Arc::ptr_eq(traffic, &workload.traffic));
            numbers.push(known.unwrap_or_else(|| {
                distinct.push(&workload.traffic);
                distinct.len() - 1
            }));
        }
        (distinct, numbers)
    }

    /// Splits the problem into the first and the second halves of each trace, so that a decision by one can
    /// be judged by the other. `None` if half of a trace has no requests.
    pub fn halves(&self) -> Option<[Self; 2]> {
        let mut halves = [Vec::new(), Vec::new()];
        let (traces, numbers) = self.distinct_traces();
        let mut traffic = Vec::new();
        for trace in traces {
            traffic.push(trace.halves()?.map(Arc::new));
        }
        for (workload, number) in self.cluster.workloads.iter().zip(numbers) {
            for (half, traffic) in halves.iter_mut().zip(&traffic[number]) {
                let traffic = Arc::clone(traffic);
                half.push(TracedWorkload { traffic, recorded_from: None, ..workload.clone() });
            }
        }
        Some(halves.map(|workloads| self.with_workloads(workloads)))
    }

    /// Returns the problem with the work of every request multiplied by `factor`.
    #[must_use]
    pub fn with_work(&self, factor: f64) -> Self {
        let (traces, numbers) = self.distinct_traces();
        let traffic: Vec<_> = traces.into_iter().map(|trace| Arc::new(trace.with_work(factor))).collect();
        let mut workloads = self.cluster.workloads.clone();
        for (workload, number) in workloads.iter_mut().zip(numbers) {
            workload.traffic = Arc::clone(&traffic[number]);
        }
        self.with_workloads(workloads)
    }

    /// Returns the problem with the same servers and other workloads.
    #[must_use]
    pub fn with_workloads(&self, workloads: Vec<TracedWorkload>) -> Self {
        Self::new(self.cluster.with_workloads(workloads), self.enforced, self.calibration)
    }

    /// Latency of a workload's requests on the idle storage stack, seconds; added to every prediction.
    pub fn base_latency(&self, workload: usize) -> f64 {
        self.cluster.workloads[workload].base_latency
    }
}

/// The traffic of a trace, as it is kept.
#[derive(Clone)]
struct RecordedTraffic {
    traffic: Arc<CircularTrace<Job>>,
    /// When its first request came by the clock of the trace.
    recorded_from: Option<Nanos>,
    /// The number of malformed requests that were passed over.
    skipped: u64,
}

/// The traffic of every workload on its path; a trace that several of them have is read once.
fn read_traces(
    workloads: &[WorkloadSpec],
    path: &PathWork,
    options: &OpenOptions,
    observer: &dyn ProgressObserver,
) -> Result<Vec<RecordedTraffic>, OperationError> {
    let start = Instant::now();
    let mut number_of_file = BTreeMap::new();
    // Each file with the first workload that has it, for errors.
    let mut files: Vec<(&Path, &str)> = Vec::new();
    let mut numbers = Vec::with_capacity(workloads.len());
    for spec in workloads {
        let file = spec.trace.as_path();
        numbers.push(*number_of_file.entry(file).or_insert_with(|| {
            files.push((file, &spec.name));
            files.len() - 1
        }));
    }
    let read = in_parallel(observer, "reading traces", &files, |(file, workload)| {
        read_traffic(file, path.clone(), options)
            .map_err(|error| error.about(format_args!("workload '{workload}'")))
    })?;
    let requests: usize = read.iter().map(|read| read.traffic.items().len()).sum();
    let elapsed = Seconds(start.elapsed().as_secs_f64());
    let count = read.len();
    observer
        .notice(Notice::Done(format!("traces: {count} read, {} in {elapsed}", plural(requests, "request"))));
    for ((file, _), RecordedTraffic { skipped, .. }) in files.into_iter().zip(&read) {
        if *skipped > 0 {
            let trace = file.display();
            observer.notice(Notice::Warning(format!("{trace}: {} skipped", plural(*skipped, "request"))));
        }
    }
    Ok(numbers.into_iter().map(|number| read[number].clone()).collect())
}

/// Reads the traffic of a trace on its path.
fn read_traffic(
    file: &Path,
    mut path: PathWork,
    options: &OpenOptions,
) -> Result<RecordedTraffic, OperationError> {
    let wrong = |error: trace::TraceError| OperationError::input(&error).hint(error.hint());
    let mut reader = trace::open(file, options).map_err(wrong)?;
    let mut jobs = Vec::new();
    let mut bytes = 0;
    for request in reader.by_ref() {
        let request = request.map_err(wrong)?;
        bytes += u128::from(request.size.0);
        jobs.push(path.job(&request));
    }
    check_work(file, &jobs, bytes)?;
    let recorded_from = jobs.first().map(|job: &Job| job.arrival).filter(|_| !reader.format().has_epoch());
    let traffic = CircularTrace::repeating(jobs);
    let traffic =
        traffic.map_err(|error| OperationError::input(format_args!("{}: {error}", file.display())))?;
    Ok(RecordedTraffic { traffic: Arc::new(traffic), recorded_from, skipped: reader.skipped() })
}

/// Maximum work of a trace summed over stages, nanoseconds, and maximum bytes: sums and products of the
/// models stay within 64 bits.
const WORK_MAX: u128 = 1 << 60;
const BYTES_MAX: u128 = 10_u128.pow(16);

/// Refuses a trace with more work than models can count.
fn check_work(file: &Path, jobs: &[Job], bytes: u128) -> Result<(), OperationError> {
    let work: u128 = jobs.iter().flat_map(|job| job.work.into_array()).map(|work| u128::from(work.0)).sum();
    if work <= WORK_MAX && bytes <= BYTES_MAX {
        return Ok(());
    }
    Err(OperationError::input(format_args!(
        "{}: the requests have more than 1e16 bytes, or take a server more than 36 years: expected less",
        file.display()
    ))
    .hint("check the sizes in the trace, the bandwidth of the links and the device profile"))
}

//! The work of a trace by the clock of the trace.

use crate::prediction::{PredictionProblem, TracedWorkload};
use model::{CircularTrace, Job, OperationError, PerStage};
use operation::ProgressObserver;
use operation::parallel::in_parallel;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use trace::OpenOptions;
use units::Nanos;

/// A trace with the instants at which it was recorded.
#[derive(Debug, Clone)]
pub struct RecordedStream {
    /// The name of the workload or file.
    pub name: String,
    /// Requests. The work of a request is that at its largest stage.
    pub traffic: Arc<CircularTrace<Job>>,
    /// When its first request came by the clock of the trace; `None` where the format counts from the first request.
    pub recorded_from: Option<Nanos>,
}

/// Why something cannot be tested.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Untested {
    /// Nothing says that the instants of the two traces count from the same origin.
    NoCommonClock,
    /// The instants of one of the traces count from its first request.
    OwnOrigin,
    /// The traces were recorded at other times, or overlap too little.
    OtherTimes,
    /// Both workloads have the same trace.
    SameTrace,
    /// So many requests are needed, and one of the traces has so many.
    TooFewRequests { found: usize, needed: usize },
    /// The recording is shorter than this many seconds.
    TooShort(f64),
    /// Neighbouring parts of so many seconds are still alike, so that a change cannot be told from long memory.
    LongMemory(f64),
}

impl RecordedStream {
    /// Its requests by the clock of the trace, in order of arrival: instant in nanoseconds and work.
    pub(super) fn work(&self) -> impl Iterator<Item = (u64, f64)> + '_ {
        let origin = self.recorded_from.unwrap_or(Nanos::ZERO).0;
        self.traffic.items().iter().map(move |job| (origin + job.arrival.0, largest_stage(job)))
    }

    /// When the first and the last request came, nanoseconds by the clock of the trace.
    pub(super) fn span(&self) -> (u64, u64) {
        let origin = self.recorded_from.unwrap_or(Nanos::ZERO).0;
        let last = self.traffic.items().last().map_or(0, |job| job.arrival.0);
        (origin, origin + last)
    }
}

fn largest_stage(job: &Job) -> f64 {
    job.work.iter().map(|(_, work)| work.0).max().unwrap_or(0) as f64
}

/// The streams of the workloads of a problem, in their order.
pub fn recorded_workloads(problem: &PredictionProblem) -> Vec<RecordedStream> {
    let stream = |workload: &TracedWorkload| RecordedStream {
        name: workload.spec.name.clone(),
        traffic: Arc::clone(&workload.traffic),
        recorded_from: workload.recorded_from,
    };
    problem.cluster.workloads.iter().map(stream).collect()
}

/// Reads traces as streams whose work is their bytes.
///
/// # Errors
/// When a trace cannot be read.
pub fn read_streams(
    files: &[PathBuf],
    options: &OpenOptions,
    observer: &dyn ProgressObserver,
) -> Result<Vec<RecordedStream>, OperationError> {
    in_parallel(observer, "reading traces", files, |file| read_stream(file, options))
}

fn read_stream(file: &Path, options: &OpenOptions) -> Result<RecordedStream, OperationError> {
    let wrong = |error: trace::TraceError| OperationError::input(&error).hint(error.hint());
    let mut reader = trace::open(file, options).map_err(wrong)?;
    let mut jobs = Vec::new();
    for request in reader.by_ref() {
        let request = request.map_err(wrong)?;
        jobs.push(Job { arrival: request.arrival, work: PerStage::from_fn(|_| Nanos(request.size.0)) });
    }
    let first = jobs.first().map(|job| job.arrival).filter(|_| !reader.format().has_epoch());
    let traffic = CircularTrace::repeating(jobs);
    let traffic =
        traffic.map_err(|error| OperationError::input(format_args!("{}: {error}", file.display())))?;
    let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy().into_owned();
    Ok(RecordedStream { name, traffic: Arc::new(traffic), recorded_from: first })
}

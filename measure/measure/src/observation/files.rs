//! The files that an observation writes: each gets every request as it comes, and is whole or not there.

use crate::observation::finding::Finding;
use crate::observation::latency_log::LatencyLog;
use crate::observation::metrics::MetricsFile;
use crate::observation::record::{RecordedTrace, TraceRecorder};
use crate::observation::server_recording::ServerRecording;
use crate::observation::slowest::SlowestRequests;
use model::OperationError;
use observe::{Cause, CounterReport, ObservedRequest, RequestPoint, observations};
use operation::ProgressObserver;
use operation::files::{check_apart, check_writable};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use trace::TraceError;
use trace::check_observations;
use trace::observations::{ColumnValues, FurtherColumn, write_with};
use trace::recording::{RecordingSettings, is_recording_name};

/// Files that an observation writes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ObservationFiles {
    /// Every request with its stages, as observations; these are kept in memory until the end.
    pub observations: Option<PathBuf>,
    /// The requests as a trace, or, by the name of a folder, as a recording; written as they come.
    pub record: Option<PathBuf>,
    /// How a recording is written.
    pub recording: RecordingSettings,
    /// Latencies as an interval log of HdrHistogram, written as they come.
    pub latency_log: Option<PathBuf>,
    /// Counters for Prometheus, replaced every second while requests come.
    pub metrics: Option<PathBuf>,
    /// The slowest requests with their stages, as a trace for Perfetto; and how many.
    pub slowest: Option<(PathBuf, usize)>,
    /// A page that the caller writes when the observation is over: its place is checked with the others.
    pub report: Option<PathBuf>,
}

impl ObservationFiles {
    /// Refuses two files at one place, and places where nothing can be written.
    fn check(&self) -> Result<(), OperationError> {
        let slowest = self.slowest.as_ref().map(|(path, _)| path);
        let all = [
            self.observations.as_deref(),
            self.record.as_deref(),
            self.latency_log.as_deref(),
            self.metrics.as_deref(),
            slowest.map(PathBuf::as_path),
            self.report.as_deref(),
        ];
        for (at, path) in all.iter().enumerate() {
            check_apart(*path, all[..at].iter().copied())?;
        }
        check_observations(self.observations.as_deref())?;
        let at_the_end = [(slowest, "trace of the slowest requests"), (self.report.as_ref(), "report")];
        at_the_end
            .into_iter()
            .filter_map(|(path, what)| Some((path?, what)))
            .try_for_each(|(path, what)| check_writable(Some(path), what))
    }
}

/// The files while they are written.
pub(super) struct OpenFiles {
    observations: Option<(PathBuf, Vec<(ObservedRequest, Cause)>)>,
    /// CLOCK_REALTIME − CLOCK_MONOTONIC at the beginning, in nanoseconds.
    real_time_offset: u64,
    record: Option<TraceRecorder>,
    recording: Option<ServerRecording>,
    latency_log: Option<LatencyLog>,
    metrics: Option<MetricsFile>,
    slowest: Option<(PathBuf, SlowestRequests)>,
}

impl OpenFiles {
    /// Begins those files that are wanted.
    pub(super) fn create(
        files: &ObservationFiles,
        ports: &BTreeSet<u16>,
        observer: impl ProgressObserver + Send + 'static,
    ) -> Result<Self, OperationError> {
        files.check()?;
        let (folder, trace) = match files.record.as_deref() {
            Some(path) if is_recording_name(path) => (Some(path), None),
            path => (None, path),
        };
        let log = |path: &PathBuf| LatencyLog::create(path, machine::clock::now());
        let metrics = |path: &PathBuf| MetricsFile::create(path, ports.iter().copied());
        Ok(Self {
            observations: files.observations.clone().map(|path| (path, Vec::new())),
            real_time_offset: machine::clock::real_time().saturating_sub(machine::clock::now()),
            record: trace.map(TraceRecorder::create).transpose()?,
            recording: folder
                .map(|folder| ServerRecording::begin(folder, files.recording, ports, observer))
                .transpose()?,
            latency_log: files.latency_log.as_ref().map(log).transpose()?,
            metrics: files.metrics.as_ref().map(metrics).transpose()?,
            slowest: files.slowest.clone().map(|(path, count)| (path, SlowestRequests::new(count))),
        })
    }

    /// Gives a request to all. One that fails is given up and the others go on.
    pub(super) fn take(&mut self, request: &ObservedRequest, cause: Cause) -> Result<(), OperationError> {
        if let Some((_, requests)) = &mut self.observations {
            requests.push((*request, cause));
        }
        if let Some(recording) = &mut self.recording {
            recording.take(request);
        }
        if let Some((_, slowest)) = &mut self.slowest {
            slowest.take(request);
        }
        let taken = [
            give(&mut self.record, |record| record.take(request)),
            give(&mut self.latency_log, |log| log.take(request)),
            give(&mut self.metrics, |metrics| metrics.take(request)),
        ];
        taken.into_iter().collect()
    }

    /// Returns true if counters of the kernel are wanted while the observation runs.
    pub(super) fn wants_counters(&self) -> bool {
        self.metrics.is_some()
    }

    /// Notes how many runs of the programs in the kernel were skipped until now.
    pub(super) fn note_skipped_runs(&mut self, runs: u64) {
        if let Some(metrics) = &mut self.metrics {
            metrics.note_skipped_runs(runs);
        }
    }

    /// Notes the growth of counters of the kernel since the observation began.
    pub(super) fn note_counters(&mut self, report: &CounterReport) {
        if let Some(metrics) = &mut self.metrics {
            metrics.note_counters(report);
        }
    }

    /// Notes the answer of the observation.
    pub(super) fn note_finding(&mut self, finding: &Finding) {
        if let Some(metrics) = &mut self.metrics {
            metrics.note_finding(finding);
        }
    }

    /// Puts all in their places, those after one that fails as well. The trace, and the first failure.
    pub(super) fn finish(self) -> (Option<RecordedTrace>, Result<(), OperationError>) {
        let recorded = match self.recording {
            Some(recording) => recording.finish(),
            None => self.record.map_or(Ok(None), TraceRecorder::finish),
        };
        let written = [
            self.latency_log.map_or(Ok(()), LatencyLog::finish),
            self.metrics.map_or(Ok(()), |metrics| metrics.write()),
            self.slowest.map_or(Ok(()), |(path, slowest)| slowest.write(&path)),
            self.observations.map_or(Ok(()), |(path, requests)| {
                write_observations(&path, requests, self.real_time_offset)
                    .map_err(|error| OperationError::machine(&error).hint(error.hint()))
            }),
        ];
        let written = written.into_iter().collect();
        match recorded {
            Ok(recorded) => (recorded, written),
            Err(error) => (None, Err(error)),
        }
    }
}

/// Writes requests with three further columns: when each arrived by the clock of the wall, its client, and the cause with
/// most of its time.
fn write_observations(
    path: &Path,
    mut requests: Vec<(ObservedRequest, Cause)>,
    real_time_offset: u64,
) -> Result<(), TraceError> {
    // The order of observations, so that each value stands in its row.
    requests.sort_by_key(|(request, _)| (request.at(RequestPoint::Wire), request.peer, request.points));
    let unix_ns = |request: &ObservedRequest| real_time_offset + request.at(RequestPoint::Wire);
    let arrivals = requests.iter().map(|(request, _)| unix_ns(request)).collect();
    let clients = requests.iter().map(|(request, _)| request.peer.to_string()).collect();
    let causes = requests.iter().map(|(_, cause)| cause.name().to_owned()).collect();
    let further = [
        FurtherColumn { name: "arrival_unix_ns", values: ColumnValues::Integers(arrivals) },
        FurtherColumn { name: "client", values: ColumnValues::Texts(clients) },
        FurtherColumn { name: "cause", values: ColumnValues::Texts(causes) },
    ];
    let rows = observations(requests.into_iter().map(|(request, _)| request).collect());
    write_with(path, &rows, &further)
}

/// Gives a request to a file, which is given up, and removed, when that fails.
fn give<F>(
    file: &mut Option<F>,
    take: impl FnOnce(&mut F) -> Result<(), OperationError>,
) -> Result<(), OperationError> {
    let taken = file.as_mut().map_or(Ok(()), take);
    if taken.is_err() {
        *file = None;
    }
    taken
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::testing::request;
    use operation::Silent;

    #[test]
    fn places_are_looked_at_before_the_observation() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| Some(folder.path().join(name));
        let nowhere = place("no/such/folder/x.csv");
        let slowest = |path: Option<PathBuf>| path.map(|path| (path, 3));
        for files in [
            ObservationFiles { record: nowhere.clone(), ..ObservationFiles::default() },
            ObservationFiles { latency_log: nowhere.clone(), ..ObservationFiles::default() },
            ObservationFiles { metrics: nowhere.clone(), ..ObservationFiles::default() },
            ObservationFiles { observations: nowhere.clone(), ..ObservationFiles::default() },
            ObservationFiles { slowest: slowest(nowhere.clone()), ..ObservationFiles::default() },
            ObservationFiles { report: nowhere.clone(), ..ObservationFiles::default() },
            ObservationFiles {
                record: place("a.csv"),
                metrics: place("a.csv"),
                ..ObservationFiles::default()
            },
        ] {
            assert!(OpenFiles::create(&files, &[80].into(), Silent).is_err(), "{files:?}");
        }
        assert_eq!(
            std::fs::read_dir(folder.path()).expect("it is ours").count(),
            0,
            "nothing is left behind"
        );
    }

    #[test]
    fn one_place_is_recognised_by_all_its_names() {
        let folder = tempfile::tempdir().expect("a folder");
        let named = |name: &str| Some(folder.path().join(name));
        let link = |to: &str, name: &str| std::os::unix::fs::symlink(to, folder.path().join(name));
        std::fs::create_dir(folder.path().join("in")).expect("it is ours");
        link("in/a.csv", "to-a").and(link("in", "to-in")).and(link("to-a", "to-to-a")).expect("it is ours");
        for other in ["in/a.csv", "./in/a.csv", "in/../in/a.csv", "to-a", "to-in/a.csv", "to-to-a"] {
            let pair = ObservationFiles {
                record: named("in/a.csv"),
                metrics: named(other),
                ..ObservationFiles::default()
            };
            let with_report = ObservationFiles { metrics: None, report: named(other), ..pair.clone() };
            for files in [pair, with_report] {
                let error = files.check().expect_err("two results would be one file");
                assert!(error.message.contains("expected another file"), "{error}");
            }
        }
        let files = ObservationFiles {
            record: named("in/a.csv"),
            report: named("a.csv"),
            ..ObservationFiles::default()
        };
        assert_eq!(files.check(), Ok(()), "two folders");
    }

    #[test]
    fn who_fails_to_take_a_request_is_given_up_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        let mut open = OpenFiles::create(
            &ObservationFiles {
                latency_log: Some(place("live.hlog")),
                record: Some(place("live.csv")),
                ..ObservationFiles::default()
            },
            &[80].into(),
            Silent,
        )
        .expect("all places are there");
        let full = give(&mut open.latency_log, |_| Err(OperationError::machine("the disk is full")));
        assert!(full.is_err());
        open.take(&request(1, 1, 10), Cause::Work).expect("the other one has room");
        let (recorded, written) = open.finish();
        assert_eq!((recorded.map(|recorded| recorded.requests), written), (Some(1), Ok(())));
        let left: Vec<_> = std::fs::read_dir(folder.path())
            .expect("it is ours")
            .flatten()
            .map(|file| file.file_name())
            .collect();
        assert_eq!(left, ["live.csv"]);
    }

    #[test]
    fn a_file_that_cannot_be_finished_does_not_keep_others_from_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(name);
        std::fs::create_dir(place("gone")).expect("it is ours");
        let files = ObservationFiles {
            latency_log: Some(place("gone/live.hlog")),
            record: Some(place("live.csv")),
            slowest: Some((place("slow.json"), 5)),
            ..ObservationFiles::default()
        };
        let mut open = OpenFiles::create(&files, &[80].into(), Silent).expect("all places are there");
        open.take(&request(1, 1, 10), Cause::Work).expect("there is room");
        std::fs::remove_dir_all(place("gone")).expect("it is ours");
        let (recorded, written) = open.finish();
        let error = written.expect_err("a folder is gone");
        assert_eq!(recorded.map(|recorded| recorded.requests), Some(1));
        assert!(error.to_string().contains("live.hlog"), "{error}");
        assert!(place("live.csv").exists() && place("slow.json").exists());
    }

    #[test]
    fn who_stops_half_way_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| Some(folder.path().join(name));
        let files = ObservationFiles {
            record: place("live.parquet"),
            latency_log: place("live.hlog"),
            ..ObservationFiles::default()
        };
        let mut open = OpenFiles::create(&files, &[80].into(), Silent).expect("all places are there");
        open.take(&request(1, 1, 10), Cause::Work).expect("there is room");
        drop(open);
        assert_eq!(std::fs::read_dir(folder.path()).expect("it is ours").count(), 0);
    }
}

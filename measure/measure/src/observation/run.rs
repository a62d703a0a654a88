//! An observation with everything that is made of it.

use crate::observation::files::{ObservationFiles, OpenFiles};
use crate::observation::finding::{Finding, FindingInput, finding};
use crate::observation::ideal::{IdealAssumptions, IdealComparison, compare};
use crate::observation::live::{LiveState, ServerWatcher};
use crate::observation::live_metrics::PublishedMetrics;
use crate::observation::mean_wait::{VarianceView, variance_view};
use crate::observation::near::{StagesNear, stages_near};
use crate::observation::record::RecordedTrace;
use crate::observation::sample::{REQUESTS_MAX, RequestRun, RequestSample};
use machine::listening::is_any_listening;
use model::OperationError;
use observe::{
    Cause, ObservationEnd, ObservationProgress, ObservationReport, ObservationSettings, ObservationWatcher,
    ObservedRequest, ProbeSettings, watch,
};
use operation::ProgressObserver;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Maximum number of requests of a part that are kept for its finding, about 9 MB.
const PART_REQUESTS_MAX: usize = 1 << 16;

/// What is asked about a live server.
#[derive(Debug, Clone)]
pub struct ServerQuestion {
    /// What is observed, and for how long.
    pub settings: ObservationSettings,
    /// What is known for the ideal.
    pub assumed: IdealAssumptions,
    /// Files that are written on the way.
    pub files: ObservationFiles,
}

/// What was seen of a live server, and what follows.
#[derive(Debug, Clone)]
pub struct ServerObservation {
    /// The answer: how long the tail is, what it consists of, and what to do next.
    pub finding: Finding,
    /// What the observation came to.
    pub report: ObservationReport,
    /// What the arrivals alone would have caused; `None` without requests.
    pub ideal: Option<IdealComparison>,
    /// What variance is worth; `None` when the workers have too much to do.
    pub variance: Option<VarianceView>,
    /// Where the time went of requests near a percentile.
    pub near: Vec<StagesNear>,
    /// The trace, if one was to be written, there were requests, and it is in its place.
    pub recorded: Option<RecordedTrace>,
    /// Whether all files are in their places; otherwise the first failure, which is for the caller to pass on when the
    /// rest has been shown.
    pub written: Result<(), OperationError>,
}

/// Observes a server until the time is over, `stop` is set or the server ends; with `metrics`, publishes them
/// each second.
///
/// # Errors
/// If observing is refused, or a file cannot be created. A file that fails later ends the observation and sets
/// `stop`; the failure is in [`ServerObservation::written`], and the other files are finished.
pub fn watch_server(
    question: &ServerQuestion,
    stop: &AtomicBool,
    watcher: &mut dyn ServerWatcher,
    metrics: Option<PublishedMetrics>,
    observer: impl ProgressObserver + Send + 'static,
) -> Result<ServerObservation, OperationError> {
    let ports = &question.settings.probes.ports;
    let mut run = WatchedRun {
        question,
        sample: RequestSample::new(REQUESTS_MAX),
        part: RequestSample::new(PART_REQUESTS_MAX),
        judging: None,
        files: OpenFiles::create(&question.files, ports, observer)?,
        written: Ok(()),
        is_stopped_by_file: false,
        live: LiveState::new(watcher, metrics, ports.iter().copied()),
        stop,
    };
    let report = watch(&question.settings, stop, &mut run);
    run.live.ended();
    let mut report = report?;
    let WatchedRun { sample, mut files, written, is_stopped_by_file, .. } = run;
    if is_stopped_by_file && report.end == ObservationEnd::Stopped {
        report.end = ObservationEnd::WriteFailed;
    }
    files.note_skipped_runs(report.skipped_runs);
    files.note_counters(&report.counters);
    let requests_seen = sample.seen();
    // A few requests that do not stand for the others say nothing about the server.
    let runs = if report.is_blind() { Vec::new() } else { sample.into_runs() };
    let ideal = compare(&runs, requests_seen, question.assumed);
    let variance = ideal.as_ref().and_then(|ideal| variance_view(&ideal.moments, ideal.workers));
    let found = finding_of(&question.settings.probes, &report, &runs, ideal.as_ref(), variance.as_ref());
    files.note_finding(&found);
    let (recorded, finished) = files.finish();
    Ok(ServerObservation {
        finding: found,
        report,
        ideal,
        variance,
        near: stages_near(&runs),
        recorded,
        written: written.and(finished),
    })
}

fn finding_of(
    asked: &ProbeSettings,
    report: &ObservationReport,
    runs: &[RequestRun],
    ideal: Option<&IdealComparison>,
    variance: Option<&VarianceView>,
) -> Finding {
    finding(&FindingInput {
        asked,
        report,
        runs,
        ideal,
        variance,
        is_kernel_thread: machine::thread_state::is_kernel_thread,
        is_listening: is_any_listening(&asked.ports),
    })
}

/// Everybody who gets the requests of an observation.
struct WatchedRun<'a> {
    question: &'a ServerQuestion,
    sample: RequestSample,
    /// Requests of the part of the observation that is not over, for a scraper.
    part: RequestSample,
    /// Computes the finding of the part before.
    judging: Option<JoinHandle<()>>,
    files: OpenFiles,
    written: Result<(), OperationError>,
    /// Whether nobody else had stopped the observation when a file failed.
    is_stopped_by_file: bool,
    live: LiveState<'a>,
    stop: &'a AtomicBool,
}

impl ObservationWatcher for WatchedRun<'_> {
    fn attached(&mut self) {
        self.live.attached();
    }

    fn window_begins(&mut self) {
        self.sample.pause();
    }

    fn take(&mut self, request: &ObservedRequest, cause: Cause) {
        self.sample.add(request);
        if self.live.published().is_some() {
            self.part.add(request);
        }
        self.live.take(request);
        let taken = self.files.take(request, cause);
        if taken.is_err() {
            self.is_stopped_by_file |= !self.stop.swap(true, Ordering::Relaxed);
            self.written = self.written.clone().and(taken);
        }
    }

    fn progress(&mut self, progress: &ObservationProgress<'_>) {
        self.files.note_skipped_runs(progress.skipped_runs);
        self.files.note_counters(progress.counters);
        self.live.progress(progress);
    }

    fn wants_parts(&self) -> bool {
        self.live.published().is_some() || self.files.wants_counters()
    }

    /// Judges a part in a thread of its own, because the kernel drops events that are not read in time.
    fn part_over(&mut self, report: ObservationReport) {
        let part = std::mem::replace(&mut self.part, RequestSample::new(PART_REQUESTS_MAX));
        let Some(published) = self.live.published().cloned() else { return };
        if self.judging.as_ref().is_some_and(|thread| !thread.is_finished()) {
            return;
        }
        let asked = self.question.settings.probes.clone();
        let assumed = self.question.assumed;
        self.judging = Some(std::thread::spawn(move || {
            let requests_seen = part.seen();
            let runs = if report.is_blind() { Vec::new() } else { part.into_runs() };
            let ideal = compare(&runs, requests_seen, assumed);
            let variance = ideal.as_ref().and_then(|ideal| variance_view(&ideal.moments, ideal.workers));
            let found = finding_of(&asked, &report, &runs, ideal.as_ref(), variance.as_ref());
            published.publish_finding(found);
        }));
    }

    fn ends_with_server(&self) -> bool {
        self.live.ends_with_server()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use observe::IntendedWaits;
    use std::path::PathBuf;
    use std::time::Duration;

    /// Removes a folder when the probes are attached.
    struct Remover(PathBuf);

    impl ServerWatcher for Remover {
        fn attached(&mut self) {
            std::fs::remove_dir_all(&self.0).expect("it is ours");
        }
    }

    #[test]
    fn what_was_seen_is_there_when_a_file_fails() {
        let folder = tempfile::tempdir().expect("a folder");
        let gone = folder.path().join("gone");
        std::fs::create_dir(&gone).expect("it is ours");
        let question = ServerQuestion {
            settings: ObservationSettings {
                probes: ProbeSettings { ring_bytes: 1 << 16, ..ProbeSettings::of_ports([1]) },
                duration: Duration::from_millis(10),
                cost_duration: Duration::ZERO,
                intended_waits: IntendedWaits::Included,
                cost_limit: None,
            },
            assumed: IdealAssumptions { service: None, workers: None },
            files: ObservationFiles {
                latency_log: Some(gone.join("live.hlog")),
                metrics: Some(folder.path().join("live.prom")),
                ..ObservationFiles::default()
            },
        };
        let stop = AtomicBool::new(false);
        match watch_server(&question, &stop, &mut Remover(gone), None, operation::Silent) {
            Err(error) if !observe::missing_rights().is_empty() => testkit::skip(&error.to_string()),
            Err(error) => panic!("{error}"),
            Ok(observation) => {
                let error = observation.written.expect_err("its folder is gone");
                assert!(error.message.contains("live.hlog"), "{error}");
                assert_eq!(observation.report.statistics.count(), 0);
            }
        }
    }
}

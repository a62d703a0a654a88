//! An observation while it runs: events are drained, put in order, joined, and summed up.

use crate::causes::{CauseObserver, CauseReport};
use crate::counters::{CounterReport, CounterWatch};
use crate::event::{EventKind, KernelEvent};
use crate::join::{JoinCounts, RequestJoiner};
use crate::observing::{
    AcceptQueue, MeasuredCost, ObservationEnd, ObservationProgress, ObservationReport, ObservationSettings,
    ObservationWatcher,
};
use crate::order::EventOrder;
use crate::probe::{AttachedProbes, may_measure_cost};
use crate::request::{ObservedRequest, RequestPoint};
use crate::statistics::{LatencyHistogram, RequestStatistics};
use machine::clock::now;
use machine::cpu_time;
use machine::listening::is_any_listening;
use model::OperationError;
use std::collections::BTreeSet;
use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time between two looks at the events.
pub(crate) const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// The time between two looks at what changes slowly: whether the server still lives, how many runs were skipped.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Length of a part of an observation, if so many requests arrive in it; otherwise the longer one.
const PART_TIME: Duration = Duration::from_secs(10);
const PART_REQUESTS: u64 = 2_000;
const PART_TIME_MAX: Duration = Duration::from_secs(60);

/// Interval between readings of the kernel's counters while an observation runs.
const COUNTER_INTERVAL: Duration = Duration::from_secs(5);

/// The part of an observation that is not over, and the sums when it began.
struct ObservationPart {
    begun: Instant,
    statistics: RequestStatistics,
    counts: JoinCounts,
    lost_events: u64,
    skipped_runs: u64,
    events: u64,
    counters: CounterReport,
}

/// How many runs the kernel had skipped, and when it was asked: it answers by a file for each program.
#[derive(Default)]
struct SkippedRuns {
    runs: u64,
    asked: Option<Instant>,
}

impl SkippedRuns {
    /// Asks again, unless the last answer is young.
    fn update(&mut self, probes: &AttachedProbes) {
        if self.asked.is_none_or(|asked| asked.elapsed() >= LOOK_INTERVAL) {
            *self = Self { runs: probes.skipped_runs(), asked: Some(Instant::now()) };
        }
    }
}

/// What is known while an observation runs.
pub(crate) struct RunningObservation {
    order: EventOrder,
    pub(crate) joiner: RequestJoiner,
    /// Requests that the last event has completed; empty, to use its room again.
    finished: Vec<ObservedRequest>,
    statistics: RequestStatistics,
    causes: CauseObserver,
    pub(crate) counters: CounterWatch,
    /// Counters when they were last read in the middle of the observation, and when that was.
    counters_read: (CounterReport, Instant),
    part: Option<ObservationPart>,
    /// What the hypervisor had taken before.
    stolen_before: Option<u64>,
    accept_waits: Option<LatencyHistogram>,
    readers: BTreeSet<u32>,
    /// Those that serve and have not ended, as far as known.
    processes: BTreeSet<u32>,
    had_server: bool,
    pub(crate) events: u64,
    /// Since when all programs report. Events before are left out: an answer whose writing was seen, and not its
    /// transmission, would end with that of the next one.
    since: u64,
    /// Requests count that arrive (T0) in this time.
    pub(crate) counted: Range<u64>,
    /// What could not be joined in windows that are over.
    counts_before: JoinCounts,
    pub(crate) start: Instant,
    last_life_check: Instant,
    skipped: SkippedRuns,
    is_measuring: bool,
    cost: Option<MeasuredCost>,
}

impl RunningObservation {
    pub(crate) fn new(settings: &ObservationSettings, is_measuring: bool) -> Self {
        let start = Instant::now();
        let mut counters = CounterWatch::new(&settings.probes.ports);
        if settings.cost_limit.is_none() {
            counters.begin();
        }
        Self {
            order: EventOrder::default(),
            joiner: RequestJoiner::of_protocol(settings.probes.protocol),
            finished: Vec::new(),
            statistics: RequestStatistics::default(),
            causes: CauseObserver::new(settings.intended_waits),
            counters,
            counters_read: (CounterReport::default(), start),
            part: None,
            stolen_before: cpu_time::stolen(),
            accept_waits: settings.probes.accepts.then(LatencyHistogram::default),
            readers: BTreeSet::new(),
            processes: BTreeSet::new(),
            had_server: false,
            events: 0,
            since: now(),
            counted: 0..u64::MAX,
            counts_before: JoinCounts::default(),
            start,
            last_life_check: start,
            skipped: SkippedRuns::default(),
            is_measuring,
            cost: None,
        }
    }

    /// Nothing is known of what happened since the last window. Requests do not count until it is said from when on.
    pub(crate) fn begin_window(&mut self, settings: &ObservationSettings) {
        self.order = EventOrder::default();
        self.joiner = RequestJoiner::of_protocol(settings.probes.protocol);
        self.causes.forget_threads();
        (self.since, self.counted) = (now(), 0..0);
        // Processes that have ended while nobody looked have successors, which are seen when they read.
        self.last_life_check = Instant::now();
    }

    /// Joins what there is, and notes what could not be joined since `before`. Returns how many requests of those that
    /// count are left without an answer.
    pub(crate) fn end_window(&mut self, before: JoinCounts, watcher: &mut dyn ObservationWatcher) -> u64 {
        std::mem::take(&mut self.order).finish(|event| self.join(&event, watcher));
        let cut_off = self.joiner.open_between(&self.counted);
        let counts = self.joiner.counts().since(before);
        self.end_joining(watcher);
        let unanswered = counts.unanswered + cut_off;
        self.counts_before = self.counts_before.plus(JoinCounts { unanswered, ..counts });
        self.joiner = RequestJoiner::new();
        cut_off
    }

    /// Why the observation ends, whatever becomes of the server.
    pub(crate) fn reason_to_stop(
        &self,
        settings: &ObservationSettings,
        stop: &AtomicBool,
    ) -> Option<ObservationEnd> {
        if stop.load(Ordering::Relaxed) {
            return Some(ObservationEnd::Stopped);
        }
        (self.start.elapsed() >= settings.duration).then_some(ObservationEnd::Over)
    }

    pub(crate) fn reason_to_end(
        &mut self,
        settings: &ObservationSettings,
        stop: &AtomicBool,
        watcher: &dyn ObservationWatcher,
    ) -> Option<ObservationEnd> {
        let stopped = self.reason_to_stop(settings, stop);
        if stopped.is_some() {
            return stopped;
        }
        if watcher.ends_with_server() && self.last_life_check.elapsed() >= LOOK_INTERVAL {
            self.last_life_check = Instant::now();
            return self.has_server_ended(settings).then_some(ObservationEnd::ServerEnded);
        }
        None
    }

    /// Whether there was a server, all who were seen to serve have ended, and nobody listens whose children may serve yet.
    fn has_server_ended(&mut self, settings: &ObservationSettings) -> bool {
        self.had_server |= !self.processes.is_empty();
        // Those that have ended are forgotten: servers with a process for each connection have many.
        self.processes.retain(|process| Path::new(&format!("/proc/{process}")).exists());
        if !self.processes.is_empty() {
            return false;
        }
        let is_listening = is_any_listening(&settings.probes.ports);
        self.had_server |= is_listening;
        self.had_server && !is_listening
    }

    pub(crate) fn step(
        &mut self,
        settings: &ObservationSettings,
        probes: &mut AttachedProbes,
        watcher: &mut dyn ObservationWatcher,
    ) {
        let since = self.since;
        let seen = |event: KernelEvent, copied: &[u8]| {
            if event.time >= since {
                self.order.push(event, copied);
            }
        };
        let begun = now();
        let drained = probes.drain(seen) as u64;
        self.events += drained;
        let mut order = std::mem::take(&mut self.order);
        match drained {
            0 => order.release_at(begun, |event| self.join(&event, watcher)),
            _ => order.release(|event| self.join(&event, watcher)),
        }
        self.order = order;
        self.take_accept_waits();
        self.skipped.update(probes);
        if self.start.elapsed() >= settings.cost_duration.min(settings.duration) {
            self.end_measuring(probes);
        }
    }

    pub(crate) fn progress(&self, lost_events: u64) -> ObservationProgress<'_> {
        ObservationProgress {
            statistics: &self.statistics,
            counts: self.counts_before.plus(self.joiner.counts()),
            events: self.events,
            lost_events,
            skipped_runs: self.skipped.runs,
            readers: self.readers.len(),
            elapsed: self.start.elapsed(),
            cost: self.cost,
            counters: &self.counters_read.0,
        }
    }

    /// Reads counters and ends parts in time, for a watcher that wants them.
    pub(crate) fn follow_parts(
        &mut self,
        probes: &AttachedProbes,
        watcher: &mut dyn ObservationWatcher,
    ) -> Result<(), OperationError> {
        if !watcher.wants_parts() {
            return Ok(());
        }
        let is_first = self.part.is_none();
        if is_first || self.counters_read.1.elapsed() >= COUNTER_INTERVAL {
            self.counters.retransmits = probes.retransmits()?;
            self.counters.refresh();
            self.counters_read = (self.counters.so_far(), Instant::now());
        }
        let is_over = |part: &ObservationPart| {
            let time = part.begun.elapsed();
            let is_full = time >= PART_TIME && part.statistics.count() >= PART_REQUESTS;
            is_full || time >= PART_TIME_MAX
        };
        if is_first || self.part.as_ref().is_some_and(is_over) {
            let lost_events = probes.lost()?;
            if let Some(report) = self.next_part(lost_events) {
                watcher.part_over(report);
            }
        }
        Ok(())
    }

    /// Begins a part. Returns the report of the part before, if there was one.
    fn next_part(&mut self, lost_events: u64) -> Option<ObservationReport> {
        let counts = self.counts_before.plus(self.joiner.counts());
        let begun = ObservationPart {
            begun: Instant::now(),
            statistics: RequestStatistics::default(),
            counts,
            lost_events,
            skipped_runs: self.skipped.runs,
            events: self.events,
            counters: self.counters_read.0.clone(),
        };
        let causes = self.causes.next_part();
        let part = self.part.replace(begun)?;
        Some(ObservationReport {
            statistics: part.statistics,
            counts: counts.since(part.counts),
            lost_events: lost_events - part.lost_events,
            skipped_runs: self.skipped.runs.saturating_sub(part.skipped_runs),
            events: self.events - part.events,
            duration: part.begun.elapsed(),
            end: ObservationEnd::Over,
            cost: None,
            may_measure_cost: false,
            readers: self.readers.clone(),
            processes: self.processes.clone(),
            causes: causes?,
            counters: self.counters_read.0.since(&part.counters),
            accept_queue: None,
            sampled: None,
        })
    }

    /// Notes what the programs have cost until now, if that is measured.
    pub(crate) fn end_measuring(&mut self, probes: &mut AttachedProbes) {
        if std::mem::take(&mut self.is_measuring) {
            let cost = probes.cost();
            let duration = self.start.elapsed();
            let run_ns = cost.run_ns;
            let runs = cost.runs;
            self.cost = Some(MeasuredCost { run_ns, runs, requests: self.statistics.count(), duration });
            probes.end_measuring_cost();
        }
    }

    fn join(&mut self, (event, copied): &(KernelEvent, Box<[u8]>), watcher: &mut dyn ObservationWatcher) {
        if event.kind == EventKind::Receive {
            self.readers.insert(event.thread);
            if self.processes.insert(event.process) {
                self.counters.add_process(event.process);
            }
        }
        if event.kind == EventKind::Throttled {
            self.counters.threads_throttled_ns += event.schedule.throttled_ns;
        }
        self.causes.handle(event);
        let mut finished = std::mem::take(&mut self.finished);
        self.joiner.handle_with_bytes(event, copied, &mut finished);
        // At once: what threads did is not remembered for long.
        self.add(&finished, watcher);
        finished.clear();
        self.finished = finished;
    }

    fn take_accept_waits(&mut self) {
        let waits = self.joiner.take_accept_waits();
        if let Some(accept_waits) = &mut self.accept_waits {
            waits.into_iter().for_each(|wait| accept_waits.add(wait));
        }
    }

    fn add(&mut self, finished: &[ObservedRequest], watcher: &mut dyn ObservationWatcher) {
        let counts = |request: &&ObservedRequest| self.counted.contains(&request.at(RequestPoint::Wire));
        for request in finished.iter().filter(counts) {
            let (held_up, cause) = self.causes.add(request);
            let request = ObservedRequest { held_up, ..*request };
            self.statistics.add(&request);
            if let Some(part) = &mut self.part {
                part.statistics.add(&request);
            }
            watcher.take(&request, cause);
        }
    }

    /// No more events come.
    pub(crate) fn end_joining(&mut self, watcher: &mut dyn ObservationWatcher) {
        std::mem::take(&mut self.order).finish(|event| self.join(&event, watcher));
        self.take_accept_waits();
        let mut finished = Vec::new();
        self.joiner.finish(&mut finished);
        self.add(&finished, watcher);
    }

    pub(crate) fn finish(
        self,
        end: ObservationEnd,
        lost_events: u64,
        skipped_runs: u64,
    ) -> ObservationReport {
        let taken =
            cpu_time::stolen().zip(self.stolen_before).map(|(now, before)| now.saturating_sub(before));
        ObservationReport {
            statistics: self.statistics,
            counts: self.counts_before.plus(self.joiner.counts()),
            lost_events,
            skipped_runs,
            events: self.events,
            duration: self.start.elapsed(),
            end,
            cost: self.cost,
            may_measure_cost: may_measure_cost(),
            readers: self.readers,
            processes: self.processes,
            causes: CauseReport { stolen: taken, ..self.causes.report() },
            counters: self.counters.report(),
            accept_queue: self.accept_waits.map(|waits| AcceptQueue {
                connections: waits.count(),
                waits: (waits.count() > 0).then(|| waits.profile()),
            }),
            sampled: None,
        }
    }
}

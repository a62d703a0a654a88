//! An observation from its beginning to its end: attach, drain, join, sum up.

use crate::causes::{CauseObserver, CauseReport, IntendedWaits};
use crate::event::{EventKind, KernelEvent};
use crate::join::{JoinCounts, RequestJoiner};
use crate::order::EventOrder;
use crate::probe::{AttachedProbes, ProbeSettings, may_measure_cost};
use crate::request::ObservedRequest;
use crate::statistics::{LatencyHistogram, LatencyProfile, RequestStatistics};
use machine::clock::now;
use machine::cpu_time;
use model::OperationError;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// The time between two looks at the events.
const DRAIN_INTERVAL: Duration = Duration::from_millis(20);

/// The time between two looks at what changes slowly: whether the server still lives, how many runs were skipped.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// What an observation is to do.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservationSettings {
    /// Which ports and connections are observed.
    pub probes: ProbeSettings,
    /// How long it lasts at most.
    pub duration: Duration,
    /// For how much of that the kernel measures what the programs cost, if it may; this makes them a little slower.
    pub cost_duration: Duration,
    /// Whether the time that the server sleeps in the middle of requests counts when causes are sought.
    pub intended_waits: IntendedWaits,
}

/// Why an observation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObservationEnd {
    /// Its time was over.
    Over,
    /// The caller stopped it.
    Stopped,
    /// Every process that was seen to serve has ended.
    ServerEnded,
}

/// What the programs in the kernel cost, as far as it was measured.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MeasuredCost {
    /// CPU time of the programs in nanoseconds, over all CPUs.
    pub run_ns: u64,
    /// How often they ran.
    pub runs: u64,
    /// The number of requests that were completed in this time.
    pub requests: u64,
    /// How long was measured.
    pub duration: Duration,
}

/// How long connections waited to be accepted, from the end of their handshake on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AcceptQueue {
    /// The number of connections that were accepted, and whose handshake was seen.
    pub connections: u64,
    /// Their waits, in nanoseconds.
    pub waits: LatencyProfile,
}

/// What an observation came to.
#[derive(Debug, Clone)]
pub struct ObservationReport {
    /// Sums over all requests.
    pub statistics: RequestStatistics,
    /// What could not be joined.
    pub counts: JoinCounts,
    /// Events that the kernel could not report because nobody took the earlier ones in time.
    pub lost_events: u64,
    /// How often the kernel passed over a program, each time perhaps an event that is missing: see [`AttachedProbes::skipped_runs`].
    pub skipped_runs: u64,
    /// The number of events.
    pub events: u64,
    /// How long it took.
    pub duration: Duration,
    /// Why the observation ended.
    pub end: ObservationEnd,
    /// The cost, if this process may have it measured and there was time for that.
    pub cost: Option<MeasuredCost>,
    /// Whether this process may have the cost measured.
    pub may_measure_cost: bool,
    /// The threads that read requests.
    pub readers: BTreeSet<u32>,
    /// What the tail is made of.
    pub causes: CauseReport,
    /// How long connections waited to be accepted, where that is observed.
    pub accept_queue: Option<AcceptQueue>,
}

/// What an observation has come to until now.
#[derive(Debug, Clone, Copy)]
pub struct ObservationProgress<'a> {
    /// Sums over all requests.
    pub statistics: &'a RequestStatistics,
    /// What could not be joined.
    pub counts: JoinCounts,
    /// The number of events.
    pub events: u64,
    /// Events that the kernel could not report because nobody took the earlier ones in time.
    pub lost_events: u64,
    /// Runs of the programs that the kernel had skipped when it was last asked, at most about a second ago.
    pub skipped_runs: u64,
    /// The number of threads that were seen to read requests.
    pub readers: usize,
    /// The time since the observation began.
    pub elapsed: Duration,
    /// The cost, as soon as it has been measured, if this process may have it measured.
    pub cost: Option<MeasuredCost>,
}

/// Who follows an observation while it runs.
pub trait ObservationWatcher {
    /// Nothing is missed any more; called once.
    fn attached(&mut self) {}

    /// A request is complete.
    fn take(&mut self, request: &ObservedRequest);

    /// Called whenever events have been looked at, about 50 times a second.
    fn progress(&mut self, _progress: &ObservationProgress<'_>) {}

    /// Whether the observation ends when every process that was seen to serve has ended.
    fn ends_with_server(&self) -> bool {
        true
    }
}

/// A watcher of two functions.
struct FunctionWatcher<'a, F> {
    attached: Option<F>,
    take: &'a mut dyn FnMut(&ObservedRequest),
}

impl<F: FnOnce()> ObservationWatcher for FunctionWatcher<'_, F> {
    fn attached(&mut self) {
        if let Some(attached) = self.attached.take() {
            attached();
        }
    }

    fn take(&mut self, request: &ObservedRequest) {
        (self.take)(request);
    }
}

/// Observes until the time is over, `stop` is set or the server has ended. Every request is given to `take` as soon as it
/// is complete; `attached` is called once, when nothing is missed any more.
///
/// # Errors
/// As [`AttachedProbes::attach`].
pub fn observe(
    settings: &ObservationSettings,
    stop: &AtomicBool,
    attached: impl FnOnce(),
    take: &mut dyn FnMut(&ObservedRequest),
) -> Result<ObservationReport, OperationError> {
    watch(settings, stop, &mut FunctionWatcher { attached: Some(attached), take })
}

/// Observes as [`observe`] does, with a watcher that is told how it is getting on.
///
/// # Errors
/// As [`AttachedProbes::attach`].
pub fn watch(
    settings: &ObservationSettings,
    stop: &AtomicBool,
    watcher: &mut dyn ObservationWatcher,
) -> Result<ObservationReport, OperationError> {
    let mut probes = AttachedProbes::attach(&settings.probes)?;
    let mut observation = RunningObservation::new(settings, &mut probes);
    watcher.attached();
    let end = loop {
        if let Some(end) = observation.reason_to_end(settings, stop, watcher) {
            break end;
        }
        std::thread::park_timeout(DRAIN_INTERVAL);
        observation.step(settings, &mut probes, watcher);
        watcher.progress(&observation.progress(probes.lost()?));
    };
    observation.step(settings, &mut probes, watcher);
    observation.end_measuring(&mut probes);
    Ok(observation.finish(end, probes.lost()?, probes.skipped_runs(), watcher))
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
struct RunningObservation {
    order: EventOrder,
    joiner: RequestJoiner,
    /// Requests that the last event has completed; empty, to use its room again.
    finished: Vec<ObservedRequest>,
    statistics: RequestStatistics,
    causes: CauseObserver,
    /// What the hypervisor had taken before.
    stolen_before: Option<u64>,
    accept_waits: Option<LatencyHistogram>,
    readers: BTreeSet<u32>,
    processes: BTreeSet<u32>,
    events: u64,
    /// Since when all programs report. Events before are left out: an answer whose writing was seen, and not its
    /// transmission, would end with that of the next one.
    since: u64,
    start: Instant,
    last_life_check: Instant,
    skipped: SkippedRuns,
    is_measuring: bool,
    cost: Option<MeasuredCost>,
}

impl RunningObservation {
    fn new(settings: &ObservationSettings, probes: &mut AttachedProbes) -> Self {
        let is_measuring = !settings.cost_duration.is_zero() && probes.begin_measuring_cost();
        let start = Instant::now();
        Self {
            order: EventOrder::default(),
            joiner: RequestJoiner::of_protocol(settings.probes.protocol),
            finished: Vec::new(),
            statistics: RequestStatistics::default(),
            causes: CauseObserver::new(settings.intended_waits),
            stolen_before: cpu_time::stolen(),
            accept_waits: settings.probes.accepts.then(LatencyHistogram::default),
            readers: BTreeSet::new(),
            processes: BTreeSet::new(),
            events: 0,
            since: now(),
            start,
            last_life_check: start,
            skipped: SkippedRuns::default(),
            is_measuring,
            cost: None,
        }
    }

    fn reason_to_end(
        &mut self,
        settings: &ObservationSettings,
        stop: &AtomicBool,
        watcher: &dyn ObservationWatcher,
    ) -> Option<ObservationEnd> {
        if stop.load(Ordering::Relaxed) {
            return Some(ObservationEnd::Stopped);
        }
        if self.start.elapsed() >= settings.duration {
            return Some(ObservationEnd::Over);
        }
        if watcher.ends_with_server() && self.last_life_check.elapsed() >= LOOK_INTERVAL {
            self.last_life_check = Instant::now();
            let was_served = !self.processes.is_empty();
            // Those that have ended are forgotten: servers with a process for each connection have many.
            self.processes.retain(|process| Path::new(&format!("/proc/{process}")).exists());
            if was_served && self.processes.is_empty() {
                return Some(ObservationEnd::ServerEnded);
            }
        }
        None
    }

    fn step(
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

    fn progress(&self, lost_events: u64) -> ObservationProgress<'_> {
        ObservationProgress {
            statistics: &self.statistics,
            counts: self.joiner.counts(),
            events: self.events,
            lost_events,
            skipped_runs: self.skipped.runs,
            readers: self.readers.len(),
            elapsed: self.start.elapsed(),
            cost: self.cost,
        }
    }

    /// Notes what the programs have cost until now, if that is measured.
    fn end_measuring(&mut self, probes: &mut AttachedProbes) {
        if std::mem::take(&mut self.is_measuring) {
            let (cost, duration) = (probes.cost(), self.start.elapsed());
            let (run_ns, runs) = (cost.run_ns, cost.runs);
            self.cost = Some(MeasuredCost { run_ns, runs, requests: self.statistics.count(), duration });
            probes.end_measuring_cost();
        }
    }

    fn join(&mut self, (event, copied): &(KernelEvent, Box<[u8]>), watcher: &mut dyn ObservationWatcher) {
        if event.kind == EventKind::Receive {
            self.readers.insert(event.thread);
            self.processes.insert(event.process);
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
        for request in finished {
            self.statistics.add(request);
            self.causes.add(request);
            watcher.take(request);
        }
    }

    fn finish(
        mut self,
        end: ObservationEnd,
        lost_events: u64,
        skipped_runs: u64,
        watcher: &mut dyn ObservationWatcher,
    ) -> ObservationReport {
        std::mem::take(&mut self.order).finish(|event| self.join(&event, watcher));
        self.take_accept_waits();
        let mut finished = Vec::new();
        self.joiner.finish(&mut finished);
        self.add(&finished, watcher);
        let taken =
            cpu_time::stolen().zip(self.stolen_before).map(|(now, before)| now.saturating_sub(before));
        ObservationReport {
            statistics: self.statistics,
            counts: self.joiner.counts(),
            lost_events,
            skipped_runs,
            events: self.events,
            duration: self.start.elapsed(),
            end,
            cost: self.cost,
            may_measure_cost: may_measure_cost(),
            readers: self.readers,
            causes: CauseReport { stolen: taken, ..self.causes.report() },
            accept_queue: self
                .accept_waits
                .map(|waits| AcceptQueue { connections: waits.count(), waits: waits.profile() }),
        }
    }
}

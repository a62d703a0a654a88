//! One alignment, run event by event.

use super::arrival_merge::ArrivalMerge;
use super::busy_runs::BusyRuns;
use super::observer::Observer;
use super::stage_server::{NonPreemptiveServer, PreemptiveServer, WaitingJobs};
use super::stream::ReplayStream;
use super::system::ReplaySystem;
use super::transit::TransitSource;
use discipline::StrictPriority;
use model::Stage;
use std::ops::ControlFlow;
use units::Nanos;

/// What happens to the job in service when one of a higher priority arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PreemptionMode {
    /// It is interrupted, and resumes where it was.
    #[default]
    Preemptive,
    /// It is finished first.
    NonPreemptive,
}

/// How a replay went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayOutcome {
    /// Whether the latencies are certainly those of the steady state: the replay began at an instant at which the
    /// system that has always run is idle. Otherwise it began empty a whole longest period before the window.
    pub steady: bool,
    /// The time before the window that was replayed, too.
    pub warm_up: Nanos,
    /// Requests replayed, those of the warm-up and those that only kept observed ones waiting included.
    pub requests: u64,
    /// Whether the observer ended it.
    pub stopped: bool,
}

/// Replays a system, one alignment after the other; keeps its memory.
///
/// # Order of simultaneous events
/// At one instant a stage first releases the job that it completes, and begins the next; then it takes
/// arrivals, in the order in which they left the stage before it. Requests enter the first stage in order of
/// their streams, those of a stream in order of the trace. A job that meets an idle stage begins at once. Jobs
/// without work at a stage leave it in the instant of their arrival, whatever waits there.
#[derive(Debug)]
pub struct Replay<'s, 'a> {
    system: &'s ReplaySystem<'a>,
    preemption: PreemptionMode,
    merge: ArrivalMerge<'a>,
    queues: [WaitingJobs<'a>; 3],
    /// When the first period of each stream begins, nanoseconds.
    offsets: Vec<u64>,
    busy_runs: BusyRuns,
}

impl<'s, 'a> Replay<'s, 'a> {
    /// Prepares replays of this system.
    pub fn new(system: &'s ReplaySystem<'a>, preemption: PreemptionMode) -> Self {
        let queue = |stage| StrictPriority::new(level_count(system.levels(stage)));
        Self {
            system,
            preemption,
            merge: ArrivalMerge::new(system.streams().iter().map(|stream| stream.trace)),
            queues: Stage::ALL.map(queue),
            offsets: Vec::new(),
            busy_runs: BusyRuns::default(),
        }
    }

    /// Requests of each stream that arrive within the window.
    pub fn counts(&self, shifts: &[Nanos]) -> Vec<usize> {
        shifts.iter().enumerate().map(|(stream, shift)| self.system.observed(stream, *shift)).collect()
    }

    /// Runs until the last request that arrives within the window has left, or the observer ends the replay.
    /// The trace of stream i begins `shifts[i]` after the window opens, and repeats in both directions.
    ///
    /// # Panics
    /// When there is not one shift per stream.
    pub fn run(&mut self, shifts: &[Nanos], observer: &mut impl Observer) -> ReplayOutcome {
        let begun = self.begin(shifts);
        let streams = self.system.streams();
        let observed: usize = self.counts(shifts).iter().sum();
        let start = begun.idle.unwrap_or(begun.open - self.system.longest_period());
        self.merge.seek(streams.iter().map(|stream| stream.trace), &self.offsets, start);
        let window = ObservedArrivals { open: begun.open, close: begun.close, left: observed };
        let (requests, stopped) = self.serve(window, observer);
        let warm_up = Nanos(begun.open - start);
        ReplayOutcome { steady: begun.idle.is_some(), warm_up, requests, stopped }
    }

    /// Runs like [`Self::run`], but only where a latency may exceed `threshold`: the observer learns of every request within
    /// the window whose latency does, in the same order, and of some of the others.
    ///
    /// # Panics
    /// When there is not one shift per stream.
    pub fn run_above(
        &mut self,
        shifts: &[Nanos],
        threshold: Nanos,
        observer: &mut impl Observer,
    ) -> ReplayOutcome {
        let ReplayBeginning { open, close, idle } = self.begin(shifts);
        let Some(start) = idle else { return self.run(shifts, observer) };
        let streams = self.system.streams();
        let mut busy_runs = std::mem::take(&mut self.busy_runs);
        let Some(runs) = busy_runs.find(streams, &self.offsets, (start, close), threshold.0) else {
            self.busy_runs = busy_runs;
            return self.run(shifts, observer);
        };
        let mut outcome =
            ReplayOutcome { steady: true, warm_up: Nanos(open - start), requests: 0, stopped: false };
        for run in runs {
            let window = (run.first.max(open), run.end);
            if window.0 >= window.1 {
                continue;
            }
            let left = self.arrivals(window);
            self.merge.seek(streams.iter().map(|stream| stream.trace), &self.offsets, run.idle);
            let window = ObservedArrivals { open: window.0, close: window.1, left };
            let (requests, stopped) = self.serve(window, observer);
            outcome.requests += requests;
            outcome.stopped = stopped;
            if stopped {
                break;
            }
        }
        self.busy_runs = busy_runs;
        outcome
    }

    /// How many requests arrive from the first instant until before the second, nanoseconds.
    fn arrivals(&self, (from, until): (u64, u64)) -> usize {
        let streams = self.system.streams().iter().zip(&self.offsets);
        let of_stream = |(stream, offset): (&ReplayStream<'_>, &u64)| {
            stream.trace.position(until - offset) - stream.trace.position(from - offset)
        };
        usize::try_from(streams.map(of_stream).sum::<u64>()).expect("fits the address space")
    }

    /// Sets the offsets, and finds where a replay may begin.
    fn begin(&mut self, shifts: &[Nanos]) -> ReplayBeginning {
        let streams = self.system.streams();
        assert_eq!(shifts.len(), streams.len(), "one shift per stream");
        let longest = self.system.longest_period();
        // Room for the longest look back and for an incomplete first period.
        let open = 2 * longest;
        self.offsets.clear();
        for (shift, stream) in shifts.iter().zip(streams) {
            let period = stream.trace.period().0;
            self.offsets.push((open + shift.0 % period) % period);
        }
        let idle = self.system.idle().last_before(streams, &mut self.merge, &self.offsets, open, longest);
        ReplayBeginning { open, close: open + self.system.horizon().0, idle }
    }

    fn serve(&mut self, window: ObservedArrivals, observer: &mut impl Observer) -> (u64, bool) {
        let [first, second, third] = &mut self.queues;
        let [into, storage, out] = Stage::ALL;
        let [into_levels, storage_levels, out_levels] = Stage::ALL.map(|stage| self.system.levels(stage));
        match self.preemption {
            PreemptionMode::Preemptive => {
                let path = PreemptiveServer::new(into, into_levels, first, &mut self.merge);
                let path = PreemptiveServer::new(storage, storage_levels, second, path);
                observe_departures(PreemptiveServer::new(out, out_levels, third, path), window, observer)
            }
            PreemptionMode::NonPreemptive => {
                let path = NonPreemptiveServer::new(into, into_levels, first, &mut self.merge);
                let path = NonPreemptiveServer::new(storage, storage_levels, second, path);
                observe_departures(NonPreemptiveServer::new(out, out_levels, third, path), window, observer)
            }
        }
    }
}

/// How many priority levels a stage with these levels needs.
fn level_count(levels: &[u32]) -> usize {
    levels.iter().max().map_or(0, |top| *top as usize + 1)
}

/// Where a replay begins and what it observes, nanoseconds.
#[derive(Debug, Clone, Copy)]
struct ReplayBeginning {
    open: u64,
    close: u64,
    /// The last known instant before the window at which the system is idle.
    idle: Option<u64>,
}

/// The arrivals that are observed: those from `open` until before `close`, nanoseconds.
#[derive(Clone, Copy)]
struct ObservedArrivals {
    open: u64,
    close: u64,
    /// How many of them have not left yet.
    left: usize,
}

/// Tells the observer of every departure of a request that arrived within the window. Returns the number of
/// departures and whether the observer ended the replay.
fn observe_departures<'a>(
    mut path: impl TransitSource<'a>,
    mut window: ObservedArrivals,
    observer: &mut impl Observer,
) -> (u64, bool) {
    let mut departures = 0;
    while window.left > 0 {
        let left = path.next();
        departures += 1;
        if left.entered < window.open || left.entered >= window.close {
            continue;
        }
        window.left -= 1;
        let latency = Nanos(left.at - left.entered);
        if let ControlFlow::Break(()) = observer.latency(left.stream as usize, latency) {
            return (departures, true);
        }
    }
    (departures, false)
}

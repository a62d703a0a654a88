//! One alignment, run event by event.

use super::arrival_merge::ArrivalMerge;
use super::idle::first_empty;
use super::observer::Observer;
use super::stage_server::{NonPreemptiveServer, PreemptiveServer, WaitingJobs};
use super::system::ReplaySystem;
use super::transit::{JobInTransit, TransitSource};
use discipline::StrictPriority;
use model::Stage;
use std::cell::Cell;
use std::ops::ControlFlow;
use units::Nanos;

/// Treatment of the job in service when one of a higher priority arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PreemptionMode {
    /// It is interrupted, and resumes where it was.
    #[default]
    Preemptive,
    /// It is finished first.
    NonPreemptive,
}

/// Outcome of a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayOutcome {
    /// True if the latencies are certainly those of the steady state: the replay began at an instant at which
    /// the perpetually running system is idle. Otherwise it began empty, one longest period before the
    /// window.
    pub steady: bool,
    /// The time before the window that was replayed, too.
    pub warm_up: Nanos,
    /// Requests replayed, including the warm-up and those that only kept observed ones waiting.
    pub requests: u64,
    /// True if the observer ended it.
    pub stopped: bool,
}

/// Replays a system, one alignment after the other; keeps its memory.
///
/// # Order of simultaneous events
/// At one instant a stage first releases the job that it completes, and begins the next; then it takes
/// arrivals, in the order in which they left the stage before it. Requests enter the first stage in order
/// of their streams, those of a stream in order of the trace. A job that meets an idle stage begins at
/// once. Jobs without work at a stage leave it in the instant of their arrival, regardless of its queue.
#[derive(Debug)]
pub struct Replay<'s, 'a> {
    system: &'s ReplaySystem<'a>,
    preemption: PreemptionMode,
    merge: ArrivalMerge<'a>,
    queues: [WaitingJobs<'a>; 3],
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
        let (open, offsets) = self.system.window(shifts);
        let idle = self.idle_before(open, &offsets, self.system.longest_period());
        let start = idle.unwrap_or(open - self.system.longest_period());
        self.merge.seek(self.system.streams().iter().map(|stream| stream.trace), &offsets, start);
        let window = ObservedArrivals { open, close: open + self.system.horizon().0 };
        let (requests, stopped) = self.serve(window, observer);
        ReplayOutcome { steady: idle.is_some(), warm_up: Nanos(open - start), requests, stopped }
    }

    /// Runs only the arrivals of this stretch of time. The first period of stream i begins at
    /// `offsets[i]`. Returns true if the observer ended the replay.
    pub(super) fn run_stretch(
        &mut self,
        offsets: &[u64],
        stretch: ReplayedStretch,
        observer: &mut impl Observer,
    ) -> bool {
        let ReplayedStretch { from, level, first, end, .. } = stretch;
        self.merge.seek(self.system.streams().iter().map(|stream| stream.trace), offsets, from);
        let first = first.max(first_empty(&mut self.merge, from, level));
        first < end && self.serve(ObservedArrivals { open: first, close: end }, observer).1
    }

    /// An instant, at most `distance` before `time`, at which the system is certainly idle, if one is found. The first period
    /// of stream i begins at `offsets[i]`.
    pub(super) fn idle_before(&mut self, time: u64, offsets: &[u64], distance: u64) -> Option<u64> {
        self.system.idle().last_before(self.system.streams(), &mut self.merge, offsets, time, distance)
    }

    fn serve(&mut self, window: ObservedArrivals, observer: &mut impl Observer) -> (u64, bool) {
        let [first, second, third] = &mut self.queues;
        let [into, storage, out] = Stage::ALL;
        let [into_levels, storage_levels, out_levels] = Stage::ALL.map(|stage| self.system.levels(stage));
        let waiting = WaitingArrivals::default();
        let arrivals = WindowArrivals { merge: &mut self.merge, window, waiting: &waiting };
        match self.preemption {
            PreemptionMode::Preemptive => {
                let path = PreemptiveServer::new(into, into_levels, first, arrivals);
                let path = PreemptiveServer::new(storage, storage_levels, second, path);
                let path = PreemptiveServer::new(out, out_levels, third, path);
                observe_departures(path, window, &waiting, observer)
            }
            PreemptionMode::NonPreemptive => {
                let path = NonPreemptiveServer::new(into, into_levels, first, arrivals);
                let path = NonPreemptiveServer::new(storage, storage_levels, second, path);
                let path = NonPreemptiveServer::new(out, out_levels, third, path);
                observe_departures(path, window, &waiting, observer)
            }
        }
    }
}

/// Returns the number of priority levels that a stage with these levels needs.
fn level_count(levels: &[u32]) -> usize {
    levels.iter().max().map_or(0, |top| *top as usize + 1)
}

/// A stretch of time whose arrivals are replayed, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct ReplayedStretch {
    /// Instant from which an idle instant is searched; the replay begins there.
    pub(super) from: u64,
    /// An upper bound of the unfinished work at `from`.
    pub(super) level: u64,
    /// When the observed arrivals begin, or at that idle instant where it is later.
    pub(super) first: u64,
    /// The end of the arrivals, exclusive.
    pub(super) end: u64,
    /// No latency is longer than this, nanoseconds.
    pub(super) longest: u64,
}

/// The arrivals that are observed: those from `open` until before `close`, nanoseconds.
#[derive(Clone, Copy)]
struct ObservedArrivals {
    open: u64,
    close: u64,
}

impl ObservedArrivals {
    fn contains(self, entered: u64) -> bool {
        (self.open..self.close).contains(&entered)
    }
}

/// Arrivals that have not left yet.
#[derive(Default)]
struct WaitingArrivals {
    /// True once an arrival after the observed ones has come.
    closed: Cell<bool>,
    /// Number of observed arrivals that have come and not left.
    inside: Cell<usize>,
}

/// The arrivals of a merge; the observed ones among them are counted.
struct WindowArrivals<'m, 'a> {
    merge: &'m mut ArrivalMerge<'a>,
    window: ObservedArrivals,
    waiting: &'m WaitingArrivals,
}

impl<'a> TransitSource<'a> for WindowArrivals<'_, 'a> {
    #[inline]
    fn next(&mut self) -> JobInTransit<'a> {
        let arrived = self.merge.next();
        if arrived.at >= self.window.close {
            self.waiting.closed.set(true);
        } else if arrived.at >= self.window.open {
            self.waiting.inside.set(self.waiting.inside.get() + 1);
        }
        arrived
    }
}

/// Reports every departure of a request that arrived within the window to the observer. Returns the
/// number of departures, and true if the observer ended the replay.
fn observe_departures<'a>(
    mut path: impl TransitSource<'a>,
    window: ObservedArrivals,
    waiting: &WaitingArrivals,
    observer: &mut impl Observer,
) -> (u64, bool) {
    let mut departures = 0;
    while !waiting.closed.get() || waiting.inside.get() > 0 {
        let left = path.next();
        departures += 1;
        if !window.contains(left.entered) {
            continue;
        }
        waiting.inside.set(waiting.inside.get() - 1);
        let latency = Nanos(left.at - left.entered);
        if let ControlFlow::Break(()) = observer.latency(left.stream as usize, latency) {
            return (departures, true);
        }
    }
    (departures, false)
}

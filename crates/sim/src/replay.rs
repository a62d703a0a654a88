//! One alignment, run event by event.

use crate::merge::{Merge, Source};
use crate::observe::Observer;
use crate::server::{NonPreemptive, Preemptive, Queue};
use crate::system::{ReplaySystem, depth};
use discipline::StrictPriority;
use model::{PerStage, Stage};
use std::ops::ControlFlow;
use units::Nanos;

/// What happens to the job in service when one of a higher priority arrives.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PreemptionMode {
    /// It waits and resumes where it was.
    #[default]
    Preemptive,
    /// It is finished first.
    NonPreemptive,
}

/// How a replay went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplayOutcome {
    /// Whether the latencies are certainly those of the steady state: the replay began at a moment at which the
    /// system that has always run is idle. Otherwise it began empty a whole longest period before the window.
    pub steady: bool,
    /// Time before the window that was replayed, too.
    pub warm_up: Nanos,
    /// Requests replayed, those of the warm-up and those that only kept observed ones waiting included.
    pub requests: u64,
    /// Whether the observer ended it.
    pub stopped: bool,
}

/// Replays a system, one alignment after the other; keeps its memory.
///
/// # Order of simultaneous events
/// At one instant a stage first lets go of the job that it completes, and begins the next; then it takes
/// arrivals, in the order in which they left the stage before it. Requests enter the first stage in order of
/// their streams, those of a stream in order of the trace. A job that meets an idle stage begins at once. Jobs
/// without work at a stage leave it in the instant of their arrival, whatever waits there.
#[derive(Debug)]
pub struct Replay<'s, 'a> {
    system: &'s ReplaySystem<'a>,
    service: PreemptionMode,
    merge: Merge<'a>,
    queues: [Queue<'a>; 3],
    offsets: Vec<u64>,
}

impl<'s, 'a> Replay<'s, 'a> {
    /// Ready to run.
    pub fn new(system: &'s ReplaySystem<'a>, service: PreemptionMode) -> Self {
        let queue = |stage| StrictPriority::new(depth(&system.levels[stage]));
        Self {
            system,
            service,
            merge: Merge::new(system.streams.iter().map(|s| s.trace)),
            queues: Stage::ALL.map(queue),
            offsets: Vec::new(),
        }
    }

    /// Requests of each stream that arrive within the window.
    pub fn counts(&self, shifts: &[Nanos]) -> Vec<usize> {
        shifts.iter().enumerate().map(|(stream, shift)| self.system.observed(stream, *shift)).collect()
    }

    /// Runs until the last request that arrives within the window has left, or the observer has seen enough.
    /// The trace of stream i begins `shifts[i]` after the window opens, and repeats in both directions.
    ///
    /// # Panics
    /// When there is not one shift per stream.
    pub fn run(&mut self, shifts: &[Nanos], observer: &mut impl Observer) -> ReplayOutcome {
        assert_eq!(shifts.len(), self.system.streams.len(), "one shift per stream");
        let observed: usize = self.counts(shifts).iter().sum();
        let longest = self.system.longest_period();
        // Room for the longest look back and for an incomplete first round.
        let open = 2 * longest;
        self.offsets.clear();
        let periods = self.system.streams.iter().map(|s| s.trace.period().0);
        self.offsets
            .extend(shifts.iter().zip(periods).map(|(shift, period)| (open + shift.0 % period) % period));
        let idle = self.system.idle().last_before(self.system, &mut self.merge, &self.offsets, open);
        let start = idle.unwrap_or(open - longest);
        self.merge.seek(self.system.streams.iter().map(|s| s.trace), &self.offsets, start);
        let window = Window { open, close: open + self.system.horizon, left: observed };
        let (requests, stopped) = self.serve(window, observer);
        ReplayOutcome { steady: idle.is_some(), warm_up: Nanos(open - start), requests, stopped }
    }

    fn serve(&mut self, window: Window, observer: &mut impl Observer) -> (u64, bool) {
        let levels: &PerStage<Vec<u32>> = &self.system.levels;
        let [first, second, third] = &mut self.queues;
        let [into, storage, out] = Stage::ALL;
        match self.service {
            PreemptionMode::Preemptive => {
                let path = Preemptive::new(into, &levels[into], first, &mut self.merge);
                let path = Preemptive::new(storage, &levels[storage], second, path);
                watch(Preemptive::new(out, &levels[out], third, path), window, observer)
            }
            PreemptionMode::NonPreemptive => {
                let path = NonPreemptive::new(into, &levels[into], first, &mut self.merge);
                let path = NonPreemptive::new(storage, &levels[storage], second, path);
                watch(NonPreemptive::new(out, &levels[out], third, path), window, observer)
            }
        }
    }
}

impl<'a, S: Source<'a>> Source<'a> for &mut S {
    #[inline]
    fn next(&mut self) -> crate::merge::Packet<'a> {
        (**self).next()
    }
}

/// Arrivals that are observed.
#[derive(Clone, Copy)]
struct Window {
    open: u64,
    close: u64,
    /// How many have not left yet.
    left: usize,
}

/// Tells the observer of every departure of a request that arrived within the window. Gives the number of
/// departures and whether the observer stopped.
fn watch<'a>(mut path: impl Source<'a>, mut window: Window, observer: &mut impl Observer) -> (u64, bool) {
    let mut departures = 0;
    while window.left > 0 {
        let packet = path.next();
        departures += 1;
        if packet.entered < window.open || packet.entered >= window.close {
            continue;
        }
        window.left -= 1;
        if let ControlFlow::Break(()) =
            observer.latency(packet.stream as usize, Nanos(packet.at - packet.entered))
        {
            return (departures, true);
        }
    }
    (departures, false)
}

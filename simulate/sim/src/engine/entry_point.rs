//! Entries during a run: the next arrival, and the requests that wait to be admitted.

use super::delay_line::DelayLine;
use super::entry::{DrawRequest, EntryArrivals, RequestEntry};
use super::error::InvalidSimulationError;
use super::timers::NEVER;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use units::Nanos;

/// An entry during a run.
pub(crate) struct EntryPoint {
    source: ArrivalSource,
    pub(crate) draw: Box<dyn DrawRequest>,
    /// Maximum number of requests inside.
    window: u32,
    inside: u32,
    /// Slots of the requests that wait to be admitted.
    waiting: VecDeque<u32>,
    skew_ns: i64,
    pub(crate) delay: u64,
    /// Requests that were admitted and are under way to the first steps.
    pub(crate) under_way: DelayLine,
}

enum ArrivalSource {
    Open {
        instants: Box<dyn Iterator<Item = Nanos>>,
    },
    Closed {
        think: Box<dyn Iterator<Item = Nanos>>,
        /// Instants at which thinking clients send their next requests.
        sends: BinaryHeap<Reverse<u64>>,
    },
}

impl EntryPoint {
    /// Creates the entry before its first arrival.
    pub(crate) fn new(entry: RequestEntry) -> Result<Self, InvalidSimulationError> {
        if entry.window == Some(0) {
            return Err(InvalidSimulationError("a window admits at least one request".into()));
        }
        let source = match entry.arrivals {
            EntryArrivals::Open(instants) => ArrivalSource::Open { instants },
            EntryArrivals::Closed { clients, mut think } => {
                let sends = think.by_ref().take(clients as usize).map(|time| Reverse(time.0)).collect();
                ArrivalSource::Closed { think, sends }
            }
        };
        Ok(Self {
            source,
            draw: entry.draw,
            window: entry.window.unwrap_or(u32::MAX),
            inside: 0,
            waiting: VecDeque::new(),
            skew_ns: entry.skew_ns,
            delay: entry.delay.0,
            under_way: DelayLine::default(),
        })
    }

    /// Returns the arrival of the request after the one at `now`; [`NEVER`] if there is none.
    #[inline]
    pub(crate) fn next_arrival(&mut self, now: u64) -> Result<u64, InvalidSimulationError> {
        match &mut self.source {
            ArrivalSource::Open { instants } => match instants.next() {
                Some(Nanos(at)) if at < now => {
                    Err(InvalidSimulationError(format!("arrivals go back in time, from {now} ns to {at} ns")))
                }
                next => Ok(next.map_or(NEVER, |at| at.0)),
            },
            ArrivalSource::Closed { sends, .. } => Ok(sends.peek().map_or(NEVER, |Reverse(at)| *at)),
        }
    }

    /// Notes that the request announced by [`Self::next_arrival`] has arrived.
    #[inline]
    pub(crate) fn on_arrival(&mut self) {
        if let ArrivalSource::Closed { sends, .. } = &mut self.source {
            sends.pop();
        }
    }

    /// Returns the time on the clock of this entry.
    #[inline]
    pub(crate) fn clock(&self, now: u64) -> u64 {
        now.saturating_add_signed(self.skew_ns)
    }

    /// Admits a new request, or queues it here and returns false.
    #[inline]
    pub(crate) fn admit(&mut self, slot: u32) -> bool {
        let is_admitted = self.inside < self.window;
        if is_admitted {
            self.inside += 1;
        } else {
            self.waiting.push_back(slot);
        }
        is_admitted
    }

    /// Notes that a request completed at `now`. Returns the request that is admitted in its place, and true
    /// if the next arrival has changed.
    #[inline]
    pub(crate) fn on_completion(&mut self, now: u64) -> (Option<u32>, bool) {
        let mut arrival_changed = false;
        if let ArrivalSource::Closed { think, sends } = &mut self.source
            && let Some(time) = think.next()
        {
            sends.push(Reverse(now.saturating_add(time.0)));
            arrival_changed = true;
        }
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.inside -= 1;
        }
        (next, arrival_changed)
    }
}

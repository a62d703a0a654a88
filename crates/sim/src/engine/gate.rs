//! Entry points at work: the next arrival, and who waits to be let in.

use super::line::Line;
use super::load::{DrawRequest, EntryArrivals, RequestEntry};
use super::{InvalidSimulationError, timers::NEVER};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use units::Nanos;

/// One entry.
pub(crate) struct Gate {
    source: Source,
    pub(crate) draw: Box<dyn DrawRequest>,
    window: u32,
    inside: u32,
    waiting: VecDeque<u32>,
    skew_ns: i64,
    pub(crate) delay: u64,
    /// Let in and under way to the first steps.
    pub(crate) under_way: Line,
}

enum Source {
    Open {
        instants: Box<dyn Iterator<Item = Nanos>>,
    },
    /// When clients come back.
    Closed {
        think: Box<dyn Iterator<Item = Nanos>>,
        back: BinaryHeap<Reverse<u64>>,
    },
}

impl Gate {
    /// The entry before its first arrival.
    pub(crate) fn new(entry: RequestEntry) -> Result<Self, InvalidSimulationError> {
        if entry.window == Some(0) {
            return Err(InvalidSimulationError("a window admits at least one request".into()));
        }
        let source = match entry.arrivals {
            EntryArrivals::Open(instants) => Source::Open { instants },
            EntryArrivals::Closed { clients, mut think } => {
                let back = think.by_ref().take(clients as usize).map(|time| Reverse(time.0)).collect();
                Source::Closed { think, back }
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
            under_way: Line::default(),
        })
    }

    /// When the arrival after the one at `now` comes.
    #[inline]
    pub(crate) fn next_arrival(&mut self, now: u64) -> Result<u64, InvalidSimulationError> {
        match &mut self.source {
            Source::Open { instants } => match instants.next() {
                Some(Nanos(at)) if at < now => {
                    Err(InvalidSimulationError(format!("arrivals go back in time, from {now} ns to {at} ns")))
                }
                next => Ok(next.map_or(NEVER, |at| at.0)),
            },
            Source::Closed { back, .. } => Ok(back.peek().map_or(NEVER, |Reverse(at)| *at)),
        }
    }

    /// The client whose arrival this is has come.
    #[inline]
    pub(crate) fn came(&mut self) {
        if let Source::Closed { back, .. } = &mut self.source {
            back.pop();
        }
    }

    /// What this entry's clock says.
    #[inline]
    pub(crate) fn stamp(&self, now: u64) -> u64 {
        now.saturating_add_signed(self.skew_ns)
    }

    /// Whether a new request may go in at once; otherwise it waits here.
    #[inline]
    pub(crate) fn admit(&mut self, slot: u32) -> bool {
        let open = self.inside < self.window;
        if open {
            self.inside += 1;
        } else {
            self.waiting.push_back(slot);
        }
        open
    }

    /// One is complete at `now`: the one that goes in instead, and whether there is a new next arrival.
    #[inline]
    pub(crate) fn release(&mut self, now: u64) -> (Option<u32>, bool) {
        let mut later = false;
        if let Source::Closed { think, back } = &mut self.source
            && let Some(time) = think.next()
        {
            back.push(Reverse(now.saturating_add(time.0)));
            later = true;
        }
        let next = self.waiting.pop_front();
        if next.is_none() {
            self.inside -= 1;
        }
        (next, later)
    }
}

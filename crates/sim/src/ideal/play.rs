//! A stream played through a station: each request is followed until it is complete, and then summarised.

use super::{IdealStation, OutOfOrderError, StartTimes, Summary};
use crate::engine::Orders;
use arrivals::TimedRequest;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::Nanos;

/// A station in the middle of a stream, with what became of the requests that are complete. Memory is that of the
/// requests inside.
pub struct StationRun {
    running: StartTimes,
    inside: Inside,
    summary: Summary,
}

/// Requests that are not complete, by slot.
struct Inside {
    orders: Orders,
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// Of those that have started: completion, number, slot. Equal completions go by arrival.
    ends: BinaryHeap<Reverse<(u64, u64, u32)>>,
    arrived: u64,
    /// So many of the first are not summarised.
    warm_up: u64,
}

#[derive(Clone, Copy)]
struct Slot {
    request: TimedRequest,
    number: u64,
}

impl StationRun {
    /// From an empty station. The first `warm_up` requests are played, not summarised. Randomness comes from the seed.
    pub fn new(station: IdealStation, seed: u64, warm_up: u64, summary: Summary) -> Self {
        let inside = Inside {
            orders: Orders::default(),
            slots: Vec::new(),
            free: Vec::new(),
            ends: BinaryHeap::new(),
            arrived: 0,
            warm_up,
        };
        Self { running: station.running(seed), inside, summary }
    }

    /// The next request.
    ///
    /// # Errors
    /// When it arrives before the previous one.
    ///
    /// # Panics
    /// When it ends beyond 584 years.
    #[inline]
    pub fn arrive(&mut self, request: TimedRequest) -> Result<(), OutOfOrderError> {
        let slot = self.inside.enter(request);
        let Self { running, inside, .. } = self;
        running
            .arrive(slot as usize, request, |slot, request, start| inside.started(slot, request, start))?;
        // Whoever ends before this arrival has started by now, and all that are ahead in the ideal order are known.
        self.inside.complete(|end| end < request.arrival.0, &mut self.summary);
        Ok(())
    }

    /// Nobody else arrives.
    pub fn finish(self) -> Summary {
        let Self { running, mut inside, mut summary } = self;
        running.finish(|slot, request, start| inside.started(slot, request, start));
        inside.complete(|_| true, &mut summary);
        summary
    }
}

impl Inside {
    #[inline]
    fn enter(&mut self, request: TimedRequest) -> u32 {
        let entry = Slot { request, number: self.arrived };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = entry;
                slot
            }
            None => {
                self.slots.push(entry);
                u32::try_from(self.slots.len() - 1).expect("memory ends before four billion are inside")
            }
        };
        let ideal = request.arrival + request.service;
        self.orders.enter(ideal.0, entry.number, slot);
        self.arrived += 1;
        slot
    }

    #[inline]
    fn started(&mut self, slot: usize, request: TimedRequest, start: Nanos) {
        let number = self.slots[slot].number;
        // It is the index of a slot.
        #[allow(clippy::cast_possible_truncation)]
        self.ends.push(Reverse(((start + request.service).0, number, slot as u32)));
    }

    #[inline]
    fn complete(&mut self, due: impl Fn(u64) -> bool, summary: &mut Summary) {
        while let Some(Reverse((end, number, slot))) = self.ends.peek().copied()
            && due(end)
        {
            self.ends.pop();
            let place = self.orders.complete(end, slot);
            if number >= self.warm_up {
                summary.record(self.slots[slot as usize].request, Nanos(end), place.displaced);
            }
            self.free.push(slot);
        }
    }
}

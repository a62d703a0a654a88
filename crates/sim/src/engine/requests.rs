//! The requests inside, in a slab: what has been drawn for each and how far it is.

use super::load::SKIP;
use super::network::Step;

/// One request.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Request {
    /// At the entry, true time.
    pub(crate) arrival: u64,
    /// Global arrival time: the entry's clock at that instant.
    pub(crate) gat: u64,
    /// Sum of its demands.
    pub(crate) demand: u64,
    /// When it would be complete if nobody else were there.
    pub(crate) ideal: u64,
    /// Position among all arrivals, from 0.
    pub(crate) number: u64,
    pub(crate) class: u32,
    pub(crate) entry: u32,
    /// Steps that are not over.
    pub(crate) open: u32,
}

/// One step of one request; its index is the item that disciplines know.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Visit {
    /// Demand drawn.
    pub(crate) demand: u64,
    /// Demand not yet served.
    pub(crate) left: u64,
    /// When it arrived at the station.
    pub(crate) arrived: u64,
    /// Steps that it waits for.
    pub(crate) pending: u32,
}

/// Slots for requests and their visits; freed slots are used again, latest first.
#[derive(Debug)]
pub(crate) struct Requests {
    pub(crate) requests: Vec<Request>,
    pub(crate) visits: Vec<Visit>,
    free: Vec<u32>,
    steps: usize,
}

impl Requests {
    pub(crate) fn new(steps: usize) -> Self {
        Self { requests: Vec::new(), visits: Vec::new(), free: Vec::new(), steps }
    }

    /// How many are inside.
    pub(crate) fn inside(&self) -> usize {
        self.requests.len() - self.free.len()
    }

    /// A slot for a request with these demands.
    #[inline]
    pub(crate) fn insert(&mut self, request: Request, demands: &[units::Nanos], steps: &[Step]) -> u32 {
        let slot = self.slot();
        self.requests[slot as usize] = request;
        let first = slot as usize * self.steps;
        for ((visit, demand), step) in self.visits[first..].iter_mut().zip(demands).zip(steps) {
            let pending = u32::try_from(step.after.len()).unwrap_or(u32::MAX);
            *visit = Visit { demand: demand.0, left: demand.0, arrived: 0, pending };
        }
        slot
    }

    fn slot(&mut self) -> u32 {
        self.free.pop().unwrap_or_else(|| {
            let slot = self.requests.len();
            self.requests.push(Request::default());
            self.visits.resize(self.visits.len() + self.steps, Visit::default());
            assert!(u32::try_from(self.visits.len()).is_ok(), "more than 2³² visits at once");
            // Just checked: there are at least as many visits as requests.
            #[allow(clippy::cast_possible_truncation)]
            let slot = slot as u32;
            slot
        })
    }

    /// Gives a slot back.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) {
        self.free.push(slot);
    }

    /// The item of a request's step.
    #[inline]
    pub(crate) fn item(&self, slot: u32, step: usize) -> u32 {
        // All visits have numbers below 2³².
        #[allow(clippy::cast_possible_truncation)]
        let item = (slot as usize * self.steps + step) as u32;
        item
    }

    /// Slot and step of an item.
    #[inline]
    pub(crate) fn of(&self, item: u32) -> (u32, usize) {
        if self.steps == 1 {
            return (item, 0);
        }
        // A quotient of u32s.
        #[allow(clippy::cast_possible_truncation)]
        let slot = (item as usize / self.steps) as u32;
        (slot, item as usize % self.steps)
    }
}

/// When a request that enters the first steps at `entered` is complete if it never waits: the longest path.
/// `over` is scratch space.
#[inline]
pub(crate) fn ideal(entered: u64, demands: &[units::Nanos], steps: &[Step], over: &mut [u64]) -> u64 {
    let mut last = entered;
    for (index, (step, demand)) in steps.iter().zip(demands).enumerate() {
        let ready = step.after.iter().map(|earlier| over[*earlier]).max().unwrap_or(entered);
        let served = if *demand == SKIP { 0 } else { step.delay.0.saturating_add(demand.0) };
        over[index] = ready.saturating_add(served);
        last = last.max(over[index]);
    }
    last
}

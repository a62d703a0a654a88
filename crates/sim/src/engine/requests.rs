//! The requests inside, in a slab: what has been drawn for each and how far it is.

use super::load::{DELAY_ONLY, SKIP};
use super::network::Step;
use std::ops::Range;
use units::Nanos;

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
    /// Between leaving the entry and the first steps.
    pub(crate) delay: u64,
    pub(crate) class: u32,
    pub(crate) entry: u32,
    /// Steps that are not over.
    pub(crate) open: u32,
    /// Its first visit.
    pub(crate) first: u32,
    /// The step of that visit.
    pub(crate) step: u32,
    /// How many visits it has.
    pub(crate) visits: u32,
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
    /// Network delay before it.
    pub(crate) delay: u64,
    /// Steps that it waits for.
    pub(crate) pending: u32,
    /// Whose it is.
    slot: u32,
}

/// What was drawn for a request: by step of the network, of which `steps` are its own.
#[derive(Debug)]
pub(crate) struct Drawn<'a> {
    pub(crate) steps: Range<usize>,
    pub(crate) demands: &'a [Nanos],
    pub(crate) delays: &'a [Nanos],
}

/// Slots for requests and their visits; freed slots are used again by requests with as many steps, latest first.
#[derive(Debug)]
pub(crate) struct Requests {
    pub(crate) requests: Vec<Request>,
    pub(crate) visits: Vec<Visit>,
    /// By number of visits.
    free: Vec<Vec<u32>>,
    inside: usize,
    steps: usize,
}

impl Requests {
    pub(crate) fn new(steps: usize) -> Self {
        Self { requests: Vec::new(), visits: Vec::new(), free: vec![Vec::new(); steps + 1], inside: 0, steps }
    }

    /// How many are inside.
    #[inline]
    pub(crate) fn inside(&self) -> usize {
        self.inside
    }

    /// A slot for a request.
    #[inline]
    pub(crate) fn insert(&mut self, request: Request, drawn: &Drawn<'_>, steps: &[Step]) -> u32 {
        self.inside += 1;
        // As many steps as fit into a vector that was given; far below 2³².
        #[allow(clippy::cast_possible_truncation)]
        let (step, visits) = (drawn.steps.start as u32, drawn.steps.len() as u32);
        let slot = self.free[visits as usize].pop().unwrap_or_else(|| self.grow(visits));
        let at = &mut self.requests[slot as usize];
        *at = Request { first: at.first, step, visits, open: visits, ..request };
        let first = at.first as usize;
        let of_steps = steps[drawn.steps.clone()].iter().zip(&drawn.demands[drawn.steps.clone()]);
        let all = of_steps.zip(&drawn.delays[drawn.steps.clone()]);
        for (visit, ((step, demand), delay)) in self.visits[first..].iter_mut().zip(all) {
            let pending = u32::try_from(step.after.len()).unwrap_or(u32::MAX);
            *visit = Visit { demand: demand.0, left: demand.0, arrived: 0, delay: delay.0, pending, slot };
        }
        slot
    }

    #[cold]
    fn grow(&mut self, visits: u32) -> u32 {
        let (slot, first) = (self.requests.len(), self.visits.len());
        self.visits.resize(first + visits as usize, Visit::default());
        assert!(u32::try_from(self.visits.len()).is_ok(), "more than 2³² visits at once");
        // Just checked: every request has a visit at least.
        #[allow(clippy::cast_possible_truncation)]
        let (slot, first) = (slot as u32, first as u32);
        self.requests.push(Request { first, ..Request::default() });
        slot
    }

    /// Gives a slot back.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) {
        self.inside -= 1;
        self.free[self.requests[slot as usize].visits as usize].push(slot);
    }

    /// Its steps.
    #[inline]
    pub(crate) fn steps(&self, slot: u32) -> Range<usize> {
        let request = &self.requests[slot as usize];
        request.step as usize..(request.step + request.visits) as usize
    }

    /// The item of a request's step.
    #[inline]
    pub(crate) fn item(&self, slot: u32, step: usize) -> u32 {
        if self.steps == 1 {
            return slot;
        }
        let request = &self.requests[slot as usize];
        // All visits have numbers below 2³².
        #[allow(clippy::cast_possible_truncation)]
        let item = request.first + (step as u32 - request.step);
        item
    }

    /// Slot and step of an item.
    #[inline]
    pub(crate) fn of(&self, item: u32) -> (u32, usize) {
        if self.steps == 1 {
            return (item, 0);
        }
        let slot = self.visits[item as usize].slot;
        let request = &self.requests[slot as usize];
        (slot, (item - request.first + request.step) as usize)
    }
}

/// When a request that enters the first steps at `entered` is complete if it never waits: the longest path.
/// `over` becomes when each of its steps would be over.
#[inline]
pub(crate) fn ideal(entered: u64, drawn: &Drawn<'_>, steps: &[Step], over: &mut [u64]) -> u64 {
    let mut last = entered;
    for index in drawn.steps.clone() {
        let ready = steps[index].after.iter().map(|earlier| over[*earlier]).max().unwrap_or(entered);
        let delay = drawn.delays[index].0;
        let served = match drawn.demands[index] {
            SKIP => 0,
            DELAY_ONLY => delay,
            demand => delay.saturating_add(demand.0),
        };
        over[index] = ready.saturating_add(served);
        last = last.max(over[index]);
    }
    last
}

//! The requests inside, in a slab: what has been drawn for each and how far it is.

use super::load::{DELAY_ONLY, SKIP};
use super::network::NetworkStep;
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
    pub(crate) fn insert(&mut self, request: Request, drawn: &Drawn<'_>, steps: &[NetworkStep]) -> u32 {
        self.inside += 1;
        let slot = match self.free[drawn.steps.len()].pop() {
            Some(slot) => slot,
            None => self.grow(request.visits),
        };
        let at = &mut self.requests[slot as usize];
        let first = at.first;
        *at = request;
        at.first = first;
        let first = first as usize;
        let visits = &mut self.visits[first..first + drawn.steps.len()];
        let (steps, demands) = (&steps[drawn.steps.clone()], &drawn.demands[drawn.steps.clone()]);
        let drawn = demands.iter().zip(&drawn.delays[drawn.steps.clone()]);
        for ((visit, step), (demand, delay)) in visits.iter_mut().zip(steps).zip(drawn) {
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

/// What a request is as a whole.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Alone {
    /// When it is complete if it never waits: the longest path.
    pub(crate) ideal: u64,
    /// Sum of its demands.
    pub(crate) demand: u64,
    /// Whether it visits any station.
    pub(crate) is_served: bool,
}

/// A request that enters the first steps at `entered`. `over` becomes when each of its steps would be over.
#[inline]
pub(crate) fn alone(entered: u64, drawn: &Drawn<'_>, steps: &[NetworkStep], over: &mut [u64]) -> Alone {
    let mut alone = Alone { ideal: entered, demand: 0, is_served: false };
    for index in drawn.steps.clone() {
        let ready = steps[index].after.iter().map(|earlier| over[*earlier]).max().unwrap_or(entered);
        let takes = match drawn.demands[index] {
            SKIP => 0,
            DELAY_ONLY => drawn.delays[index].0,
            Nanos(demand) => {
                alone.is_served = true;
                alone.demand = alone.demand.saturating_add(demand);
                drawn.delays[index].0.saturating_add(demand)
            }
        };
        over[index] = ready.saturating_add(takes);
        alone.ideal = alone.ideal.max(over[index]);
    }
    alone
}

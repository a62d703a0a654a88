//! Requests inside, in reusable slots: the drawn values and progress of each.
//!
//! The visits of a request are neighbours in one array, because disciplines identify a visit by its index
//! there. A slot can therefore be reused only by a request with as many visits, which the crate `slab` cannot
//! express.

use super::network::NetworkStep;
use discipline::enforce::DeviceAccess;
use std::ops::Range;
use units::Nanos;

/// A request that is inside. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ActiveRequest {
    /// True time of its arrival at its entry.
    pub(crate) arrival: u64,
    /// Global arrival time: the entry's clock at that instant.
    pub(crate) global_arrival: u64,
    /// The sum of its demands.
    pub(crate) demand: u64,
    /// Completion if it were alone.
    pub(crate) ideal: u64,
    /// Sequence number among all arrivals, from 0.
    pub(crate) number: u64,
    /// The delay between leaving the entry and the first steps.
    pub(crate) delay: u64,
    pub(crate) class: u32,
    /// Access to a storage device, if known.
    pub(crate) access: Option<DeviceAccess>,
    /// Index of its entry.
    pub(crate) entry: u32,
    /// Steps that are not done.
    pub(crate) steps_left: u32,
    /// Index of its first visit.
    pub(crate) first_visit: u32,
    /// Step of the network that its first visit belongs to.
    pub(crate) first_step: u32,
    /// Number of its visits.
    pub(crate) visit_count: u32,
}

/// One step of one request; its index is the item that disciplines know. Times are in nanoseconds.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct StepVisit {
    /// The demand that was drawn.
    pub(crate) demand: u64,
    /// The demand that has not been served yet.
    pub(crate) left: u64,
    /// Arrival at the station.
    pub(crate) arrived: u64,
    /// The network delay before it.
    pub(crate) delay: u64,
    /// Number of steps that it still waits for.
    pub(crate) pending: u32,
    /// The slot of its request.
    slot: u32,
}

/// Drawn values of a request by step of the network; only `steps` belong to the request.
#[derive(Debug)]
pub(crate) struct DrawnSteps<'a> {
    pub(crate) steps: Range<usize>,
    pub(crate) demands: &'a [Nanos],
    pub(crate) delays: &'a [Nanos],
}

/// Slots for requests and their visits. Requests with as many steps reuse freed slots, latest first.
#[derive(Debug)]
pub(crate) struct RequestSlab {
    pub(crate) requests: Vec<ActiveRequest>,
    pub(crate) visits: Vec<StepVisit>,
    /// Free slots by their number of visits.
    free: Vec<Vec<u32>>,
    inside: usize,
    /// Number of steps of the network.
    steps: usize,
}

impl RequestSlab {
    pub(crate) fn new(steps: usize) -> Self {
        Self { requests: Vec::new(), visits: Vec::new(), free: vec![Vec::new(); steps + 1], inside: 0, steps }
    }

    /// Returns the number of requests inside.
    #[inline]
    pub(crate) fn inside(&self) -> usize {
        self.inside
    }

    /// Inserts a request and returns its slot. The slot determines its visits; the index in `request` is
    /// ignored.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        request: ActiveRequest,
        drawn: &DrawnSteps<'_>,
        steps: &[NetworkStep],
    ) -> u32 {
        self.inside += 1;
        let slot = match self.free[drawn.steps.len()].pop() {
            Some(slot) => slot,
            None => self.grow(request.visit_count),
        };
        let stored = &mut self.requests[slot as usize];
        *stored = ActiveRequest { first_visit: stored.first_visit, ..request };
        let first = stored.first_visit as usize;
        let visits = &mut self.visits[first..first + drawn.steps.len()];
        let steps = &steps[drawn.steps.clone()];
        let demands = &drawn.demands[drawn.steps.clone()];
        let drawn = demands.iter().zip(&drawn.delays[drawn.steps.clone()]);
        for ((visit, step), (demand, delay)) in visits.iter_mut().zip(steps).zip(drawn) {
            let pending = u32::try_from(step.after.len()).unwrap_or(u32::MAX);
            *visit =
                StepVisit { demand: demand.0, left: demand.0, arrived: 0, delay: delay.0, pending, slot };
        }
        slot
    }

    #[cold]
    fn grow(&mut self, visits: u32) -> u32 {
        let slot = self.requests.len();
        let first = self.visits.len();
        self.visits.resize(first + visits as usize, StepVisit::default());
        assert!(u32::try_from(self.visits.len()).is_ok(), "more than 2³² visits at once");
        // Just checked: every request has a visit at least.
        #[allow(clippy::cast_possible_truncation)]
        let slot = slot as u32;
        // Just checked.
        #[allow(clippy::cast_possible_truncation)]
        let first_visit = first as u32;
        self.requests.push(ActiveRequest { first_visit, ..ActiveRequest::default() });
        slot
    }

    /// Frees the slot of a request.
    #[inline]
    pub(crate) fn remove(&mut self, slot: u32) {
        self.inside -= 1;
        self.free[self.requests[slot as usize].visit_count as usize].push(slot);
    }

    /// Returns the steps of the network that belong to a request.
    #[inline]
    pub(crate) fn steps(&self, slot: u32) -> Range<usize> {
        let request = &self.requests[slot as usize];
        request.first_step as usize..(request.first_step + request.visit_count) as usize
    }

    /// Returns the item that identifies a step of a request to disciplines: the index of its visit.
    #[inline]
    pub(crate) fn item(&self, slot: u32, step: usize) -> u32 {
        if self.steps == 1 {
            return slot;
        }
        let request = &self.requests[slot as usize];
        // All visits have numbers below 2³².
        #[allow(clippy::cast_possible_truncation)]
        let item = request.first_visit + (step as u32 - request.first_step);
        item
    }

    /// The slot and the step of an item.
    #[inline]
    pub(crate) fn slot_and_step(&self, item: u32) -> (u32, usize) {
        if self.steps == 1 {
            return (item, 0);
        }
        let slot = self.visits[item as usize].slot;
        let request = &self.requests[slot as usize];
        (slot, (item - request.first_visit + request.first_step) as usize)
    }
}

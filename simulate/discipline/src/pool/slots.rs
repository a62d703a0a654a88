//! The requests of a pool in numbered slots, and lists of them in the order in which something happened to them.

use super::place::PoolPlace;
use crate::RequestKey;

/// Position of a request in the order: its key, then its sequence number among arrivals, which breaks ties.
pub(super) type PoolKey = (RequestKey, u64);

/// No slot: the end of a list.
const NONE: u32 = u32::MAX;

#[derive(Debug, Clone, Copy)]
pub(super) struct PoolSlot {
    pub(super) key: PoolKey,
    /// None while the slot is free.
    pub(super) place: Option<PoolPlace>,
    /// Instant at which it began to serve or was demoted.
    pub(super) since: u64,
    previous: u32,
    next: u32,
}

/// All slots. Free slots are reused, so memory grows only with the peak number of requests.
#[derive(Debug, Clone, Default)]
pub(super) struct PoolSlots {
    slots: Vec<PoolSlot>,
    free: Vec<u32>,
}

impl PoolSlots {
    pub(super) fn insert(&mut self, key: PoolKey, place: PoolPlace) -> u32 {
        let taken = PoolSlot { key, place: Some(place), since: 0, previous: NONE, next: NONE };
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = taken;
            return slot;
        }
        let slot = u32::try_from(self.slots.len()).ok().filter(|slot| *slot != NONE);
        self.slots.push(taken);
        slot.expect("fewer than 2³² − 1 requests are present")
    }

    pub(super) fn remove(&mut self, slot: u32) {
        self.slots[slot as usize].place = None;
        self.free.push(slot);
    }

    #[inline]
    pub(super) fn get(&self, slot: u32) -> Option<&PoolSlot> {
        self.slots.get(slot as usize)
    }

    #[inline]
    pub(super) fn of(&self, slot: u32) -> &PoolSlot {
        &self.slots[slot as usize]
    }

    #[inline]
    pub(super) fn of_mut(&mut self, slot: u32) -> &mut PoolSlot {
        &mut self.slots[slot as usize]
    }
}

/// Intrusive doubly linked list of slots in order of insertion, with removal in O(1). A slot is in at most
/// one list.
#[derive(Debug, Clone)]
pub(super) struct SlotList {
    first: u32,
    last: u32,
}

impl SlotList {
    pub(super) fn new() -> Self {
        Self { first: NONE, last: NONE }
    }

    /// Returns the slot that was appended first.
    #[inline]
    pub(super) fn first(&self) -> Option<u32> {
        Some(self.first).filter(|slot| *slot != NONE)
    }

    /// Returns all slots in order of insertion.
    pub(super) fn slots<'a>(&self, slots: &'a PoolSlots) -> impl Iterator<Item = u32> + use<'a> {
        let next = |slot: &u32| Some(slots.of(*slot).next).filter(|slot| *slot != NONE);
        std::iter::successors(self.first(), next)
    }

    pub(super) fn append(&mut self, slots: &mut PoolSlots, slot: u32) {
        let added = slots.of_mut(slot);
        added.previous = self.last;
        added.next = NONE;
        match self.last {
            NONE => self.first = slot,
            last => slots.of_mut(last).next = slot,
        }
        self.last = slot;
    }

    pub(super) fn remove(&mut self, slots: &mut PoolSlots, slot: u32) {
        let PoolSlot { previous, next, .. } = *slots.of(slot);
        match previous {
            NONE => self.first = next,
            previous => slots.of_mut(previous).next = next,
        }
        match next {
            NONE => self.last = previous,
            next => slots.of_mut(next).previous = previous,
        }
    }
}

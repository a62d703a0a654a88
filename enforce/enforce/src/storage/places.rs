//! Places of clients: their number, and the share of it that each workload is guaranteed.
//!
//! Half of the places are divided among the workloads that the hosts file identifies by address. Anyone may
//! use a place that its owner does not use; its owner gets it back when it connects.

use std::collections::BTreeMap;

/// Time for which a shortage of descriptors limits the number of places, nanoseconds.
const SHORTAGE_NS: u64 = 1_000_000_000;

/// Number of places, and how many each workload holds.
#[derive(Debug)]
pub(super) struct ClientPlaces {
    max: u64,
    /// Number of workloads with guaranteed places.
    owners: u64,
    /// Places held, by flow of the workload.
    held: BTreeMap<u32, u64>,
    /// Number of connections at which descriptors ran out, and the time until which it limits the places.
    shortage: Option<(u64, u64)>,
}

impl ClientPlaces {
    pub(super) fn new(max: u64, owners: usize) -> Self {
        Self { max, owners: owners as u64, held: BTreeMap::new(), shortage: None }
    }

    /// Clears all accounts, for a different number of workloads.
    pub(super) fn restart(&mut self, owners: usize) {
        self.owners = owners as u64;
        self.held.clear();
    }

    /// Returns the number of places now.
    pub(super) fn count(&self) -> u64 {
        self.shortage.map_or(self.max, |(count, _)| count.min(self.max))
    }

    /// Returns the number of places that each workload is guaranteed.
    pub(super) fn guaranteed(&self) -> u64 {
        let count = self.count();
        // With more workloads than places nothing can be guaranteed.
        if self.owners == 0 || self.owners > count { 0 } else { (count / 2 / self.owners).max(1) }
    }

    /// Notes that descriptors have run out with this many connections open.
    pub(super) fn note_shortage(&mut self, connections: u64, now: u64) {
        self.shortage = Some((connections, now + SHORTAGE_NS));
    }

    /// Ends a shortage whose time is over.
    pub(super) fn end_shortage(&mut self, now: u64) {
        self.shortage = self.shortage.filter(|(_, until)| now < *until);
    }

    /// Returns the workload on whose account a client that belongs to any of these is connected: the one
    /// with the fewest places.
    pub(super) fn owner(&self, claims: &[u32]) -> Option<u32> {
        claims.iter().copied().min_by_key(|flow| self.held_by(*flow))
    }

    pub(super) fn add(&mut self, owner: Option<u32>) {
        if let Some(flow) = owner {
            *self.held.entry(flow).or_insert(0) += 1;
        }
    }

    pub(super) fn remove(&mut self, owner: Option<u32>) {
        if let Some(count) = owner.and_then(|flow| self.held.get_mut(&flow)) {
            *count -= 1;
        }
    }

    fn held_by(&self, flow: u32) -> u64 {
        self.held.get(&flow).copied().unwrap_or(0)
    }

    /// Returns true if a guaranteed place of this workload is free.
    pub(super) fn is_owed_one(&self, owner: Option<u32>) -> bool {
        owner.is_some_and(|flow| self.held_by(flow) < self.guaranteed())
    }

    /// Returns true if the workload holds no more than its guaranteed places, so that none may be taken.
    pub(super) fn is_protected(&self, owner: Option<u32>) -> bool {
        owner.is_some_and(|flow| self.held_by(flow) <= self.guaranteed())
    }

    /// Returns the number of places on the accounts of workloads; for checks.
    pub(super) fn owned(&self) -> u64 {
        self.held.values().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn half_of_the_places_is_divided_among_workloads() {
        assert_eq!(ClientPlaces::new(1024, 0).guaranteed(), 0);
        assert_eq!(ClientPlaces::new(1024, 4).guaranteed(), 128);
        assert_eq!(ClientPlaces::new(10, 7).guaranteed(), 1);
        assert_eq!(ClientPlaces::new(10, 11).guaranteed(), 0);
    }

    #[test]
    fn a_shortage_limits_places_for_a_while() {
        let mut places = ClientPlaces::new(1024, 2);
        places.note_shortage(40, 5);
        assert_eq!((places.count(), places.guaranteed()), (40, 10));
        places.end_shortage(4 + SHORTAGE_NS);
        assert_eq!(places.count(), 40);
        places.end_shortage(5 + SHORTAGE_NS);
        assert_eq!(places.count(), 1024);
    }

    proptest! {
        /// A workload that is owed a place finds one that is not protected, for any distribution of the others.
        #[test]
        fn a_place_that_is_owed_can_be_taken(
            max in 1usize..60, owners in 1u32..8, holders in prop::collection::vec(prop::option::of(0u32..8), 0..60),
        ) {
            let mut places = ClientPlaces::new(max as u64, owners as usize);
            let of = |holder: Option<u32>| holder.filter(|flow| *flow < owners);
            let held: Vec<_> = holders.into_iter().map(of).take(max).collect();
            held.iter().for_each(|owner| places.add(*owner));
            let is_full = held.len() == max;
            for flow in 0..owners {
                if is_full && places.is_owed_one(Some(flow)) {
                    prop_assert!(held.iter().any(|owner| !places.is_protected(*owner)));
                }
            }
        }
    }
}

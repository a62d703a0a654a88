//! Invariants after every round of the engine.

use super::super::request::{NO_SESSION, RequestState};
use super::super::system::System;
use super::ProxyEngine;

/// Number of rounds between two checks while real clients are served: a check visits every request.
#[cfg(debug_assertions)]
const ROUNDS_BETWEEN_CHECKS: u64 = 64;

impl<S: System> ProxyEngine<S> {
    /// Checks the invariants in some of the rounds.
    #[cfg(debug_assertions)]
    pub(in super::super) fn check_invariants_now_and_then(&mut self) {
        self.rounds_unchecked += 1;
        if self.rounds_unchecked >= ROUNDS_BETWEEN_CHECKS {
            self.rounds_unchecked = 0;
            self.check_invariants();
        }
    }

    /// Checks the engine, its sessions and its queue against each other. Visits every request.
    ///
    /// # Panics
    /// When they are inconsistent, which is an error in this code.
    pub fn check_invariants(&self) {
        let shared = &self.shared;
        let mut queued = 0;
        let mut outstanding = 0;
        for (number, request) in shared.requests.iter() {
            let is_served = self.sessions.contains(request.session);
            assert!(
                is_served || request.session == NO_SESSION,
                "request {number} has a session: {request:?}"
            );
            queued += usize::from(matches!(request.state, RequestState::Queued(_)));
            outstanding += u32::from(matches!(request.state, RequestState::Outstanding(_)));
        }
        assert_eq!(queued, shared.queue.waiting(), "the queue has the requests that are queued");
        assert_eq!(outstanding, shared.queue.outstanding(), "outstanding requests have tickets");
        let mut bytes = 0;
        for (slot, entry) in &self.sessions {
            assert_eq!(entry.session.slot, slot, "a session knows its slot");
            assert_eq!(entry.client.stream.is_none(), entry.session.is_client_given_up(), "slot {slot}");
            entry.session.check_invariants(shared);
            bytes += entry.session.counted_bytes();
        }
        assert_eq!(bytes, shared.buffered_bytes, "all buffered bytes are some session's");
        let counted = (self.sessions.len() as u64, bytes);
        assert_eq!(shared.addresses.totals(), counted, "connections and their bytes are some address's");
        let owned = self.sessions.iter().filter(|(_, entry)| entry.owner.is_some()).count() as u64;
        assert_eq!(self.places.owned(), owned, "every place is on its workload's account");
        self.pool.check_invariants(|slot, serial, number| self.is_carried(slot, serial, number));
        shared.queue.check_invariants();
    }
}

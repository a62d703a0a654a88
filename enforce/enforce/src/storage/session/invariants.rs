//! Invariants of a session after every step.

use super::super::request::{ProxyRequest, RequestEnding, RequestState};
use super::super::shared::SharedState;
use super::ProxySession;

impl ProxySession {
    /// Checks the session's state against the requests.
    ///
    /// # Panics
    /// When they are inconsistent, which is an error in this code.
    pub(in super::super) fn check_invariants(&self, shared: &SharedState) {
        let slot = self.slot;
        let mut held = 0;
        for (place, number) in self.waiting.iter().enumerate() {
            let request = shared.requests.get(*number);
            assert_eq!(request.session, slot, "a waiting request is the session's");
            assert_eq!(request.place_in_session, place, "a waiting request knows its place");
            let is_parked = matches!(request.state, RequestState::Parked);
            let is_queued = matches!(request.state, RequestState::Queued(_));
            assert!(is_parked || is_queued, "{:?}", request.state);
            assert!(!is_parked || self.is_parked, "requests are parked together");
            held += request.bytes.len();
        }
        let apart = self.incoming.as_ref().map(|incoming| incoming.number).into_iter().chain(self.goodbye);
        for number in apart {
            let request = shared.requests.get(number);
            assert!(matches!(request.state, RequestState::Arriving), "{:?}", request.state);
            held += request.bytes.len();
        }
        for (id, number) in &self.server.in_flight {
            let request = shared.requests.get(*number);
            assert_eq!((request.session, request.id), (slot, *id), "a request in flight is the session's");
            assert_eq!(request.ending, RequestEnding::Reply, "a request in flight has a reply");
            assert!(is_forwarded(request), "{:?}", request.state);
        }
        assert_eq!(held, self.held_bytes, "held bytes are those of requests");
        assert!(self.ahead.is_none_or(|number| self.waiting.contains(&number)), "what went ahead waits");
        if self.client.phase.is_closed() {
            assert!(self.waiting.is_empty() && self.incoming.is_none() && self.goodbye.is_none());
            assert!(self.server.replies.is_written(), "nothing is kept for a client that was given up");
        }
    }

    /// Returns the bytes counted for the session.
    pub(in super::super) fn counted_bytes(&self) -> usize {
        self.counted_bytes
    }
}

fn is_forwarded(request: &ProxyRequest) -> bool {
    let is_sent = matches!(
        request.state,
        RequestState::Outstanding(_) | RequestState::Overdue(_) | RequestState::Released
    );
    is_sent && request.bytes.is_empty()
}

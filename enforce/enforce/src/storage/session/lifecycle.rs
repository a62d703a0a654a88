//! Life of a request: into the queue, to the server, and to its end.

use super::super::flows::{CONTROL_FLOW, OVERSIZED_FLOW};
use super::super::queue::DispatchTicket;
use super::super::request::{RequestEnding, RequestState};
use super::super::shared::SharedState;
use super::ProxySession;
use super::phase::ServerPhase;
use super::shutdown::SERVER_PATIENCE_NS;
use discipline::enforce::{ArrivingRequest, DeviceOperation};
use wire::{ExportSource, RequestClass};

/// Device time charged for a step of the NBD handshake, nanoseconds. The device does no work for it, but a
/// positive cost limits endless handshakes.
const HANDSHAKE_COST_NS: u64 = 1000;

impl ProxySession {
    /// Returns the end of a repeated call whose first instance is unanswered. The server has it or will have
    /// it, and answers it once. Only a call sent long ago may have been lost.
    pub(super) fn ending_of_retransmission(&self, id: u64, shared: &mut SharedState) -> RequestEnding {
        let mut in_flight = self.server.in_flight.iter();
        let Some(&(_, first)) = in_flight.find(|(other, _)| *other == id) else {
            return RequestEnding::Dropped;
        };
        let now = shared.now;
        let sent = &mut shared.requests.get_mut(first).sent;
        if now < sent.saturating_add(SERVER_PATIENCE_NS) {
            return RequestEnding::Dropped;
        }
        *sent = now;
        RequestEnding::Repeated
    }

    /// Enqueues a request whose last byte has arrived, or forwards or drops it.
    pub(super) fn complete_request(&mut self, number: u32, shared: &mut SharedState) {
        self.client.asked_at = shared.now;
        let request = shared.requests.get_mut(number);
        match request.ending {
            RequestEnding::Dropped => shared.requests.remove(number),
            RequestEnding::Immediate => {
                let bytes = std::mem::take(&mut request.bytes);
                self.forward_bytes(bytes);
                shared.requests.remove(number);
            }
            RequestEnding::Forwarded if request.is_control() && self.protocol.row().has_ids => {
                self.goodbye = Some(number);
            }
            RequestEnding::Reply | RequestEnding::Forwarded | RequestEnding::Repeated => {
                if let Some((class, keys)) = self.codec.work_at_end() {
                    (request.class, request.keys) = (class, keys);
                }
                request.class = self.class_by_size(request);
                self.enqueue(number, shared);
            }
        }
    }

    /// Puts a request into the queue.
    fn enqueue(&mut self, number: u32, shared: &mut SharedState) {
        let workload = self.workload_of_request(number, shared);
        let request = shared.requests.get(number);
        let requested = request.requested();
        let cost =
            if self.is_in_handshake() { HANDSHAKE_COST_NS } else { shared.cost_ns(workload, requested) };
        let request = shared.requests.get_mut(number);
        (request.cost, request.arrived) = (cost, shared.now);
        request.place_in_session = self.waiting.len();
        request.number = shared.enqueued;
        shared.enqueued += 1;
        shared.requests.get_mut(number).flow = self.flow_within(workload, number, shared);
        self.waiting.push(number);
        if self.is_parked {
            // Earlier requests are out of the queue; this one follows when they return.
            shared.requests.get_mut(number).state = RequestState::Parked;
        } else {
            self.arrive(number, shared);
        }
    }

    /// Hands a request with known cost and flow to the queue.
    fn arrive(&self, number: u32, shared: &mut SharedState) {
        let request = shared.requests.get(number);
        let operation = match request.class {
            RequestClass::Write(_) => DeviceOperation::Write,
            RequestClass::Read(_) | RequestClass::Control => DeviceOperation::Read,
        };
        let flow = request.flow;
        let cost = request.cost;
        let bytes = request.size().0;
        let is_estimate = request.is_size_unknown();
        let arriving = ArrivingRequest { id: number, flow, operation, cost, bytes, is_estimate };
        let waiting = shared.queue.arrive(shared.now, arriving);
        shared.requests.get_mut(number).state = RequestState::Queued(waiting);
    }

    /// Forwards a request that the queue has dispatched.
    pub(in super::super) fn dispatch(
        &mut self,
        number: u32,
        ticket: DispatchTicket,
        shared: &mut SharedState,
    ) {
        self.remove_waiting(number, shared);
        if self.server.phase.is_ended() {
            shared.refuse_ticket(ticket);
            shared.requests.get_mut(number).state = RequestState::Released;
            return self.discard_request(number, shared);
        }
        if ticket.is_unexpected() {
            shared.statistics.count_unexpected(shared.requests.get(number).flow);
        }
        shared.note_sent(number, ticket);
        self.forward(number, shared);
    }

    /// Hands the bytes of a request to the server's socket.
    pub(super) fn forward(&mut self, number: u32, shared: &mut SharedState) {
        let request = shared.requests.get_mut(number);
        let bytes = std::mem::take(&mut request.bytes);
        let id = request.id;
        let ending = request.ending;
        if self.server.phase == ServerPhase::Shared {
            self.server.shared_bytes += bytes.len();
        }
        self.forward_bytes(bytes);
        if self.ahead == Some(number) {
            self.ahead = None;
        }
        if ending == RequestEnding::Reply {
            self.server.in_flight.push_back((id, number));
        } else {
            self.finish_request(number, false, shared);
        }
    }

    /// Hands buffered bytes to the server's socket.
    pub(super) fn forward_bytes(&mut self, bytes: Vec<u8>) {
        self.held_bytes -= bytes.len();
        self.server.output.push(bytes);
    }

    /// Ends a request that was answered, or that was forwarded and has no reply: its slot at the device is
    /// free.
    pub(super) fn finish_request(&mut self, number: u32, is_error: bool, shared: &mut SharedState) {
        self.note_reply(shared.requests.get(number).reply_bytes);
        shared.finish(number, is_error);
        shared.requests.remove(number);
        if self.server.in_flight.is_empty() {
            self.server.shared_bytes = 0;
        }
        self.client.asked_at = shared.now;
        self.has_been_served = true;
    }

    /// Removes a request whose result is no longer awaited, and that is not in the session's list of waiting
    /// requests.
    pub(super) fn discard_request(&mut self, number: u32, shared: &mut SharedState) {
        let request = shared.requests.get_mut(number);
        self.held_bytes -= std::mem::take(&mut request.bytes).len();
        if let Some(charge) = request.charge.take() {
            // The server may have served it, so it keeps its charge.
            shared.queue.settle(shared.now, charge, charge.tokens());
        }
        if self.ahead == Some(number) {
            self.ahead = None;
        }
        shared.forget(number);
    }

    /// Removes a request from the list of waiting ones.
    fn remove_waiting(&mut self, number: u32, shared: &mut SharedState) {
        let place = shared.requests.get(number).place_in_session;
        let removed = self.waiting.swap_remove(place);
        debug_assert_eq!(removed, number, "a waiting request knows its place");
        if let Some(&moved) = self.waiting.get(place) {
            shared.requests.get_mut(moved).place_in_session = place;
        }
    }

    /// Returns the waiting requests in the order of arrival.
    pub(super) fn waiting_in_order(&self, shared: &SharedState) -> Vec<u32> {
        let mut waiting = self.waiting.clone();
        waiting.sort_unstable_by_key(|number| shared.requests.get(*number).number);
        waiting
    }

    /// Withdraws all waiting requests, whose results are no longer awaited.
    pub(super) fn withdraw_waiting(&mut self, shared: &mut SharedState) {
        for number in std::mem::take(&mut self.waiting) {
            shared.withdraw(number);
            self.discard_request(number, shared);
        }
        self.is_parked = false;
    }

    /// Parks waiting requests that would only occupy slots at the device, and resumes them later. The reasons
    /// are a client that does not read its replies, or others at its address that together leave much unread, a
    /// silent server, or a connection still to be established.
    pub(in super::super) fn park_or_resume(&mut self, shared: &mut SharedState) {
        let is_held_up = self.server.replies.is_full()
            || self.server.is_silent
            || self.is_connecting()
            || self.is_without_connection()
            || shared.is_address_full(self.address)
            || self.is_held(shared);
        if is_held_up == self.is_parked {
            return;
        }
        if is_held_up {
            for number in &self.waiting {
                if shared.withdraw(*number) {
                    shared.requests.get_mut(*number).state = RequestState::Parked;
                }
            }
        } else {
            for number in self.waiting_in_order(shared) {
                if matches!(shared.requests.get(number).state, RequestState::Parked) {
                    self.arrive(number, shared);
                }
            }
        }
        self.is_parked = is_held_up;
    }

    /// Returns the flow of a request's workload: by the file that it names, or else by the session's latest
    /// such request.
    fn workload_of_request(&mut self, number: u32, shared: &SharedState) -> u32 {
        let request = shared.requests.get(number);
        if request.names_file && request.export != self.export {
            self.export = request.export;
            self.flow = shared.flow_for(self.peer, self.export.map(|export| shared.exports.path(export)));
        }
        self.flow
    }

    /// Returns a request's flow within its workload. A protocol that is answered in order has a single flow, which keeps the order.
    fn flow_within(&self, workload: u32, number: u32, shared: &SharedState) -> u32 {
        let request = shared.requests.get(number);
        let largest = shared.enforced.rules.flows.get(&workload).and_then(|rules| rules.largest);
        if !self.protocol.row().has_ids {
            workload
        } else if request.is_control() {
            workload | CONTROL_FLOW
        } else if largest.is_some_and(|largest| request.cost > largest) {
            workload | OVERSIZED_FLOW
        } else {
            workload
        }
    }

    /// Determines the session's workload anew, and moves its waiting requests to the end of that flow, in
    /// order.
    pub(in super::super) fn identify(&mut self, shared: &mut SharedState) {
        self.flow = match self.protocol.row().export {
            ExportSource::FileHandle => {
                shared.flow_for(self.peer, self.export.map(|export| shared.exports.path(export)))
            }
            ExportSource::Handshake => shared.flow_for(self.peer, self.codec.export_name()),
            ExportSource::None => shared.flow_for(self.peer, None),
        };
        for number in self.waiting_in_order(shared) {
            let request = shared.requests.get(number);
            let mut flow = self.flow;
            if request.names_file && request.export != self.export {
                flow = shared.flow_for(self.peer, request.export.map(|export| shared.exports.path(export)));
            }
            let flow = self.flow_within(flow, number, shared);
            if flow != request.flow {
                let waiting = match request.state {
                    RequestState::Queued(waiting) => waiting,
                    _ => None,
                };
                if let Some(waiting) = waiting {
                    shared.queue.move_to_flow(shared.now, waiting, flow);
                }
                shared.requests.get_mut(number).flow = flow;
            }
        }
    }
}

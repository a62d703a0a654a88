//! The life of a request: into the queue, to the server, and to its end.

use super::super::flows::CONTROL_FLOW;
use super::super::queue::DispatchTicket;
use super::super::request::{ProxyRequest, RequestState};
use super::super::shared::SharedState;
use super::ProxySession;
use crate::deployment::FrontProtocol;
use discipline::enforce::{ArrivingRequest, DeviceOperation};
use model::Op;
use units::Bytes;
use wire::RequestClass;

impl ProxySession {
    /// The request of a message whose first bytes have come.
    pub(super) fn new_request(&self, message: &wire::RequestHead) -> ProxyRequest {
        ProxyRequest {
            session: self.slot,
            id: message.id,
            flow: self.flow,
            class: message.class,
            position: message.position,
            expects_reply: message.reply == wire::ReplyExpectation::Always && !message.is_retransmission,
            bytes: Vec::new(),
            is_complete: false,
            is_finished: false,
            state: RequestState::Arriving,
            arrived: 0,
            sent: 0,
        }
    }

    /// Puts a request into the queue, complete or with as many of its bytes as may be buffered.
    pub(super) fn enqueue(&mut self, number: u32, shared: &mut SharedState) {
        self.adopt_next_flow();
        let now = shared.now;
        let request = shared.requests.get_mut(number);
        let is_apart = request.is_control() && self.protocol != FrontProtocol::Memcached;
        if is_apart && !request.expects_reply {
            self.deferred = Some(number);
            return;
        }
        request.flow = if is_apart { self.flow | CONTROL_FLOW } else { self.flow };
        (request.arrived, request.state) = (now, RequestState::Queued);
        let (op, operation, size) = match request.class {
            RequestClass::Write(size) => (Op::Write, DeviceOperation::Write, size),
            RequestClass::Read(size) => (Op::Read, DeviceOperation::Read, size),
            RequestClass::Control => (Op::Read, DeviceOperation::Read, Bytes(0)),
        };
        let (flow, offset) = (request.flow, request.position.map(|position| position.offset));
        let cost = shared.cost_ns(self.flow, op, size, offset);
        shared.queue.arrive(now, ArrivingRequest { id: number, flow, operation, cost, bytes: size.0 });
        self.queued += 1;
    }

    /// All bytes of a request have come: it enters the queue, or its forwarding ends.
    pub(super) fn complete_request(&mut self, number: u32, shared: &mut SharedState) {
        let request = shared.requests.get_mut(number);
        request.is_complete = true;
        match request.state {
            RequestState::Arriving => self.enqueue(number, shared),
            RequestState::Queued => {}
            RequestState::Outstanding(_) | RequestState::Released => {
                self.streaming = None;
                self.on_forwarded(number, shared);
                while self.streaming.is_none()
                    && let Some(next) = self.behind_streaming.pop_front()
                {
                    self.forward(next, shared);
                }
            }
        }
    }

    /// Sends a request on that the queue has dispatched.
    pub(in super::super) fn dispatch(
        &mut self,
        number: u32,
        ticket: DispatchTicket,
        shared: &mut SharedState,
    ) {
        self.queued -= 1;
        let request = shared.requests.get_mut(number);
        request.sent = shared.now;
        if self.client_closed_at.is_some() || self.server_eof {
            request.state = RequestState::Released;
            shared.queue.done(shared.now, ticket);
            return self.discard_request(number, shared);
        }
        request.state = RequestState::Outstanding(ticket);
        if self.streaming.is_some() {
            self.behind_streaming.push_back(number);
        } else {
            self.forward(number, shared);
        }
    }

    /// Hands the bytes that have come of a request to the server's socket.
    pub(super) fn forward(&mut self, number: u32, shared: &mut SharedState) {
        let request = shared.requests.get_mut(number);
        let bytes = std::mem::take(&mut request.bytes);
        self.buffered_bytes -= bytes.len();
        shared.buffered_bytes -= bytes.len();
        self.server_output.push(bytes);
        if request.expects_reply {
            self.in_flight.push_back((request.id, number));
        }
        if request.is_complete { self.on_forwarded(number, shared) } else { self.streaming = Some(number) }
    }

    /// The last byte of a request was handed to the server's socket.
    fn on_forwarded(&mut self, number: u32, shared: &mut SharedState) {
        let request = shared.requests.get(number);
        if request.is_finished {
            shared.requests.remove(number);
        } else if !request.expects_reply {
            self.finish_request(number, shared);
        }
    }

    /// Ends a request that was answered, or that has no reply and was forwarded: the device is free for another.
    pub(super) fn finish_request(&mut self, number: u32, shared: &mut SharedState) {
        let request = shared.requests.get_mut(number);
        request.is_finished = true;
        let is_complete = request.is_complete;
        shared.release(number);
        shared.observe(number);
        // The rest of an incomplete request still has to pass.
        if is_complete {
            shared.requests.remove(number);
        }
    }

    /// Ends a request that nobody waits for any more.
    pub(super) fn discard_request(&mut self, number: u32, shared: &mut SharedState) {
        let bytes = std::mem::take(&mut shared.requests.get_mut(number).bytes).len();
        self.buffered_bytes -= bytes;
        shared.buffered_bytes -= bytes;
        if self.incoming.as_ref().is_some_and(|incoming| incoming.number == number) {
            self.incoming = None;
        }
        shared.forget(number);
    }
}

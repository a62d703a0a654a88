//! A request's way: into the queue, to the server, and to its end.

use super::super::queue::Ticket;
use super::super::request::{Request, State};
use super::super::rules::CONTROL;
use super::super::shared::Shared;
use super::Session;
use crate::deployment::FrontProtocol;
use discipline::enforce::{Arrival, Operation};
use model::Op;
use units::Bytes;
use wire::RequestClass;

impl Session {
    /// A request is there, or as much of it as may be held.
    pub(super) fn arrive(&mut self, number: u32, shared: &mut Shared) {
        self.settle_flow();
        let now = shared.now;
        let request = shared.requests.get_mut(number);
        let apart = request.is_control() && self.front != FrontProtocol::Memcached;
        if apart && !request.answered {
            self.parting = Some(number);
            return;
        }
        request.flow = if apart { self.flow | CONTROL } else { self.flow };
        (request.arrived, request.state) = (now, State::Waiting);
        let (op, size) = match request.class {
            RequestClass::Write(size) => (Op::Write, size),
            RequestClass::Read(size) => (Op::Read, size),
            RequestClass::Control => (Op::Read, Bytes(0)),
        };
        let (flow, offset) = (request.flow, request.position.map(|position| position.offset));
        let cost = shared.cost(self.flow, op, size, offset);
        let operation = if op == Op::Write { Operation::Write } else { Operation::Read };
        shared.queue.arrive(now, Arrival { id: number, flow, operation, cost, bytes: size.0 });
        self.waiting += 1;
    }

    /// The queue lets a request go.
    pub(in super::super) fn send(&mut self, number: u32, ticket: Ticket, shared: &mut Shared) {
        self.waiting -= 1;
        let request = shared.requests.get_mut(number);
        request.sent = shared.now;
        if self.gone.is_some() || self.server_end {
            request.state = State::Over;
            shared.queue.done(shared.now, ticket);
            return self.forget(number, shared);
        }
        request.state = State::Sent(ticket);
        if self.open.is_some() { self.behind.push_back(number) } else { self.emit(number, shared) }
    }

    /// What is there of a request goes to the server.
    pub(super) fn emit(&mut self, number: u32, shared: &mut Shared) {
        let request = shared.requests.get_mut(number);
        let bytes = std::mem::take(&mut request.bytes);
        self.held -= bytes.len();
        shared.held -= bytes.len();
        self.to_server.push(bytes);
        if request.answered {
            self.asked.push_back((request.id, number));
        }
        if request.complete { self.emitted(number, shared) } else { self.open = Some(number) }
    }

    /// All of a request has been passed on.
    pub(super) fn emitted(&mut self, number: u32, shared: &mut Shared) {
        let request = shared.requests.get(number);
        if request.ended {
            shared.requests.remove(number);
        } else if !request.answered {
            self.finish(number, shared);
        }
    }

    /// A request is over: the device is free for another.
    pub(super) fn finish(&mut self, number: u32, shared: &mut Shared) {
        let request = shared.requests.get_mut(number);
        request.ended = true;
        let complete = request.complete;
        if let State::Sent(ticket) = std::mem::replace(&mut request.state, State::Over) {
            shared.queue.done(shared.now, ticket);
        }
        shared.observe(number);
        if complete {
            shared.requests.remove(number);
        }
    }

    /// A request that nobody wants any more.
    pub(super) fn forget(&mut self, number: u32, shared: &mut Shared) {
        let bytes = std::mem::take(&mut shared.requests.get_mut(number).bytes).len();
        self.held -= bytes;
        shared.held -= bytes;
        if self.current.as_ref().is_some_and(|current| current.request == number) {
            self.current = None;
        }
        shared.forget(number);
    }

    pub(super) fn new_request(&self, message: &wire::RequestHead) -> Request {
        Request {
            session: self.number,
            id: message.id,
            flow: self.flow,
            class: message.class,
            position: message.position,
            answered: message.reply == wire::ReplyExpectation::Always && !message.is_retransmission,
            bytes: Vec::new(),
            complete: false,
            ended: false,
            state: State::New,
            arrived: 0,
            sent: 0,
        }
    }
}

//! One client's connection and the one to the server behind it.
//!
//! Requests are taken apart from the client's bytes, wait in the queue with their bytes, and are written to the server
//! in the order in which they are let go. Replies pass through as they come; what they answer is over when the head of
//! their last part has come, because then the device has done its work.
//!
//! **Back-pressure.** A session holds at most [`WAITING_MAX`] requests and [`HELD_MAX`] bytes ([`HELD_LEAST`] when the
//! proxy as a whole holds much): beyond that the client is not read. A request that is larger than that
//! enters the queue with what is there, and streams when it is let go. A reply that the client does not take stops the
//! reading of further ones.
//!
//! **Order.** memcached answers in order, so that all its requests stay in one queue. Elsewhere control requests
//! have a queue of their own. A connection changes its flow when nothing of it waits. The last word of a client
//! (a request without answer that is no data, and its hanging up) is passed on when all before it has been.

mod down;
mod up;

use super::buffer::{Inbox, Outbox};
use super::request::{Request, State};
use super::rules::{CONTROL, UNKNOWN};
use super::shared::Shared;
use crate::deployment::FrontProtocol;
use discipline::enforce::Arrival;
use down::Down;
use model::Op;
use std::collections::VecDeque;
use std::io::Read;
use std::net::{Shutdown, SocketAddr, TcpStream};
use up::Current;
use wire::{Class, Limits, Malformed, Wire};

/// Requests of one connection that wait.
const WAITING_MAX: u32 = 256;
/// Bytes of them.
const HELD_MAX: usize = 1 << 20;
/// What every connection may hold whatever others hold.
pub(super) const HELD_LEAST: usize = 64 << 10;
/// Requests of one connection that wait or are answered later: below what the codecs take for hostile.
const ASKED_MAX: usize = 3072;
/// How long a client may stand in the way of its own requests before they stop counting as outstanding.
const STALL_NS: u64 = 100_000_000;
/// How long the server may take to answer a client that has gone, or anybody before what it was asked stops counting as
/// outstanding: a request that is lost must not hold up everybody for ever.
const LINGER_NS: u64 = 5_000_000_000;
/// How long a client that takes nothing or stops in the middle of a request is kept.
const PATIENCE_NS: u64 = 60_000_000_000;

/// Why a session ends.
#[derive(Debug)]
pub(super) enum Cut {
    /// All is said.
    Over,
    /// What a side says cannot be read.
    Malformed(&'static str, Malformed),
    /// A socket failed.
    Broken(&'static str, std::io::Error),
    /// A side closed in the middle.
    Closed(&'static str),
    /// The client was waited for in vain.
    Stalled,
    /// The server did not answer for a client that has gone.
    Lingered,
}

impl Cut {
    /// Whether the client alone has brought it about.
    pub(super) fn is_of_client(&self) -> bool {
        match self {
            Self::Malformed(side, _) | Self::Broken(side, _) | Self::Closed(side) => *side == "client",
            Self::Stalled => true,
            Self::Over | Self::Lingered => false,
        }
    }
}

impl std::fmt::Display for Cut {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Over => write!(f, "closed"),
            Self::Malformed(side, bad) => write!(f, "the {side} breaks the protocol: {bad}"),
            Self::Broken(side, error) => write!(f, "the connection to the {side} failed: {error}"),
            Self::Closed(side) => write!(f, "the {side} closed with requests unanswered"),
            Self::Stalled => write!(f, "the client took or sent nothing for a minute"),
            Self::Lingered => write!(f, "the client has gone and the server did not answer"),
        }
    }
}

/// Both connections.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) number: usize,
    pub(super) peer: SocketAddr,
    pub(super) client: TcpStream,
    pub(super) server: TcpStream,
    pub(super) front: FrontProtocol,
    wire: Box<dyn Codec>,
    pub(super) flow: u32,
    /// Its export was looked at.
    named: bool,
    /// The flow that it will have when nothing waits.
    next_flow: Option<u32>,
    inbox: Inbox,
    current: Option<Current>,
    to_server: Outbox,
    /// Sent on while more of it comes in.
    open: Option<u32>,
    /// Let go behind it.
    behind: VecDeque<u32>,
    /// Passed on when nothing waits any more.
    parting: Option<u32>,
    waiting: u32,
    held: usize,
    /// Sent on and not answered: what the reply carries, and the request.
    asked: VecDeque<(u64, u32)>,
    down: Down,
    pub(super) connected: bool,
    client_end: bool,
    server_end: bool,
    /// Since when the server knows that the client says nothing more.
    shut: Option<u64>,
    /// Since when the client is gone.
    gone: Option<u64>,
    /// Since when it stands in its own way.
    stalled: Option<u64>,
    /// When bytes of it moved last.
    moved: u64,
    /// Nothing more is read.
    draining: bool,
    pub(super) interest: [u32; 2],
    /// Client and server are watched; one that has hung up and is not to be read is not.
    pub(super) watched: [bool; 2],
}

/// A codec that can be printed in a bug report.
trait Codec: Wire + std::fmt::Debug {}
impl<T: Wire + std::fmt::Debug> Codec for T {}

fn codec(front: FrontProtocol) -> Box<dyn Codec> {
    match front {
        FrontProtocol::Nfs => Box::new(wire::rpc::Connection::new(Limits::RPC)),
        FrontProtocol::Nbd => Box::new(wire::nbd::Connection::new(Limits::NBD)),
        FrontProtocol::Memcached => Box::new(wire::memcached::Connection::new(Limits::MEMCACHED)),
    }
}

impl Session {
    pub(super) fn new(
        number: usize,
        front: FrontProtocol,
        peer: SocketAddr,
        sockets: [TcpStream; 2],
    ) -> Self {
        let [client, server] = sockets;
        Self {
            number,
            peer,
            client,
            server,
            front,
            wire: codec(front),
            flow: UNKNOWN,
            named: false,
            next_flow: None,
            inbox: Inbox::default(),
            current: None,
            to_server: Outbox::default(),
            open: None,
            behind: VecDeque::new(),
            parting: None,
            waiting: 0,
            held: 0,
            asked: VecDeque::new(),
            down: Down::default(),
            connected: false,
            client_end: false,
            server_end: false,
            shut: None,
            gone: None,
            stalled: None,
            moved: 0,
            draining: false,
            interest: [0, 0],
            watched: [true, true],
        }
    }

    /// The export that an NBD connection was granted.
    pub(super) fn export(&self) -> Option<&[u8]> {
        self.wire.name().filter(|_| self.front == FrontProtocol::Nbd)
    }

    /// Whether the server has granted an export since this was asked last.
    pub(super) fn has_new_name(&mut self) -> bool {
        let new = !self.named && self.export().is_some();
        self.named |= new;
        new
    }

    /// From the next request on that finds nothing of this connection waiting, its requests are of `flow`.
    pub(super) fn belongs_to(&mut self, flow: u32) {
        self.next_flow = (flow != self.flow).then_some(flow);
        self.settle_flow();
    }

    fn settle_flow(&mut self) {
        if self.waiting == 0
            && let Some(flow) = self.next_flow.take()
        {
            self.flow = flow;
        }
    }

    /// Nothing more is asked; what was asked is answered.
    pub(super) fn drain(&mut self) {
        self.draining = true;
    }

    /// A request is there, or as much of it as may be held.
    fn arrive(&mut self, number: u32, shared: &mut Shared) {
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
            Class::Write(size) => (Op::Write, size),
            Class::Read(size) => (Op::Read, size),
            Class::Control => (Op::Read, units::Bytes(0)),
        };
        let (flow, offset) = (request.flow, request.position.map(|position| position.offset));
        let cost = shared.cost(self.flow, op, size, offset);
        shared.queue.arrive(now, Arrival { id: number, flow, cost, bytes: size.0 });
        self.waiting += 1;
    }

    /// The queue lets a request go.
    pub(super) fn send(&mut self, number: u32, ticket: super::queue::Ticket, shared: &mut Shared) {
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
    fn emit(&mut self, number: u32, shared: &mut Shared) {
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
    fn emitted(&mut self, number: u32, shared: &mut Shared) {
        let request = shared.requests.get(number);
        if request.ended {
            shared.requests.remove(number);
        } else if !request.answered {
            self.finish(number, shared);
        }
    }

    /// A request is over: the device is free for another.
    fn finish(&mut self, number: u32, shared: &mut Shared) {
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
    fn forget(&mut self, number: u32, shared: &mut Shared) {
        let bytes = std::mem::take(&mut shared.requests.get_mut(number).bytes).len();
        self.held -= bytes;
        shared.held -= bytes;
        if self.current.as_ref().is_some_and(|current| current.request == number) {
            self.current = None;
        }
        shared.forget(number);
    }

    /// Reads what the client sends.
    pub(super) fn client_readable(&mut self, shared: &mut Shared) -> Result<(), Cut> {
        self.read_client()?;
        self.take_apart(shared)
    }

    /// What can be done without waiting: requests out of the inbox, bytes to both sides, the end.
    pub(super) fn settle(&mut self, shared: &mut Shared) -> Result<(), Cut> {
        self.take_apart(shared)?;
        while let Some(number) = self.parting.filter(|_| self.waiting == 0 && self.open.is_none()) {
            self.parting = None;
            // What is still missing of it follows without waiting.
            shared.requests.get_mut(number).state = State::Over;
            self.emit(number, shared);
            self.take_apart(shared)?;
        }
        if self.connected && !self.server_end {
            self.to_server.write(&mut self.server).map_err(|error| Cut::Broken("server", error))?;
        }
        if self.gone.is_none() {
            match self.down.write(&mut self.client) {
                Ok(0) => {}
                Ok(_) => self.moved = shared.now,
                Err(_) => self.client_gone(shared),
            }
        }
        self.end(shared)?;
        self.watch_stall(shared);
        Ok(())
    }

    fn end(&mut self, shared: &mut Shared) -> Result<(), Cut> {
        let said = self.waiting == 0 && self.parting.is_none() && self.to_server.is_empty();
        if let Some(since) = self.gone {
            let answered = said && self.asked.is_empty();
            return match answered || self.server_end {
                true => Err(Cut::Over),
                false if shared.now > since + LINGER_NS => Err(Cut::Lingered),
                false => Ok(()),
            };
        }
        if self.server_end && self.down.is_written() {
            let clean = said && self.asked.is_empty();
            return Err(if clean { Cut::Over } else { Cut::Closed("server") });
        }
        let quiet = said && self.asked.is_empty() && self.current.is_none();
        // All that was asked is answered; a server that does not hang up is left.
        let left = self.shut.is_some_and(|since| shared.now > since + LINGER_NS);
        if (self.draining || left) && quiet && self.down.is_written() {
            return Err(Cut::Over);
        }
        let taken = self.inbox.is_empty() || !self.is_full(shared);
        if self.client_end && said && taken && self.connected && self.shut.is_none() && !self.server_end {
            if self.current.is_some() {
                return Err(Cut::Closed("client"));
            }
            self.shut = Some(shared.now);
            self.server.shutdown(Shutdown::Write).map_err(|error| Cut::Broken("server", error))?;
        }
        Ok(())
    }

    /// The client cannot be answered any more: what waits is taken back, what is at the server is waited for.
    pub(super) fn client_gone(&mut self, shared: &mut Shared) {
        if self.gone.is_some() {
            return;
        }
        self.gone = Some(shared.now);
        let _ = self.client.shutdown(Shutdown::Both);
        self.withdraw(shared);
        let coming = self.current.as_ref().map(|current| current.request);
        if let Some(number) = coming.filter(|n| matches!(shared.requests.get(*n).state, State::New)) {
            self.parting = self.parting.filter(|parting| *parting != number);
            self.forget(number, shared);
        }
        self.down.discard();
        if self.open.is_some() {
            // The server waits for the rest of a request, which will never come.
            self.server_end = true;
        }
    }

    /// Whether the server still owes answers when the client is to be cut off: until then they count as outstanding,
    /// so that nobody gets more of the device by breaking the protocol.
    pub(super) fn is_owed(&self) -> bool {
        self.gone.is_none() && !self.asked.is_empty() && self.open.is_none() && !self.server_end
    }

    /// Takes back what waits.
    fn withdraw(&mut self, shared: &mut Shared) {
        for flow in [self.flow, self.flow | CONTROL] {
            for number in shared.withdraw(self.number, flow) {
                self.waiting -= 1;
                self.forget(number, shared);
            }
        }
    }

    /// Gives back all that it holds; the session is not used afterwards.
    pub(super) fn close(&mut self, shared: &mut Shared) {
        self.withdraw(shared);
        self.hang_up();
        let rest: Vec<u32> = self.asked.drain(..).map(|(_, number)| number).collect();
        let behind = std::mem::take(&mut self.behind);
        let others = behind
            .into_iter()
            .chain(self.open)
            .chain(self.parting)
            .chain(self.current.as_ref().map(|c| c.request));
        let mut all: Vec<u32> = rest.into_iter().chain(others).collect();
        all.sort_unstable();
        all.dedup();
        for number in all {
            let request = shared.requests.get_mut(number);
            if let State::Sent(ticket) = std::mem::replace(&mut request.state, State::Over) {
                shared.queue.done(shared.now, ticket);
            }
            self.forget(number, shared);
        }
        shared.held -= std::mem::take(&mut self.held);
    }

    /// Ends both connections. What the client has sent in the meantime is read: unread bytes would make the kernel
    /// throw away what is on its way to the client.
    fn hang_up(&mut self) {
        let _ = (self.client.shutdown(Shutdown::Write), self.server.shutdown(Shutdown::Both));
        let mut piece = [0; 16 << 10];
        for _ in 0..64 {
            if !self.client.read(&mut piece).is_ok_and(|read| read > 0) {
                return;
            }
        }
    }

    /// Whether time alone may end it or change something.
    pub(super) fn is_timed(&self) -> bool {
        self.stalled.is_some() || self.gone.is_some() || self.shut.is_some() || !self.asked.is_empty()
    }

    /// What the clock says about it.
    pub(super) fn tick(&mut self, shared: &mut Shared) -> Result<(), Cut> {
        if let Some(since) = self.stalled {
            if shared.now > self.moved + PATIENCE_NS {
                return Err(Cut::Stalled);
            }
            if shared.now > since + STALL_NS {
                self.release(None, shared);
            }
        }
        if self.is_overdue(shared) {
            self.release(shared.now.checked_sub(LINGER_NS), shared);
        }
        self.end(shared)
    }

    /// What has been sent on and is held up no longer counts as outstanding: all of it, or what was sent before
    /// an instant.
    fn release(&mut self, before: Option<u64>, shared: &mut Shared) {
        let sent =
            self.asked.iter().map(|(_, number)| *number).chain(self.open).chain(self.behind.iter().copied());
        for number in sent {
            let request = shared.requests.get_mut(number);
            if before.is_some_and(|before| request.sent >= before) {
                continue;
            }
            if let State::Sent(ticket) = std::mem::replace(&mut request.state, State::Over) {
                shared.queue.done(shared.now, ticket);
                shared.status.released += 1;
            }
        }
    }

    /// Whether the server owes an answer for longer than a device takes.
    fn is_overdue(&self, shared: &Shared) -> bool {
        let oldest = self.asked.front().map(|(_, number)| shared.requests.get(*number).sent);
        oldest.is_some_and(|sent| sent + LINGER_NS < shared.now)
    }

    fn watch_stall(&mut self, shared: &Shared) {
        let stands = self.down.is_full() || self.open.is_some();
        self.stalled = stands.then(|| self.stalled.unwrap_or(shared.now));
        if !stands {
            self.moved = shared.now;
        }
    }
}

/// What a side of a session is watched for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Interest {
    pub(super) read: bool,
    pub(super) write: bool,
}

impl Session {
    /// Of the client and of the server.
    pub(super) fn interest(&self, shared: &Shared) -> [Interest; 2] {
        let client = Interest {
            read: !self.client_end && self.gone.is_none() && self.wants_more(shared),
            write: self.gone.is_none() && !self.down.is_written(),
        };
        let server = Interest {
            read: self.connected && !self.server_end && !self.down.is_full(),
            write: !self.connected || !self.to_server.is_empty(),
        };
        [client, server]
    }

    fn new_request(&self, message: &wire::Request) -> Request {
        Request {
            session: self.number,
            id: message.id,
            flow: self.flow,
            class: message.class,
            position: message.position,
            answered: message.answer == wire::Answer::Always && !message.repeated,
            bytes: Vec::new(),
            complete: false,
            ended: false,
            state: State::New,
            arrived: 0,
            sent: 0,
        }
    }
}

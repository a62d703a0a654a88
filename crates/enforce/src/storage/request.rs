//! A request on its way through the proxy.

use super::queue::Ticket;
use units::Bytes;
use wire::{Position, RequestClass};

/// The session of a request that nobody waits for.
pub(super) const NOBODY: usize = usize::MAX;

/// Gap between writes that still counts as sequential.
const NEARLY: u64 = 64 << 10;

/// From its first byte to its answer.
#[derive(Debug)]
pub(super) struct Request {
    /// Number of the session.
    pub(super) session: usize,
    /// What its reply carries.
    pub(super) id: u64,
    pub(super) flow: u32,
    pub(super) class: RequestClass,
    pub(super) position: Option<Position>,
    /// Whether a reply ends it; otherwise it ends when it is sent.
    pub(super) answered: bool,
    /// What is held of it; empty from when it is sent on.
    pub(super) bytes: Vec<u8>,
    /// All of it has come in.
    pub(super) complete: bool,
    /// Its answer has come, or it has none and has been passed on.
    pub(super) ended: bool,
    pub(super) state: State,
    /// When it could be served.
    pub(super) arrived: u64,
    /// When it was sent on.
    pub(super) sent: u64,
}

#[derive(Debug)]
pub(super) enum State {
    /// It comes in.
    New,
    /// It is in the queue.
    Waiting,
    /// It has been sent on, or its first bytes.
    Sent(Ticket),
    /// It does not count as outstanding any more.
    Over,
}

impl Request {
    /// Bytes that it moves.
    pub(super) fn size(&self) -> Bytes {
        match self.class {
            RequestClass::Read(size) | RequestClass::Write(size) => size,
            RequestClass::Control => Bytes(0),
        }
    }

    /// Whether it is a write that goes on where `before` ends, or nearly.
    pub(super) fn continues(&self, before: &Self) -> bool {
        let (RequestClass::Write(_), RequestClass::Write(size)) = (self.class, before.class) else {
            return false;
        };
        let (Some(next), Some(position)) = (self.position, before.position) else { return false };
        let end = position.offset.saturating_add(size.0);
        let near = end..=end.saturating_add(NEARLY);
        self.session == before.session && next.object == position.object && near.contains(&next.offset)
    }

    pub(super) fn is_control(&self) -> bool {
        self.class == RequestClass::Control
    }
}

/// Requests by number; numbers are used again.
#[derive(Debug, Default)]
pub(super) struct Requests {
    all: Vec<Option<Request>>,
    free: Vec<u32>,
}

impl Requests {
    pub(super) fn add(&mut self, request: Request) -> u32 {
        let number = self.free.pop().unwrap_or_else(|| {
            self.all.push(None);
            u32::try_from(self.all.len() - 1).expect("fewer requests than 2³²")
        });
        self.all[number as usize] = Some(request);
        number
    }

    pub(super) fn get(&self, number: u32) -> &Request {
        self.all[number as usize].as_ref().expect("a number in use")
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut Request {
        self.all[number as usize].as_mut().expect("a number in use")
    }

    pub(super) fn remove(&mut self, number: u32) {
        self.all[number as usize] = None;
        self.free.push(number);
    }

    /// The numbers of those that `wanted` says.
    pub(super) fn find(&self, wanted: impl Fn(&Request) -> bool) -> Vec<u32> {
        let all = (0..).zip(&self.all);
        all.filter(|(_, request)| request.as_ref().is_some_and(&wanted)).map(|(number, _)| number).collect()
    }
}

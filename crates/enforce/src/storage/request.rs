//! A request on its way through the proxy, and the table of all of them.

use super::queue::DispatchTicket;
use slab::Slab;
use units::Bytes;
use wire::{Position, RequestClass};

/// The session of a request whose client is no longer served, while the queue still has it.
pub(super) const NO_SESSION: usize = usize::MAX;

/// The gap between two writes that still counts as sequential: a disk passes it faster than it seeks.
const SEQUENTIAL_GAP_MAX: u64 = 64 << 10;

/// A request from its first byte to its reply. Times are in nanoseconds since the proxy started.
#[derive(Debug)]
pub(super) struct ProxyRequest {
    /// The slot of its session, or [`NO_SESSION`].
    pub(super) session: usize,
    /// The identifier that the protocol puts into its reply.
    pub(super) id: u64,
    pub(super) flow: u32,
    pub(super) class: RequestClass,
    pub(super) position: Option<Position>,
    /// Whether a reply finishes it; otherwise it is finished when it is forwarded.
    pub(super) expects_reply: bool,
    /// The bytes that were received; empty as soon as it is forwarded.
    pub(super) bytes: Vec<u8>,
    /// Whether all of its bytes were received.
    pub(super) is_complete: bool,
    /// Whether its reply has come, or it has none and was forwarded. A server may reply before a request is complete.
    pub(super) is_finished: bool,
    pub(super) state: RequestState,
    /// When it entered the queue.
    pub(super) arrived: u64,
    /// When it was dispatched.
    pub(super) sent: u64,
}

/// The state of a request: it passes through these in their order, and may skip the middle ones.
#[derive(Debug)]
pub(super) enum RequestState {
    /// It is being received and not in the queue.
    Arriving,
    /// It is in the queue.
    Queued,
    /// It was dispatched and counts as outstanding.
    Outstanding(DispatchTicket),
    /// It does not count as outstanding any more, whether its reply has come or not.
    Released,
}

impl RequestState {
    /// Whether the bytes of the request go to the server as they come.
    pub(super) fn is_forwarded(&self) -> bool {
        matches!(self, Self::Outstanding(_) | Self::Released)
    }

    /// Releases the request; the ticket, if it was outstanding.
    pub(super) fn release(&mut self) -> Option<DispatchTicket> {
        match std::mem::replace(self, Self::Released) {
            Self::Outstanding(ticket) => Some(ticket),
            _ => None,
        }
    }
}

impl ProxyRequest {
    /// The number of bytes that it reads or writes.
    pub(super) fn size(&self) -> Bytes {
        match self.class {
            RequestClass::Read(size) | RequestClass::Write(size) => size,
            RequestClass::Control => Bytes(0),
        }
    }

    /// Whether it is a write that begins where the write `previous` of the same session ends, or little behind.
    pub(super) fn continues(&self, previous: &Self) -> bool {
        let (RequestClass::Write(_), RequestClass::Write(size)) = (self.class, previous.class) else {
            return false;
        };
        let (Some(own), Some(position)) = (self.position, previous.position) else { return false };
        let end = position.offset.saturating_add(size.0);
        let near = end..=end.saturating_add(SEQUENTIAL_GAP_MAX);
        self.session == previous.session && own.object == position.object && near.contains(&own.offset)
    }

    pub(super) fn is_control(&self) -> bool {
        self.class == RequestClass::Control
    }
}

/// All requests by number. The queue knows requests by these numbers, which are used again after a request is removed:
/// so a request is removed only when queue and sessions have forgotten it.
#[derive(Debug, Default)]
pub(super) struct RequestTable(Slab<ProxyRequest>);

impl RequestTable {
    /// Adds a request and returns its number.
    pub(super) fn add(&mut self, request: ProxyRequest) -> u32 {
        u32::try_from(self.0.insert(request)).expect("fewer requests than 2³²")
    }

    pub(super) fn get(&self, number: u32) -> &ProxyRequest {
        &self.0[number as usize]
    }

    pub(super) fn get_mut(&mut self, number: u32) -> &mut ProxyRequest {
        &mut self.0[number as usize]
    }

    pub(super) fn remove(&mut self, number: u32) {
        self.0.remove(number as usize);
    }

    /// The numbers of the requests that `is_wanted` accepts, ascending.
    pub(super) fn numbers_where(&self, is_wanted: impl Fn(&ProxyRequest) -> bool) -> Vec<u32> {
        let wanted = self.0.iter().filter(|(_, request)| is_wanted(request));
        wanted.map(|(number, _)| u32::try_from(number).expect("numbers fit when they are added")).collect()
    }
}

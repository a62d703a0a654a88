//! A request on its way through the proxy, and the table of all of them.

use super::queue::DispatchTicket;
use discipline::enforce::{SEQUENTIAL_GAP_MAX, TokenCharge, WaitingRequest};
use slab::Slab;
use std::net::IpAddr;
use units::Bytes;
use wire::{Position, RequestClass};

/// The session of a request whose client is no longer served, while the queue still has it.
pub(super) const NO_SESSION: usize = usize::MAX;

/// A request from its first byte to its reply. Times are in nanoseconds since the proxy started.
#[derive(Debug)]
pub(super) struct ProxyRequest {
    /// The slot of its session, or [`NO_SESSION`].
    pub(super) session: usize,
    /// The address of its client.
    pub(super) client: IpAddr,
    /// The identifier that the protocol puts into its reply.
    pub(super) id: u64,
    pub(super) flow: u32,
    pub(super) class: RequestClass,
    pub(super) position: Option<Position>,
    /// The number of the NFS export that it is about, if it names a file of a known one.
    pub(super) export: Option<u32>,
    /// Whether it names a file, so that its export says whose it is.
    pub(super) names_file: bool,
    /// What is known of its end.
    pub(super) ending: RequestEnding,
    /// The bytes that were received and not forwarded.
    pub(super) bytes: Vec<u8>,
    /// How many of its bytes were received.
    pub(super) received: u64,
    /// How many bytes of its reply have come, as far as their heads have.
    pub(super) reply_bytes: u64,
    pub(super) state: RequestState,
    /// The device time in nanoseconds that it was taken to cost when it entered the queue.
    pub(super) cost: u64,
    /// The tokens that it has taken, from its release to its reply.
    pub(super) charge: Option<TokenCharge>,
    /// Its position among all requests that entered the queue.
    pub(super) number: u64,
    /// The position in its session's list of requests in the queue.
    pub(super) place_in_session: usize,
    /// When it entered the queue.
    pub(super) arrived: u64,
    /// When it was dispatched.
    pub(super) sent: u64,
}

/// How a request ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestEnding {
    /// With its reply, or with the reply to the barrier behind it.
    Reply,
    /// As soon as it is forwarded: the server does not answer it.
    Forwarded,
    /// As soon as it is forwarded: it repeats a call that the server may have lost, whose first instance waits for the
    /// reply.
    Repeated,
    /// It goes on at once and is counted nowhere: the answer to a call of the server.
    Immediate,
    /// It is dropped: the server has the same call already.
    Dropped,
}

/// The state of a request: it passes through these in their order, and may skip some.
#[derive(Debug)]
pub(super) enum RequestState {
    /// It is being received and not in the queue.
    Arriving,
    /// It is in the queue; a baseline's queue has no handles.
    Queued(Option<WaitingRequest>),
    /// It waits outside the queue, because its client does not take its answers.
    Parked,
    /// It was dispatched and counts as outstanding.
    Outstanding(DispatchTicket),
    /// It does not count as outstanding any more, whether its reply has come or not.
    Released,
}

impl RequestState {
    /// Releases the request; the ticket, if it was outstanding.
    pub(super) fn release(&mut self) -> Option<DispatchTicket> {
        match std::mem::replace(self, Self::Released) {
            Self::Outstanding(ticket) => Some(ticket),
            _ => None,
        }
    }
}

impl ProxyRequest {
    /// The number of bytes that it asks to read or write.
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

    /// Whether only the reply shows how much it reads.
    pub(super) fn is_size_unknown(&self) -> bool {
        self.class == RequestClass::Read(Bytes(0))
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

    /// The requests of sessions that are served; for checks.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &ProxyRequest)> {
        self.0.iter().map(|(number, request)| (u32::try_from(number).expect("numbers fit"), request))
    }
}

//! A request on its way through the proxy, and the table of all requests.

use super::cost::RequestedWork;
use super::queue::DispatchTicket;
use discipline::enforce::{SEQUENTIAL_GAP_MAX, TokenCharge, WaitingRequest};
use slab::Slab;
use std::net::IpAddr;
use units::Bytes;
use wire::{Position, RequestClass};

/// Session of a request whose client is no longer served, while the queue still has it.
pub(super) const NO_SESSION: usize = usize::MAX;

/// A request from its first byte to its reply. Times are in nanoseconds since the proxy started.
#[derive(Debug)]
pub(super) struct ProxyRequest {
    /// Slot of its session, or [`NO_SESSION`].
    pub(super) session: usize,
    /// Address of its client.
    pub(super) client: IpAddr,
    /// Identifier in the protocol's reply.
    pub(super) id: u64,
    pub(super) flow: u32,
    pub(super) class: RequestClass,
    /// Number of keys to look up, at least 1.
    pub(super) keys: u32,
    pub(super) position: Option<Position>,
    /// NFS export of the file that it names, if the export is known.
    pub(super) export: Option<u32>,
    /// The request names a file, so its export determines the workload.
    pub(super) names_file: bool,
    /// Event that completes it.
    pub(super) ending: RequestEnding,
    /// Bytes received and not forwarded.
    pub(super) bytes: Vec<u8>,
    /// Number of the last of these bytes that are a barrier of the proxy's own.
    pub(super) barrier_bytes: usize,
    /// The other bytes are those of the client: none were replaced, and no part was read as another request.
    pub(super) is_verbatim: bool,
    /// Number of bytes received.
    pub(super) received: u64,
    /// Number of bytes of its reply, according to the heads received so far.
    pub(super) reply_bytes: u64,
    pub(super) state: RequestState,
    /// Device time charged when it entered the queue, nanoseconds.
    pub(super) cost: u64,
    /// Tokens taken, from its release to its reply.
    pub(super) charge: Option<TokenCharge>,
    /// Ordinal among all requests that entered the queue.
    pub(super) number: u64,
    /// Index in its session's list of waiting requests.
    pub(super) place_in_session: usize,
    /// Time of entering the queue.
    pub(super) arrived: u64,
    /// Time of dispatch.
    pub(super) sent: u64,
    /// Time after which it is overdue, nanoseconds.
    pub(super) patience: u64,
    /// True if the limits of its workload did not cover it when it was dispatched.
    pub(super) is_beyond_limits: bool,
}

/// Event that completes a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RequestEnding {
    /// Its reply, or the reply to the barrier behind it.
    Reply,
    /// Its forwarding: the server does not answer it.
    Forwarded,
    /// Its forwarding: it repeats a call that the server may have lost, and the first instance waits for the
    /// reply.
    Repeated,
    /// Its forwarding, outside the queue and uncounted: it answers a call of the server.
    Immediate,
    /// None: it is dropped, because the server has the same call already.
    Dropped,
}

/// State of a request. It passes through these in order, and may skip some.
#[derive(Debug)]
pub(super) enum RequestState {
    /// Being received, not yet in the queue.
    Arriving,
    /// In the queue; a baseline's queue has no handles.
    Queued(Option<WaitingRequest>),
    /// Outside the queue, because its session would only occupy slots at the device.
    Parked,
    /// Dispatched and counted as outstanding.
    Outstanding(DispatchTicket),
    /// Overdue, and counted for its own workload only.
    Overdue(DispatchTicket),
    /// No longer counted as outstanding, with or without a reply.
    Released,
}

impl RequestState {
    /// Releases the request, and returns its ticket if it was outstanding.
    pub(super) fn release(&mut self) -> Option<DispatchTicket> {
        match std::mem::replace(self, Self::Released) {
            Self::Outstanding(ticket) | Self::Overdue(ticket) => Some(ticket),
            _ => None,
        }
    }
}

impl ProxyRequest {
    /// Returns the number of bytes to read or write.
    pub(super) fn size(&self) -> Bytes {
        match self.class {
            RequestClass::Read(size) | RequestClass::Write(size) => size,
            RequestClass::Control => Bytes(0),
        }
    }

    /// Returns the number of bytes read or written, once it is answered.
    pub(super) fn transferred(&self, is_error: bool) -> Bytes {
        match self.class {
            _ if is_error => Bytes(0),
            // The reply's head counts, too, so only a shorter reply says how much was read.
            RequestClass::Read(size) => size.min(Bytes(self.reply_bytes)),
            RequestClass::Write(size) => size,
            RequestClass::Control => Bytes(0),
        }
    }

    /// Returns the work that its head shows.
    pub(super) fn requested(&self) -> RequestedWork {
        let offset = self.position.map(|position| position.offset);
        RequestedWork { class: self.class, keys: self.keys, offset }
    }

    /// Returns true for a write that begins where the write `previous` of the same session ends, or slightly
    /// after.
    pub(super) fn continues(&self, previous: &Self) -> bool {
        let (RequestClass::Write(_), RequestClass::Write(size)) = (self.class, previous.class) else {
            return false;
        };
        let (Some(own), Some(position)) = (self.position, previous.position) else { return false };
        let end = position.offset.saturating_add(size.0);
        let near = end..=end.saturating_add(SEQUENTIAL_GAP_MAX);
        self.session == previous.session && own.object == position.object && near.contains(&own.offset)
    }

    /// Returns true if only the reply shows the size of this read.
    pub(super) fn is_size_unknown(&self) -> bool {
        self.class == RequestClass::Read(Bytes(0))
    }

    pub(super) fn is_control(&self) -> bool {
        self.class == RequestClass::Control
    }
}

/// All requests by number. Numbers, by which the queue identifies requests, are reused after removal. So a
/// request is removed only when neither the queue nor a session refers to it.
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

    /// Returns all requests; for invariant checks.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &ProxyRequest)> {
        self.0.iter().map(|(number, request)| (u32::try_from(number).expect("numbers fit"), request))
    }
}

//! An observer's knowledge of one session: requests that the proxy has read, requests that it has handed
//! on, and bytes that the client must still receive.

use super::nbd_reader::NbdDialect;
use super::reader::{DeviceWork, RequestReader, SeenRequest};
use std::collections::VecDeque;
use wire::Protocol;

/// Maximum number of request bytes that a session may hold: waiting, as many on their way to the server,
/// and the last read.
const REQUESTS_HELD_MAX: u64 = 2 * ((1 << 20) + (64 << 10)) + (192 << 10);
/// Number of unread reply bytes from which a client holds up its own requests.
const DEAF_BYTES: u64 = 256 << 10;
/// Sizes from which a client may get a connection of its own, somewhat below the proxy's, and the number of requests.
const LARGE_REQUEST: usize = 24 << 10;
const LARGE_REPLY: usize = 16 << 10;
const MANY_HELD: usize = 8;
/// Maximum number of reply bytes that a session may hold.
const REPLIES_HELD_MAX: u64 = (4 << 20) + (192 << 10);

/// A request that the proxy has read and not handed to the server.
#[derive(Debug, Clone, Copy)]
pub struct HeldRequest {
    hash: u64,
    /// Time at which its last byte was read.
    pub read_at: u64,
    pub work: DeviceWork,
}

/// A request that the proxy has handed to the server.
#[derive(Debug, Clone)]
pub struct HandedRequest {
    pub request: SeenRequest,
    /// Time at which its first byte was written.
    pub begun_at: u64,
    /// True if the proxy has added it.
    pub is_added: bool,
}

/// One session, as seen by an observer.
#[derive(Debug)]
pub struct ObservedSession {
    /// Network of its client.
    pub network: usize,
    /// Front of its client.
    pub front: usize,
    /// True while it has no connection to the server of its own.
    pub is_sharing: bool,
    /// True if it may wait for one.
    pub wants_own: bool,
    /// True if it has asked for much.
    pub has_large_replies: bool,
    /// Ordinal of its proxy among those of the world.
    pub generation: u32,
    /// Requests that the proxy has read and not handed on.
    pub held: VecDeque<HeldRequest>,
    protocol: Protocol,
    read: RequestReader,
    written: RequestReader,
    begun_at: Option<u64>,
    /// For each request on its way to the server: true if the proxy has added it, and the time at which the proxy
    /// has dispatched it at the earliest.
    pub on_way: VecDeque<(bool, u64)>,
    /// Bytes that the server has sent, and the client must receive.
    to_client: VecDeque<u8>,
    bytes: [u64; 4],
    /// Time at which the connection to the server last accepted less than offered, or was not yet
    /// established.
    pub blocked_at: u64,
    /// True if the proxy tries to write to the server and would block.
    pub is_blocked: bool,
    /// Time since which that is so, after the connection was established.
    pub blocked_since: Option<u64>,
    /// Time since when the client has so much unread data that its requests may be held up.
    pub deaf_since: Option<u64>,
    /// True if some of its requests stopped counting before they reached the server: it is not known
    /// which.
    pub is_uncounted: bool,
    /// Excuse for closing either side without a reason of the proxy.
    pub excuse: Option<&'static str>,
    /// True if one of its requests was so large that it may stream.
    pub has_streamed: bool,
    /// True if its client sends requests that a proxy may drop, or that have no level: repeated calls,
    /// huge requests.
    pub is_odd: bool,
    /// Maximum number of bytes of requests and of replies that the proxy held for it.
    pub most_held: [u64; 2],
    /// True if either connection has ended.
    pub is_over: bool,
    /// True if the proxy answers some requests in place of the server.
    has_refused: bool,
    /// Number of bytes in which the proxy has told the client why it closes.
    farewell: usize,
}

impl ObservedSession {
    /// Creates the observer of a new session.
    pub fn new(protocol: Protocol, dialect: NbdDialect, network: usize, generation: u32) -> Self {
        Self {
            network,
            front: 0,
            is_sharing: false,
            wants_own: false,
            has_large_replies: false,
            generation,
            held: VecDeque::new(),
            protocol,
            read: RequestReader::new(protocol, dialect),
            written: RequestReader::new(protocol, dialect),
            begun_at: None,
            on_way: VecDeque::new(),
            to_client: VecDeque::new(),
            bytes: [0; 4],
            blocked_at: 0,
            is_blocked: true,
            blocked_since: None,
            deaf_since: None,
            is_uncounted: false,
            excuse: None,
            has_streamed: false,
            is_odd: false,
            most_held: [0; 2],
            is_over: false,
            has_refused: false,
            farewell: 0,
        }
    }

    /// Notes that the proxy has read these bytes of the client.
    ///
    /// # Errors
    /// When it holds too much.
    pub fn on_read_from_client(&mut self, bytes: &[u8], now: u64) -> Result<(), String> {
        self.bytes[0] += bytes.len() as u64;
        self.read.feed(bytes);
        while let Some(request) = self.read.next_request() {
            self.has_streamed |= request.len >= 32 << 10;
            let sent = request.sent_as.as_ref().map_or(request.len, Vec::len);
            self.has_refused |= request.is_refused;
            self.has_large_replies |= request.reply.len() > LARGE_REPLY;
            self.wants_own |= !request.is_independent
                || request.len > LARGE_REQUEST
                || request.reply.len() > LARGE_REPLY
                || self.held.len() >= MANY_HELD;
            if request.is_refused || sent < request.len {
                let unsent = if request.is_refused { request.len } else { request.len - sent };
                self.bytes[1] += unsent as u64;
            }
            if request.is_refused {
                continue;
            }
            self.held.push_back(HeldRequest { hash: request.hash, read_at: now, work: request.work });
        }
        self.has_streamed |= self.read.rest().len() >= 32 << 10;
        let held = self.bytes[0].saturating_sub(self.bytes[1]);
        self.most_held[0] = self.most_held[0].max(held);
        if held > REQUESTS_HELD_MAX && !self.is_odd {
            return Err(format!("memory: the proxy holds {held} bytes of requests of one connection"));
        }
        Ok(())
    }

    /// Notes that the proxy has written these bytes to the server. Returns the requests completed by
    /// them.
    ///
    /// # Errors
    /// When the client has sent no such request, or not in this order.
    pub fn on_written_to_server(&mut self, bytes: &[u8], now: u64) -> Result<Vec<HandedRequest>, String> {
        self.bytes[1] += bytes.len() as u64;
        let mut handed = Vec::new();
        self.written.feed(bytes);
        let mut begun_at = self.begun_at.take().unwrap_or(now);
        while let Some(request) = self.written.next_request() {
            let is_added = self.match_request(&request)?;
            if is_added {
                self.bytes[1] -= request.len as u64;
            }
            let dispatched_at = begun_at.min(self.blocked_since.unwrap_or(u64::MAX));
            self.on_way.push_back((is_added, dispatched_at));
            handed.push(HandedRequest { request, begun_at, is_added });
            begun_at = now;
        }
        self.begun_at = (!self.written.is_between()).then_some(begun_at);
        if self.written.is_lost && !self.read.is_lost && self.read.is_between() {
            return Err("conservation: the server got bytes that the client did not send".to_owned());
        }
        Ok(handed)
    }

    /// Notes that the proxy has written this request of the session to a connection that sessions share.
    pub fn on_shared(&mut self, request: &SeenRequest) {
        self.bytes[1] += request.len as u64;
        self.held.pop_front();
    }

    /// Returns the time at which the first request that is held was read, if it is this one.
    pub fn first_held_at(&self, request: &SeenRequest) -> Option<u64> {
        self.held.front().filter(|held| held.hash == request.hash).map(|held| held.read_at)
    }

    /// Matches a request that was handed on with the client's. Returns true if the proxy has added it
    /// instead.
    fn match_request(&mut self, request: &SeenRequest) -> Result<bool, String> {
        let position = self.held.iter().position(|held| held.hash == request.hash);
        match position {
            Some(0) => {
                self.held.pop_front();
                Ok(false)
            }
            _ if request.is_noop => Ok(true),
            Some(_) if !self.protocol.row().has_ids => {
                Err("order: the server got a request before an earlier one of its connection".to_owned())
            }
            Some(position) => {
                self.held.remove(position);
                Ok(false)
            }
            None => Err(format!(
                "conservation: the server got a request of {} bytes that the client did not send, or a second time",
                request.len
            )),
        }
    }

    /// Notes that the proxy has read bytes of the server.
    ///
    /// # Errors
    /// When it holds too much.
    pub fn on_read_from_server(&mut self, count: usize, now: u64) -> Result<(), String> {
        self.bytes[2] += count as u64;
        let held = self.held_replies();
        if held >= DEAF_BYTES {
            self.deaf_since.get_or_insert(now);
        }
        // The proxy keeps the answers to its own no-ops, which are short.
        self.most_held[1] = self.most_held[1].max(held);
        if held > REPLIES_HELD_MAX + 64 * self.bytes[1] {
            return Err(format!("memory: the proxy holds {held} bytes of replies of one connection"));
        }
        Ok(())
    }

    fn held_replies(&self) -> u64 {
        self.bytes[2].saturating_sub(self.bytes[3])
    }

    /// Notes that the proxy has written bytes to the client. If this ends a time in which the client read
    /// too little, returns its beginning.
    pub fn on_written_to_client(&mut self, count: usize) -> Option<u64> {
        self.bytes[3] += count as u64;
        if self.held_replies() < DEAF_BYTES { self.deaf_since.take() } else { None }
    }

    /// Notes that the server has sent bytes for the client.
    pub fn on_sent_by_server(&mut self, bytes: &[u8], now: u64) {
        self.to_client.extend(bytes);
        if self.is_sharing {
            // The bytes that the proxy reads from a shared connection are of several sessions.
            self.bytes[2] += bytes.len() as u64;
            if self.held_replies() >= DEAF_BYTES {
                self.deaf_since.get_or_insert(now);
            }
        }
    }

    /// Notes that the client has received these bytes.
    ///
    /// # Errors
    /// When the server has not sent them, or others before them.
    pub fn on_received_by_client(&mut self, bytes: &[u8]) -> Result<(), String> {
        if self.has_refused {
            // Answers of the proxy's own come in between.
            self.to_client.clear();
            return Ok(());
        }
        let same = self.to_client.iter().zip(bytes).take_while(|(sent, came)| sent == came).count();
        self.to_client.drain(..same);
        let others = &bytes[same..];
        if others.is_empty() || self.is_farewell(others) {
            return Ok(());
        }
        Err("stream: the client got other bytes than the server sent".to_owned())
    }

    /// Returns true if bytes that no server sent tell the client why the proxy closes: after a request that cannot
    /// be read, and behind all that the server has answered.
    fn is_farewell(&mut self, bytes: &[u8]) -> bool {
        let beginning: &[u8] =
            if self.protocol == Protocol::Resp { b"-ERR Protocol error: " } else { b"CLIENT_ERROR " };
        let begun = self.farewell;
        self.farewell += bytes.len();
        let due = beginning.get(begun..).unwrap_or_default();
        self.read.is_lost && self.to_client.is_empty() && due.iter().zip(bytes).all(|(due, came)| due == came)
    }

    /// Stops counting the requests that the server has not read.
    pub fn exempt_on_way(&mut self) {
        self.on_way.iter_mut().for_each(|(_, dispatched_at)| *dispatched_at = 0);
    }

    /// Returns true if the client has received everything that the server sent.
    pub fn is_delivered(&self) -> bool {
        self.to_client.is_empty()
    }

    /// Notes an excuse for the end of the session.
    pub fn excuse(&mut self, why: &'static str) {
        self.excuse.get_or_insert(why);
    }
}

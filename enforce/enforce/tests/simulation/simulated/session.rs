//! What an observer between clients, proxy and server knows of one session: which requests the proxy has read, which it
//! has handed on, and which bytes the client is still to see.

use super::nbd_reader::NbdDialect;
use super::reader::{DeviceWork, RequestReader, SeenRequest};
use enforce::deployment::FrontProtocol;
use std::collections::VecDeque;

/// The most bytes of requests that a session may hold: those that wait, as many on their way to the server, and what
/// was read with them.
const REQUESTS_HELD_MAX: u64 = 2 * ((1 << 20) + (64 << 10)) + (192 << 10);
/// How many bytes of replies a client leaves untaken before it holds up its own requests.
const DEAF_BYTES: u64 = 256 << 10;
/// The most bytes of replies that a session may hold.
const REPLIES_HELD_MAX: u64 = (4 << 20) + (192 << 10);

/// A request that the proxy has read and not handed to the server.
#[derive(Debug, Clone, Copy)]
pub struct HeldRequest {
    hash: u64,
    /// When its last byte was read.
    pub read_at: u64,
    /// What it does at the device.
    pub work: DeviceWork,
}

/// A request that the proxy has handed to the server.
#[derive(Debug, Clone)]
pub struct HandedRequest {
    /// What it is.
    pub request: SeenRequest,
    /// When its first byte was written.
    pub begun_at: u64,
    /// Whether the proxy has added it.
    pub is_added: bool,
}

/// One session, as an observer sees it.
#[derive(Debug)]
pub struct ObservedSession {
    /// The network of its client.
    pub network: usize,
    /// Which of the proxies one after the other it belongs to.
    pub generation: u32,
    /// What the proxy has read and not handed on.
    pub held: VecDeque<HeldRequest>,
    protocol: FrontProtocol,
    read: RequestReader,
    written: RequestReader,
    begun_at: Option<u64>,
    /// Of each request on its way to the server, whether the proxy has added it.
    pub added: VecDeque<bool>,
    /// What the server has sent, and the client is to see.
    to_client: VecDeque<u8>,
    bytes: [u64; 4],
    /// When the connection to the server last took less than was to be written, or was not made yet.
    pub blocked_at: u64,
    /// Whether the proxy tries to write to the server and cannot.
    pub is_blocked: bool,
    /// Since when the client has so much to take that its requests may be held up.
    pub deaf_since: Option<u64>,
    /// Whether requests of it stopped counting before the server had them: it is not known which.
    pub is_uncounted: bool,
    /// Why either side may be closed without a reason of the proxy.
    pub excuse: Option<&'static str>,
    /// Whether a request of it was so large that it may stream.
    pub has_streamed: bool,
    /// Whether its client sends what a proxy need not hand on, or that has no level: repeated calls, huge requests.
    pub is_odd: bool,
    /// The most bytes of requests and of replies that the proxy held of it.
    pub most_held: [u64; 2],
    /// Whether either connection has ended.
    pub is_over: bool,
}

impl ObservedSession {
    /// A session that begins.
    pub fn new(protocol: FrontProtocol, dialect: NbdDialect, network: usize, generation: u32) -> Self {
        Self {
            network,
            generation,
            held: VecDeque::new(),
            protocol,
            read: RequestReader::new(protocol, dialect),
            written: RequestReader::new(protocol, dialect),
            begun_at: None,
            added: VecDeque::new(),
            to_client: VecDeque::new(),
            bytes: [0; 4],
            blocked_at: 0,
            is_blocked: true,
            deaf_since: None,
            is_uncounted: false,
            excuse: None,
            has_streamed: false,
            is_odd: false,
            most_held: [0; 2],
            is_over: false,
        }
    }

    /// The proxy has read these bytes of the client.
    ///
    /// # Errors
    /// That it holds too much.
    pub fn on_read_from_client(&mut self, bytes: &[u8], now: u64) -> Result<(), String> {
        self.bytes[0] += bytes.len() as u64;
        self.read.feed(bytes);
        while let Some(request) = self.read.next_request() {
            self.has_streamed |= request.len >= 32 << 10;
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

    /// The proxy has written these bytes to the server; returns the requests that are complete with them.
    ///
    /// # Errors
    /// That the client has sent no such request, or not in this order.
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
            self.added.push_back(is_added);
            handed.push(HandedRequest { request, begun_at, is_added });
            begun_at = now;
        }
        self.begun_at = (!self.written.is_between()).then_some(begun_at);
        if self.written.is_lost && !self.read.is_lost && self.read.is_between() {
            return Err("conservation: the server got bytes that the client did not send".to_owned());
        }
        Ok(handed)
    }

    /// Finds the client's request that was handed on; whether the proxy has added it instead.
    fn match_request(&mut self, request: &SeenRequest) -> Result<bool, String> {
        let position = self.held.iter().position(|held| held.hash == request.hash);
        match position {
            Some(0) => {
                self.held.pop_front();
                Ok(false)
            }
            _ if request.is_noop => Ok(true),
            Some(_) if self.protocol == FrontProtocol::Memcached => {
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

    /// The proxy has read bytes of the server.
    ///
    /// # Errors
    /// That it holds too much.
    pub fn on_read_from_server(&mut self, count: usize, now: u64) -> Result<(), String> {
        self.bytes[2] += count as u64;
        let held = self.held_replies();
        if held >= DEAF_BYTES {
            self.deaf_since.get_or_insert(now);
        }
        // No-ops that the proxy has added have answers that it keeps: they are short.
        self.most_held[1] = self.most_held[1].max(held);
        if held > REPLIES_HELD_MAX + 64 * self.bytes[1] {
            return Err(format!("memory: the proxy holds {held} bytes of replies of one connection"));
        }
        Ok(())
    }

    fn held_replies(&self) -> u64 {
        self.bytes[2].saturating_sub(self.bytes[3])
    }

    /// The proxy has written bytes to the client. If that ends a time in which the client took too little: since when.
    pub fn on_written_to_client(&mut self, count: usize) -> Option<u64> {
        self.bytes[3] += count as u64;
        if self.held_replies() < DEAF_BYTES { self.deaf_since.take() } else { None }
    }

    /// The server has sent bytes that the client is to see.
    pub fn on_sent_by_server(&mut self, bytes: &[u8]) {
        self.to_client.extend(bytes);
    }

    /// The client has received these bytes.
    ///
    /// # Errors
    /// That the server has not sent them, or others before them.
    pub fn on_received_by_client(&mut self, bytes: &[u8]) -> Result<(), String> {
        if bytes.len() > self.to_client.len()
            || !self.to_client.iter().zip(bytes).all(|(sent, came)| sent == came)
        {
            return Err("stream: the client got other bytes than the server sent".to_owned());
        }
        self.to_client.drain(..bytes.len());
        Ok(())
    }

    /// Whether everything that the server sent has come to the client.
    pub fn is_delivered(&self) -> bool {
        self.to_client.is_empty()
    }

    /// Notes why the session may end.
    pub fn excuse(&mut self, why: &'static str) {
        self.excuse.get_or_insert(why);
    }
}

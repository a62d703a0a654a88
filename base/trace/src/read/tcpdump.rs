//! The text output of `tcpdump -tt -n -q`: `seconds IP client.port > server.port: tcp bytes`.
//!
//! tcpdump sees packets without their meaning. The data that a client sends on a connection before the
//! server answers counts as one request; its answer is the data that the server sends before the client
//! sends again. A request with more bytes than its answer is a write of these bytes, any other a read of
//! the answer's bytes. Several requests sent before the first answer (pipelining) therefore count as one:
//! bytes and bursts are right, but the number of requests is too small.
//!
//! Ports identify the server: a port of [`SERVER_PORTS`] before any other, then the smaller one. The
//! workload of a request is that port, `port-2049`. Lines without payload or of other protocols are
//! ignored.

use super::lines::unreadable_line;
use super::source::{SourceError, TraceSource};
use crate::error::{TraceErrorKind, TracePosition};
use crate::input::BufferedInput;
use crate::scan::{decimal, fixed_point, words};
use crate::selection::{RequestSelector, TraceSelection};
use model::{Op, Request};
use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;
use units::{Bytes, Nanos};

/// Ports of NFS, NBD, memcached, HTTP and HTTPS.
const SERVER_PORTS: [u16; 5] = [2049, 10809, 11211, 80, 443];
/// Maximum number of requests that wait for the end of their answers, or for an earlier one.
const PENDING_MAX: usize = 1 << 16;
/// Maximum number of connections that are followed; beyond it all are forgotten.
const CONNECTIONS_MAX: usize = 1 << 16;
/// Silence after which an answer counts as complete.
const ANSWER_OVER_NS: u64 = 10_000_000_000;
const EXPECTED: &str = "a line of `tcpdump -tt -n -q`: seconds IP address.port > address.port: tcp bytes";

/// A packet with payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CapturedPacket {
    time_ns: u64,
    connection: CapturedConnection,
    /// True if sent by the client.
    is_request: bool,
    bytes: u64,
}

/// The ends of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct CapturedConnection {
    client: (IpAddr, u16),
    server: (IpAddr, u16),
}

/// A captured request, with the part of its answer captured so far.
#[derive(Debug)]
struct PendingExchange {
    arrival_ns: u64,
    asked: u64,
    answered: u64,
    last_ns: u64,
    connection: CapturedConnection,
    is_over: bool,
}

pub(super) struct TcpdumpSource {
    input: BufferedInput,
    line: u64,
    selector: RequestSelector,
    /// Exchanges in order of arrival.
    pending: VecDeque<PendingExchange>,
    /// Sequence number of the first exchange in `pending`.
    first_pending: u64,
    /// Sequence number of the latest exchange of each connection.
    latest: HashMap<CapturedConnection, u64>,
    now_ns: u64,
    at_end: bool,
}

impl TcpdumpSource {
    pub(super) fn new(input: BufferedInput, selection: &TraceSelection) -> Self {
        Self {
            input,
            line: 0,
            selector: RequestSelector::new(selection),
            pending: VecDeque::new(),
            first_pending: 0,
            latest: HashMap::new(),
            now_ns: 0,
            at_end: false,
        }
    }

    /// Takes the oldest exchange, if it is complete.
    fn pop_ready(&mut self) -> Option<PendingExchange> {
        let oldest = self.pending.front()?;
        let is_silent = self.now_ns.saturating_sub(oldest.last_ns) >= ANSWER_OVER_NS;
        if !(oldest.is_over || is_silent || self.at_end || self.pending.len() > PENDING_MAX) {
            return None;
        }
        let exchange = self.pending.pop_front()?;
        let number = self.first_pending;
        self.first_pending += 1;
        if self.latest.get(&exchange.connection) == Some(&number) {
            self.latest.remove(&exchange.connection);
        }
        Some(exchange)
    }

    /// Returns the unfinished exchange of a connection.
    fn current(&mut self, connection: &CapturedConnection) -> Option<&mut PendingExchange> {
        let number = *self.latest.get(connection)?;
        let index = usize::try_from(number.checked_sub(self.first_pending)?).ok()?;
        self.pending.get_mut(index)
    }

    fn take(&mut self, packet: CapturedPacket) {
        self.now_ns = self.now_ns.max(packet.time_ns);
        let CapturedPacket { time_ns, connection, is_request, bytes } = packet;
        if let Some(exchange) = self.current(&connection) {
            exchange.is_over = is_request && exchange.answered > 0;
            if !exchange.is_over {
                let sum = if is_request { &mut exchange.asked } else { &mut exchange.answered };
                *sum = sum.saturating_add(bytes);
                exchange.last_ns = exchange.last_ns.max(time_ns);
                return;
            }
        }
        if !is_request {
            // The rest of an answer whose request was not captured.
            return;
        }
        if self.latest.len() == CONNECTIONS_MAX {
            self.latest.clear();
        }
        self.latest.insert(connection, self.first_pending + self.pending.len() as u64);
        let arrival_ns = time_ns;
        let last_ns = time_ns;
        let exchange =
            PendingExchange { arrival_ns, asked: bytes, answered: 0, last_ns, connection, is_over: false };
        self.pending.push_back(exchange);
    }

    /// Reads one line; returns false at the end.
    fn read_line(&mut self) -> Result<bool, SourceError> {
        self.line += 1;
        let position = TracePosition::Line(self.line);
        let line = match self.input.line() {
            Ok(Some(line)) => line,
            Ok(None) => return Ok(false),
            Err(error) => {
                let error = unreadable_line(&mut self.input, self.line, error);
                self.at_end |= !error.is_recoverable;
                return Err(error);
            }
        };
        match parse_line(line) {
            Ok(Some(packet)) => self.take(packet),
            Ok(None) => {}
            Err(expected) => return Err(SourceError::malformed(position, expected, line)),
        }
        Ok(true)
    }

    /// Converts the exchange into a request of the trace, if selected.
    fn request_of(&mut self, exchange: &PendingExchange) -> Result<Option<Request>, TraceErrorKind> {
        let PendingExchange { arrival_ns, asked, answered, last_ns, connection, .. } = *exchange;
        let workload = format!("port-{}", connection.server.1);
        if !self.selector.admits(&workload, &connection.client.0.to_string())? {
            return Ok(None);
        }
        let (op, size) = if asked > answered { (Op::Write, asked) } else { (Op::Read, answered) };
        let response = (answered > 0).then_some(Nanos(last_ns - arrival_ns));
        Ok(Some(Request { arrival: Nanos(arrival_ns), size: Bytes(size), op, offset: None, response }))
    }
}

impl TraceSource for TcpdumpSource {
    fn next(&mut self) -> Result<Option<Request>, SourceError> {
        loop {
            if let Some(exchange) = self.pop_ready() {
                let request = self.request_of(&exchange);
                match request.map_err(|kind| SourceError::fatal(self.position(), kind))? {
                    Some(request) => return Ok(Some(request)),
                    None => continue,
                }
            }
            if self.at_end {
                let finished = self.selector.finish();
                return finished.map(|()| None).map_err(|kind| SourceError::fatal(TracePosition::File, kind));
            }
            self.at_end = !self.read_line()?;
        }
    }

    fn position(&self) -> TracePosition {
        TracePosition::Line(self.line)
    }

    fn ignored(&self) -> u64 {
        0
    }

    fn owners(&self) -> Option<&std::collections::BTreeMap<String, u64>> {
        Some(self.selector.counts())
    }
}

/// Parses the packet of a line; `None` without payload, for another protocol, and for tcpdump's own
/// messages. An error completes "expected …".
pub(super) fn parse_line(line: &[u8]) -> Result<Option<CapturedPacket>, &'static str> {
    let mut words = words(line).peekable();
    let Some(first) = words.next() else { return Ok(None) };
    if is_about_itself(line) {
        return Ok(None);
    }
    let time_ns = fixed_point(first, 9).ok_or(EXPECTED)?;
    // With `-i any` the device and the direction precede the protocol.
    let protocol = words.find(|word| matches!(*word, b"IP" | b"IP6" | b"ARP," | b"ARP"));
    if !matches!(protocol.ok_or(EXPECTED)?, b"IP" | b"IP6") {
        return Ok(None);
    }
    let from = words.next().ok_or(EXPECTED)?;
    if words.next() != Some(b">") {
        return Err(EXPECTED);
    }
    let to = words.next().and_then(|word| word.strip_suffix(b":")).ok_or(EXPECTED)?;
    let Some((from, to)) = parse_end(from).zip(parse_end(to)) else { return Ok(None) };
    let Some(bytes) = payload(words.collect::<Vec<_>>().as_slice()).filter(|bytes| *bytes > 0) else {
        return Ok(None);
    };
    let is_request = is_server(to.1, from.1);
    let (client, server) = if is_request { (from, to) } else { (to, from) };
    Ok(Some(CapturedPacket { time_ns, connection: CapturedConnection { client, server }, is_request, bytes }))
}

/// Returns true for tcpdump's own messages on standard error, such as `listening on lo, link-type …` and
/// `12 packets captured`.
fn is_about_itself(line: &[u8]) -> bool {
    line.starts_with(b"tcpdump:")
        || line.starts_with(b"listening on")
        || line.starts_with(b"reading from")
        || line.starts_with(b"dropped privs")
        || line.trim_ascii_end().ends_with(b"captured")
        || line.trim_ascii_end().ends_with(b"by filter")
        || line.trim_ascii_end().ends_with(b"by kernel")
}

/// Parses the address and port of `10.0.0.9.2049` or `fd00::9.2049`.
fn parse_end(word: &[u8]) -> Option<(IpAddr, u16)> {
    let text = std::str::from_utf8(word).ok()?;
    let (address, port) = text.rsplit_once('.')?;
    Some((address.parse().ok()?, port.parse().ok()?))
}

/// Returns true if the first port is the server's.
fn is_server(port: u16, other: u16) -> bool {
    let rank = |port: u16| SERVER_PORTS.iter().position(|known| *known == port).unwrap_or(SERVER_PORTS.len());
    (rank(port), port) < (rank(other), other)
}

/// Returns the bytes of payload in `tcp 36`, `UDP, length 36`, or `Flags [P.], seq 1:37, …, length 36`
/// with possible further words.
fn payload(rest: &[&[u8]]) -> Option<u64> {
    match rest {
        [b"tcp", bytes, ..] => decimal(bytes),
        _ => {
            let length = rest.iter().position(|word| *word == b"length")?;
            let digits = rest.get(length + 1)?;
            decimal(digits.strip_suffix(b":").unwrap_or(digits))
        }
    }
}

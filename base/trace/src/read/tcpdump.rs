//! The text output of `tcpdump -tt -n`, with or without `-q`: `seconds IP client.port > server.port: tcp bytes`.
//!
//! tcpdump sees packets without their meaning. The data that a client sends on a connection before the
//! server answers counts as one request; its answer is the data that the server sends before the client
//! sends again. A request with more bytes than its answer is a write of these bytes, any other a read of
//! the answer's bytes. Several requests sent before the first answer (pipelining) therefore count as one:
//! bytes and bursts are right, but the number of requests is too small.
//!
//! The workload of a request is the server's port, `port-2049`. [`sides`] decides which side the server
//! is, and [`repeated`] which packets were captured twice. Packets of other protocols are counted.

mod line;
mod repeated;
mod sequence;
mod sides;

use super::lines::unreadable_line;
use super::source::{SourceError, TraceSource};
use crate::error::{TraceErrorKind, TracePosition};
use crate::input::BufferedInput;
use crate::selection::{RequestParties, RequestSelector, TraceSelection};
use line::{End, Opening, Packet, TcpdumpLine};
use model::{Op, Request};
use repeated::SeenPackets;
use sides::{KnownServers, OpeningPackets};
use std::collections::{HashMap, VecDeque};
use std::net::SocketAddr;
use units::{Bytes, Nanos};

pub(super) use line::is_packet;

/// Maximum number of requests that wait for the end of their answers, or for an earlier one.
const PENDING_MAX: usize = 1 << 16;
/// Maximum number of connections that are followed; beyond it all are forgotten.
const CONNECTIONS_MAX: usize = 1 << 16;
/// Silence after which an answer counts as complete; what the server sends later belongs to no request.
const ANSWER_OVER_NS: u64 = 10_000_000_000;
/// Time after which a request counts as never answered.
const UNANSWERED_NS: u64 = 600_000_000_000;

/// The ends of a connection, the smaller first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Ends {
    low: End,
    high: End,
}

/// A connection of which packets have been captured.
#[derive(Default)]
struct CapturedConnection {
    /// The client is the low end; `None` until payload or a SYN decides.
    client_is_low: Option<bool>,
    opening: OpeningPackets,
    seen: SeenPackets,
    /// Number of the latest exchange.
    latest: Option<u64>,
}

/// A captured request, with the part of its answer captured so far.
#[derive(Debug)]
struct PendingExchange {
    arrival_ns: u64,
    asked: u64,
    answered: u64,
    last_ns: u64,
    client: End,
    server: End,
    is_over: bool,
}

pub(super) struct TcpdumpSource {
    input: BufferedInput,
    line: u64,
    capture: Capture,
    at_end: bool,
}

/// The exchanges of the packets so far.
struct Capture {
    selector: RequestSelector,
    /// Every packet appears twice.
    is_mirrored: bool,
    /// Exchanges in order of arrival.
    pending: VecDeque<PendingExchange>,
    /// Sequence number of the first exchange in `pending`.
    first_pending: u64,
    connections: HashMap<Ends, CapturedConnection>,
    servers: KnownServers,
    now_ns: u64,
    /// Number of packets of other protocols.
    other: u64,
    /// Number of connections whose client is the side that sent first, for want of a better reason.
    guessed: u64,
}

impl TcpdumpSource {
    pub(super) fn new(mut input: BufferedInput, selection: &TraceSelection) -> Self {
        let head = input.peek_lossy(super::detect::DETECT_BYTES).unwrap_or_default();
        let is_mirrored = repeated::is_mirrored(head);
        let capture = Capture {
            selector: RequestSelector::new(selection),
            is_mirrored,
            pending: VecDeque::new(),
            first_pending: 0,
            connections: HashMap::new(),
            servers: KnownServers::default(),
            now_ns: 0,
            other: 0,
            guessed: 0,
        };
        Self { input, line: 0, capture, at_end: false }
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
        match line::parse_line(line) {
            Ok(TcpdumpLine::Packet(packet)) => self.capture.take(&packet),
            Ok(TcpdumpLine::OtherProtocol) => self.capture.other += 1,
            Ok(TcpdumpLine::Nothing) => {}
            Err(expected) => return Err(SourceError::malformed(position, expected, line)),
        }
        Ok(true)
    }
}

impl Capture {
    /// Takes the oldest exchange, if it is complete.
    fn pop_ready(&mut self, at_end: bool) -> Option<PendingExchange> {
        let oldest = self.pending.front()?;
        let longest = if oldest.answered > 0 { ANSWER_OVER_NS } else { UNANSWERED_NS };
        let is_silent = self.now_ns.saturating_sub(oldest.last_ns) >= longest;
        if !(oldest.is_over || is_silent || at_end || self.pending.len() > PENDING_MAX) {
            return None;
        }
        self.first_pending += 1;
        self.pending.pop_front()
    }

    fn take(&mut self, packet: &Packet<'_>) {
        self.now_ns = self.now_ns.max(packet.time_ns);
        let ends = Ends { low: packet.from.min(packet.to), high: packet.from.max(packet.to) };
        if self.connections.len() == CONNECTIONS_MAX && !self.connections.contains_key(&ends) {
            self.connections.clear();
        }
        let connection = self.connections.entry(ends).or_default();
        let is_from_low = packet.from == ends.low;
        if packet.opening == Some(Opening::Asked) {
            // A port that is used again begins another connection.
            let latest = connection.latest;
            *connection = CapturedConnection { latest, ..CapturedConnection::default() };
        }
        if let Some(opening) = packet.opening {
            connection.client_is_low = Some(is_from_low == (opening == Opening::Asked));
            connection.seen.open(is_from_low);
        }
        let bytes = connection.seen.take(packet, is_from_low, self.is_mirrored);
        if bytes == 0 {
            connection.opening.take_empty(is_from_low);
            return;
        }
        let client_is_low = match connection.client_is_low {
            Some(client_is_low) => client_is_low,
            None => {
                let (sender_is_client, is_guessed) = match self.servers.is_client(packet.from, packet.to) {
                    Some(is_client) => (is_client, false),
                    None => match connection.opening.client_is_low() {
                        Some(opened_by_low) => (opened_by_low == is_from_low, false),
                        None => sides::is_client_by_port(packet.from.1, packet.to.1),
                    },
                };
                self.guessed += u64::from(is_guessed);
                connection.client_is_low = Some(sender_is_client == is_from_low);
                sender_is_client == is_from_low
            }
        };
        let is_request = client_is_low == is_from_low;
        let server = if is_request { packet.to } else { packet.from };
        let client = if is_request { packet.from } else { packet.to };
        self.servers.add(server);
        let number = connection.latest.and_then(|number| number.checked_sub(self.first_pending));
        let current = number.and_then(|number| self.pending.get_mut(usize::try_from(number).ok()?));
        if let Some(exchange) = current {
            let silence = packet.time_ns.saturating_sub(exchange.last_ns);
            let is_answered = exchange.answered > 0;
            exchange.is_over = is_answered && (is_request || silence >= ANSWER_OVER_NS);
            if !exchange.is_over {
                let sum = if is_request { &mut exchange.asked } else { &mut exchange.answered };
                *sum = sum.saturating_add(bytes);
                exchange.last_ns = exchange.last_ns.max(packet.time_ns);
                return;
            }
        }
        if !is_request {
            // The rest of an answer whose request was not captured.
            return;
        }
        connection.latest = Some(self.first_pending + self.pending.len() as u64);
        self.pending.push_back(PendingExchange {
            arrival_ns: packet.time_ns,
            asked: bytes,
            answered: 0,
            last_ns: packet.time_ns,
            client,
            server,
            is_over: false,
        });
    }

    /// Converts the exchange into a request of the trace, if selected.
    fn request_of(&mut self, exchange: &PendingExchange) -> Result<Option<Request>, TraceErrorKind> {
        let PendingExchange { arrival_ns, asked, answered, last_ns, client, server, .. } = *exchange;
        let workload = format!("port-{}", server.1);
        let client = client.0.to_string();
        let server = SocketAddr::from(server).to_string();
        let parties = RequestParties { workload: &workload, client: &client, server: &server };
        if !self.selector.admits(parties)? {
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
            if let Some(exchange) = self.capture.pop_ready(self.at_end) {
                let request = self.capture.request_of(&exchange);
                match request.map_err(|kind| SourceError::fatal(self.position(), kind))? {
                    Some(request) => return Ok(Some(request)),
                    None => continue,
                }
            }
            if self.at_end {
                let finished = self.capture.selector.finish();
                return finished.map(|()| None).map_err(|kind| SourceError::fatal(TracePosition::File, kind));
            }
            self.at_end = !self.read_line()?;
        }
    }

    fn position(&self) -> TracePosition {
        TracePosition::Line(self.line)
    }

    fn ignored(&self) -> u64 {
        self.capture.other
    }

    fn remarks(&self) -> Vec<String> {
        match self.capture.guessed {
            0 => Vec::new(),
            1 => vec![
                "the client of a connection is the side that sent first: neither port nor handshake tell"
                    .to_owned(),
            ],
            n => vec![format!(
                "the clients of {n} connections are the sides that sent first: neither ports nor handshakes tell"
            )],
        }
    }

    fn owners(&self) -> Option<&std::collections::BTreeMap<String, u64>> {
        Some(self.capture.selector.counts())
    }
}

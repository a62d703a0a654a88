//! One connection in a run: requests go out as far as the socket takes them, and replies come in.

use super::context::RunContext;
use super::in_flight::InFlightWindow;
use super::request_log::{RequestIndex, RequestLog};
use super::workload_state::{WorkloadState, io_request};
use crate::codec::{ClientCodec, Decoded, ReplyStatus};
use crate::content::WriteEnd;
use crate::setup::{ConnectionSocket, ReadyConnection};
use crate::tls::TlsSession;
use model::RequestOutcome;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use std::collections::VecDeque;
use units::Nanos;

/// Maximum number of encoded bytes that wait for the socket. Further requests wait unencoded, so that
/// they can still move to another connection.
const OUTPUT_MAX: usize = 256 << 10;
/// Room for one read from the socket. A connection is read once per event, so that a busy one does not starve others.
const READ_SIZE: usize = 64 << 10;
/// Maximum number of datagrams that are read per event.
const DATAGRAMS_MAX: usize = 16;
/// Time after which a datagram without an answer counts as lost. UDP does not report losses.
const DATAGRAM_PATIENCE: Nanos = Nanos(1_000_000_000);
const HUNG_UP: &str = "the server hung up";

/// A connection of a workload, which may be down.
pub(super) struct ConnectionSlot {
    /// The position of its workload in the run.
    pub(super) workload: usize,
    /// `None` while the connection is down.
    pub(super) active: Option<ActiveConnection>,
    /// Requests that wait to be encoded on this connection.
    pub(super) queue: VecDeque<RequestIndex>,
}

/// The bytes of an encoded request that the kernel has not taken completely, counted over the connection.
struct UnsentRange {
    start: u64,
    end: u64,
}

/// The encoded bytes that wait for the socket.
#[derive(Default)]
struct SendBuffer {
    bytes: Vec<u8>,
    /// Length of the part of `bytes` that the kernel has taken.
    taken: usize,
    /// Number of bytes that the kernel has taken since the connection was made.
    written: u64,
    /// The requests in `bytes`, in order.
    unsent: VecDeque<UnsentRange>,
}

impl SendBuffer {
    fn waiting(&self) -> usize {
        self.bytes.len() - self.taken
    }

    /// Notes that the kernel took `count` more bytes.
    fn advance(&mut self, count: usize) {
        self.taken += count;
        self.written += count as u64;
        while self.unsent.front().is_some_and(|unsent| unsent.end <= self.written) {
            self.unsent.pop_front();
        }
        // The rest is moved to the front only now and then, so that moving costs little and memory stays bounded.
        if self.taken >= OUTPUT_MAX {
            self.bytes.drain(..self.taken);
            self.taken = 0;
        }
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.taken = 0;
    }

    /// Returns the number of requests of which the kernel has taken no byte.
    fn untouched_requests(&self) -> usize {
        self.unsent.iter().filter(|unsent| unsent.start >= self.written).count()
    }
}

/// A connection that is up.
pub(super) struct ActiveConnection {
    pub(super) socket: ConnectionSocket,
    tls: Option<TlsSession>,
    codec: Box<dyn ClientCodec>,
    output: SendBuffer,
    in_flight: InFlightWindow,
    input: Vec<u8>,
    /// Length of the decoded part of `input`.
    decoded: usize,
    /// Minimum length of undecoded input that holds the next reply.
    needed: usize,
    /// True while the event loop waits for the socket to become writable.
    pub(super) watches_writable: bool,
    /// Number of requests that the connection still takes; `None` without a limit.
    requests_left: Option<u32>,
}

/// Result of one read.
pub(super) struct Received {
    /// Number of requests that were answered.
    pub(super) answered: u32,
    /// An error ends the connection.
    pub(super) result: Result<(), String>,
}

/// Unanswered requests of a lost connection.
pub(super) struct OrphanedRequests {
    /// Requests that were sent, at least in part: the server may have executed them.
    pub(super) uncertain: Vec<RequestIndex>,
    /// Requests that were never sent, or that the server announced not to execute, in order.
    pub(super) unsent: Vec<RequestIndex>,
}

impl ActiveConnection {
    pub(super) fn new(connection: ReadyConnection, requests_left: Option<u32>) -> Self {
        Self {
            socket: connection.socket,
            tls: connection.tls,
            codec: connection.codec,
            output: SendBuffer::default(),
            in_flight: InFlightWindow::default(),
            input: Vec::new(),
            decoded: 0,
            needed: 1,
            watches_writable: false,
            requests_left,
        }
    }

    /// Counts a request that is queued for this connection; false if it takes no more.
    pub(super) fn takes_request(&mut self) -> bool {
        if !self.codec.takes_requests() {
            return false;
        }
        match &mut self.requests_left {
            None => true,
            Some(0) => false,
            Some(left) => {
                *left -= 1;
                true
            }
        }
    }

    /// True if the connection has taken all its requests and has answered those that were sent.
    pub(super) fn is_spent(&self) -> bool {
        self.requests_left == Some(0) && self.in_flight.unanswered() == 0
    }

    /// Encodes and sends requests of the queue as far as the socket takes them. Sets
    /// [`Self::watches_writable`] if the socket is full, and clears it otherwise. An error ends the
    /// connection.
    pub(super) fn send(
        &mut self,
        queue: &mut VecDeque<RequestIndex>,
        workload: &mut WorkloadState,
        context: &mut RunContext<'_>,
    ) -> Result<(), String> {
        loop {
            // A datagram is made when it can leave, so that the time until its answer is counted from there.
            let room = if self.socket.is_datagrams() { 1 } else { OUTPUT_MAX };
            while self.output.waiting() < room && self.in_flight.unanswered() < self.codec.in_flight_max() {
                let Some(request) = queue.pop_front() else { break };
                if let Err(why) = self.encode(request, workload, context) {
                    queue.push_front(request);
                    return Err(why);
                }
            }
            if self.output.waiting() == 0 {
                self.output.clear();
                self.watches_writable = false;
                return Ok(());
            }
            match rustix::io::write(&self.socket, self.next_bytes()) {
                Ok(count) => {
                    self.output.advance(count);
                    if self.socket.is_datagrams() {
                        self.in_flight.newest_left(context.clock.now());
                    }
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.watches_writable = true;
                    return Ok(());
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// Returns the bytes for one system call: everything, or one datagram.
    fn next_bytes(&self) -> &[u8] {
        let waiting = &self.output.bytes[self.output.taken..];
        match self.output.unsent.front() {
            Some(UnsentRange { start, end }) if self.socket.is_datagrams() => {
                &waiting[..usize::try_from(end - start).expect("a datagram")]
            }
            _ => waiting,
        }
    }

    /// Appends a request to the output. After an error the request is as if it had not been tried.
    fn encode(
        &mut self,
        request: RequestIndex,
        workload: &mut WorkloadState,
        context: &mut RunContext<'_>,
    ) -> Result<(), String> {
        let start = self.output.written + self.output.waiting() as u64;
        let now = context.clock.now();
        let record = context.log.get(request);
        let (io_request, content_version, payload) = workload.begin(record, now, &mut context.payload);
        context.log.get_mut(request).content_version = content_version;
        let id = self.in_flight.next_id();
        let len_before = self.output.bytes.len();
        let out = &mut self.output.bytes;
        let encoded = match &mut self.tls {
            None => self.codec.encode(out, id, io_request, payload),
            Some(tls) => {
                let plain = &mut context.plain;
                plain.clear();
                self.codec.encode(plain, id, io_request, payload).and_then(|()| tls.seal(plain, out))
            }
        };
        if let Err(why) = encoded {
            self.output.bytes.truncate(len_before);
            workload.end_write(context.log.get(request), WriteEnd::NotSent, context.clock.now());
            return Err(why);
        }
        self.in_flight.push(request, now);
        let end = start + (self.output.bytes.len() - len_before) as u64;
        // A codec that keeps a request back may send it at any time later.
        if end > start {
            self.output.unsent.push_back(UnsentRange { start, end });
        }
        Ok(())
    }

    /// Reads once from the socket and handles all complete replies, also those before an error, which ends
    /// the connection.
    pub(super) fn receive(&mut self, workload: &mut WorkloadState, context: &mut RunContext<'_>) -> Received {
        let read =
            if self.socket.is_datagrams() { self.read_datagrams(context) } else { self.read_stream(context) };
        // All replies of one read arrived at the same time, as far as can be known.
        let now = context.clock.now();
        let mut answered = 0;
        let mut result = Ok(());
        while self.undecoded() >= self.needed {
            match self.decode_one(workload, context, now) {
                Ok(count) => answered += count,
                Err(why) => {
                    result = Err(why);
                    break;
                }
            }
        }
        if self.decoded >= READ_SIZE || self.undecoded() == 0 {
            self.input.drain(..self.decoded);
            self.decoded = 0;
        }
        Received { answered, result: result.and(read) }
    }

    /// Handles the start of the undecoded input. Returns the number of requests that it answers.
    fn decode_one(
        &mut self,
        workload: &mut WorkloadState,
        context: &mut RunContext<'_>,
        now: Nanos,
    ) -> Result<u32, String> {
        match self.codec.decode(&self.input[self.decoded..])? {
            Decoded::NeedMore(needed) => self.needed = needed,
            Decoded::Skip(len) => self.consume(len),
            Decoded::Reply { len, id, payload_start } => {
                let Some(request) = self.in_flight.take(id) else {
                    if self.socket.is_datagrams() {
                        self.consume(len);
                        return Ok(0);
                    }
                    return Err("an answer to what was not asked".to_owned());
                };
                let reply = &self.input[self.decoded..self.decoded + len];
                let io_request = io_request(context.log.get(request));
                let status = self.codec.interpret(io_request, reply, payload_start);
                finish(request, &status, workload, context, now);
                self.consume(len);
                return Ok(1);
            }
        }
        Ok(0)
    }

    /// Reads once from a stream, if there is something to read.
    fn read_stream(&mut self, context: &mut RunContext<'_>) -> Result<(), String> {
        if self.tls.is_none() && !self.codec.converts() {
            let missing = self.needed.saturating_sub(self.undecoded());
            self.input.reserve(missing.max(READ_SIZE));
            return read_once(&self.socket, &mut self.input).map(drop);
        }
        let received = &mut context.received;
        received.clear();
        received.reserve(READ_SIZE);
        if read_once(&self.socket, received)? == 0 {
            return Ok(());
        }
        let RunContext { plain, received, .. } = context;
        let Some(tls) = &mut self.tls else {
            return self.codec.accept(received, &mut self.input, &mut self.output.bytes);
        };
        if !self.codec.converts() {
            tls.open(received, &mut self.input)?;
            return self.end_of_tls();
        }
        plain.clear();
        let opened = tls.open(received, plain);
        let mut answer = Vec::new();
        self.codec.accept(plain, &mut self.input, &mut answer)?;
        tls.seal(&answer, &mut self.output.bytes)?;
        opened?;
        self.end_of_tls()
    }

    /// Sends what TLS has to answer, and reports the end of the session.
    fn end_of_tls(&mut self) -> Result<(), String> {
        let Some(tls) = &mut self.tls else { return Ok(()) };
        tls.seal(&[], &mut self.output.bytes)?;
        if tls.is_closed() { Err(HUNG_UP.to_owned()) } else { Ok(()) }
    }

    /// Reads up to [`DATAGRAMS_MAX`] datagrams.
    fn read_datagrams(&mut self, context: &mut RunContext<'_>) -> Result<(), String> {
        let datagram = &mut context.received;
        for _ in 0..DATAGRAMS_MAX {
            datagram.clear();
            datagram.reserve(READ_SIZE);
            match rustix::io::read(&self.socket, spare_capacity(datagram)) {
                Ok(_) => self.codec.accept(datagram, &mut self.input, &mut self.output.bytes)?,
                Err(Errno::AGAIN | Errno::INTR) => return Ok(()),
                Err(error) => return Err(error.to_string()),
            }
        }
        Ok(())
    }

    /// True if bytes wait that can be tried to send now: what the protocol answers by itself.
    pub(super) fn has_output(&self) -> bool {
        self.output.waiting() > 0 && !self.watches_writable
    }

    /// Gives up requests whose answers count as lost, because they were sent as datagrams too long ago.
    /// Returns their number.
    pub(super) fn give_up_lost(
        &mut self,
        workload: &mut WorkloadState,
        context: &mut RunContext<'_>,
        now: Nanos,
    ) -> u32 {
        let mut lost = 0;
        while let Some((id, left)) = self.in_flight.oldest() {
            let has_left = self.in_flight.unanswered() > self.output.untouched_requests();
            if !self.socket.is_datagrams() || !has_left || left + DATAGRAM_PATIENCE > now {
                break;
            }
            let Some(request) = self.in_flight.take(id) else { break };
            workload.end_write(context.log.get(request), WriteEnd::Uncertain, now);
            context.log.finish(request, RequestOutcome::Lost, context.gauges);
            lost += 1;
        }
        lost
    }

    fn undecoded(&self) -> usize {
        self.input.len() - self.decoded
    }

    fn consume(&mut self, bytes: usize) {
        self.decoded += bytes;
        self.needed = 1;
    }

    /// True after the server has announced that it will send no further replies.
    pub(super) fn is_closing(&self) -> bool {
        self.codec.is_closing()
    }

    /// Closes the connection and sorts the requests that it leaves unanswered.
    pub(super) fn close(
        self,
        workload: &mut WorkloadState,
        log: &RequestLog,
        now: Nanos,
    ) -> OrphanedRequests {
        let mut sent = self.in_flight.into_unanswered();
        // Requests are encoded in order: the ones of which no byte was sent are the last in flight.
        let unsent = sent.split_off(sent.len() - self.output.untouched_requests());
        for request in &unsent {
            workload.end_write(log.get(*request), WriteEnd::NotSent, now);
        }
        for request in &sent {
            workload.end_write(log.get(*request), WriteEnd::Uncertain, now);
        }
        if self.codec.is_closing() {
            return OrphanedRequests { uncertain: Vec::new(), unsent: [sent, unsent].concat() };
        }
        OrphanedRequests { uncertain: sent, unsent }
    }
}

/// Reads once from a stream and appends what is there. Returns the number of bytes: 0 if nothing has arrived.
fn read_once(socket: &ConnectionSocket, into: &mut Vec<u8>) -> Result<usize, String> {
    match rustix::io::read(socket, spare_capacity(into)) {
        Ok(0) => Err(HUNG_UP.to_owned()),
        Ok(count) => Ok(count),
        Err(Errno::AGAIN | Errno::INTR) => Ok(0),
        Err(error) => Err(error.to_string()),
    }
}

/// Ends a request by its reply, which arrived at `now`.
fn finish(
    request: RequestIndex,
    status: &ReplyStatus<'_>,
    workload: &mut WorkloadState,
    context: &mut RunContext<'_>,
    now: Nanos,
) {
    let record = *context.log.get(request);
    let (outcome, write_end) = match status {
        ReplyStatus::Done(data) => {
            workload.end_read(&record, data);
            (RequestOutcome::Done(now), WriteEnd::Stored)
        }
        ReplyStatus::KeyMissing => {
            workload.counters.misses += 1;
            (RequestOutcome::Done(now), WriteEnd::Stored)
        }
        ReplyStatus::Failed(why) => {
            workload.count_failure(|| why.clone());
            (RequestOutcome::Failed(now), WriteEnd::Uncertain)
        }
    };
    workload.end_write(&record, write_end, now);
    context.log.finish(request, outcome, context.gauges);
}

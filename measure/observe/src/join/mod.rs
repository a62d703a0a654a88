//! Joins events of the kernel into requests: a pure state machine, with events and their clock as arguments.
//!
//! Where the protocol is known and its bytes are seen, they say what a request is (`tcp_messages`). Otherwise it has to
//! be concluded, because TCP has no messages. The bytes that a client sends at once end with a
//! packet that carries PSH; what has been read and not answered is answered by what the server writes next. Where that
//! leaves several possibilities, the request is marked ([`crate::RequestQuality`]); `tcp_round` has the rules.
//!
//! Events of several CPUs come nearly in the order of their time; [`crate::EventOrder`] puts them in order. What the
//! kernel could not report makes everything that is open doubtful: it is discarded and counted.

mod connection;
mod counts;
mod message_reads;
mod message_stream;
mod sizes;
mod tcp;
mod tcp_calls;
mod tcp_messages;
mod tcp_rest;
mod tcp_round;
mod tcp_segments;
mod threads;
mod udp;
mod udp_reads;

use crate::event::{EventKind, KernelEvent};
use crate::request::ObservedRequest;
use connection::ObservedConnection;
pub use counts::JoinCounts;
pub use sizes::TableSizes;
use std::collections::BTreeMap;
use std::ops::Range;
use threads::ThreadActivity;
use udp::UdpPort;
use wire::Protocol;

/// The requests of all observed ports, from events.
#[derive(Debug)]
pub struct RequestJoiner {
    limits: &'static TableSizes,
    protocol: Option<Protocol>,
    connections: BTreeMap<u64, ObservedConnection>,
    /// The memory of these in bytes.
    bytes: usize,
    udp: BTreeMap<u16, UdpPort>,
    threads: ThreadActivity,
    counts: JoinCounts,
    lost: Option<u16>,
    /// How long connections have waited to be accepted, since somebody asked.
    accept_waits: Vec<u64>,
}

impl Default for RequestJoiner {
    fn default() -> Self {
        Self::new()
    }
}

impl RequestJoiner {
    /// A joiner that has seen nothing.
    pub fn new() -> Self {
        Self::of_protocol(None)
    }

    /// A joiner that has seen nothing, of servers that speak a protocol.
    pub fn of_protocol(protocol: Option<Protocol>) -> Self {
        Self::with_limits(protocol, &TableSizes::LIMITS)
    }

    /// A joiner that has seen nothing, and whose tables never have more entries than this.
    pub fn with_limits(protocol: Option<Protocol>, limits: &'static TableSizes) -> Self {
        Self {
            limits,
            protocol,
            connections: BTreeMap::new(),
            bytes: 0,
            udp: BTreeMap::new(),
            threads: ThreadActivity::new(limits.threads),
            counts: JoinCounts::default(),
            lost: None,
            accept_waits: Vec::new(),
        }
    }

    /// How many entries the tables have, of connections and ports those of the ones with most.
    pub fn sizes(&self) -> TableSizes {
        let connections = self.connections.len();
        let threads = self.threads.len();
        let all = TableSizes { connections, threads, bytes: self.bytes, ..TableSizes::default() };
        let of_connections = self.connections.values().map(ObservedConnection::sizes);
        of_connections.chain(self.udp.values().map(UdpPort::sizes)).fold(all, TableSizes::or_larger)
    }

    /// Takes the next event, behind which no bytes are. Requests that it completes are appended to `finished`.
    pub fn handle(&mut self, event: &KernelEvent, finished: &mut Vec<ObservedRequest>) {
        self.handle_with_bytes(event, &[], finished);
    }

    /// Takes the next event and the bytes behind it. Requests that it completes are appended to `finished`.
    pub fn handle_with_bytes(
        &mut self,
        event: &KernelEvent,
        copied: &[u8],
        finished: &mut Vec<ObservedRequest>,
    ) {
        self.notice_gap(event.lost);
        if matches!(event.kind, EventKind::Leave | EventKind::Occupant | EventKind::Move) {
            return;
        }
        // A thread is busy with a request until its write has returned, which is after T6: the client is woken there.
        if event.freed != 0 {
            self.threads.touch(event.thread, event.freed);
        }
        if event.udp {
            let new = || UdpPort::new(self.protocol, self.limits.datagrams);
            let port = self.udp.entry(event.local_port).or_insert_with(new);
            port.handle(event, &mut self.threads, &mut self.counts, finished);
        } else if event.kind == EventKind::Accept {
            let connection = self.connections.get_mut(&event.flow);
            self.accept_waits.extend(connection.and_then(|connection| connection.accept(event)));
        } else if event.kind == EventKind::Close {
            if let Some(mut connection) = self.connections.remove(&event.flow) {
                self.bytes -= connection.bytes();
                connection.close(event.begin, &mut self.counts, finished);
            }
        } else {
            let is_full = self.connections.len() >= self.limits.connections;
            if is_full && !self.connections.contains_key(&event.flow) {
                self.forget_quiet(finished);
            }
            let new = || ObservedConnection::new(self.protocol, self.limits);
            let connection = self.connections.entry(event.flow).or_insert_with(new);
            let before = connection.bytes();
            connection.handle(event, copied, &mut self.threads, &mut self.counts, finished);
            self.bytes = self.bytes - before + connection.bytes();
            if self.bytes > self.limits.bytes {
                self.forget_largest(finished);
            }
        }
    }

    /// How long connections that were accepted since the last call had waited for that, in nanoseconds.
    pub(crate) fn take_accept_waits(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.accept_waits)
    }

    /// The observation has ended: completes what can be, and counts the rest as unanswered.
    pub fn finish(&mut self, finished: &mut Vec<ObservedRequest>) {
        self.bytes = 0;
        for connection in std::mem::take(&mut self.connections).values_mut() {
            connection.finish(&mut self.counts, finished);
        }
        for port in std::mem::take(&mut self.udp).values_mut() {
            port.finish(&mut self.counts, finished);
        }
    }

    /// The number of requests that arrived in a time (T0) and for whose answers more events are needed; those that nobody
    /// has read yet are among them.
    pub fn open_between(&self, arrival: &Range<u64>) -> u64 {
        self.connections.values().map(|connection| connection.open_between(arrival)).sum::<u64>()
            + self.udp.values().map(|port| port.open_between(arrival)).sum::<u64>()
    }

    /// What could not be joined until now.
    pub fn counts(&self) -> JoinCounts {
        self.counts
    }

    /// Forgets the connections that had no event for the longest time, about half of them.
    fn forget_quiet(&mut self, finished: &mut Vec<ObservedRequest>) {
        let mut times: Vec<u64> = self.connections.values().map(ObservedConnection::last_event).collect();
        let middle = times.len() / 2;
        let (_, limit, _) = times.select_nth_unstable(middle);
        let limit = *limit;
        self.connections.retain(|_, connection| {
            let is_kept = connection.last_event() > limit;
            if !is_kept {
                self.bytes -= connection.bytes();
                connection.finish(&mut self.counts, finished);
            }
            is_kept
        });
    }

    /// Forgets the connections that hold most, until half of the memory is left that all may have.
    fn forget_largest(&mut self, finished: &mut Vec<ObservedRequest>) {
        let mut by_size: Vec<(usize, u64)> =
            self.connections.iter().map(|(flow, connection)| (connection.bytes(), *flow)).collect();
        by_size.sort_unstable();
        while self.bytes > self.limits.bytes / 2 {
            let Some((bytes, flow)) = by_size.pop() else { return };
            let forgotten = self.connections.remove(&flow);
            forgotten.into_iter().for_each(|mut connection| connection.finish(&mut self.counts, finished));
            self.bytes -= bytes;
        }
    }

    /// Compares the count of lost events, whose low bits each event has, with that of the event before.
    fn notice_gap(&mut self, lost: u16) {
        let before = *self.lost.get_or_insert(lost);
        // Events that changed places have a lower count than the one before.
        if (1..=u16::MAX / 2).contains(&lost.wrapping_sub(before)) {
            self.lost = Some(lost);
            self.discard();
        }
    }

    /// Events are missing: nothing that is open can be trusted.
    fn discard(&mut self) {
        self.counts.gaps += 1;
        self.threads = ThreadActivity::new(self.limits.threads);
        let connections = std::mem::take(&mut self.connections);
        self.bytes = 0;
        let ports = std::mem::take(&mut self.udp);
        let open = connections.values().map(ObservedConnection::open).sum::<u64>()
            + ports.values().map(UdpPort::unfinished).sum::<u64>();
        self.counts.discarded += open;
    }
}

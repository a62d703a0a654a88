//! One TCP connection: its messages are told apart by their protocol where that is known and its bytes are seen, and by
//! packets, reads and writes otherwise.
//!
//! Telling messages apart begins with the connection, or, where that was before, with a read when everything read before
//! is answered; a message of NBD or RPC has to begin there. When it fails, what is open is discarded, and the next requests
//! are told apart by packets until everything is answered again. A connection on which it fails again and again does not
//! speak the protocol. Where the NFS server in the kernel reads, its threads say which answer belongs to which call.

use super::counts::JoinCounts;
use super::sizes::{TableMemory, TableSizes};
use super::tcp::TcpConnection;
use super::tcp_calls::CallJoin;
use super::tcp_messages::MessageJoin;
use super::threads::ThreadActivity;
use crate::event::{EventKind, KernelEvent};
use crate::request::ObservedRequest;
use std::ops::Range;
use wire::{ConnectionAge, Protocol};

/// The most pieces that are kept for a read which may be the first to be told apart.
const KEPT_MAX: usize = 32;

/// After so many failures in a row nothing is expected of the protocol any more.
const FAILURES_MAX: u32 = 3;

/// What is known about a connection.
#[derive(Debug)]
pub(super) struct ObservedConnection {
    limits: &'static TableSizes,
    protocol: Option<Protocol>,
    by_packets: TcpConnection,
    by_messages: Option<Box<MessageJoin>>,
    by_calls: Option<Box<CallJoin>>,
    /// Bytes of the read that is reported next.
    kept: Vec<(u32, Box<[u8]>)>,
    /// How often messages could not be told apart since one was.
    failures: u32,
    /// When it was established, until it is accepted.
    established: Option<u64>,
    /// The time of its last event.
    last_event: u64,
    /// Its memory in bytes after that.
    bytes: usize,
}

impl ObservedConnection {
    /// A connection on which a protocol is spoken, if that is known.
    pub(super) fn new(protocol: Option<Protocol>, limits: &'static TableSizes) -> Self {
        Self {
            limits,
            protocol,
            by_packets: TcpConnection::new(limits),
            by_messages: None,
            by_calls: None,
            kept: Vec::new(),
            failures: 0,
            established: None,
            last_event: 0,
            bytes: 0,
        }
    }

    /// How many entries its tables have.
    pub(super) fn sizes(&self) -> TableSizes {
        let by_messages = self.by_messages.as_ref().map(|messages| messages.sizes());
        let by_calls = self.by_calls.as_ref().map(|calls| calls.sizes());
        by_messages.into_iter().chain(by_calls).fold(self.by_packets.sizes(), TableSizes::or_larger)
    }

    /// Takes the next event of this connection, with the bytes behind it.
    pub(super) fn handle(
        &mut self,
        event: &KernelEvent,
        copied: &[u8],
        threads: &mut ThreadActivity,
        counts: &mut JoinCounts,
        finished: &mut Vec<ObservedRequest>,
    ) {
        self.last_event = event.time;
        match event.kind {
            EventKind::Open => {
                self.established = Some(event.time);
                self.by_packets.handle(event, threads, counts, finished);
                let new = |protocol| MessageJoin::new(protocol, ConnectionAge::New, 0, self.limits);
                self.by_messages = self.protocol.map(new).map(Box::new);
            }
            EventKind::Bytes => self.see(event, copied),
            EventKind::Receive => {
                let event = self.by_packets.with_begin(event);
                self.receive(&event, threads, counts, finished);
            }
            EventKind::Send => self.send(event, threads, counts, finished),
            EventKind::Ready if event.is_mptcp => {
                self.by_packets.handle(event, threads, counts, finished);
                self.miss_multipath(event.end, counts);
            }
            EventKind::Transmit => {
                self.by_packets.handle(event, threads, counts, finished);
                let transmitted = self.by_packets.transmitted();
                if let (Some(calls), Some((end, time))) = (&mut self.by_calls, transmitted) {
                    finished.extend(calls.transmit(end, time));
                }
                if let (Some(messages), Some((end, time))) = (&mut self.by_messages, transmitted) {
                    let answered = messages.transmit(end, time);
                    self.failures = if answered.is_empty() { self.failures } else { 0 };
                    finished.extend(answered);
                }
            }
            _ => self.by_packets.handle(event, threads, counts, finished),
        }
        self.bytes = self.measure_bytes();
    }

    fn measure_bytes(&self) -> usize {
        let kept = self.kept.iter().map(|(_, bytes)| bytes.len()).sum::<usize>() + self.kept.bytes();
        let by_messages = self.by_messages.as_ref().map_or(0, |messages| messages.bytes());
        let by_calls = self.by_calls.as_ref().map_or(0, |calls| calls.bytes());
        size_of::<Self>() + kept + self.by_packets.bytes() + by_messages + by_calls
    }

    /// A thread has accepted the connection: how long it waited for that in nanoseconds, if its beginning was seen.
    pub(super) fn accept(&mut self, event: &KernelEvent) -> Option<u64> {
        self.established.take().map(|established| event.time.saturating_sub(established))
    }

    /// The connection has ended; the server has taken everything before `taken_until`, unless that is 0.
    pub(super) fn close(
        &mut self,
        taken_until: u32,
        counts: &mut JoinCounts,
        finished: &mut Vec<ObservedRequest>,
    ) {
        self.close_calls(counts, finished);
        if let Some(mut messages) = self.by_messages.take() {
            finished.extend(messages.close(self.by_packets.transmitted(), counts));
            counts.unanswered += messages.open() + messages.read_in_part();
        }
        self.by_packets.close(taken_until, counts, finished);
    }

    /// The observation has ended.
    pub(super) fn finish(&mut self, counts: &mut JoinCounts, finished: &mut Vec<ObservedRequest>) {
        self.close_calls(counts, finished);
        counts.unanswered += self.by_messages.take().map_or(0, |messages| messages.open());
        self.by_packets.finish(counts, finished);
    }

    /// The time of its last event.
    pub(super) fn last_event(&self) -> u64 {
        self.last_event
    }

    /// Its memory in bytes, after its last event.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    /// The number of requests that were read and are not finished.
    pub(super) fn open(&self) -> u64 {
        let by_calls = self.by_calls.as_ref().map_or(0, |calls| calls.open());
        self.by_packets.open() + by_calls + self.by_messages.as_ref().map_or(0, |messages| messages.open())
    }

    fn close_calls(&mut self, counts: &mut JoinCounts, finished: &mut Vec<ObservedRequest>) {
        if let Some(mut calls) = self.by_calls.take() {
            finished.extend(calls.close(self.by_packets.transmitted(), counts));
        }
    }

    /// Open requests by their arrival, as [`super::RequestJoiner::open_between`] counts them.
    pub(super) fn open_between(&self, arrival: &Range<u64>) -> u64 {
        let by_messages = self.by_messages.as_ref().map_or(0, |messages| messages.open_between(arrival));
        let by_calls = self.by_calls.as_ref().map_or(0, |calls| calls.open_between(arrival));
        self.by_packets.open_between(arrival) + by_messages + by_calls
    }

    fn see(&mut self, event: &KernelEvent, copied: &[u8]) {
        if let Some(messages) = &mut self.by_messages {
            messages.see(event.answer, event.begin, copied);
        } else if self.protocol.is_some() && !event.answer && self.kept.len() < KEPT_MAX {
            self.kept.push((event.begin, copied.into()));
        }
    }

    fn receive(
        &mut self,
        event: &KernelEvent,
        threads: &mut ThreadActivity,
        counts: &mut JoinCounts,
        finished: &mut Vec<ObservedRequest>,
    ) {
        let kept = std::mem::take(&mut self.kept);
        if event.is_kernel_nfs {
            // No bytes are seen of it.
            self.by_messages = None;
            let calls = self.by_calls.get_or_insert_with(|| Box::new(CallJoin::new(self.limits)));
            let free_since = threads.touch(event.thread, event.time);
            if let Some(read) = self.by_packets.pass_read(event, free_since) {
                calls.receive(event, read, counts);
            }
            return;
        }
        if self.by_packets.miss_reads(event.begin, counts) {
            self.give_up(counts);
        }
        let is_settled = self.by_messages.is_none() && self.by_packets.is_settled(event.begin);
        if is_settled && self.may_begin(event, &kept) {
            self.begin_messages(&kept, counts, finished);
        }
        let Some(messages) = &mut self.by_messages else {
            return self.by_packets.handle(event, threads, counts, finished);
        };
        let free_since = threads.touch(event.thread, event.time);
        let Some(read) = self.by_packets.pass_read(event, free_since) else { return };
        let segments = read.whole.clone();
        if messages.receive(event, read, counts).is_err() {
            self.give_up(counts);
            self.by_packets.take_read(event, &segments, free_since);
        }
    }

    /// Whether a message may begin with a read, as far as its first bytes say that.
    fn may_begin(&self, event: &KernelEvent, kept: &[(u32, Box<[u8]>)]) -> bool {
        let Some(protocol) = self.protocol.filter(|protocol| protocol.row().has_ids) else { return true };
        let first = kept.iter().find(|(begin, _)| *begin == event.begin);
        let mut parser = protocol.parser(ConnectionAge::Established);
        first.is_none_or(|(_, bytes)| parser.next_request(bytes).is_ok())
    }

    /// Everything is answered: what is read now begins with a request.
    fn begin_messages(
        &mut self,
        kept: &[(u32, Box<[u8]>)],
        counts: &mut JoinCounts,
        finished: &mut Vec<ObservedRequest>,
    ) {
        let Some(protocol) = self.protocol else { return };
        let last_active = self.by_packets.last_active();
        self.by_packets.settle(counts, finished);
        let age = ConnectionAge::Established;
        let mut messages = MessageJoin::new(protocol, age, last_active, self.limits);
        kept.iter().for_each(|(begin, bytes)| messages.see(false, *begin, bytes));
        self.by_messages = Some(Box::new(messages));
    }

    fn send(
        &mut self,
        event: &KernelEvent,
        threads: &mut ThreadActivity,
        counts: &mut JoinCounts,
        finished: &mut Vec<ObservedRequest>,
    ) {
        if let Some(calls) = &mut self.by_calls {
            let free_since = threads.touch(event.thread, event.time);
            let transmitted = self.by_packets.pass_write(event.thread);
            finished.extend(calls.send(event, free_since, transmitted, counts));
            return;
        }
        if self.by_packets.miss_taken(counts) {
            self.give_up(counts);
        }
        let Some(messages) = &mut self.by_messages else {
            return self.by_packets.handle(event, threads, counts, finished);
        };
        let free_since = threads.touch(event.thread, event.time);
        let transmitted = self.by_packets.pass_write(event.thread);
        match messages.send(event, free_since, transmitted, counts) {
            Ok(answered) => {
                self.failures = if answered.is_empty() { self.failures } else { 0 };
                finished.extend(answered);
            }
            Err(_) => self.give_up(counts),
        }
    }

    /// The socket of a subflow passes its bytes on to that of the connection, which is not seen.
    fn miss_multipath(&mut self, until: u32, counts: &mut JoinCounts) {
        let before = counts.unseen_reads;
        if self.by_packets.miss_reads(until, counts) {
            counts.multipath += counts.unseen_reads - before;
            self.by_messages = None;
        }
    }

    /// Messages cannot be told apart any more, if they were.
    fn give_up(&mut self, counts: &mut JoinCounts) {
        if self.by_messages.is_none() {
            return;
        }
        counts.untold += 1;
        self.failures += 1;
        self.protocol = self.protocol.filter(|_| self.failures < FAILURES_MAX);
        counts.discarded += self.by_messages.take().map_or(0, |messages| messages.open());
    }
}

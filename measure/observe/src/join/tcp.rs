//! One TCP connection whose protocol is not known: from segments that arrive to answers that are transmitted.

use super::counts::JoinCounts;
use super::sizes::{TableMemory, TableSizes};
use super::tcp_rest::PartlyRead;
use super::tcp_round::{AnswerWrite, AnsweredRequest, ReadRequest, awaited, divide};
use super::tcp_segments::{ReadBytes, Segment, SegmentQueue, before};
use super::threads::ThreadActivity;
use crate::event::{EventKind, KernelEvent};
use crate::request::{ObservedRequest, RequestQuality};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;

/// What is known about a connection.
#[derive(Debug)]
pub(super) struct TcpConnection {
    limits: &'static TableSizes,
    segments: SegmentQueue,
    /// The two ends, once a segment has told them.
    ends: Option<(SocketAddr, u16)>,
    /// Everything before was read.
    read_until: Option<u32>,
    /// The server has taken everything before, by whatever calls.
    taken_until: Option<u32>,
    last_read: u64,
    round: u32,
    /// Read bytes after the last PSH.
    unfinished: Option<ReadRequest>,
    partly: PartlyRead,
    /// Whether the beginning of what is read next was read, and its arrival not seen.
    is_cut: bool,
    /// Requests that were read and not answered.
    requests: Vec<ReadRequest>,
    /// The thread that has written last.
    writer: Option<u32>,
    /// What was written since.
    writes: Vec<AnswerWrite>,
    /// Requests whose answers are known and not all transmitted.
    answered: VecDeque<AnsweredRequest>,
    /// The end of the last byte that was transmitted, and when.
    transmitted: Option<(u32, u64)>,
}

impl TcpConnection {
    /// A connection of which nothing is known.
    pub(super) fn new(limits: &'static TableSizes) -> Self {
        Self {
            limits,
            segments: SegmentQueue::default(),
            ends: None,
            read_until: None,
            taken_until: None,
            last_read: 0,
            round: 0,
            unfinished: None,
            partly: PartlyRead::default(),
            is_cut: false,
            requests: Vec::new(),
            writer: None,
            writes: Vec::new(),
            answered: VecDeque::new(),
            transmitted: None,
        }
    }

    /// Takes the next event of this connection.
    pub(super) fn handle(
        &mut self,
        event: &KernelEvent,
        threads: &mut ThreadActivity,
        counts: &mut JoinCounts,
        finished: &mut Vec<ObservedRequest>,
    ) {
        match event.kind {
            EventKind::Arrival => {
                self.ends = Some((SocketAddr::new(event.peer, event.peer_port), event.local_port));
                self.segments.arrive(event, self.limits.segments);
            }
            EventKind::Open => self.partly.know(),
            EventKind::Ready => {
                self.segments.ready(event.end, event.time);
                self.taken_until = Some(event.begin).filter(|begin| *begin != 0).or(self.taken_until);
            }
            EventKind::Receive => {
                self.receive(event, threads.touch(event.thread, event.time), counts, finished);
            }
            EventKind::Send => self.send(event, threads.touch(event.thread, event.time), counts),
            EventKind::Transmit => self.transmit(event, threads, finished),
            EventKind::Close
            | EventKind::Leave
            | EventKind::Occupant
            | EventKind::Bytes
            | EventKind::Accept
            | EventKind::Move
            | EventKind::Throttled => {}
        }
    }

    /// A read of which only the end is known begins where the one before has ended.
    pub(super) fn with_begin(&self, event: &KernelEvent) -> KernelEvent {
        let first = self.read_until.or_else(|| self.segments.next().map(|segment| segment.begin));
        let begin = if event.begin == event.end { first.unwrap_or(event.end) } else { event.begin };
        KernelEvent { begin, ..*event }
    }

    /// Gives up what is open if bytes before `until` are still there that no read has taken: the server has taken them by
    /// calls that are not seen, and any write may answer them. Returns whether there were any.
    pub(super) fn miss_reads(&mut self, until: u32, counts: &mut JoinCounts) -> bool {
        let Some(requests) = self.segments.forget_before(until) else { return false };
        counts.unseen_reads += requests;
        counts.discarded += self.requests.len() as u64;
        self.requests.clear();
        self.writes.clear();
        self.unfinished = None;
        self.partly.doubt();
        self.is_cut = self.segments.next().is_some_and(|next| before(next.begin, until));
        self.read_until = Some(until);
        true
    }

    /// As [`TcpConnection::miss_reads`], of everything that the server has taken when last heard of.
    pub(super) fn miss_taken(&mut self, counts: &mut JoinCounts) -> bool {
        self.taken_until.is_some_and(|until| self.miss_reads(until, counts))
    }

    /// Takes note of what a read of a connection whose messages are told apart has read; `None` if it is not new, or
    /// the ends of the connection are not known.
    pub(super) fn pass_read(&mut self, event: &KernelEvent, free_since: u64) -> Option<ReadBytes> {
        if self.read_until.is_some_and(|until| !before(until, event.end)) {
            return None;
        }
        (self.read_until, self.last_read) = (Some(event.end), event.time);
        self.partly.forget();
        let (client, port) = self.ends?;
        let whole = std::iter::from_fn(|| self.segments.take_read(event.end)).collect();
        Some(ReadBytes { whole, partly: self.segments.next(), free_since, client, port })
    }

    /// Takes what a read has read after all: its messages could not be told apart.
    pub(super) fn take_read(&mut self, event: &KernelEvent, segments: &[Segment], free_since: u64) {
        self.round = self.round.wrapping_add(1);
        segments.iter().for_each(|segment| self.take_segment(segment, event, free_since));
    }

    /// Takes note of who writes to a connection whose messages are told apart; the last packet that was transmitted:
    /// its end, and when.
    pub(super) fn pass_write(&mut self, thread: u32) -> Option<(u32, u64)> {
        self.writer = Some(thread);
        self.transmitted
    }

    /// The last packet that was transmitted: where its bytes end, and when.
    pub(super) fn transmitted(&self) -> Option<(u32, u64)> {
        self.transmitted
    }

    /// When something was last read or written.
    pub(super) fn last_active(&self) -> u64 {
        self.writes.last().map_or(self.last_read, |write| write.time.max(self.last_read))
    }

    /// Whether everything is answered that was read, so that a read from here on begins with a request. The client has
    /// ended with PSH, and has had answers.
    pub(super) fn is_settled(&self, begin: u32) -> bool {
        let is_answered = !self.requests.is_empty() && !self.writes.is_empty();
        let is_whole = self.unfinished.is_none() && self.partly.is_none();
        self.read_until == Some(begin) && is_whole && is_answered
    }

    /// What was written answers what was read, as before a new round.
    pub(super) fn settle(&mut self, counts: &mut JoinCounts, finished: &mut Vec<ObservedRequest>) {
        self.end_round(finished);
        self.requests.clear();
        self.partly.forget();
        self.limit_open(counts);
    }

    /// The connection has ended, and the server has taken everything before this byte, unless it is 0.
    pub(super) fn close(
        &mut self,
        taken_until: u32,
        counts: &mut JoinCounts,
        finished: &mut Vec<ObservedRequest>,
    ) {
        if taken_until != 0 {
            self.miss_reads(taken_until, counts);
        }
        self.end_round(finished);
        counts.unanswered += self.open();
    }

    /// The observation has ended, perhaps in the middle of a round: with fewer writes than requests it is not known
    /// whether they answer all of them.
    pub(super) fn finish(&mut self, counts: &mut JoinCounts, finished: &mut Vec<ObservedRequest>) {
        // A read that is under way has taken bytes and is not reported yet.
        if self.read_until.is_none() {
            self.miss_taken(counts);
        }
        if self.writes.len() >= self.requests.len() {
            self.end_round(finished);
        }
        counts.unanswered += self.open();
    }

    /// The number of requests that were read and are not finished.
    pub(super) fn open(&self) -> u64 {
        (self.requests.len() + self.answered.len()) as u64
    }

    /// How many entries its tables have.
    pub(super) fn sizes(&self) -> TableSizes {
        TableSizes {
            open_requests: self.requests.len().max(self.answered.len()),
            segments: self.segments.len(),
            writes: self.writes.len(),
            ..TableSizes::default()
        }
    }

    /// The memory of its tables in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.segments.bytes() + self.requests.bytes() + self.writes.bytes() + self.answered.bytes()
    }

    /// As [`super::RequestJoiner::open_between`]. The end of the observation ends a round whose writes are transmitted.
    pub(super) fn open_between(&self, arrival: &Range<u64>) -> u64 {
        let is_over = self.writes.len() >= self.requests.len()
            && self.writes.last().is_some_and(|write| write.transmitted != 0);
        let read = if is_over { &[] } else { self.requests.as_slice() };
        let read = read.iter().chain(self.answered.iter().map(|answered| &answered.request));
        read.filter(|read| arrival.contains(&read.wire)).count() as u64
            + self.segments.waiting_between(arrival, self.partly.rests())
    }

    fn receive(
        &mut self,
        event: &KernelEvent,
        free_since: u64,
        counts: &mut JoinCounts,
        finished: &mut Vec<ObservedRequest>,
    ) {
        // A read that leaves the bytes in the socket.
        if self.read_until.is_some_and(|until| !before(until, event.end)) {
            return;
        }
        self.begin_round(event, finished);
        self.partly.begin_read();
        self.read_until = Some(event.end);
        let mut expected = event.begin;
        let mut is_complete = true;
        while let Some(segment) = self.segments.take_read(event.end) {
            is_complete &= !before(expected, segment.begin);
            expected = segment.end;
            self.take_segment(&segment, event, free_since);
        }
        let is_after_hole = |next: &Segment| before(expected, next.begin) && before(expected, event.end);
        let ends_in_hole = self.segments.next().as_ref().is_some_and(is_after_hole);
        if !is_complete || ends_in_hole {
            // Which of the writes to come answers what was not seen cannot be known.
            counts.unseen_arrivals += 1;
            counts.discarded += self.requests.len() as u64;
            self.requests.clear();
            self.is_cut = self.unfinished.take().is_some() || ends_in_hole;
            self.partly.doubt();
        } else {
            let begun = self.segments.next().filter(|next| before(next.begin, event.end));
            let part = begun.map(|segment| Segment { end: event.end, ..segment });
            self.partly.end_read(part.map(|part| self.read_request(&part, event, free_since)));
        }
        self.last_read = event.time;
        self.limit_open(counts);
    }

    /// Gives up what is open if it is too much: a server may read for ever without an answer.
    fn limit_open(&mut self, counts: &mut JoinCounts) {
        if self.requests.len().max(self.answered.len()) > self.limits.open_requests {
            counts.unanswered += self.open();
            self.requests.clear();
            self.answered.clear();
        }
    }

    /// A read after writes, or after a sleep, begins a new round.
    fn begin_round(&mut self, event: &KernelEvent, finished: &mut Vec<ObservedRequest>) {
        let reader = self.requests.last().or(self.unfinished.as_ref()).map(|read| read.reader);
        let has_slept = event.earlier > self.last_read;
        if !self.writes.is_empty() {
            self.end_round(finished);
            self.round = self.round.wrapping_add(1);
        } else if has_slept || reader.is_some_and(|reader| reader != event.thread) {
            self.round = self.round.wrapping_add(1);
        }
    }

    fn take_segment(&mut self, segment: &Segment, event: &KernelEvent, free_since: u64) {
        let read = self.read_request(segment, event, free_since);
        self.unfinished = (!segment.push).then_some(read);
        if segment.push {
            self.is_cut = false;
            self.requests.extend(self.partly.end_request(read));
        }
    }

    /// What was read since the last PSH, with this segment.
    fn read_request(&self, segment: &Segment, event: &KernelEvent, free_since: u64) -> ReadRequest {
        let (peer, port) = self.ends.expect("a segment has told the ends");
        let ready = if segment.ready == 0 { segment.stack } else { segment.ready };
        let beginning = self.unfinished;
        let quality = RequestQuality::default().with_those_that_hold(&[
            (segment.wire == 0, RequestQuality::WIRE_UNSEEN),
            (segment.ready == 0 || segment.is_doubtful, RequestQuality::READY_UNSEEN),
            (event.earlier == 0 || free_since == 0, RequestQuality::SWITCH_UNSEEN),
            (self.is_cut, RequestQuality::GUESSED),
            (beginning.is_some_and(|read| read.round != self.round), RequestQuality::SEVERAL_READS),
        ]);
        let bytes = beginning.map_or(0, |beginning| beginning.bytes);
        ReadRequest {
            first_wire: beginning.map_or(segment.begins(), |beginning| beginning.first_wire),
            wire: segment.begins(),
            stack: segment.stack,
            ready,
            scheduled: ready.max(event.earlier).max(free_since),
            read: event.time,
            bytes: bytes + u64::from(segment.end.wrapping_sub(segment.begin)),
            reader: event.thread,
            peer,
            port,
            round: self.round,
            quality,
        }
    }

    /// A server that answers before the client has pushed, or before it has read all of a packet.
    fn cut_short(&mut self, writer: u32) {
        let Some((read, is_divided)) = self.partly.cut_short(writer, self.unfinished.take()) else { return };
        self.requests.push(read);
        if let Some(until) = self.read_until.filter(|_| is_divided) {
            self.segments.cut_next(until);
        }
    }

    fn send(&mut self, event: &KernelEvent, free_since: u64, counts: &mut JoinCounts) {
        self.writer = Some(event.thread);
        if self.requests.is_empty() {
            self.cut_short(event.thread);
        }
        if self.requests.is_empty() {
            counts.unrequested += u64::from(self.answered.is_empty() && self.writes.is_empty());
            return;
        }
        if let Some(last) = self.writes.last_mut() {
            // The same call, or a further one after it could not write everything.
            if last.end == event.end {
                return;
            }
            if before(event.begin, last.end) {
                last.end = event.begin;
                let sent = self.transmitted.filter(|(end, _)| !before(*end, event.begin));
                last.transmitted = sent.map_or(0, |(_, time)| time);
            }
            if self.writes.len() >= self.limits.writes {
                self.extend_last_write(event);
                return;
            }
        }
        self.writes.push(AnswerWrite::new(event, free_since, self.transmitted));
    }

    fn extend_last_write(&mut self, event: &KernelEvent) {
        let awaited = awaited(event, self.transmitted);
        if let Some(last) = self.writes.last_mut() {
            (last.end, last.transmitted) = (event.end, 0);
            if last.thread == event.thread {
                last.awaited = last.awaited.max(awaited);
            }
        }
    }

    fn transmit(
        &mut self,
        event: &KernelEvent,
        threads: &mut ThreadActivity,
        finished: &mut Vec<ObservedRequest>,
    ) {
        if self.transmitted.is_some_and(|(end, _)| !before(end, event.end)) {
            return;
        }
        self.transmitted = Some((event.end, event.time));
        let in_answered = self.answered.iter_mut().map(|answered| &mut answered.last);
        for write in self.writes.iter_mut().chain(in_answered) {
            if write.transmitted == 0 && !before(event.end, write.end) {
                write.transmitted = event.time;
            }
        }
        // Bytes that no write has brought: up to Linux 6.4 sendfile is not seen.
        if let Some(last) = self.writes.last_mut()
            && before(last.end, event.end)
        {
            (last.end, last.transmitted) = (event.end, event.time);
        }
        // Other transmissions happen while acknowledgements are received, in whatever thread that interrupts.
        if self.writer == Some(event.thread) {
            threads.touch(event.thread, event.time);
        }
        self.release(finished);
    }

    /// What was written answers what was read.
    fn end_round(&mut self, finished: &mut Vec<ObservedRequest>) {
        if !self.writes.is_empty() {
            divide(&mut self.requests, &self.writes, &mut self.answered);
            self.partly.know();
            self.writes.clear();
            self.release(finished);
        }
    }

    /// Answers that are transmitted, in order.
    fn release(&mut self, finished: &mut Vec<ObservedRequest>) {
        while self.answered.front().is_some_and(|answered| answered.last.transmitted != 0) {
            finished.extend(self.answered.pop_front().as_ref().map(observed));
        }
    }
}

fn observed(AnsweredRequest { request, first, last, awaited }: &AnsweredRequest) -> ObservedRequest {
    let answer_bytes = u64::from(last.end.wrapping_sub(first.begin));
    request.observed(first, answer_bytes, *awaited, last.transmitted, RequestQuality::WITHOUT_PROTOCOL)
}

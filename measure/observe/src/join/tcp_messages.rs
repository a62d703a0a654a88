//! Requests of a connection whose protocol is known: their bytes and those of their answers are told apart, and joined
//! by the identifiers that the protocol has.
//!
//! A request passes T0 to T2 with the packet that has its last byte, and T4 when that byte has been read. Where the
//! answer begins before the request has ended, the last byte is the last one that had been read then. T5 is the write
//! that has the first byte of the answer, T6 the packet that has its last one.
//!
//! Where this begins in the middle of a connection, that may be the middle of a message, too: a client may push where none
//! ends. What passes for a first request may then have bytes of the one before, so it is a guess. And a server may owe an
//! answer to something before. Protocols without identifiers would take it for that of another request. So their requests
//! are guesses until everything is answered to the end of a request, and the reader has slept after that.
//!
//! What is kept of a connection is bounded; where it would not be, its messages are given up as untold.

use super::counts::JoinCounts;
use super::message_reads::MessageReads;
use super::message_stream::{FoundMessage, MessageStream, MessagesUntold};
use super::sizes::{TableMemory, TableSizes};
use super::tcp_round::{AnswerWrite, ReadRequest, last_awaited};
use super::tcp_segments::{ReadBytes, before};
use crate::event::KernelEvent;
use crate::request::{ObservedRequest, RequestQuality};
use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;
use wire::{ConnectionAge, Protocol, ProtocolParser, ReplyExpectation, ReplyHead, RequestHead};

/// A request whose head was read.
#[derive(Debug, Clone, Copy)]
struct OpenRequest {
    head: RequestHead,
    begin: u32,
    is_answered: bool,
}

/// Stands for the identifier of a request that is answered before all of its head was read.
const HALF_READ: u64 = u64::MAX;

/// A request that waits for its answer.
#[derive(Debug, Clone, Copy)]
struct UnansweredRequest {
    read: ReadRequest,
    /// Whether it may stay without one.
    may_be_silent: bool,
}

/// An answer that is written and not wholly transmitted.
#[derive(Debug, Clone, Copy)]
struct WrittenAnswer {
    request: ReadRequest,
    first: AnswerWrite,
    begin: u32,
    end: u32,
    /// Until when the network waited for its writer, as [`last_awaited`] says.
    awaited: u64,
}

/// What is known about a connection whose messages are told apart.
#[derive(Debug)]
pub(super) struct MessageJoin {
    limits: &'static TableSizes,
    protocol: Protocol,
    parser: Box<dyn ProtocolParser>,
    /// Whether the next message begins here, and an answer can be no other's.
    is_certain: bool,
    /// When something was last read or written.
    last_active: u64,
    requests: MessageStream<RequestHead>,
    answers: MessageStream<ReplyHead>,
    reads: MessageReads,
    open: Option<OpenRequest>,
    /// Where the request begins that was answered before all of its head was read.
    half_read: Option<u32>,
    unanswered: BTreeMap<u64, UnansweredRequest>,
    /// Where the answers begin that are not complete.
    begun: BTreeMap<u64, u32>,
    writes: VecDeque<AnswerWrite>,
    written: VecDeque<WrittenAnswer>,
}

impl MessageJoin {
    /// A connection whose next byte begins a request, and on which something was last read or written at an instant.
    pub(super) fn new(
        protocol: Protocol,
        age: ConnectionAge,
        last_active: u64,
        limits: &'static TableSizes,
    ) -> Self {
        Self {
            limits,
            protocol,
            parser: protocol.parser(age),
            is_certain: age == ConnectionAge::New,
            last_active,
            requests: MessageStream::new(),
            answers: MessageStream::new(),
            reads: MessageReads::default(),
            open: None,
            half_read: None,
            unanswered: BTreeMap::new(),
            begun: BTreeMap::new(),
            writes: VecDeque::new(),
            written: VecDeque::new(),
        }
    }

    /// The number of requests that are not finished.
    pub(super) fn open(&self) -> u64 {
        (self.unanswered.len() + self.written.len()) as u64
    }

    /// How many entries its tables have.
    pub(super) fn sizes(&self) -> TableSizes {
        TableSizes {
            open_requests: self.unanswered.len().max(self.written.len()).max(self.begun.len()),
            incomplete: self.reads.len().max(self.writes.len()),
            ..TableSizes::default()
        }
    }

    /// The memory of its tables in bytes.
    pub(super) fn bytes(&self) -> usize {
        let of_streams = self.requests.bytes() + self.answers.bytes() + self.reads.bytes();
        let of_requests = self.unanswered.bytes() + self.begun.bytes();
        size_of::<Self>() + of_streams + of_requests + self.writes.bytes() + self.written.bytes()
    }

    /// Open requests by their arrival, as [`super::RequestJoiner::open_between`] counts them.
    pub(super) fn open_between(&self, arrival: &Range<u64>) -> u64 {
        let unanswered = self.unanswered.values().map(|unanswered| &unanswered.read);
        let read = unanswered.chain(self.written.iter().map(|written| &written.request));
        read.filter(|read| arrival.contains(&read.wire)).count() as u64
    }

    /// Takes bytes that are about to be reported as read or written.
    pub(super) fn see(&mut self, is_answer: bool, begin: u32, bytes: &[u8]) {
        if is_answer {
            self.answers.see(begin, bytes);
        } else {
            self.requests.see(begin, bytes);
        }
    }

    /// A thread has read.
    pub(super) fn receive(
        &mut self,
        event: &KernelEvent,
        read: ReadBytes,
        counts: &mut JoinCounts,
    ) -> Result<(), MessagesUntold> {
        // A request of which a part is read, or which begins where it is not known, may be none.
        let is_whole = self.open.is_none() && self.requests.position() == Some(event.begin);
        let is_settled = is_whole && self.open() == 0 && self.begun.is_empty();
        self.is_certain |= is_settled && event.earlier > self.last_active;
        self.last_active = event.time;
        self.requests.begin_at(event.begin);
        self.reads.add(event, read);
        let mut found = Vec::new();
        let parser = &mut self.parser;
        let advanced = self.requests.advance(event.end, |bytes| parser.next_request(bytes), &mut found);
        for message in found {
            match message {
                FoundMessage::Begins { message, begin } => {
                    let is_answered = self.half_read == Some(begin);
                    if self.half_read.is_some() && !is_answered {
                        return Err(MessagesUntold);
                    }
                    self.open = Some(OpenRequest { head: message, begin, is_answered });
                }
                FoundMessage::Ends { end, is_last: true, .. } => {
                    self.complete(end, counts);
                    self.is_certain |= self.protocol.row().has_ids;
                }
                FoundMessage::Ends { .. } => {}
            }
        }
        self.forget_read();
        if self.sizes().are_within(self.limits) { advanced } else { Err(MessagesUntold) }
    }

    /// The request whose head was read last ends here.
    fn complete(&mut self, end: u32, counts: &mut JoinCounts) {
        let Some(OpenRequest { head, begin, is_answered }) = self.open.take() else { return };
        if is_answered || head.is_callback_reply || head.is_retransmission {
            return;
        }
        if head.reply == ReplyExpectation::Never {
            counts.one_way += 1;
            return;
        }
        let may_be_silent = head.reply == ReplyExpectation::Sometimes;
        match self.reads.request(begin, end, self.is_certain) {
            Some(read) => {
                self.unanswered.insert(head.id, UnansweredRequest { read, may_be_silent });
            }
            None => counts.unseen_arrivals += 1,
        }
    }

    /// Forgets reads and segments of requests that are complete.
    fn forget_read(&mut self) {
        if let Some(until) = self.open.map(|open| open.begin).or(self.requests.position()) {
            self.reads.forget(until);
        }
    }

    /// A thread writes. `transmitted` is the last packet until now: where it ends, and when.
    pub(super) fn send(
        &mut self,
        event: &KernelEvent,
        free_since: u64,
        transmitted: Option<(u32, u64)>,
        counts: &mut JoinCounts,
    ) -> Result<Vec<ObservedRequest>, MessagesUntold> {
        self.note_write(event, free_since, transmitted);
        self.last_active = event.time;
        self.answers.begin_at(event.begin);
        let mut found = Vec::new();
        let parser = &mut self.parser;
        let is_idle = parser.in_flight() == 0;
        let advanced = self.answers.advance(event.end, |bytes| parser.next_reply(bytes), &mut found);
        for message in found {
            match message {
                FoundMessage::Begins { message, begin } if message.is_solicited => {
                    if self.half_read.is_some() {
                        return Err(MessagesUntold);
                    }
                    self.begun.entry(message.id).or_insert(begin);
                }
                FoundMessage::Begins { begin, .. } if is_idle => self.begin_unasked(begin, counts)?,
                FoundMessage::Begins { .. } => {}
                FoundMessage::Ends { message, end, is_last: true } => {
                    self.answer(if message.is_solicited { message.id } else { HALF_READ }, end, counts);
                }
                FoundMessage::Ends { .. } => {}
            }
        }
        self.forget_written();
        if !self.sizes().are_within(self.limits) {
            return Err(MessagesUntold);
        }
        advanced?;
        Ok(transmitted.map_or(Vec::new(), |(end, time)| self.transmit(end, time)))
    }

    /// A server of HTTP answers though no head of a request is read to its end: what was read by then is the request. Which
    /// answer belongs to which request after that is not known.
    fn begin_unasked(&mut self, begin: u32, counts: &mut JoinCounts) -> Result<(), MessagesUntold> {
        if !self.protocol.row().answers_half_heads {
            return Ok(());
        }
        if self.half_read.is_some() {
            return Err(MessagesUntold);
        }
        let Some((first, until)) = self.half_head() else {
            counts.unrequested += 1;
            return Ok(());
        };
        self.half_read = Some(first);
        if let Some(read) = self.reads.request(first, until, self.is_certain) {
            self.unanswered.insert(HALF_READ, UnansweredRequest { read, may_be_silent: false });
            self.begun.insert(HALF_READ, begin);
        } else {
            counts.unseen_arrivals += 1;
        }
        Ok(())
    }

    /// The bytes of a head that was read, but not to its end.
    fn half_head(&self) -> Option<(u32, u32)> {
        let begin = self.requests.position()?;
        let end = self.reads.end()?;
        (self.open.is_none() && before(begin, end)).then_some((begin, end))
    }

    /// A call is reported again for each further packet that its bytes fill, and what a call could not write is
    /// written again.
    fn note_write(&mut self, event: &KernelEvent, free_since: u64, transmitted: Option<(u32, u64)>) {
        if let Some(last) = self.writes.back_mut() {
            if last.end == event.end {
                return;
            }
            if before(event.begin, last.end) {
                last.end = event.begin;
            }
        }
        self.writes.push_back(AnswerWrite::new(event, free_since, transmitted));
    }

    /// The answer to a request ends here.
    fn answer(&mut self, id: u64, end: u32, counts: &mut JoinCounts) {
        let Some(begin) = self.begun.remove(&id) else { return };
        let request = self.unanswered.remove(&id).map(|request| request.read).or_else(|| self.cut_short(id));
        while let Some(entry) = self.unanswered.first_entry() {
            if *entry.key() >= id || !entry.get().may_be_silent {
                break;
            }
            entry.remove();
            counts.silent += 1;
        }
        let has_begin = |write: &AnswerWrite| !before(begin, write.begin) && before(begin, write.end);
        let first = self.writes.iter().rposition(has_begin);
        match (request, first) {
            (Some(request), Some(place)) => {
                let first = self.writes[place];
                let all = self.writes.range(place..).take_while(|write| before(write.begin, end));
                let awaited = last_awaited(all);
                self.written.push_back(WrittenAnswer { request, first, begin, end, awaited });
            }
            _ => counts.unrequested += 1,
        }
    }

    /// A request that is answered before all of it was read.
    fn cut_short(&mut self, id: u64) -> Option<ReadRequest> {
        let open = self.open.filter(|open| open.head.id == id && !open.is_answered)?;
        let until = self.reads.end()?;
        self.open = Some(OpenRequest { is_answered: true, ..open });
        self.reads.request(open.begin, until, self.is_certain)
    }

    fn forget_written(&mut self) {
        let begun = self.begun.values().copied();
        let first = begun.chain(self.answers.position()).reduce(|a, b| if before(a, b) { a } else { b });
        let Some(until) = first else { return };
        while self.writes.len() > 1 && self.writes.front().is_some_and(|write| !before(until, write.end)) {
            self.writes.pop_front();
        }
    }

    /// A packet is transmitted that ends here: the requests whose answers it completes.
    pub(super) fn transmit(&mut self, end: u32, time: u64) -> Vec<ObservedRequest> {
        let mut finished = Vec::new();
        while let Some(answer) = self.written.front().filter(|answer| !before(end, answer.end)) {
            finished.push(observed(answer, time));
            self.written.pop_front();
        }
        finished
    }

    /// The number of requests that were read to a part and not answered.
    pub(super) fn read_in_part(&self) -> u64 {
        let is_open = |open: OpenRequest| !open.is_answered && open.head.reply != ReplyExpectation::Never;
        let is_half = self.half_read.is_none() && self.half_head().is_some();
        u64::from(self.open.map_or(is_half, is_open))
    }

    /// The connection has ended, and with it an answer that goes on until then.
    pub(super) fn close(
        &mut self,
        transmitted: Option<(u32, u64)>,
        counts: &mut JoinCounts,
    ) -> Vec<ObservedRequest> {
        let Some((end, time)) = transmitted else { return Vec::new() };
        if let Some((&id, _)) = self.begun.first_key_value().filter(|_| self.begun.len() == 1) {
            self.answer(id, end, counts);
        }
        self.transmit(end, time)
    }
}

fn observed(answer: &WrittenAnswer, transmitted: u64) -> ObservedRequest {
    let WrittenAnswer { request, first, begin, end, awaited } = answer;
    let is_shared = *begin != first.begin || before(*end, first.end);
    // An answer in several writes is as certain as one in one: its head says where it ends.
    let quality =
        RequestQuality::default().with_those_that_hold(&[(is_shared, RequestQuality::SHARED_ANSWER)]);
    request.observed(first, u64::from(end.wrapping_sub(*begin)), *awaited, transmitted, quality)
}

//! Calls to the NFS server in the kernel: each of its threads takes a call from a connection, answers it there, and only
//! then takes another one. So the thread says which answer belongs to which call, in whatever order answers come, though
//! no bytes are seen.
//!
//! The server reads the four bytes with the length of a call first and the rest after them, which says where calls begin.
//! Where a thread found only a part of a call, the rest may be read by another one, whose call it is then. Up to Linux
//! 6.4 only the first four bytes of an answer are reported as written: then it ends where the next answer begins.

use super::counts::JoinCounts;
use super::sizes::{TableMemory, TableSizes};
use super::tcp_round::{AnswerWrite, ReadRequest, awaited};
use super::tcp_segments::{ReadBytes, Segment, before};
use crate::event::KernelEvent;
use crate::request::{ObservedRequest, RequestQuality};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;

/// The bytes with the length of a call, and of an answer.
const MARK_BYTES: u32 = 4;

/// A call that was read, perhaps not to its end.
#[derive(Debug, Clone, Copy)]
struct ReadCall {
    begin: u32,
    end: u32,
    first_wire: Option<u64>,
    last: Option<Segment>,
    /// When the thread came to its CPU for the reads after its last sleep, and since when it was free.
    switched_in: u64,
    free_since: u64,
    time: u64,
    quality: RequestQuality,
}

/// An answer that is written and not transmitted.
#[derive(Debug, Clone, Copy)]
struct WrittenReply {
    request: ReadRequest,
    first: AnswerWrite,
    /// Whether its end is known; otherwise it is where the next one begins.
    is_whole: bool,
    end: u32,
    transmitted: u64,
}

/// What is known about a connection to the NFS server in the kernel.
#[derive(Debug)]
pub(super) struct CallJoin {
    limits: &'static TableSizes,
    /// The calls that are not answered, by the thread that has read their last byte.
    calls: BTreeMap<u32, ReadCall>,
    /// The thread that has read last.
    last_reader: Option<u32>,
    /// Segments with bytes of the last call and the byte before it.
    segments: VecDeque<Segment>,
    partly: Option<Segment>,
    written: VecDeque<WrittenReply>,
    ends: Option<(SocketAddr, u16)>,
}

impl CallJoin {
    /// A connection of which nothing is known.
    pub(super) fn new(limits: &'static TableSizes) -> Self {
        Self {
            limits,
            calls: BTreeMap::new(),
            last_reader: None,
            segments: VecDeque::new(),
            partly: None,
            written: VecDeque::new(),
            ends: None,
        }
    }

    /// How many entries its tables have.
    pub(super) fn sizes(&self) -> TableSizes {
        TableSizes {
            open_requests: self.calls.len().max(self.written.len()),
            incomplete: self.segments.len(),
            ..TableSizes::default()
        }
    }

    /// The memory of its tables in bytes.
    pub(super) fn bytes(&self) -> usize {
        size_of::<Self>() + self.calls.bytes() + self.segments.bytes() + self.written.bytes()
    }

    /// The number of calls that are not finished.
    pub(super) fn open(&self) -> u64 {
        (self.calls.len() + self.written.len()) as u64
    }

    /// Open calls by their arrival, as [`super::RequestJoiner::open_between`] counts them. An answer whose end is not known
    /// ends with what was transmitted.
    pub(super) fn open_between(&self, arrival: &Range<u64>) -> u64 {
        let read = self.calls.values().filter_map(|call| call.last.as_ref().map(Segment::begins));
        let written = self.written.iter().filter(|answer| answer.is_whole || answer.transmitted == 0);
        let arrivals = read.chain(written.map(|answer| answer.request.wire));
        arrivals.filter(|wire| arrival.contains(wire)).count() as u64
    }

    /// A thread of the server has read.
    pub(super) fn receive(&mut self, event: &KernelEvent, read: ReadBytes, counts: &mut JoinCounts) {
        self.ends = Some((read.client, read.port));
        self.segments.extend(read.whole);
        self.partly = read.partly;
        let has_begun = self.last_reader.filter(|_| !self.is_mark(event));
        let before = has_begun.and_then(|reader| self.calls.remove(&reader));
        let call = self.continued(before, event, read.free_since);
        // Threads end, and nothing says so.
        if self.calls.len() >= self.limits.open_requests && !self.calls.contains_key(&event.thread) {
            counts.unanswered += self.calls.len() as u64;
            self.calls.clear();
        }
        // The server has dropped the call that this thread had.
        counts.unanswered += u64::from(self.calls.insert(event.thread, call).is_some());
        self.last_reader = Some(event.thread);
        self.forget_segments(call.begin);
    }

    /// Whether a read is that of the length of a new call, or of its first bytes, and not of the last bytes of a call, which
    /// came late. What is in one segment would have been read at once; a client pushes where a call ends.
    fn is_mark(&self, event: &KernelEvent) -> bool {
        let last = self.last_reader.and_then(|reader| self.calls.get(&reader));
        let has_mark_only = last.is_some_and(|call| call.end.wrapping_sub(call.begin) <= MARK_BYTES);
        if event.end.wrapping_sub(event.begin) > MARK_BYTES || has_mark_only {
            return false;
        }
        let previous = self.segment_with(event.begin.wrapping_sub(1));
        previous.is_none_or(|segment| before(event.begin, segment.end) || segment.push)
    }

    fn continued(&self, begun: Option<ReadCall>, event: &KernelEvent, free_since: u64) -> ReadCall {
        let last = self.segment_with(event.end.wrapping_sub(1)).copied();
        let first_wire = || self.segment_with(event.begin).map(Segment::begins);
        let new = ReadCall {
            begin: event.begin,
            end: event.end,
            first_wire: first_wire(),
            last,
            switched_in: event.earlier,
            free_since,
            time: event.time,
            quality: RequestQuality::default(),
        };
        let Some(begun) = begun else { return new };
        let has_slept = event.earlier > begun.time || self.last_reader != Some(event.thread);
        let quality =
            if has_slept { begun.quality.with(RequestQuality::SEVERAL_READS) } else { begun.quality };
        let (switched_in, free_since) =
            if has_slept { (event.earlier, free_since) } else { (begun.switched_in, begun.free_since) };
        ReadCall { begin: begun.begin, first_wire: begun.first_wire, switched_in, free_since, quality, ..new }
    }

    fn segment_with(&self, byte: u32) -> Option<&Segment> {
        let has = |segment: &&Segment| !before(byte, segment.begin) && before(byte, segment.end);
        self.segments.iter().chain(&self.partly).find(has)
    }

    fn forget_segments(&mut self, begin: u32) {
        let first = begin.wrapping_sub(1);
        while self.segments.len() > self.limits.incomplete
            || self.segments.front().is_some_and(|segment| !before(first, segment.end))
        {
            self.segments.pop_front();
        }
    }

    /// A thread writes. `transmitted` is the last packet until now: where it ends, and when.
    pub(super) fn send(
        &mut self,
        event: &KernelEvent,
        free_since: u64,
        transmitted: Option<(u32, u64)>,
        counts: &mut JoinCounts,
    ) -> Vec<ObservedRequest> {
        let call = self.calls.remove(&event.thread);
        if call.is_none() && self.written.back().is_some_and(|last| last.first.thread == event.thread) {
            return self.extend_answer(event, transmitted);
        }
        let finished = self.end_last_answer(event.begin, transmitted);
        let Some(call) = call else {
            counts.unrequested += 1;
            return finished;
        };
        if self.last_reader == Some(event.thread) {
            self.last_reader = None;
        }
        match self.request(&call, event.thread) {
            Some(request) if self.written.len() < self.limits.open_requests => {
                self.written.push_back(written(
                    request,
                    event,
                    AnswerWrite::new(event, free_since, transmitted),
                ));
            }
            Some(_) => counts.discarded += 1,
            None => counts.unseen_arrivals += 1,
        }
        finished
    }

    /// The same call, or a further one of the same answer.
    fn extend_answer(
        &mut self,
        event: &KernelEvent,
        transmitted: Option<(u32, u64)>,
    ) -> Vec<ObservedRequest> {
        if let Some(last) = self.written.back_mut()
            && before(last.end, event.end)
        {
            last.end = event.end;
            last.transmitted = 0;
            last.first.awaited = last.first.awaited.max(awaited(event, transmitted));
        }
        Vec::new()
    }

    /// The answer before ends where this one begins.
    fn end_last_answer(&mut self, begin: u32, transmitted: Option<(u32, u64)>) -> Vec<ObservedRequest> {
        if let Some(last) = self.written.back_mut()
            && !last.is_whole
        {
            last.is_whole = true;
            last.end = begin;
            let sent = transmitted.filter(|(end, _)| !before(*end, begin));
            last.transmitted = sent.map_or(0, |(_, time)| time);
        }
        self.release()
    }

    fn request(&self, call: &ReadCall, reader: u32) -> Option<ReadRequest> {
        let (peer, port) = self.ends?;
        let first_wire = call.first_wire?;
        let last = call.last?;
        let ready = if last.ready == 0 { last.stack } else { last.ready };
        let quality = call.quality.with_those_that_hold(&[
            (last.wire == 0, RequestQuality::WIRE_UNSEEN),
            (last.ready == 0 || last.is_doubtful, RequestQuality::READY_UNSEEN),
            (call.switched_in == 0 || call.free_since == 0, RequestQuality::SWITCH_UNSEEN),
        ]);
        Some(ReadRequest {
            first_wire,
            wire: last.begins(),
            stack: last.stack,
            ready,
            scheduled: ready.max(call.switched_in).max(call.free_since),
            read: call.time,
            bytes: u64::from(call.end.wrapping_sub(call.begin)),
            reader,
            peer,
            port,
            round: 0,
            quality,
        })
    }

    /// Bytes of answers were handed to the device.
    pub(super) fn transmit(&mut self, end: u32, time: u64) -> Vec<ObservedRequest> {
        for answer in &mut self.written {
            let is_more = !answer.is_whole && !before(end, answer.end);
            if is_more || (answer.transmitted == 0 && !before(end, answer.end)) {
                answer.transmitted = time;
            }
        }
        self.release()
    }

    /// The connection or the observation has ended: what was transmitted is complete.
    pub(super) fn close(
        &mut self,
        transmitted: Option<(u32, u64)>,
        counts: &mut JoinCounts,
    ) -> Vec<ObservedRequest> {
        let end = transmitted.map_or(0, |(end, _)| end);
        let finished = self.end_last_answer(end, transmitted);
        counts.unanswered += self.open();
        finished
    }

    /// Answers that are transmitted, in order.
    fn release(&mut self) -> Vec<ObservedRequest> {
        let is_done = |answer: &WrittenReply| answer.is_whole && answer.transmitted != 0;
        let count = self.written.iter().take_while(|answer| is_done(answer)).count();
        self.written.drain(..count).map(observed).collect()
    }
}

fn written(request: ReadRequest, event: &KernelEvent, first: AnswerWrite) -> WrittenReply {
    let is_whole = event.end.wrapping_sub(event.begin) != MARK_BYTES;
    WrittenReply { request, first, is_whole, end: event.end, transmitted: 0 }
}

fn observed(answer: WrittenReply) -> ObservedRequest {
    let bytes = u64::from(answer.end.wrapping_sub(answer.first.begin));
    let WrittenReply { request, first, transmitted, .. } = answer;
    request.observed(&first, bytes, first.awaited, transmitted, RequestQuality::default())
}

//! Which writes answer which of the requests that were read before them.
//!
//! A round is what a thread reads of a connection without sleeping in between, and what is written after it until the
//! next read. Its requests are the runs of bytes that ended with PSH. The rules, in order:
//!
//! 1. Who writes is who has read, and slept between reads without writing: what was read before the sleep was not yet a
//!    request, but its beginning.
//! 2. Who writes is another thread: the writes answer the requests in turn; if there are more writes, the rest belongs to
//!    the last request.
//! 3. As many writes as requests: one each. One request: all writes. One write: it answers all.
//! 4. Otherwise the writes are divided evenly, in order, which is a guess.

use super::tcp_segments::before;
use crate::event::KernelEvent;
use crate::request::{HeldUpTime, ObservedRequest, RequestQuality, in_order};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// Bytes that were read and may be a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct ReadRequest {
    /// T0 of its first byte.
    pub(super) first_wire: u64,
    pub(super) wire: u64,
    pub(super) stack: u64,
    pub(super) ready: u64,
    pub(super) scheduled: u64,
    pub(super) read: u64,
    pub(super) bytes: u64,
    pub(super) reader: u32,
    pub(super) peer: SocketAddr,
    pub(super) port: u16,
    /// The number of the round.
    pub(super) round: u32,
    pub(super) quality: RequestQuality,
}

impl ReadRequest {
    /// The request with its answer, which has so many bytes, is first written by this call, is waited for by the network
    /// until this instant, and is wholly transmitted at this one.
    pub(super) fn observed(
        &self,
        first: &AnswerWrite,
        answer_bytes: u64,
        awaited: u64,
        transmitted: u64,
        quality: RequestQuality,
    ) -> ObservedRequest {
        let (points, moved) = in_order([
            self.wire,
            self.stack,
            self.ready,
            self.scheduled.min(self.read),
            self.read,
            self.read.max(first.free_since),
            first.time,
            transmitted,
        ]);
        let quality = self.quality.with(quality);
        let mut request = ObservedRequest {
            points,
            first_wire: self.first_wire.min(points[0]),
            last_awaited_write: 0,
            peer: self.peer,
            port: self.port,
            udp: false,
            request_bytes: self.bytes,
            answer_bytes,
            reader: self.reader,
            writer: first.thread,
            quality: if moved { quality.with(RequestQuality::MOVED) } else { quality },
            held_up: HeldUpTime::default(),
        };
        request.await_write(awaited);
        request
    }
}

/// A call that handed bytes to the kernel.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnswerWrite {
    pub(super) begin: u32,
    pub(super) end: u32,
    pub(super) time: u64,
    pub(super) thread: u32,
    /// When the thread was active before.
    pub(super) free_since: u64,
    /// When the network waited for it: everything before had been handed to the device. Otherwise 0.
    pub(super) awaited: u64,
    /// When the packet with the last byte was handed to the device, or 0.
    pub(super) transmitted: u64,
}

impl AnswerWrite {
    /// The call of an event. `transmitted` is the last packet until then: where it ends, and when.
    pub(super) fn new(event: &KernelEvent, free_since: u64, transmitted: Option<(u32, u64)>) -> Self {
        Self {
            begin: event.begin,
            end: event.end,
            time: event.time,
            thread: event.thread,
            free_since,
            awaited: awaited(event, transmitted),
            transmitted: 0,
        }
    }
}

/// The time of a write if everything before it is transmitted, otherwise 0.
pub(super) fn awaited(event: &KernelEvent, transmitted: Option<(u32, u64)>) -> u64 {
    if transmitted.is_some_and(|(end, _)| !before(end, event.begin)) { event.time } else { 0 }
}

/// Until when the network waited for the thread that has written first; 0 if only for that write.
pub(super) fn last_awaited<'a>(writes: impl IntoIterator<Item = &'a AnswerWrite>) -> u64 {
    let mut writes = writes.into_iter().peekable();
    let Some(thread) = writes.peek().map(|first| first.thread) else { return 0 };
    writes.filter(|write| write.thread == thread).map(|write| write.awaited).max().unwrap_or_default()
}

/// A request with the writes that answer it.
#[derive(Debug, Clone, Copy)]
pub(super) struct AnsweredRequest {
    pub(super) request: ReadRequest,
    pub(super) first: AnswerWrite,
    pub(super) last: AnswerWrite,
    /// Until when the network waited for its writer, as [`last_awaited`] says.
    pub(super) awaited: u64,
}

/// Divides `writes`, at least one, among `requests` and removes those that are answered, which it appends to `answered`.
pub(super) fn divide(
    requests: &mut Vec<ReadRequest>,
    writes: &[AnswerWrite],
    answered: &mut VecDeque<AnsweredRequest>,
) {
    let Some(last) = requests.last() else { return };
    if writes.iter().all(|write| write.thread == last.reader) {
        join_rounds(requests);
        evenly(requests, writes, answered);
        requests.clear();
    } else {
        let count = requests.len().min(writes.len());
        in_turn(requests.drain(..count), writes, answered);
    }
}

/// What was read before a sleep becomes the beginning of the first request of the last round.
fn join_rounds(requests: &mut Vec<ReadRequest>) {
    let round = requests.last().map_or(0, |last| last.round);
    let first_wire = requests[0].first_wire;
    let mut earlier = 0;
    let mut bytes = 0;
    for read in requests.iter().filter(|read| read.round != round) {
        earlier += 1;
        bytes += read.bytes;
    }
    if earlier == 0 {
        return;
    }
    requests.retain(|read| read.round == round);
    if let Some(first) = requests.first_mut() {
        first.first_wire = first_wire;
        first.bytes += bytes;
        first.quality = first.quality.with(RequestQuality::SEVERAL_READS);
    }
}

/// Rules 3 and 4: request i of n is answered by writes ⌊i·m/n⌋ up to before ⌊(i + 1)·m/n⌋ of m, and at least by one.
fn evenly(requests: &[ReadRequest], writes: &[AnswerWrite], all: &mut VecDeque<AnsweredRequest>) {
    let n = requests.len();
    let m = writes.len();
    let quality = match (n, m) {
        // Servers often write the head of an answer first: the next read says where the answer has ended.
        (1, _) => RequestQuality::default(),
        (_, 1) => RequestQuality::SHARED_ANSWER,
        _ if n == m => RequestQuality::default(),
        _ => RequestQuality::GUESSED,
    };
    let answer = |(i, request): (usize, &ReadRequest)| {
        let first = i * m / n;
        let last = first.max(((i + 1) * m / n).saturating_sub(1));
        answered(request, quality, &writes[first..=last])
    };
    all.extend(requests.iter().enumerate().map(answer));
}

/// Rule 2; there are at least as many writes as requests.
fn in_turn(
    requests: impl ExactSizeIterator<Item = ReadRequest>,
    writes: &[AnswerWrite],
    all: &mut VecDeque<AnsweredRequest>,
) {
    let final_request = requests.len() - 1;
    let answer = |(i, request): (usize, ReadRequest)| {
        let last = if i == final_request { writes.len() - 1 } else { i };
        let quality = if last > i { RequestQuality::SEVERAL_WRITES } else { RequestQuality::default() };
        answered(&request, quality, &writes[i..=last])
    };
    all.extend(requests.enumerate().map(answer));
}

/// The request that these writes answer, at least one.
fn answered(request: &ReadRequest, quality: RequestQuality, writes: &[AnswerWrite]) -> AnsweredRequest {
    let request = ReadRequest { quality: request.quality.with(quality), ..*request };
    let first = writes[0];
    let last = writes[writes.len() - 1];
    AnsweredRequest { request, first, last, awaited: last_awaited(writes) }
}

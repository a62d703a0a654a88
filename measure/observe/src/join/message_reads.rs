//! What was read of a connection whose messages are told apart: from its bytes to when they came and were read.

use super::sizes::TableMemory;
use super::tcp_round::ReadRequest;
use super::tcp_segments::{ReadBytes, Segment, before};
use crate::event::KernelEvent;
use crate::request::RequestQuality;
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A read of bytes of the connection.
#[derive(Debug, Clone, Copy)]
struct ConnectionRead {
    begin: u32,
    end: u32,
    time: u64,
    switched_in: u64,
    free_since: u64,
    thread: u32,
}

/// Reads and segments that may have bytes of requests which are not complete.
#[derive(Debug, Default)]
pub(super) struct MessageReads {
    reads: VecDeque<ConnectionRead>,
    segments: VecDeque<Segment>,
    partly: Option<Segment>,
    ends: Option<(SocketAddr, u16)>,
}

impl MessageReads {
    /// Takes the next read.
    pub(super) fn add(&mut self, event: &KernelEvent, read: ReadBytes) {
        self.ends = Some((read.client, read.port));
        self.segments.extend(read.whole);
        self.partly = read.partly;
        self.reads.push_back(ConnectionRead {
            begin: event.begin,
            end: event.end,
            time: event.time,
            switched_in: event.earlier,
            free_since: read.free_since,
            thread: event.thread,
        });
    }

    /// The number of entries of the larger table.
    pub(super) fn len(&self) -> usize {
        self.reads.len().max(self.segments.len())
    }

    /// The memory of both tables in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.reads.bytes() + self.segments.bytes()
    }

    /// The end of the last read, unless it is forgotten.
    pub(super) fn end(&self) -> Option<u32> {
        self.reads.back().map(|read| read.end)
    }

    /// The request of these bytes, if their arrival was seen.
    pub(super) fn request(&self, begin: u32, end: u32, is_certain: bool) -> Option<ReadRequest> {
        let first = self.segment_with(begin)?;
        let last = self.segment_with(end.wrapping_sub(1))?;
        let (peer, port) = self.ends?;
        let overlaps = |read: &&ConnectionRead| before(begin, read.end) && before(read.begin, end);
        let mut reads = self.reads.iter().filter(overlaps).peekable();
        let ready = if last.ready == 0 { last.stack } else { last.ready };
        let mut quality = RequestQuality::default();
        let mut scheduled = None;
        let mut previous: Option<ConnectionRead> = None;
        while let Some(read) = reads.next() {
            let has_slept = previous.is_some_and(|previous| read.switched_in > previous.time);
            if has_slept {
                quality = quality.with(RequestQuality::SEVERAL_READS);
            }
            if read.time >= ready || reads.peek().is_none() {
                scheduled = scheduled.or(Some(*read));
            }
            previous = Some(*read);
        }
        let scheduled = scheduled?;
        let read = previous?;
        let is_new_reader = scheduled.switched_in == 0 || scheduled.free_since == 0;
        let quality = quality.with_those_that_hold(&[
            (last.wire == 0, RequestQuality::WIRE_UNSEEN),
            (last.ready == 0 || last.is_doubtful, RequestQuality::READY_UNSEEN),
            (is_new_reader, RequestQuality::SWITCH_UNSEEN),
            (!is_certain, RequestQuality::GUESSED),
        ]);
        Some(ReadRequest {
            first_wire: first.begins(),
            wire: last.begins(),
            stack: last.stack,
            ready,
            scheduled: ready.max(scheduled.switched_in).max(scheduled.free_since),
            read: read.time,
            bytes: u64::from(end.wrapping_sub(begin)),
            reader: read.thread,
            peer,
            port,
            round: 0,
            quality,
        })
    }

    fn segment_with(&self, byte: u32) -> Option<&Segment> {
        let has = |segment: &&Segment| !before(byte, segment.begin) && before(byte, segment.end);
        self.segments.iter().chain(&self.partly).find(has)
    }

    /// Forgets reads and segments of which no byte is needed from here on.
    pub(super) fn forget(&mut self, until: u32) {
        while self.reads.front().is_some_and(|read| !before(until, read.end)) {
            self.reads.pop_front();
        }
        while self.segments.front().is_some_and(|segment| !before(until, segment.end)) {
            self.segments.pop_front();
        }
    }
}

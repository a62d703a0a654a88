//! The bytes of a TCP connection that have arrived and were not read yet, as segments.

use super::sizes::TableMemory;
use crate::event::KernelEvent;
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::ops::Range;

/// A run of bytes that arrived together. Sequence numbers wrap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) begin: u32,
    pub(super) end: u32,
    /// T0, or 0 if it was not seen.
    pub(super) wire: u64,
    /// T1 of the last packet with these bytes.
    pub(super) stack: u64,
    /// T2, or 0 as long as the bytes are not in the socket.
    pub(super) ready: u64,
    /// What `ready` says is not known.
    pub(super) is_doubtful: bool,
    pub(super) push: bool,
}

impl Segment {
    /// T0, or T1 if that was not seen.
    pub(super) fn begins(&self) -> u64 {
        if self.wire == 0 { self.stack } else { self.wire }
    }
}

/// What a read of the connection has found, besides the event itself.
#[derive(Debug)]
pub(super) struct ReadBytes {
    /// Segments of which all bytes are read now.
    pub(super) whole: Vec<Segment>,
    /// The segment of which a part may be read.
    pub(super) partly: Option<Segment>,
    /// Since when the thread was free.
    pub(super) free_since: u64,
    pub(super) client: SocketAddr,
    pub(super) port: u16,
}

/// Segments in the order of their bytes, without overlap.
#[derive(Debug, Default)]
pub(super) struct SegmentQueue {
    waiting: VecDeque<Segment>,
    /// Up to where the socket has all bytes, as far as known.
    ready_until: Option<u32>,
}

/// Whether `a` is before `b`, for numbers less than 2^31 apart.
pub(super) fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b) > u32::MAX / 2
}

impl SegmentQueue {
    /// Notes a segment. What the socket already has is a repetition and changes nothing; a segment that was seen and is
    /// not in the socket yet was seen on its way here, or was lost then, so the last sight counts. At most so many are kept:
    /// where reads are not seen, none is ever taken.
    pub(super) fn arrive(&mut self, event: &KernelEvent, kept_max: usize) {
        let is_old = |until: u32| !before(until, event.end);
        if self.ready_until.is_some_and(is_old) {
            return;
        }
        let segment = Segment {
            begin: event.begin,
            end: event.end,
            wire: event.earlier,
            stack: event.time,
            ready: 0,
            is_doubtful: false,
            push: event.push,
        };
        self.waiting.retain(|other| other.ready != 0 || !overlap(other, &segment));
        let place = self.waiting.iter().rposition(|other| before(other.begin, segment.begin));
        self.waiting.insert(place.map_or(0, |place| place + 1), segment);
        if self.waiting.len() > kept_max {
            self.waiting.pop_front();
        }
    }

    /// The socket has everything before `end`. Of what was there before the first time that this is known, only the last
    /// segment is sure to be new; the others may be repetitions, and when they were ready is not known.
    pub(super) fn ready(&mut self, end: u32, time: u64) {
        let is_first = self.ready_until.replace(end).is_none();
        let is_new = |segment: &&mut Segment| segment.ready == 0 && !before(end, segment.end);
        for segment in self.waiting.iter_mut().filter(is_new) {
            segment.is_doubtful = is_first && segment.end != end;
            segment.ready = if segment.is_doubtful { segment.stack } else { time };
        }
    }

    /// The number of requests that arrived in a time and were not read, if each ends with PSH, without the first `rests`.
    pub(super) fn waiting_between(&self, arrival: &Range<u64>, rests: usize) -> u64 {
        let ends = self.waiting.iter().filter(|segment| segment.push).skip(rests);
        ends.filter(|segment| arrival.contains(&segment.begins())).count() as u64
    }

    /// The number of segments.
    pub(super) fn len(&self) -> usize {
        self.waiting.len()
    }

    /// The memory of the segments in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.waiting.bytes()
    }

    /// The segment that is read next.
    pub(super) fn next(&self) -> Option<Segment> {
        self.waiting.front().copied()
    }

    /// Leaves what is not before `until` of the segment that is read next.
    pub(super) fn cut_next(&mut self, until: u32) {
        if let Some(next) = self.waiting.front_mut()
            && before(next.begin, until)
            && before(until, next.end)
        {
            next.begin = until;
        }
    }

    /// Forgets the segments whose bytes are all before `until`, and returns how many of them end with PSH; `None` if there
    /// are none.
    pub(super) fn forget_before(&mut self, until: u32) -> Option<u64> {
        let mut pushed = None;
        while let Some(segment) = self.take_read(until) {
            *pushed.get_or_insert(0) += u64::from(segment.push);
        }
        pushed
    }

    /// Takes the next segment whose bytes were all read, when everything before `end` was.
    pub(super) fn take_read(&mut self, end: u32) -> Option<Segment> {
        let is_read = self.waiting.front().is_some_and(|segment| !before(end, segment.end));
        if is_read { self.waiting.pop_front() } else { None }
    }
}

fn overlap(a: &Segment, b: &Segment) -> bool {
    before(a.begin, b.end) && before(b.begin, a.end)
}

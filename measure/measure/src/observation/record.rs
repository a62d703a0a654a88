//! What a live server was asked, written as a trace while it is observed.
//!
//! A request is known when it is answered, and a trace is in the order of arrival: requests wait until nobody who arrived
//! earlier is likely to be answered still. Memory is bounded by time and by number. A request that took longer than that
//! is written where the trace is by then, and counted.
//!
//! The kernel knows bytes and nothing of what they mean: a request with more bytes than its answer counts as a write of
//! these bytes, any other as a read of those of the answer.

use model::{Op, OperationError, Request};
use observe::{ObservedRequest, RequestPoint};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::path::Path;
use trace::{TraceError, TraceFormat, TraceWriter};
use units::{Bytes, Nanos};

/// How long a request waits for those that arrived before it.
const HOLD_BACK_NS: u64 = 10_000_000_000;

/// The most requests that wait, about 50 MB.
const WAITING_MAX: usize = 1 << 20;

/// A trace that was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordedTrace {
    /// The number of requests in it.
    pub requests: u64,
    /// How many of these took so long that they stand at a later arrival than they had.
    pub late: u64,
    /// How many are not in it, because the disk of a recording was full, or slower than they came.
    pub lost: u64,
}

/// A trace that is being written.
pub(super) struct TraceRecorder {
    writer: TraceWriter,
    waiting: BinaryHeap<Reverse<HeldRequest>>,
    waiting_max: usize,
    /// The latest answer, which says how late it is.
    newest: u64,
    /// The arrival of the first request, from which the trace counts.
    origin: Option<u64>,
    /// The arrival of the last one that was written.
    written: u64,
    count: u64,
    late: u64,
}

/// A request of the trace; earlier arrivals come first, and of equal ones those that were answered first.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct HeldRequest {
    arrival: u64,
    number: u64,
    op: Op,
    size: Bytes,
    response: Nanos,
}

impl TraceRecorder {
    /// Begins a trace; the name says the format.
    pub(super) fn create(path: &Path) -> Result<Self, OperationError> {
        let name = path.to_string_lossy();
        let format = TraceFormat::from_file_name(&name).ok_or_else(|| {
            OperationError::input(format_args!(
                "{name}: the name does not say which format of trace to write"
            ))
            .hint("such as FILE.parquet, FILE.csv or FILE.csv.gz; docs/reference/trace-formats.md has all formats")
        })?;
        Ok(Self {
            writer: TraceWriter::create(path, format).map_err(|error| trace_error(&error))?,
            waiting: BinaryHeap::new(),
            waiting_max: WAITING_MAX,
            newest: 0,
            origin: None,
            written: 0,
            count: 0,
            late: 0,
        })
    }

    /// Takes a request, and writes those that have waited long enough.
    pub(super) fn take(&mut self, request: &ObservedRequest) -> Result<(), OperationError> {
        let (op, size) = payload(request);
        self.waiting.push(Reverse(HeldRequest {
            arrival: request.at(RequestPoint::Wire),
            number: self.count,
            op,
            size,
            response: Nanos(request.latency_from_wire()),
        }));
        self.count += 1;
        self.newest = self.newest.max(request.at(RequestPoint::Transmitted));
        let due = self.newest.saturating_sub(HOLD_BACK_NS);
        while self.waiting.len() > self.waiting_max
            || self.waiting.peek().is_some_and(|Reverse(first)| first.arrival < due)
        {
            self.write_first()?;
        }
        Ok(())
    }

    /// Writes all that wait and puts the file in its place; without a request there is no file and no answer.
    pub(super) fn finish(mut self) -> Result<Option<RecordedTrace>, OperationError> {
        while !self.waiting.is_empty() {
            self.write_first()?;
        }
        if self.count == 0 {
            return Ok(None);
        }
        let requests = self.writer.finish().map_err(|error| trace_error(&error))?;
        Ok(Some(RecordedTrace { requests, late: self.late, lost: 0 }))
    }

    fn write_first(&mut self) -> Result<(), OperationError> {
        let Some(Reverse(first)) = self.waiting.pop() else { return Ok(()) };
        let origin = *self.origin.get_or_insert(first.arrival);
        self.late += u64::from(first.arrival < self.written.max(origin));
        self.written = self.written.max(first.arrival).max(origin);
        let request = Request {
            arrival: Nanos(self.written - origin),
            size: first.size,
            op: first.op,
            offset: None,
            response: Some(first.response),
        };
        self.writer.write(&request).map_err(|error| trace_error(&error))
    }
}

/// The direction and size of a request: the larger side is the payload.
pub(super) fn payload(request: &ObservedRequest) -> (Op, Bytes) {
    let asked = request.request_bytes;
    let answered = request.answer_bytes;
    if asked > answered { (Op::Write, Bytes(asked)) } else { (Op::Read, Bytes(answered)) }
}

fn trace_error(error: &TraceError) -> OperationError {
    OperationError::machine(error).hint(error.hint())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::observation::testing::request;

    const SECOND: u64 = 1_000_000_000;

    fn recorded(requests: &[ObservedRequest], waiting_max: usize) -> (RecordedTrace, Vec<Request>) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("live.csv");
        let mut recorder = TraceRecorder::create(&path).expect("the folder is there");
        recorder.waiting_max = waiting_max;
        requests.iter().for_each(|request| recorder.take(request).expect("there is room"));
        assert!(!path.exists(), "whole or not there");
        let done = recorder.finish().expect("there is room").expect("there are requests");
        let reader = trace::open(&path, &trace::OpenOptions::default()).expect("it is a trace");
        (done, reader.map(|request| request.expect("it is in order")).collect())
    }

    #[test]
    fn requests_are_in_the_order_of_arrival_whatever_that_of_answers() {
        // Answered in the opposite order, within five seconds.
        let mut requests: Vec<ObservedRequest> =
            (0..50).map(|n| request(SECOND + n, SECOND + n, 5 * SECOND - 10 * n)).collect();
        requests.sort_by_key(|request| request.at(RequestPoint::Transmitted));
        let (done, found) = recorded(&requests, WAITING_MAX);
        assert_eq!(done, RecordedTrace { requests: 50, late: 0, lost: 0 });
        let arrivals: Vec<u64> = found.iter().map(|request| request.arrival.0).collect();
        assert_eq!(arrivals, (0..50).collect::<Vec<_>>());
        assert_eq!(found[3].response, Some(Nanos(5 * SECOND - 30)));
    }

    #[test]
    fn the_larger_side_is_the_payload() {
        let read = request(0, 0, 10);
        let write = ObservedRequest { request_bytes: 1000, answer_bytes: 8, ..request(1, 1, 10) };
        let echo = ObservedRequest { request_bytes: 128, answer_bytes: 128, ..request(2, 2, 10) };
        let (_, found) = recorded(&[read, write, echo], WAITING_MAX);
        let found: Vec<(Op, u64)> = found.iter().map(|request| (request.op, request.size.0)).collect();
        assert_eq!(found, [(Op::Read, 100), (Op::Write, 1000), (Op::Read, 128)]);
    }

    #[test]
    fn who_took_too_long_is_written_late_and_counted() {
        let mut requests: Vec<ObservedRequest> =
            (0..40).map(|n| request(n * SECOND, n * SECOND, SECOND / 2)).collect();
        requests.push(request(SECOND / 4, SECOND / 4, 40 * SECOND));
        let (done, found) = recorded(&requests, WAITING_MAX);
        assert_eq!((done, found.len()), (RecordedTrace { requests: 41, late: 1, lost: 0 }, 41));
        let (done, found) = recorded(&requests, 3);
        assert_eq!((done, found.len()), (RecordedTrace { requests: 41, late: 1, lost: 0 }, 41));
    }

    #[test]
    fn nothing_is_no_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("live.parquet");
        let recorder = TraceRecorder::create(&path).expect("the folder is there");
        assert_eq!(recorder.finish().expect("nothing fails"), None);
        assert_eq!(std::fs::read_dir(folder.path()).expect("it is ours").count(), 0);
        for (name, part) in [("live", "format of trace"), ("live.blkparse", "not written")] {
            let refused = TraceRecorder::create(&folder.path().join(name)).err().expect("it is refused");
            assert!(refused.to_string().contains(part), "{refused}");
        }
    }
}

//! Traffic that is described by limits instead of recorded: the trace that keeps them and sends as early as they allow.
//!
//! A row is a token bucket for the requests of one operation and size: in any interval of t seconds at most
//! `burst_requests + rate_per_s · t` of them arrive. Rows of one operation and size hold at once; others add up. All
//! buckets are full at time 0, request j arrives at the latest of `(j − burst) / rate` over its rows, and the trace ends
//! after twice the time that the slowest bucket takes to fill. No traffic within the limits has more work in any interval
//! of up to half of that. The mean rate is the least rate of each operation and size, rounded up to whole requests.

use super::lines::unreadable_line;
use super::source::{SourceError, TraceSource};
use crate::error::TracePosition;
use crate::input::BufferedInput;
use crate::operation;
use crate::scan::{DelimitedFields, decimal, fixed_point};
use model::{Op, Request};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use units::{Bytes, Nanos};

/// The first line.
const HEADER: &str = "op,size_bytes,rate_per_s,burst_requests";
const EXPECTED_ROW: &str = "read or write, a size in bytes, a rate of 0.001 requests per second or more and a burst of one \
                            request or more (such as read,65536,500,200)";
const EXPECTED_FEWER: &str = "rates and bursts that come back within 5 million requests";
/// The most requests of a trace: a few bytes of limits, uploaded, must not occupy a controller for minutes.
const REQUESTS_MAX: u128 = 5_000_000;
/// The least length of a trace.
const LENGTH_MIN_NS: u128 = 1_000_000_000;
/// Nanoseconds per second, times the thousandths in which rates are counted.
const SECOND: u128 = 1_000_000_000_000;

/// Returns true if `line` is the first line of this format.
pub(super) fn is_header(line: &[u8]) -> bool {
    let line = line.trim_ascii();
    DelimitedFields::new(line, b',').map(<[u8]>::trim_ascii).eq(HEADER.split(',').map(str::as_bytes))
}

/// A token bucket of requests.
#[derive(Debug, Clone, Copy)]
struct RequestBucket {
    /// Thousandths of a request per second, at least one.
    rate: u64,
    /// Requests, at least one.
    burst: u64,
}

impl RequestBucket {
    /// Returns the time in which so many requests pass at the rate, rounded up, nanoseconds.
    fn time_of(self, requests: u64) -> u128 {
        (u128::from(requests) * SECOND).div_ceil(u128::from(self.rate))
    }
}

/// Requests of one operation and size.
#[derive(Debug)]
struct RequestKind {
    op: Op,
    size: u64,
    buckets: Vec<RequestBucket>,
    /// Number of requests in the trace.
    count: u64,
}

impl RequestKind {
    /// Returns the earliest arrival of request `number`, counted from one, nanoseconds.
    fn arrival(&self, number: u64) -> u64 {
        let waits = self.buckets.iter().map(|bucket| bucket.time_of(number.saturating_sub(bucket.burst)));
        u64::try_from(waits.max().unwrap_or(0)).expect("within the length of the trace")
    }
}

pub(super) struct LimitsSource {
    input: BufferedInput,
    line: u64,
    kinds: Vec<RequestKind>,
    /// The next request of each kind that has one: arrival, kind, number.
    next: BinaryHeap<Reverse<(u64, usize, u64)>>,
    length: Nanos,
    sent: u64,
    total: u64,
}

impl LimitsSource {
    pub(super) fn new(input: BufferedInput) -> Self {
        Self {
            input,
            line: 0,
            kinds: Vec::new(),
            next: BinaryHeap::new(),
            length: Nanos(0),
            sent: 0,
            total: 0,
        }
    }

    /// Returns an error that no reading goes on behind: the traffic without a row would have less work.
    fn wrong(&self, expected: &'static str, found: &[u8]) -> SourceError {
        let position = TracePosition::Line(self.line);
        SourceError { is_recoverable: false, ..SourceError::malformed(position, expected, found) }
    }

    /// Reads all rows.
    fn read_rows(&mut self) -> Result<(), SourceError> {
        let mut kinds: BTreeMap<(bool, u64), RequestKind> = BTreeMap::new();
        loop {
            self.line += 1;
            let line = match self.input.line() {
                Ok(Some(line)) => line.trim_ascii().to_vec(),
                Ok(None) => break,
                Err(error) => {
                    let error = unreadable_line(&mut self.input, self.line, error);
                    return Err(SourceError { is_recoverable: false, ..error });
                }
            };
            if self.line == 1 {
                if !is_header(&line) {
                    return Err(self.wrong(HEADER, &line));
                }
                continue;
            }
            if line.is_empty() {
                continue;
            }
            let (op, size, bucket) = parse_row(&line).ok_or_else(|| self.wrong(EXPECTED_ROW, &line))?;
            let new = RequestKind { op, size, buckets: Vec::new(), count: 0 };
            kinds.entry((op == Op::Write, size)).or_insert(new).buckets.push(bucket);
        }
        if kinds.is_empty() {
            return Ok(());
        }
        self.kinds = kinds.into_values().collect();
        self.count_requests().ok_or_else(|| self.wrong(EXPECTED_FEWER, b"more"))
    }

    /// Decides how long the trace is and how many requests it has; `None` if they are too many.
    fn count_requests(&mut self) -> Option<()> {
        let buckets = self.kinds.iter().flat_map(|kind| &kind.buckets);
        let refills = buckets.map(|bucket| 2 * bucket.time_of(bucket.burst));
        let length = refills.max()?.max(LENGTH_MIN_NS);
        let mut total = 0;
        for kind in &mut self.kinds {
            let slowest = kind.buckets.iter().map(|bucket| bucket.rate).min()?;
            let count = length.checked_mul(u128::from(slowest))?.div_ceil(SECOND);
            total += count;
            kind.count = u64::try_from(count).ok()?;
        }
        if total > REQUESTS_MAX {
            return None;
        }
        self.length = Nanos(u64::try_from(length).ok()?);
        self.total = u64::try_from(total).ok()?;
        for (index, kind) in self.kinds.iter().enumerate() {
            self.next.push(Reverse((kind.arrival(1), index, 1)));
        }
        Some(())
    }
}

/// Parses a row into an operation, a size and a bucket.
fn parse_row(line: &[u8]) -> Option<(Op, u64, RequestBucket)> {
    let mut fields = DelimitedFields::new(line, b',').map(<[u8]>::trim_ascii);
    let op = operation::from_name(fields.next()?)?;
    let size = decimal(fields.next()?)?;
    let rate = fixed_point(fields.next()?, 3).filter(|&rate| rate > 0)?;
    let burst = decimal(fields.next()?).filter(|&burst| burst > 0)?;
    fields.next().is_none().then_some((op, size, RequestBucket { rate, burst }))
}

impl TraceSource for LimitsSource {
    fn next(&mut self) -> Result<Option<Request>, SourceError> {
        if self.line == 0 {
            self.read_rows()?;
        }
        let Some(Reverse((arrival, index, number))) = self.next.pop() else { return Ok(None) };
        let kind = &self.kinds[index];
        if number < kind.count {
            self.next.push(Reverse((kind.arrival(number + 1), index, number + 1)));
        }
        self.sent += 1;
        // The last request shows how long the traffic lasts; it may come late.
        let arrival = if self.sent == self.total { self.length } else { Nanos(arrival) };
        Ok(Some(Request { arrival, size: Bytes(kind.size), op: kind.op, offset: None, response: None }))
    }

    fn position(&self) -> TracePosition {
        TracePosition::File
    }

    fn ignored(&self) -> u64 {
        0
    }

    fn fraction(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sent as f64 / self.total as f64)
    }
}

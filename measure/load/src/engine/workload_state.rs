//! State of one workload in a run: its next request, and the address and contents of each request.

use super::address_picker::AddressPicker;
use super::request_log::{RequestIndex, RequestRecord};
use crate::address_space::AddressSpace;
use crate::codec::IoRequest;
use crate::content::{BlockSize, ContentPattern, ContentTracker, WriteEnd, value_number};
use crate::options::LoadOptions;
use crate::report::{DataComparison, WorkloadCounters};
use crate::validate::checked_size;
use crate::workload::{DrawnLoad, LoadWorkload, OfferedLoad};
use arrivals::split_seed;
use model::{Observation, Op, Request, RequestOutcome};
use std::collections::VecDeque;
use std::ops::{Range, RangeInclusive};
use units::{Bytes, Nanos};

/// Contents are tracked in pages where all requests consist of whole pages, and in sectors otherwise.
const PAGE: u64 = 4096;
const SECTOR: u64 = 512;

pub(super) struct WorkloadState {
    pub(super) name: String,
    /// The position of the workload in the run.
    index: u32,
    upcoming: UpcomingRequests,
    /// The positions of its connections in the run.
    pub(super) connections: Range<usize>,
    /// The connection that takes the next request, counted from the start of `connections`.
    pub(super) turn: usize,
    /// Requests that wait until some connection is up.
    pub(super) waiting: VecDeque<RequestIndex>,
    picker: AddressPicker,
    requests_per_connection: Option<RangeInclusive<u32>>,
    connection_seed: u64,
    /// Number of connections made so far.
    connections_made: u64,
    has_keys: bool,
    /// Present where data is verified.
    tracker: Option<ContentTracker>,
    /// The payload of writes without verification: every write carries a prefix of it.
    unverified_payload: Vec<u8>,
    pub(super) counters: WorkloadCounters,
    /// Number of requests that failed.
    failures: u64,
    /// Why the first of them failed.
    first_failure: Option<String>,
    /// Why a connection was lost for the first time.
    pub(super) first_loss: Option<String>,
}

/// Source of the next requests.
enum UpcomingRequests {
    /// The next request of an open loop, and those behind it.
    Open { next: Option<Request>, behind: Box<dyn Iterator<Item = Request>> },
    /// Parameters of the requests of a closed loop; each answer starts one.
    Closed { in_flight: u32, op: Op, size: Bytes, sequential: bool },
}

impl UpcomingRequests {
    fn of(offered: OfferedLoad) -> Self {
        match offered {
            OfferedLoad::Open(mut requests) => {
                requests.sort_by_key(|request| request.arrival);
                Self::one_by_one(requests.into_iter())
            }
            OfferedLoad::Drawn(load) => {
                Self::one_by_one(load.requests().expect("its parameters were checked"))
            }
            OfferedLoad::Closed { in_flight, op, size, sequential } => {
                Self::Closed { in_flight, op, size, sequential }
            }
        }
    }

    fn one_by_one(mut requests: impl Iterator<Item = Request> + 'static) -> Self {
        Self::Open { next: requests.next(), behind: Box::new(requests) }
    }
}

impl WorkloadState {
    pub(super) fn new(
        index: usize,
        workload: LoadWorkload,
        space: AddressSpace,
        connections: Range<usize>,
        options: &LoadOptions,
    ) -> Self {
        let pattern = ContentPattern::new(options.seed, index);
        let has_keys = matches!(space, AddressSpace::Keys(_));
        let block_size = if has_keys { BlockSize::WholeValue } else { block_size(&workload.offered) };
        let mut unverified_payload = Vec::new();
        if !options.verify_data {
            pattern.append(&mut unverified_payload, 0, 0, largest_write(&workload.offered) as usize);
        }
        // A seed that no content pattern uses: those are split by the small indices of workloads.
        let picker_seed = split_seed(split_seed(options.seed, 1 << 32), index as u64);
        Self {
            name: workload.name,
            index: u32::try_from(index).expect("the number of workloads was checked"),
            upcoming: UpcomingRequests::of(workload.offered),
            connections,
            turn: 0,
            waiting: VecDeque::new(),
            picker: AddressPicker::new(space, picker_seed),
            requests_per_connection: workload.requests_per_connection,
            connection_seed: split_seed(picker_seed, 1 << 32),
            connections_made: 0,
            has_keys,
            tracker: options.verify_data.then(|| ContentTracker::new(pattern, block_size)),
            unverified_payload,
            counters: WorkloadCounters::default(),
            failures: 0,
            first_failure: None,
            first_loss: None,
        }
    }

    /// Draws the number of requests for the next connection; `None` without a limit.
    pub(super) fn draw_requests_per_connection(&mut self) -> Option<u32> {
        let range = self.requests_per_connection.as_ref()?;
        self.connections_made += 1;
        let count = u64::from(range.end() - range.start()) + 1;
        let drawn = split_seed(self.connection_seed, self.connections_made) % count;
        Some(range.start() + u32::try_from(drawn).expect("below a number of 32 bits"))
    }

    /// When the next request is due; `None` in a closed loop and after the last request.
    pub(super) fn next_due(&self) -> Option<Nanos> {
        match &self.upcoming {
            UpcomingRequests::Open { next, .. } => next.map(|request| request.arrival),
            UpcomingRequests::Closed { .. } => None,
        }
    }

    /// Returns the number of requests that a closed loop keeps in flight; 0 for an open loop.
    pub(super) fn closed_in_flight(&self) -> u32 {
        match self.upcoming {
            UpcomingRequests::Open { .. } => 0,
            UpcomingRequests::Closed { in_flight, .. } => in_flight,
        }
    }

    /// Takes the next request, which the generator handles at `now`.
    pub(super) fn take_next(&mut self, now: Nanos) -> RequestRecord {
        let (intended, op, size, address) = match &mut self.upcoming {
            UpcomingRequests::Open { next, behind } => {
                let taken = std::mem::replace(next, behind.next());
                let Request { arrival, op, size, offset, .. } = taken.expect("one is due");
                (arrival, op, size, self.picker.recorded_or_random(offset, checked_size(size.0)))
            }
            UpcomingRequests::Closed { op, size, sequential: true, .. } => {
                (now, *op, *size, self.picker.next_sequential(checked_size(size.0)))
            }
            UpcomingRequests::Closed { op, size, .. } => {
                (now, *op, *size, self.picker.recorded_or_random(None, checked_size(size.0)))
            }
        };
        let workload = self.index;
        let outcome = RequestOutcome::Lost;
        let sent = now.max(intended);
        let observation = Observation { workload, op, size, intended, sent, outcome };
        RequestRecord { observation, address, content_version: 0 }
    }

    /// Prepares a request for encoding. Returns the request, the content version to store in its record,
    /// and its payload, which may be built in `buffer`.
    pub(super) fn begin<'a>(
        &'a mut self,
        record: &RequestRecord,
        now: Nanos,
        buffer: &'a mut Vec<u8>,
    ) -> (IoRequest, u64, &'a [u8]) {
        let request = io_request(record);
        let address = self.content_address(request);
        buffer.clear();
        match (request.op, &mut self.tracker) {
            (Op::Read, tracker) => (request, tracker.as_ref().map_or(0, ContentTracker::version), &[]),
            (Op::Write, None) => (request, 0, &self.unverified_payload[..request.size as usize]),
            (Op::Write, Some(tracker)) => {
                let number = tracker.begin_write(address, request.size, now.0, buffer);
                (request, number, buffer)
            }
        }
    }

    /// Notes the outcome of a request that was begun, if it is a write.
    pub(super) fn end_write(&mut self, record: &RequestRecord, end: WriteEnd, now: Nanos) {
        let request = io_request(record);
        let address = self.content_address(request);
        if let (Op::Write, Some(tracker)) = (request.op, &mut self.tracker) {
            tracker.end_write(address, request.size, record.content_version, end, now.0);
        }
    }

    /// Compares the data that a request returned, if it is a read.
    pub(super) fn end_read(&mut self, record: &RequestRecord, data: &[u8]) {
        let address = self.content_address(io_request(record));
        if let (Op::Read, Some(tracker)) = (record.observation.op, &mut self.tracker) {
            tracker.end_read(address, data, record.content_version, &self.name);
        }
    }

    /// Counts a failed request and keeps the reason of the first.
    pub(super) fn count_failure(&mut self, why: impl FnOnce() -> String) {
        self.failures += 1;
        self.first_failure.get_or_insert_with(why);
    }

    /// Takes what was compared, which ends the comparison.
    pub(super) fn take_comparison(&mut self) -> DataComparison {
        self.tracker.take().map(ContentTracker::into_comparison).unwrap_or_default()
    }

    /// Returns warnings for the report, as sentences.
    pub(super) fn warnings(&self) -> Vec<String> {
        let name = &self.name;
        let WorkloadCounters { disconnects, reconnects, misses, .. } = self.counters;
        let mut warnings = Vec::new();
        if let Some(why) = &self.first_loss {
            warnings.push(format!(
                "workload {name}: connections were lost {disconnects} times and set up again {reconnects} times; the \
                 first because {why}"
            ));
        }
        if let Some(why) = &self.first_failure {
            let failures = units::plural(self.failures, "request");
            warnings.push(format!("workload {name}: {failures} failed; the first: {why}"));
        }
        if misses > 0 {
            warnings.push(format!(
                "workload {name}: no longer there: {}; give memcached more memory, or use fewer keys",
                units::plural(misses, "key")
            ));
        }
        warnings
    }

    fn content_address(&self, request: IoRequest) -> u64 {
        if self.has_keys { value_number(request.size, request.address) } else { request.address }
    }
}

/// Returns the request of a record in the form for encoding.
pub(super) fn io_request(record: &RequestRecord) -> IoRequest {
    let Observation { op, size: Bytes(size), .. } = record.observation;
    IoRequest { op, size: checked_size(size), address: record.address }
}

fn largest_write(offered: &OfferedLoad) -> u32 {
    let sizes = offered.request_sizes().into_iter();
    sizes.filter(|(op, _)| *op == Op::Write).map(|(_, size)| checked_size(size)).max().unwrap_or(0)
}

/// Pages, unless a request begins or ends inside of one.
fn block_size(offered: &OfferedLoad) -> BlockSize {
    let has_whole_pages = match offered {
        OfferedLoad::Open(requests) => {
            requests.iter().all(|request| request.size.0.is_multiple_of(PAGE) && request.offset.is_none())
        }
        OfferedLoad::Drawn(DrawnLoad { size, .. }) | OfferedLoad::Closed { size, .. } => {
            size.0.is_multiple_of(PAGE)
        }
    };
    BlockSize::Fixed(if has_whole_pages { PAGE } else { SECTOR })
}

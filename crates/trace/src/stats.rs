//! One pass over a trace, in bounded memory, to what describes it: rates, sizes, and how bursty the
//! arrivals are at which time scale.
//!
//! Counts are taken in bins aligned to the first arrival; the last, incomplete bin of each scale is left
//! out. Rates are those of the `n − 1` gaps between arrivals, so that a constant stream gives its rate
//! exactly.

mod cascade;
mod counts;
mod gaps;
mod hurst;
mod sizes;
mod timeline;

pub use cascade::Scale;
pub use counts::AtScale;
pub use gaps::GapBin;
pub use hurst::{Hurst, HurstFault};
pub use sizes::{SizeCount, Sizes};
pub use timeline::Timeline;

use cascade::Cascade;
use counts::Counts;
use gaps::Gaps;
use model::{Op, Request};
use sizes::SizeCollector;
use timeline::TimelineCollector;
use units::Nanos;

/// The scales at which peaks and dispersion are reported by name.
pub const SCALES: [Nanos; 3] = [Nanos(10_000_000), Nanos(100_000_000), Nanos(1_000_000_000)];

/// What describes a trace. Values that a short trace does not determine are `None`.
#[derive(Debug, Clone)]
pub struct Stats {
    /// Requests.
    pub count: u64,
    /// Sum of sizes in bytes.
    pub bytes: u128,
    /// First arrival, in the trace's origin.
    pub first: Nanos,
    /// Last arrival, in the trace's origin.
    pub last: Nanos,
    /// Mean rate of the gaps: `(count − 1) / (last − first)`.
    pub requests_per_sec: Option<f64>,
    /// Mean request rate times mean size.
    pub bytes_per_sec: Option<f64>,
    /// Reads out of all requests, 0 to 1.
    pub read_share: f64,
    /// Bytes read out of all bytes, 0 to 1; `None` when there are no bytes.
    pub read_share_bytes: Option<f64>,
    /// Distribution of sizes.
    pub sizes: Sizes,
    /// Squared coefficient of variation of inter-arrival times: variance over squared mean; 1 for Poisson.
    pub gap_scv: Option<f64>,
    /// Inter-arrival times in logarithmic bins, ascending; for plots.
    pub gaps: Vec<GapBin>,
    /// Peaks and dispersion at [`SCALES`].
    pub at_scales: Vec<AtScale>,
    /// Dispersion at dyadic scales, ascending; for plots.
    pub scales: Vec<Scale>,
    /// Hurst parameter of the counts, or why there is no estimate.
    pub hurst: Result<Hurst, HurstFault>,
    /// Requests with a recorded offset and with a recorded response time.
    pub with_offset: u64,
    /// Requests with a recorded response time.
    pub with_response: u64,
    /// Requests and bytes over time; for plots.
    pub timeline: Timeline,
}

/// Collects [`Stats`] request by request.
#[derive(Debug)]
pub struct Collector {
    first_and_last: Option<(Nanos, Nanos)>,
    count: u64,
    reads: u64,
    bytes: u128,
    bytes_read: u128,
    with_offset: u64,
    with_response: u64,
    gaps: Gaps,
    sizes: SizeCollector,
    counts: [Counts; SCALES.len()],
    cascade: Cascade,
    timeline: TimelineCollector,
}

impl Default for Collector {
    fn default() -> Self {
        Self {
            first_and_last: None,
            count: 0,
            reads: 0,
            bytes: 0,
            bytes_read: 0,
            with_offset: 0,
            with_response: 0,
            gaps: Gaps::default(),
            sizes: SizeCollector::default(),
            counts: SCALES.map(Counts::new),
            cascade: Cascade::default(),
            timeline: TimelineCollector::default(),
        }
    }
}

impl Collector {
    /// Takes the next request.
    ///
    /// # Panics
    /// When it arrives before its predecessor: readers have made sure of the order.
    pub fn add(&mut self, request: &Request) {
        let arrival = request.arrival;
        let (first, last) = self.first_and_last.unwrap_or((arrival, arrival));
        assert!(last <= arrival, "requests come in order of arrival");
        if self.count > 0 {
            self.gaps.add((arrival - last).0);
        }
        self.first_and_last = Some((first, arrival));
        self.count += 1;
        self.bytes += u128::from(request.size.0);
        if request.op == Op::Read {
            self.reads += 1;
            self.bytes_read += u128::from(request.size.0);
        }
        self.with_offset += u64::from(request.offset.is_some());
        self.with_response += u64::from(request.response.is_some());
        self.sizes.add(request.size.0);
        let since_first = (arrival - first).0;
        for counts in &mut self.counts {
            counts.add(since_first);
        }
        self.cascade.add(since_first);
        self.timeline.add(since_first, request.size.0);
    }

    /// The description; `None` when there was no request.
    pub fn finish(self) -> Option<Stats> {
        let (first, last) = self.first_and_last?;
        let span = (last - first).0;
        let rate = (span > 0).then(|| (self.count - 1) as f64 / (span as f64 / 1e9));
        let size_mean = self.bytes as f64 / self.count as f64;
        let scales = self.cascade.finish(span);
        Some(Stats {
            count: self.count,
            bytes: self.bytes,
            first,
            last,
            requests_per_sec: rate,
            bytes_per_sec: rate.map(|rate| rate * size_mean),
            read_share: self.reads as f64 / self.count as f64,
            read_share_bytes: (self.bytes > 0).then(|| self.bytes_read as f64 / self.bytes as f64),
            sizes: self.sizes.finish(),
            gap_scv: self.gaps.scv(),
            gaps: self.gaps.bins(),
            at_scales: self.counts.into_iter().map(|counts| counts.finish(span)).collect(),
            hurst: hurst::estimate(&scales),
            scales,
            with_offset: self.with_offset,
            with_response: self.with_response,
            timeline: self.timeline.finish(),
        })
    }
}

/// The [`Stats`] of a whole stream; `None` when it is empty.
///
/// # Errors
/// The first error of the stream.
pub fn collect<E>(requests: impl IntoIterator<Item = Result<Request, E>>) -> Result<Option<Stats>, E> {
    let mut collector = Collector::default();
    for request in requests {
        collector.add(&request?);
    }
    Ok(collector.finish())
}

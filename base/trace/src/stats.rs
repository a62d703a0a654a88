//! Statistics of a trace in one pass and bounded memory: rates, sizes, and burstiness at each time scale.
//!
//! Arrivals are counted in bins that begin with the first arrival; the last, incomplete bin of each
//! length is ignored. Rates follow from the `n − 1` times between arrivals, so that a constant stream has
//! its exact rate.

mod counts;
mod dyadic;
mod hurst;
mod interarrival;
mod moments;
mod sizes;
mod timeline;

pub use counts::BinnedCounts;
pub use dyadic::DyadicScale;
pub use hurst::{HurstError, HurstEstimate};
pub use interarrival::InterarrivalBin;
pub use sizes::{SizeCount, SizeDistribution};
pub use timeline::ArrivalTimeline;

use counts::BinCounter;
use dyadic::DyadicCascade;
use interarrival::InterarrivalTimes;
use model::{Op, Request};
use sizes::SizeCounter;
use timeline::TimelineCounter;
use units::Nanos;

/// The lengths of bins for which [`TraceStatistics::binned_counts`] reports peaks and dispersion.
pub(crate) const BIN_LENGTHS: [Nanos; 3] = [Nanos(10_000_000), Nanos(100_000_000), Nanos(1_000_000_000)];

/// The statistics of a trace. Values that a short trace does not determine are `None`.
#[derive(Debug, Clone)]
pub struct TraceStatistics {
    /// The number of requests.
    pub count: u64,
    /// The sum of all sizes in bytes.
    pub bytes: u128,
    /// The first arrival, since the trace's origin.
    pub first: Nanos,
    /// The last arrival, since the trace's origin.
    pub last: Nanos,
    /// The mean arrival rate, `(count − 1) / (last − first)`.
    pub requests_per_sec: Option<f64>,
    /// The mean arrival rate multiplied by the mean size.
    pub bytes_per_sec: Option<f64>,
    /// The share of reads among all requests, from 0 to 1.
    pub read_share: f64,
    /// The share of bytes that are read, from 0 to 1; `None` when there are no bytes.
    pub read_share_bytes: Option<f64>,
    /// Distribution of sizes.
    pub sizes: SizeDistribution,
    /// The squared coefficient of variation of inter-arrival times: variance over squared mean, 1 for a Poisson
    /// process.
    pub interarrival_scv: Option<f64>,
    /// The distribution of inter-arrival times in logarithmic bins, ascending; for plots.
    pub interarrival_bins: Vec<InterarrivalBin>,
    /// Peaks and dispersion of the arrival counts in bins of each of `BIN_LENGTHS`.
    pub binned_counts: Vec<BinnedCounts>,
    /// Dispersion of the arrival counts at dyadic scales, ascending; for plots.
    pub dyadic_scales: Vec<DyadicScale>,
    /// Hurst parameter of the arrival counts, or the reason why it cannot be estimated.
    pub hurst: Result<HurstEstimate, HurstError>,
    /// Number of requests with a recorded offset.
    pub with_offset: u64,
    /// Number of requests with a recorded response time.
    pub with_response: u64,
    /// Requests and bytes over time, for plots.
    pub timeline: ArrivalTimeline,
}

/// Computes [`TraceStatistics`] request by request.
#[derive(Debug)]
pub struct StatisticsCollector {
    first_and_last: Option<(Nanos, Nanos)>,
    count: u64,
    reads: u64,
    bytes: u128,
    bytes_read: u128,
    with_offset: u64,
    with_response: u64,
    interarrival_times: InterarrivalTimes,
    sizes: SizeCounter,
    counts: [BinCounter; BIN_LENGTHS.len()],
    cascade: DyadicCascade,
    timeline: TimelineCounter,
}

impl Default for StatisticsCollector {
    fn default() -> Self {
        Self {
            first_and_last: None,
            count: 0,
            reads: 0,
            bytes: 0,
            bytes_read: 0,
            with_offset: 0,
            with_response: 0,
            interarrival_times: InterarrivalTimes::default(),
            sizes: SizeCounter::default(),
            counts: BIN_LENGTHS.map(BinCounter::new),
            cascade: DyadicCascade::default(),
            timeline: TimelineCounter::default(),
        }
    }
}

impl StatisticsCollector {
    /// Adds the next request of the trace.
    ///
    /// # Panics
    /// When the request arrives before its predecessor. A [`TraceReader`](crate::TraceReader) never returns such a
    /// request.
    pub fn add(&mut self, request: &Request) {
        let arrival = request.arrival;
        let (first, last) = self.first_and_last.unwrap_or((arrival, arrival));
        assert!(last <= arrival, "requests come in order of arrival");
        if self.count > 0 {
            self.interarrival_times.add((arrival - last).0);
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

    /// Returns the statistics of all requests; `None` if there were none.
    pub fn finish(self) -> Option<TraceStatistics> {
        let (first, last) = self.first_and_last?;
        let span = (last - first).0;
        let rate = (span > 0).then(|| (self.count - 1) as f64 / (span as f64 / 1e9));
        let size_mean = self.bytes as f64 / self.count as f64;
        let dyadic_scales = self.cascade.finish(span);
        Some(TraceStatistics {
            count: self.count,
            bytes: self.bytes,
            first,
            last,
            requests_per_sec: rate,
            bytes_per_sec: rate.map(|rate| rate * size_mean),
            read_share: self.reads as f64 / self.count as f64,
            read_share_bytes: (self.bytes > 0).then(|| self.bytes_read as f64 / self.bytes as f64),
            sizes: self.sizes.finish(),
            interarrival_scv: self.interarrival_times.squared_variation(),
            interarrival_bins: self.interarrival_times.bins(),
            binned_counts: self.counts.into_iter().map(|counts| counts.finish(span)).collect(),
            hurst: hurst::estimate(&dyadic_scales),
            dyadic_scales,
            with_offset: self.with_offset,
            with_response: self.with_response,
            timeline: self.timeline.finish(),
        })
    }
}

/// Returns the [`TraceStatistics`] of a whole stream; `None` if it is empty.
///
/// # Errors
/// The first error that the stream returns.
pub fn collect<E>(
    requests: impl IntoIterator<Item = Result<Request, E>>,
) -> Result<Option<TraceStatistics>, E> {
    let mut collector = StatisticsCollector::default();
    for request in requests {
        collector.add(&request?);
    }
    Ok(collector.finish())
}

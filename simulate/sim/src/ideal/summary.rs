//! Latencies, slowdowns and order of the requests of a stream, in little memory, with confidence intervals.
//!
//! A stream is kept as parts: histograms of consecutive requests, in the order of completion. Parts of
//! one stream are batches: there are 16 to 31 of equal size, because whenever there are 32, neighbours
//! are merged. Alternatively, each part is an independent stream. An interval is Student's over the
//! figures of the parts; that of a percentile is over the shares of requests at or below it.
//!
//! Requests of one stream depend on each other, so an interval over requests would be too narrow. Batch
//! means (Law, Simulation Modeling and Analysis) are nearly independent if batches are much longer than
//! the queue's memory. If neighbouring batches still resemble each other beyond chance, no interval is
//! given, because it would be too narrow. Bursts that are rarer than a batch are beyond any interval from
//! one stream.

use crate::engine::{Estimate, Histogram, SLOWDOWN_UNIT};
use crate::rank::nearest_rank;
use arrivals::TimedRequest;
use units::{Nanos, Percentile};

/// The confidence of all intervals.
const CONFIDENCE: f64 = 0.95;
/// The number of parts at which each is joined with its neighbour.
const PARTS_MAX: usize = 32;
/// Requests of a part before parts are joined for the first time.
const FIRST_PART_SIZE: u64 = 64;
/// A percentile has an interval when at least this many requests are expected beyond it.
const REQUESTS_BEYOND: f64 = 100.0;
/// Up to this many requests are kept one by one, and percentiles are exact.
const EXACT_MAX: usize = 1 << 16;

/// A summary of the requests of one or several streams.
#[derive(Debug, Clone)]
pub struct Summary {
    parts: Vec<SummaryPart>,
    /// Requests of a full part; none when a stream is one part.
    part_size: Option<u64>,
    /// True if each part is a separate stream.
    independent: bool,
    /// Latency and service time of each request in nanoseconds, while there are few.
    each: Option<Vec<(u64, u64)>>,
}

/// Consecutive requests of a stream, or a whole stream.
#[derive(Debug, Clone)]
struct SummaryPart {
    latency: Histogram,
    slowdown: Histogram,
    /// Requests whose position among completions differs from that in the ideal order.
    displaced: u64,
    first_arrival: Nanos,
    last_end: Nanos,
}

impl Summary {
    /// An empty summary of one stream, in parts that allow intervals.
    pub fn of_one_stream() -> Self {
        Self { part_size: Some(FIRST_PART_SIZE), ..Self::whole() }
    }

    /// An empty summary of one stream that is a single part.
    pub(super) fn whole() -> Self {
        Self { parts: Vec::new(), part_size: None, independent: false, each: Some(Vec::new()) }
    }

    /// The summary of independent streams, from the summary of each as one part.
    pub(super) fn independent(streams: Vec<Self>) -> Self {
        let mut all = Self { independent: true, ..Self::whole() };
        for stream in streams {
            all.parts.extend(stream.parts);
            all.each = all.each.zip(stream.each).map(|(all, more)| [all, more].concat());
        }
        all.each.take_if(|each| each.len() > EXACT_MAX);
        all
    }

    /// Adds a request that is complete at `end`.
    #[inline]
    pub(super) fn record(&mut self, request: TimedRequest, end: Nanos, displaced: bool) {
        let latency = end - request.arrival;
        if let Some(each) = &mut self.each {
            each.push((latency.0, request.service.0));
            if each.len() > EXACT_MAX {
                self.each = None;
            }
        }
        let full = |part: &SummaryPart| self.part_size.is_some_and(|size| part.latency.count() >= size);
        if self.parts.last().is_none_or(full) {
            self.next_part();
        }
        let part = self.parts.last_mut().expect("there is one by now");
        part.latency.record(latency.0);
        if request.service.0 > 0 {
            let slowdown = latency.0 as f64 / request.service.0 as f64;
            // A float beyond u64 becomes the largest.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            part.slowdown.record((slowdown / SLOWDOWN_UNIT) as u64);
        }
        part.displaced += u64::from(displaced);
        part.first_arrival = part.first_arrival.min(request.arrival);
        part.last_end = part.last_end.max(end);
    }

    /// Begins a new part, after merging neighbours if there are too many.
    #[cold]
    fn next_part(&mut self) {
        if self.parts.len() == PARTS_MAX {
            let mut joined = Vec::with_capacity(PARTS_MAX);
            for pair in self.parts.chunks(2) {
                let mut part = pair[0].clone();
                pair[1..].iter().for_each(|other| part.merge(other));
                joined.push(part);
            }
            self.parts = joined;
            self.part_size = self.part_size.map(|size| 2 * size);
        }
        self.parts.push(SummaryPart::default());
    }

    /// Returns the number of summarised requests.
    pub fn count(&self) -> u64 {
        self.parts.iter().map(|part| part.latency.count()).sum()
    }

    /// The latencies of all requests.
    pub fn latencies(&self) -> Histogram {
        self.merged(&|part| &part.latency)
    }

    /// Mean latency, nanoseconds. `None` without requests, as with the other figures.
    pub fn mean(&self) -> Option<Estimate> {
        let value = self.latencies().mean()?;
        Some(self.with_interval(value, |part| part.latency.mean()))
    }

    /// A percentile of the latency by nearest rank, nanoseconds: exact for up to 65,536 requests, beyond within
    /// [`Histogram::RELATIVE_ERROR`].
    pub fn percentile(&self, percentile: Percentile) -> Option<Estimate> {
        self.quantile(percentile, 1.0, |&(latency, _)| Some(latency as f64), |part| &part.latency)
    }

    /// A percentile of latency ÷ service time, as [`Self::percentile`]; requests without service are left out.
    pub fn slowdown(&self, percentile: Percentile) -> Option<Estimate> {
        let ratio = |&(latency, service): &(u64, u64)| (service > 0).then(|| latency as f64 / service as f64);
        self.quantile(percentile, SLOWDOWN_UNIT, ratio, |part| &part.slowdown)
    }

    /// Share of requests whose position among completions differs from that in the ideal order, percent.
    pub fn displaced_pct(&self) -> Option<Estimate> {
        let value = percent(self.parts.iter().map(|part| part.displaced).sum(), self.count())?;
        Some(self.with_interval(value, |part| percent(part.displaced, part.latency.count())))
    }

    /// Requests per second from the first arrival to the last completion of each stream.
    pub fn throughput_per_s(&self) -> Option<Estimate> {
        let value = if self.independent {
            let time: f64 = self.parts.iter().map(|part| part.span().as_secs()).sum();
            self.count() as f64 / time
        } else {
            let whole = self.parts.iter().fold(SummaryPart::default(), |mut whole, part| {
                whole.merge(part);
                whole
            });
            self.count() as f64 / whole.span().as_secs()
        };
        if !value.is_finite() {
            return None;
        }
        // Batches overlap in time, so only independent streams have a throughput each.
        Some(self.with_interval(value, |part| {
            self.independent.then(|| part.latency.count() as f64 / part.span().as_secs())
        }))
    }

    /// One histogram of every part, merged.
    fn merged(&self, histogram: &impl Fn(&SummaryPart) -> &Histogram) -> Histogram {
        let mut all = Histogram::default();
        self.parts.iter().for_each(|part| all.merge(histogram(part)));
        all
    }

    /// A percentile in multiples of `unit`, from all values if they were kept, or else from histograms.
    fn quantile(
        &self,
        percentile: Percentile,
        unit: f64,
        exact: impl Fn(&(u64, u64)) -> Option<f64>,
        histogram: impl Fn(&SummaryPart) -> &Histogram,
    ) -> Option<Estimate> {
        let all = self.merged(&histogram);
        let quantile = all.percentile(percentile)?;
        let value = self.exact_quantile(percentile, exact).unwrap_or(quantile.0 as f64 * unit);
        let half_width = self.quantile_half_width(percentile, quantile, &all, histogram);
        let half_width = half_width.map_or(f64::INFINITY, |half_width| half_width * unit);
        Some(Estimate { value, half_width })
    }

    /// Returns the half-width of a percentile's interval. The share of requests at or below the percentile
    /// has an interval by parts. The percentiles at the ends of that interval are the limits here; the wider
    /// side counts for both. Percentiles of parts would be too low and too alike, because a part has few of the busy periods
    /// that make a tail.
    fn quantile_half_width(
        &self,
        percentile: Percentile,
        quantile: Nanos,
        all: &Histogram,
        histogram: impl Fn(&SummaryPart) -> &Histogram,
    ) -> Option<f64> {
        let count = all.count() as f64;
        if count * (1.0 - percentile.fraction()) < REQUESTS_BEYOND {
            return None;
        }
        let share = self.half_width(|part| {
            let histogram = histogram(part);
            Some(histogram.at_or_below(quantile.0) as f64 / histogram.count().max(1) as f64)
        })?;
        let quantile_at = |fraction: f64| all.percentile(Percentile::new(100.0 * fraction)?);
        // The lower end is not below the least value.
        let low = quantile_at((percentile.fraction() - share).max(0.5 / count))?;
        let high = quantile_at(percentile.fraction() + share)?;
        Some(high.saturating_sub(quantile).max(quantile.saturating_sub(low)).0 as f64)
    }

    /// Returns the percentile by nearest rank among all requests that have the value; `None` when they were
    /// too many to be kept.
    fn exact_quantile(
        &self,
        percentile: Percentile,
        value: impl Fn(&(u64, u64)) -> Option<f64>,
    ) -> Option<f64> {
        let mut values: Vec<f64> = self.each.as_ref()?.iter().filter_map(value).collect();
        if values.is_empty() {
            return None;
        }
        let rank = nearest_rank(percentile, values.len());
        Some(*values.select_nth_unstable_by(rank - 1, f64::total_cmp).1)
    }

    /// Attaches the interval over the figures of the parts; infinite if there is none.
    fn with_interval(&self, value: f64, figure: impl Fn(&SummaryPart) -> Option<f64>) -> Estimate {
        Estimate { value, half_width: self.half_width(figure).unwrap_or(f64::INFINITY) }
    }

    /// Returns the half-width of the interval of a mean over the full parts; `None` if there are too few or
    /// their order is not random.
    fn half_width(&self, figure: impl Fn(&SummaryPart) -> Option<f64>) -> Option<f64> {
        let full = |part: &&SummaryPart| self.part_size.is_none_or(|size| part.latency.count() >= size);
        let values: Vec<f64> = self.parts.iter().filter(full).filter_map(figure).collect();
        let enough = if self.independent { 2 } else { PARTS_MAX / 2 - 1 };
        if values.len() < enough || (!self.independent && are_correlated(&values)) {
            return None;
        }
        Some(Estimate::of(&values, CONFIDENCE)?.half_width)
    }
}

impl Default for SummaryPart {
    fn default() -> Self {
        Self {
            latency: Histogram::default(),
            slowdown: Histogram::default(),
            displaced: 0,
            first_arrival: Nanos(u64::MAX),
            last_end: Nanos::ZERO,
        }
    }
}

impl SummaryPart {
    fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.slowdown.merge(&other.slowdown);
        self.displaced += other.displaced;
        self.first_arrival = self.first_arrival.min(other.first_arrival);
        self.last_end = self.last_end.max(other.last_end);
    }

    /// The time from the first arrival to the last completion.
    fn span(&self) -> Nanos {
        self.last_end.saturating_sub(self.first_arrival)
    }
}

/// `displaced` requests of `count` in percent; `None` without requests.
fn percent(displaced: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| 100.0 * displaced as f64 / count as f64)
}

/// Returns true if neighbouring values are correlated beyond chance. For independent values the first
/// autocorrelation is about normal with variance 1/n, and exceeds 1.64 standard deviations once in twenty
/// times.
fn are_correlated(values: &[f64]) -> bool {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    squares > 0.0 && products / squares > 1.64 / n.sqrt()
}

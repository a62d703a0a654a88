//! What became of the requests of a stream, in little memory, with intervals.
//!
//! A stream is kept as parts: histograms of consecutive requests, in the order of completion. Parts of one stream are
//! batches: there are 16 to 31 of equal size, because whenever there are 32, each joins its neighbour. Or each part is
//! an independent stream. An interval is Student's over the figures of the parts; that of a percentile is over the shares
//! of requests at or below it.
//!
//! Requests of one stream depend on each other, so an interval over requests would be too narrow. Batch means (Law, Simulation Modeling and Analysis)
//! are nearly independent when batches are long beside the queue's memory.
//! Where neighbouring batches still resemble each other beyond chance, there is no interval, rather than one that is
//! too narrow. Bursts that are rarer than a batch are beyond any interval from one stream.

use crate::engine::{Estimate, Histogram, SLOWDOWN_UNIT};
use crate::nearest_rank;
use arrivals::TimedRequest;
use units::{Nanos, Percentile};

/// Of all intervals.
const CONFIDENCE: f64 = 0.95;
/// Parts are joined when there are that many.
const PARTS: usize = 32;
/// Requests of a part at first.
const PART: u64 = 64;
/// A percentile has an interval when that many requests are expected beyond.
const BEYOND: f64 = 100.0;
/// Up to that many requests are kept one by one, and percentiles are exact.
const EXACT: usize = 1 << 16;

/// What became of the requests of one or several streams.
#[derive(Debug, Clone)]
pub struct Summary {
    parts: Vec<Part>,
    /// Requests of a full part; none when a stream is one part.
    size: Option<u64>,
    independent: bool,
    /// Latency and service of each, while there are few.
    each: Option<Vec<(u64, u64)>>,
}

#[derive(Debug, Clone)]
struct Part {
    latency: Histogram,
    slowdown: Histogram,
    displaced: u64,
    first_arrival: Nanos,
    last_end: Nanos,
}

impl Summary {
    /// Of one stream, empty.
    pub fn of_one() -> Self {
        Self { size: Some(PART), ..Self::whole() }
    }

    /// Of one stream that is one part.
    pub(super) fn whole() -> Self {
        Self { parts: Vec::new(), size: None, independent: false, each: Some(Vec::new()) }
    }

    /// Of independent streams.
    pub(super) fn independent(streams: Vec<Self>) -> Self {
        let mut all = Self { independent: true, ..Self::whole() };
        for stream in streams {
            all.parts.extend(stream.parts);
            all.each = all.each.zip(stream.each).map(|(all, more)| [all, more].concat());
        }
        all.each.take_if(|each| each.len() > EXACT);
        all
    }

    #[inline]
    pub(super) fn record(&mut self, request: TimedRequest, end: Nanos, displaced: bool) {
        let latency = end - request.arrival;
        if let Some(each) = &mut self.each {
            each.push((latency.0, request.service.0));
            if each.len() > EXACT {
                self.each = None;
            }
        }
        let full = |part: &Part| self.size.is_some_and(|size| part.latency.count() >= size);
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

    #[cold]
    fn next_part(&mut self) {
        if self.parts.len() == PARTS {
            let mut joined = Vec::with_capacity(PARTS);
            for pair in self.parts.chunks(2) {
                let mut part = pair[0].clone();
                pair[1..].iter().for_each(|other| part.merge(other));
                joined.push(part);
            }
            self.parts = joined;
            self.size = self.size.map(|size| 2 * size);
        }
        self.parts.push(Part::default());
    }

    /// How many requests.
    pub fn count(&self) -> u64 {
        self.parts.iter().map(|part| part.latency.count()).sum()
    }

    /// All latencies.
    pub fn latencies(&self) -> Histogram {
        self.joined(&|part| &part.latency)
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

    /// The same of latency ÷ service; requests without service are left out.
    pub fn slowdown(&self, percentile: Percentile) -> Option<Estimate> {
        let ratio = |&(latency, service): &(u64, u64)| (service > 0).then(|| latency as f64 / service as f64);
        self.quantile(percentile, SLOWDOWN_UNIT, ratio, |part| &part.slowdown)
    }

    /// Share of requests whose position among completions is not that of the ideal order, percent.
    pub fn displaced_pct(&self) -> Option<Estimate> {
        let percent = |displaced: u64, of: u64| (of > 0).then(|| 100.0 * displaced as f64 / of as f64);
        let value = percent(self.parts.iter().map(|part| part.displaced).sum(), self.count())?;
        Some(self.with_interval(value, |part| percent(part.displaced, part.latency.count())))
    }

    /// Requests per second from the first arrival to the last completion of each stream.
    pub fn throughput_per_s(&self) -> Option<Estimate> {
        let value = if self.independent {
            let time: f64 = self.parts.iter().map(|part| part.span().as_secs()).sum();
            self.count() as f64 / time
        } else {
            let whole = self.parts.iter().fold(Part::default(), |mut whole, part| {
                whole.merge(part);
                whole
            });
            self.count() as f64 / whole.span().as_secs()
        };
        // Batches overlap in time.
        let of = |part: &Part| self.independent.then(|| part.latency.count() as f64 / part.span().as_secs());
        value.is_finite().then(|| self.with_interval(value, of))
    }

    fn joined(&self, of: &impl Fn(&Part) -> &Histogram) -> Histogram {
        let mut all = Histogram::default();
        self.parts.iter().for_each(|part| all.merge(of(part)));
        all
    }

    /// A percentile in multiples of `unit`, from all values if they were kept, or else from histograms.
    fn quantile(
        &self,
        percentile: Percentile,
        unit: f64,
        exact: impl Fn(&(u64, u64)) -> Option<f64>,
        of: impl Fn(&Part) -> &Histogram,
    ) -> Option<Estimate> {
        let all = self.joined(&of);
        let found = all.percentile(percentile)?;
        let value = self.exact(percentile, exact).unwrap_or(found.0 as f64 * unit);
        let half_width = self.reach(percentile, found, &all, of).map_or(f64::INFINITY, |reach| reach * unit);
        Some(Estimate { value, half_width })
    }

    /// How far a percentile may be from what was found: the share of requests at or below that has an interval by
    /// parts, and the percentiles at its ends are looked up. The wider side counts for both. (Percentiles of parts would
    /// be too low and too alike: a part has few of the busy periods that make a tail.)
    fn reach(
        &self,
        percentile: Percentile,
        found: Nanos,
        all: &Histogram,
        of: impl Fn(&Part) -> &Histogram,
    ) -> Option<f64> {
        let count = all.count() as f64;
        if count * (1.0 - percentile.fraction()) < BEYOND {
            return None;
        }
        let below = |part: &Part| of(part).at_or_below(found.0) as f64 / of(part).count().max(1) as f64;
        let share = self.half_width(|part| Some(below(part)))?;
        let at = |fraction: f64| all.percentile(Percentile::new(100.0 * fraction)?);
        // Below the least there is nothing to look up: as far as that.
        let low = at((percentile.fraction() - share).max(0.5 / count))?;
        let high = at(percentile.fraction() + share)?;
        Some(high.saturating_sub(found).max(found.saturating_sub(low)).0 as f64)
    }

    /// By nearest rank among all requests that have the value; `None` when they were too many to be kept.
    fn exact(&self, percentile: Percentile, of: impl Fn(&(u64, u64)) -> Option<f64>) -> Option<f64> {
        let mut values: Vec<f64> = self.each.as_ref()?.iter().filter_map(of).collect();
        if values.is_empty() {
            return None;
        }
        let rank = nearest_rank(percentile, values.len());
        Some(*values.select_nth_unstable_by(rank - 1, f64::total_cmp).1)
    }

    fn with_interval(&self, value: f64, of: impl Fn(&Part) -> Option<f64>) -> Estimate {
        Estimate { value, half_width: self.half_width(of).unwrap_or(f64::INFINITY) }
    }

    /// Of the mean over the parts that are full; `None` unless there are enough and chance explains their order.
    fn half_width(&self, of: impl Fn(&Part) -> Option<f64>) -> Option<f64> {
        let full = |part: &&Part| self.size.is_none_or(|size| part.latency.count() >= size);
        let values: Vec<f64> = self.parts.iter().filter(full).filter_map(of).collect();
        let enough = if self.independent { 2 } else { PARTS / 2 - 1 };
        if values.len() < enough || (!self.independent && resemble(&values)) {
            return None;
        }
        Some(Estimate::of(&values, CONFIDENCE)?.half_width)
    }
}

impl Default for Part {
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

impl Part {
    fn merge(&mut self, other: &Self) {
        self.latency.merge(&other.latency);
        self.slowdown.merge(&other.slowdown);
        self.displaced += other.displaced;
        self.first_arrival = self.first_arrival.min(other.first_arrival);
        self.last_end = self.last_end.max(other.last_end);
    }

    fn span(&self) -> Nanos {
        self.last_end.saturating_sub(self.first_arrival)
    }
}

/// Whether neighbouring values are correlated beyond chance: for independent ones, the first autocorrelation is about
/// normal with variance 1/n, and exceeds 1.64 standard deviations once in twenty times.
fn resemble(values: &[f64]) -> bool {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
    let products: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    squares > 0.0 && products / squares > 1.64 / n.sqrt()
}

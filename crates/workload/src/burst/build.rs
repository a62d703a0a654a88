//! From arrivals to a curve in one pass.
//!
//! In cumulative coordinates an interval (i, j) is the difference of the point *after* arrival j,
//! (t_j, work through j), and the point *before* arrival i, (t_i, work before i). Arrivals are taken in
//! blocks; a stack of segments of doubling size keeps, for each, the upper-left hull of its after-points
//! and the lower-right hull of its before-points, all in two shared arrays. Joining two segments adds the
//! intervals across the seam, a Minkowski sum of two of these hulls.
//!
//! One hull collects the intervals of the whole stream, and most of the work is skipping what it covers
//! already: a block is skipped when a few token buckets, one per chord of that hull, never rise above
//! their lines; a seam when its largest interval is below the hull at its shortest.
//!
//! O(n log n) for hulls that are small beside the trace, as those of real traces are; one more logarithm for
//! sorting what is found otherwise. Memory is the hulls of O(log n) segments.

use super::hull::{self, Point};
use super::{Arrival, BurstCurve, BurstError};
use std::mem::take;

/// Arrivals per leaf: long enough to amortise what is done per block, short enough that the buckets'
/// chords stay close to the hull.
const BLOCK: usize = 64;
/// Token buckets per block test. They run in vector lanes, and four are hidden by the latency of one.
const BUCKETS: usize = 8;
/// Slack, relative to the terms, between the floating-point bucket test and the exact hull: far above the
/// 3·BLOCK roundings of 2^-53 in a bucket, far below what would cost speed.
const SLACK: f64 = 1e-12;

/// Up to this many corners the collected hull, which real traces keep below 100, takes in what is found at
/// once; beyond, it waits for as much as it has itself, so that rebuilding stays proportional to finding.
const SMALL: usize = 1024;

/// Consecutive blocks, joined.
#[derive(Debug, Clone, Copy)]
struct Segment {
    blocks: u64,
    first: u64,
    last: u64,
    before: u64,
    after: u64,
    befores_base: usize,
    afters_base: usize,
}

/// Computes a [`BurstCurve`] from a stream of arrivals in bounded memory. The result is that of
/// [`BurstCurve::of`] on all of them, bit for bit, however the stream is cut into chunks.
#[derive(Debug, Clone, Default)]
pub struct BurstBuilder {
    /// Arrivals that do not fill a block yet.
    pending: Vec<Arrival>,
    /// Segments of decreasing size.
    segments: Vec<Segment>,
    /// Lower-right hulls of before-points by segment, axes swapped: x is work, y is time.
    befores: Vec<Point>,
    /// Upper-left hulls of after-points by segment: x is time, y is work.
    afters: Vec<Point>,
    /// Hull of (duration, work) over the intervals seen so far.
    intervals: Vec<Point>,
    /// Intervals above that hull, to be joined with it.
    found: Vec<Point>,
    count: u64,
    total: u64,
}

impl BurstBuilder {
    /// No arrivals yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds one arrival.
    ///
    /// # Errors
    /// [`BurstError::Unsorted`] or [`BurstError::Overflow`], possibly only some arrivals later; the
    /// builder is of no further use then.
    pub fn push(&mut self, arrival: Arrival) -> Result<(), BurstError> {
        self.pending.push(arrival);
        if self.pending.len() == BLOCK { self.flush() } else { Ok(()) }
    }

    /// Adds arrivals in order. Errors as [`Self::push`].
    pub fn extend(&mut self, mut arrivals: &[Arrival]) -> Result<(), BurstError> {
        if !self.pending.is_empty() {
            let (fill, rest) = arrivals.split_at(arrivals.len().min(BLOCK - self.pending.len()));
            self.pending.extend_from_slice(fill);
            if self.pending.len() < BLOCK {
                return Ok(());
            }
            self.flush()?;
            arrivals = rest;
        }
        let (blocks, rest) = arrivals.as_chunks::<BLOCK>();
        for block in blocks {
            self.block(block)?;
        }
        self.pending.extend_from_slice(rest);
        Ok(())
    }

    /// The curve of all arrivals.
    ///
    /// # Errors
    /// [`BurstError::Empty`] without arrivals, or as [`Self::push`].
    pub fn finish(mut self) -> Result<BurstCurve, BurstError> {
        self.flush()?;
        while self.segments.len() > 1 {
            self.join_last();
        }
        self.collect_all();
        let all = *self.segments.first().ok_or(BurstError::Empty)?;
        let prefix = self.afters.iter().map(|p| Point { x: p.x - all.first, y: p.y }).collect();
        let suffix =
            self.befores.iter().rev().map(|p| Point { x: all.last - p.y, y: all.after - p.x }).collect();
        Ok(BurstCurve::of_parts(
            all.first,
            all.last,
            self.total,
            self.count,
            [self.intervals, prefix, suffix],
        ))
    }

    fn flush(&mut self) -> Result<(), BurstError> {
        let mut pending = take(&mut self.pending);
        if !pending.is_empty() {
            self.block(&pending)?;
        }
        pending.clear();
        self.pending = pending;
        Ok(())
    }

    fn block(&mut self, block: &[Arrival]) -> Result<(), BurstError> {
        let segment = self.segment(block)?;
        if self.may_exceed(block, &segment) {
            self.hulls::<true>(block);
        } else {
            self.hulls::<false>(block);
        }
        self.total = segment.after;
        self.count += block.len() as u64;
        self.segments.push(segment);
        while let [.., left, right] = self.segments[..]
            && left.blocks == right.blocks
        {
            self.join_last();
        }
        Ok(())
    }

    /// Checks a block and describes it.
    fn segment(&self, block: &[Arrival]) -> Result<Segment, BurstError> {
        let mut previous = self.segments.last().map_or(0, |s| s.last);
        let first = block[0].at.0;
        let (mut sorted, mut sum) = (true, u128::from(self.total));
        for arrival in block {
            sorted &= previous <= arrival.at.0;
            previous = arrival.at.0;
            sum += u128::from(arrival.work.0);
        }
        if !sorted {
            return Err(self.unsorted(block));
        }
        Ok(Segment {
            blocks: 1,
            first,
            last: previous,
            before: self.total,
            after: u64::try_from(sum).map_err(|_| BurstError::Overflow)?,
            befores_base: self.befores.len(),
            afters_base: self.afters.len(),
        })
    }

    #[cold]
    fn unsorted(&self, block: &[Arrival]) -> BurstError {
        let mut previous = self.segments.last().map_or(0, |s| s.last);
        let goes_back = |a: &Arrival| {
            let earlier = std::mem::replace(&mut previous, a.at.0);
            a.at.0 < earlier
        };
        let index = block.iter().position(goes_back);
        BurstError::Unsorted { index: self.count + index.unwrap_or_default() as u64 }
    }

    /// Whether an interval inside the block may lie above the hull. False is certain, true is not.
    fn may_exceed(&self, block: &[Arrival], segment: &Segment) -> bool {
        let (work, span) = (segment.after - segment.before, segment.last - segment.first);
        let Some(largest) = self.intervals.first() else { return true };
        if work <= largest.y {
            return false;
        }
        // The buckets read their inputs as signed integers, which convert faster.
        work.max(span) > i64::MAX as u64 || Buckets::under(&self.intervals, span).overflow(block)
    }

    /// Appends the block's two hulls; with `SEARCH`, also finds its intervals above the collected hull.
    fn hulls<const SEARCH: bool>(&mut self, block: &[Arrival]) {
        let (befores_base, afters_base) = (self.befores.len(), self.afters.len());
        self.befores.resize(befores_base + block.len(), Point { x: 0, y: 0 });
        self.afters.resize(afters_base + block.len(), Point { x: 0, y: 0 });
        let (befores, afters) = (&mut self.befores[befores_base..], &mut self.afters[afters_base..]);
        let (mut befores_end, mut afters_end) = (0, 0);
        let mut sum = self.total;
        for arrival in block {
            befores_end = hull::extend(befores, 0, befores_end, Point { x: sum, y: arrival.at.0 });
            sum += arrival.work.0;
            let after = Point { x: arrival.at.0, y: sum };
            afters_end = hull::extend(afters, 0, afters_end, after);
            if SEARCH {
                find_ending_at(after, &befores[..befores_end], &self.intervals, &mut self.found);
            }
        }
        self.befores.truncate(befores_base + befores_end);
        self.afters.truncate(afters_base + afters_end);
        self.collect();
    }

    /// Joins the last two segments.
    fn join_last(&mut self) {
        let right = self.segments.pop().expect("there are two");
        let left = self.segments.pop().expect("there are two");
        let largest = Point { x: right.first - left.last, y: right.after - left.before };
        if !covered(&self.intervals, largest) {
            self.cross(&left, &right);
        }
        hull::join(&mut self.befores, left.befores_base, right.befores_base);
        hull::join(&mut self.afters, left.afters_base, right.afters_base);
        self.segments.push(Segment {
            blocks: left.blocks + right.blocks,
            last: right.last,
            after: right.after,
            ..left
        });
    }

    /// Collects the intervals that begin in `left` and end in `right`.
    fn cross(&mut self, left: &Segment, right: &Segment) {
        let befores = &self.befores[left.befores_base..right.befores_base];
        let afters = &self.afters[right.afters_base..];
        let seam = Point { x: left.last, y: left.after };
        let before = |k: usize| {
            let p = befores[befores.len() - 1 - k];
            Point { x: seam.x - p.y, y: seam.y - p.x }
        };
        let after = |k: usize| Point { x: afters[k].x - seam.x, y: afters[k].y - seam.y };
        let mut hint = 0;
        hull::minkowski((before, befores.len()), (after, afters.len()), |p| {
            if !hull::covers(&self.intervals, &mut hint, p) {
                self.found.push(p);
            }
        });
        self.collect();
    }

    /// Joins what was found with the hull as soon as there is enough to pay for going through all of it.
    fn collect(&mut self) {
        let size = self.intervals.len();
        if !self.found.is_empty() && (size < SMALL || self.found.len() >= size) {
            self.collect_all();
        }
    }

    fn collect_all(&mut self) {
        self.intervals.append(&mut self.found);
        self.intervals = hull::of_points(take(&mut self.intervals));
    }
}

/// Finds the intervals above the hull that end at `after`; those with the most work for their duration
/// begin at a vertex of the before-hull.
fn find_ending_at(after: Point, befores: &[Point], intervals: &[Point], found: &mut Vec<Point>) {
    let mut hint = 0;
    for before in befores.iter().rev() {
        let interval = Point { x: after.x - before.y, y: after.y - before.x };
        if !hull::covers(intervals, &mut hint, interval) {
            found.push(interval);
        }
    }
}

/// Whether one point lies on or below the chain, by binary search.
fn covered(chain: &[Point], p: Point) -> bool {
    let mut hint = chain.partition_point(|q| q.x <= p.x).saturating_sub(1);
    hull::covers(chain, &mut hint, p)
}

/// Token buckets that together prove a block harmless: bucket k drains with the slope of a chord of the
/// hull, and may not rise above the chord's intercept. Chords lie below the hull, so as long as no bucket
/// does, no interval of the block lies above it.
struct Buckets {
    slope: [f64; BUCKETS],
    limit: [f64; BUCKETS],
}

impl Buckets {
    /// Chords of the hull that cover durations up to `span`.
    fn under(chain: &[Point], span: u64) -> Self {
        // The last vertex needed: the first at or beyond the span, or the end of the hull.
        let top = chain.partition_point(|p| p.x < span).min(chain.len() - 1);
        let flat = chain[top].y as f64;
        let mut buckets = Self { slope: [0.0; BUCKETS], limit: [flat * (1.0 - SLACK); BUCKETS] };
        // Vertices from 0 to `top`, as evenly as the buckets allow; the last bucket is the flat end.
        let chords = top.min(BUCKETS - 1);
        for k in 0..chords {
            let (a, b) = (chain[top * k / chords], chain[top * (k + 1) / chords]);
            let slope = (b.y - a.y) as f64 / (b.x - a.x) as f64;
            let (height, drained) = (a.y as f64, slope * a.x as f64);
            buckets.slope[k] = slope;
            buckets.limit[k] = height - drained - SLACK * (height + drained);
        }
        buckets
    }

    /// Whether any bucket rises above its limit. Requires times and works below 2^63 in sum.
    fn overflow(&self, block: &[Arrival]) -> bool {
        let mut level = [0.0; BUCKETS];
        let mut peak = [0.0; BUCKETS];
        let mut previous = block[0].at.0;
        for arrival in block {
            let gap = (arrival.at.0 - previous).cast_signed() as f64;
            let work = arrival.work.0.cast_signed() as f64;
            previous = arrival.at.0;
            for k in 0..BUCKETS {
                let drained: f64 = level[k] - self.slope[k] * gap;
                level[k] = if drained > 0.0 { drained } else { 0.0 } + work;
                peak[k] = if peak[k] > level[k] { peak[k] } else { level[k] };
            }
        }
        (0..BUCKETS).any(|k| peak[k] > self.limit[k])
    }
}

impl BurstCurve {
    /// The curve of arrivals in order of time, on one core.
    ///
    /// # Errors
    /// [`BurstError::Empty`], [`BurstError::Unsorted`] or [`BurstError::Overflow`].
    pub fn of(arrivals: &[Arrival]) -> Result<Self, BurstError> {
        let mut builder = BurstBuilder::new();
        builder.extend(arrivals)?;
        builder.finish()
    }
}

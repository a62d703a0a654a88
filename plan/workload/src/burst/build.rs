//! Computes a curve from arrivals in one pass.
//!
//! In cumulative coordinates an interval (i, j) is the difference of the point *after* arrival j,
//! (t_j, work through j), and the point *before* arrival i, (t_i, work before i). Arrivals are processed in
//! blocks. A stack of runs of blocks, of doubling size, keeps for each run the upper-left hull of its after-points
//! and the lower-right hull of its before-points, all in two shared arrays. Joining two runs adds the
//! intervals across the seam, a Minkowski sum of two of these hulls.
//!
//! One hull collects the intervals of the whole stream, and most of the effort goes into skipping what it already
//! covers: a block is skipped when a few token buckets, one for each chord of that hull, never rise above
//! their lines; a seam is skipped when its largest interval is below the hull at its shortest.
//!
//! The time is O(n log n) for hulls that are small beside the trace, as those of real traces are, and has one more
//! logarithm for sorting otherwise. The memory is that of the hulls of O(log n) runs.

use super::hull::{self, HullPoint};
use super::{BurstCurve, BurstError, StageArrival};
use std::mem::take;

/// Arrivals per block: enough to amortise the cost of a block, and few enough that the chords of the buckets
/// stay close to the hull.
const BLOCK: usize = 64;
/// Token buckets that test a block. They run in vector lanes, and the latency of one hides four.
const BUCKETS: usize = 8;
/// The slack, relative to the terms, between the floating-point bucket test and the exact hull: far above the
/// 3·BLOCK roundings of 2^-53 in a bucket, far below what would cost speed.
const SLACK: f64 = 1e-12;

/// Up to this many corners (real traces stay below 100), the collected hull is joined with new intervals at once. A
/// larger hull waits for as many new intervals as it has corners, so that the time for rebuilding it stays
/// proportional to the number of intervals found.
const SMALL: usize = 1024;

/// Consecutive blocks that were joined.
#[derive(Debug, Clone, Copy)]
struct BlockRun {
    blocks: u64,
    first: u64,
    last: u64,
    before: u64,
    after: u64,
    befores_base: usize,
    afters_base: usize,
}

/// Computes a [`BurstCurve`] from a stream of arrivals in bounded memory. The result is that of
/// [`BurstCurve::from_arrivals`] on all of them, bit for bit, however the stream is cut into chunks.
#[derive(Debug, Clone, Default)]
pub struct BurstBuilder {
    /// The last arrivals, which do not fill a block yet.
    pending: Vec<StageArrival>,
    /// The runs of blocks, in decreasing size.
    runs: Vec<BlockRun>,
    /// The lower-right hulls of the runs' before-points, with axes swapped: x is work, y is time.
    befores: Vec<HullPoint>,
    /// The upper-left hulls of the runs' after-points: x is time, y is work.
    afters: Vec<HullPoint>,
    /// The hull of (duration, work) over the intervals so far.
    intervals: Vec<HullPoint>,
    /// Intervals above that hull that were not joined with it yet.
    found: Vec<HullPoint>,
    count: u64,
    total: u64,
}

impl BurstBuilder {
    /// Creates a builder without arrivals.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds the next arrival of the stream.
    ///
    /// # Errors
    /// [`BurstError::Unsorted`] or [`BurstError::Overflow`], possibly only some arrivals later; the
    /// builder cannot be used any further then.
    pub fn push(&mut self, arrival: StageArrival) -> Result<(), BurstError> {
        self.pending.push(arrival);
        if self.pending.len() == BLOCK { self.flush() } else { Ok(()) }
    }

    /// Adds arrivals in order of time.
    ///
    /// # Errors
    /// See [`Self::push`].
    pub fn extend(&mut self, mut arrivals: &[StageArrival]) -> Result<(), BurstError> {
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
            self.add_block(block)?;
        }
        self.pending.extend_from_slice(rest);
        Ok(())
    }

    /// The curve of all arrivals.
    ///
    /// # Errors
    /// [`BurstError::Empty`] without arrivals; otherwise see [`Self::push`].
    pub fn finish(mut self) -> Result<BurstCurve, BurstError> {
        self.flush()?;
        while self.runs.len() > 1 {
            self.join_last();
        }
        self.collect_all();
        let all = *self.runs.first().ok_or(BurstError::Empty)?;
        let prefix = self.afters.iter().map(|p| HullPoint { x: p.x - all.first, y: p.y }).collect();
        let suffix =
            self.befores.iter().rev().map(|p| HullPoint { x: all.last - p.y, y: all.after - p.x }).collect();
        Ok(BurstCurve::from_parts(
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
            self.add_block(&pending)?;
        }
        pending.clear();
        self.pending = pending;
        Ok(())
    }

    fn add_block(&mut self, block: &[StageArrival]) -> Result<(), BurstError> {
        let run = self.run_of(block)?;
        if self.may_exceed(block, &run) {
            self.add_hulls::<true>(block);
        } else {
            self.add_hulls::<false>(block);
        }
        self.total = run.after;
        self.count += block.len() as u64;
        self.runs.push(run);
        while let [.., left, right] = self.runs[..]
            && left.blocks == right.blocks
        {
            self.join_last();
        }
        Ok(())
    }

    /// Checks a block and describes it as a run of its own.
    fn run_of(&self, block: &[StageArrival]) -> Result<BlockRun, BurstError> {
        let mut previous = self.runs.last().map_or(0, |s| s.last);
        let first = block[0].at.0;
        let mut sorted = true;
        let mut sum = u128::from(self.total);
        for arrival in block {
            sorted &= previous <= arrival.at.0;
            previous = arrival.at.0;
            sum += u128::from(arrival.work.0);
        }
        if !sorted {
            return Err(self.unsorted(block));
        }
        Ok(BlockRun {
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
    fn unsorted(&self, block: &[StageArrival]) -> BurstError {
        let mut previous = self.runs.last().map_or(0, |s| s.last);
        let goes_back = |a: &StageArrival| {
            let earlier = std::mem::replace(&mut previous, a.at.0);
            a.at.0 < earlier
        };
        let index = block.iter().position(goes_back);
        BurstError::Unsorted { index: self.count + index.unwrap_or_default() as u64 }
    }

    /// Returns true if an interval inside the block may lie above the hull; `false` is certain.
    fn may_exceed(&self, block: &[StageArrival], run: &BlockRun) -> bool {
        let work = run.after - run.before;
        let span = run.last - run.first;
        let Some(largest) = self.intervals.first() else { return true };
        if work <= largest.y {
            return false;
        }
        // The buckets read their inputs as signed integers, which convert faster.
        work.max(span) > i64::MAX as u64 || ChordBuckets::on_chords(&self.intervals, span).overflow(block)
    }

    /// Appends the block's two hulls; with `SEARCH`, also finds its intervals above the collected hull.
    fn add_hulls<const SEARCH: bool>(&mut self, block: &[StageArrival]) {
        let befores_base = self.befores.len();
        let afters_base = self.afters.len();
        self.befores.resize(befores_base + block.len(), HullPoint { x: 0, y: 0 });
        self.afters.resize(afters_base + block.len(), HullPoint { x: 0, y: 0 });
        let befores = &mut self.befores[befores_base..];
        let afters = &mut self.afters[afters_base..];
        let mut befores_end = 0;
        let mut afters_end = 0;
        let mut sum = self.total;
        for arrival in block {
            befores_end = hull::extend(befores, 0, befores_end, HullPoint { x: sum, y: arrival.at.0 });
            sum += arrival.work.0;
            let after = HullPoint { x: arrival.at.0, y: sum };
            afters_end = hull::extend(afters, 0, afters_end, after);
            if SEARCH {
                find_ending_at(after, &befores[..befores_end], &self.intervals, &mut self.found);
            }
        }
        self.befores.truncate(befores_base + befores_end);
        self.afters.truncate(afters_base + afters_end);
        self.collect();
    }

    /// Joins the last two runs.
    fn join_last(&mut self) {
        let right = self.runs.pop().expect("there are two");
        let left = self.runs.pop().expect("there are two");
        let largest = HullPoint { x: right.first - left.last, y: right.after - left.before };
        if !is_covered(&self.intervals, largest) {
            self.find_across(&left, &right);
        }
        hull::join(&mut self.befores, left.befores_base, right.befores_base);
        hull::join(&mut self.afters, left.afters_base, right.afters_base);
        self.runs.push(BlockRun {
            blocks: left.blocks + right.blocks,
            last: right.last,
            after: right.after,
            ..left
        });
    }

    /// Finds the intervals above the hull that begin in `left` and end in `right`.
    fn find_across(&mut self, left: &BlockRun, right: &BlockRun) {
        let befores = &self.befores[left.befores_base..right.befores_base];
        let afters = &self.afters[right.afters_base..];
        let seam = HullPoint { x: left.last, y: left.after };
        let before = |k: usize| {
            let p = befores[befores.len() - 1 - k];
            HullPoint { x: seam.x - p.y, y: seam.y - p.x }
        };
        let after = |k: usize| HullPoint { x: afters[k].x - seam.x, y: afters[k].y - seam.y };
        let mut hint = 0;
        hull::minkowski((before, befores.len()), (after, afters.len()), |p| {
            if !hull::covers(&self.intervals, &mut hint, p) {
                self.found.push(p);
            }
        });
        self.collect();
    }

    /// Joins the intervals found with the hull once there are enough of them to pay for visiting all of it.
    fn collect(&mut self) {
        let size = self.intervals.len();
        if !self.found.is_empty() && (size < SMALL || self.found.len() >= size) {
            self.collect_all();
        }
    }

    fn collect_all(&mut self) {
        self.intervals.append(&mut self.found);
        self.intervals = hull::hull_of(take(&mut self.intervals));
    }
}

/// Finds the intervals above the hull that end at `after`; those with the most work for their duration
/// begin at a vertex of the before-hull.
fn find_ending_at(
    after: HullPoint,
    befores: &[HullPoint],
    intervals: &[HullPoint],
    found: &mut Vec<HullPoint>,
) {
    let mut hint = 0;
    for before in befores.iter().rev() {
        let interval = HullPoint { x: after.x - before.y, y: after.y - before.x };
        if !hull::covers(intervals, &mut hint, interval) {
            found.push(interval);
        }
    }
}

/// Returns true if a point lies on or below the chain, by binary search.
fn is_covered(chain: &[HullPoint], p: HullPoint) -> bool {
    let mut hint = chain.partition_point(|q| q.x <= p.x).saturating_sub(1);
    hull::covers(chain, &mut hint, p)
}

/// Token buckets that together prove that a block is harmless: bucket k drains with the slope of a chord of the
/// hull, and may not rise above the chord's intercept. Chords lie below the hull, so if no bucket rises above its
/// limit, no interval of the block lies above the hull.
struct ChordBuckets {
    slope: [f64; BUCKETS],
    limit: [f64; BUCKETS],
}

impl ChordBuckets {
    /// Buckets on chords of the hull that cover durations up to `span`.
    fn on_chords(chain: &[HullPoint], span: u64) -> Self {
        // The last vertex needed: the first at or beyond the span, or the end of the hull.
        let top = chain.partition_point(|p| p.x < span).min(chain.len() - 1);
        let flat = chain[top].y as f64;
        let mut buckets = Self { slope: [0.0; BUCKETS], limit: [flat * (1.0 - SLACK); BUCKETS] };
        // The chords divide the vertices up to `top` as evenly as possible; the last bucket is the flat end.
        let chords = top.min(BUCKETS - 1);
        for k in 0..chords {
            let a = chain[top * k / chords];
            let b = chain[top * (k + 1) / chords];
            let slope = (b.y - a.y) as f64 / (b.x - a.x) as f64;
            let height = a.y as f64;
            let drained = slope * a.x as f64;
            buckets.slope[k] = slope;
            buckets.limit[k] = height - drained - SLACK * (height + drained);
        }
        buckets
    }

    /// Returns true if any bucket exceeds its limit. Requires sums of times and works below 2^63.
    fn overflow(&self, block: &[StageArrival]) -> bool {
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
    /// Computes the curve of arrivals in order of time, on one core.
    ///
    /// # Errors
    /// [`BurstError::Empty`], [`BurstError::Unsorted`] or [`BurstError::Overflow`].
    pub fn from_arrivals(arrivals: &[StageArrival]) -> Result<Self, BurstError> {
        let mut builder = BurstBuilder::new();
        builder.extend(arrivals)?;
        builder.finish()
    }
}

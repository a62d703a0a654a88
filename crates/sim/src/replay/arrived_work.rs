//! Where in an alignment latencies can be longer than budgets: elsewhere nothing needs to be replayed.
//!
//! The bucket of [`IdleInstants`](super::idle::IdleInstants), into which requests pour their work at all stages and which
//! drains at rate 1, bounds the unfinished work from above. Time is cut into cells of c nanoseconds. With a level of at
//! most L at the beginning of a cell in which the work w arrives, the level at its end is at most `max(L − c, 0) + w`; and
//! when L + w < c the bucket, hence the system, is empty at some instant of the cell. A request has left by the next such
//! instant after its arrival, and until then as much work is done as time passes. So the latencies of those that arrive
//! between the idle instants of one such cell, k, and the next one, l, are at most (l + 1 − k)·c, and at most the work that
//! arrives in the cells from k to l; only where both exceed the budget, the requests have to be replayed, from the idle
//! instant of cell k on. All that holds whatever the priorities within a band and those before it.
//!
//! The work is kept by band. A stream that comes adds its own work, one that goes takes it away, so that what is known
//! of the others is kept. All in integers: a bound is never below the exact value.

use super::trace::ReplayTrace;
use super::work_bucket::work_of_all_stages;
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A band has at most so many cells.
const CELLS_MAX: u64 = 1 << 18;
/// The shortest cell, as a power of two: 2¹⁸ ns, a quarter of a millisecond.
const CELL_BITS_MIN: u32 = 18;
/// A budget has at least this many cells, as a power of two, unless they would be too many.
const CELL_BITS_BELOW_BAND: u32 = 4;
/// Runs with a shorter gap between them are one, nanoseconds.
const GAP_MIN: u64 = 1 << 25;

/// A stream whose work arrives.
#[derive(Debug, Clone)]
pub(super) struct ArrivingStream {
    pub(super) trace: ReplayTrace,
    /// When its trace begins after the window opens, nanoseconds.
    pub(super) shift: u64,
    pub(super) band: u32,
}

impl ArrivingStream {
    /// Equal for streams whose work is the same.
    fn key(&self) -> (u32, usize, u64) {
        (self.band, self.trace.address(), self.shift)
    }
}

/// Arrivals among which there may be a late one; nanoseconds from the beginning of the cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BusyRun {
    /// When the arrivals begin: there is an instant at which the system is idle within a cell from here.
    pub(super) first: u64,
    /// An upper bound of the unfinished work at `first`; `None` where the first arrivals are not known to see an idle instant
    /// within a cell.
    pub(super) level: Option<u64>,
    /// The end of the arrivals, exclusive.
    pub(super) end: u64,
}

/// A band at the instant where the cells begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct BandStart {
    pub(super) band: u32,
    /// The latency above which a request of the band is late, nanoseconds; `None` where nobody is.
    pub(super) threshold: Option<u64>,
    /// An upper bound of the unfinished work of the band and those before it, nanoseconds.
    pub(super) level: u64,
}

/// The time that is looked at, nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct CellSpan {
    /// From the first cell until the window opens.
    pub(super) before: u64,
    /// From the opening of the window until the last cell ends.
    pub(super) after: u64,
}

/// The work that arrives in an alignment, by cells of time.
#[derive(Debug, Clone, Default)]
pub(super) struct ArrivedWork {
    span: CellSpan,
    /// Whose work is in the cells, sorted by key.
    streams: Vec<ArrivingStream>,
    /// The work that arrives in each cell by band, nanoseconds.
    cells: BTreeMap<u32, Vec<u64>>,
    /// The work of a band and those before it in each cell.
    sums: Vec<u64>,
}

impl ArrivedWork {
    /// How much time the cells cover.
    pub(super) fn span(&self) -> CellSpan {
        self.span
    }

    /// Forgets all streams and their work.
    pub(super) fn clear(&mut self, span: CellSpan) {
        if self.span == span {
            self.cells.values_mut().for_each(|cells| cells.fill(0));
        } else {
            self.cells.clear();
        }
        self.streams.clear();
        self.span = span;
    }

    /// Takes away the work of streams that are not among `streams`, and adds that of new ones.
    pub(super) fn follow(&mut self, mut streams: Vec<ArrivingStream>) {
        streams.sort_by_key(ArrivingStream::key);
        let old = std::mem::take(&mut self.streams);
        let (gone, come) = differences(&old, &streams);
        if gone.len() + come.len() > streams.len() {
            self.cells.values_mut().for_each(|cells| cells.fill(0));
            streams.iter().for_each(|stream| self.pour::<true>(stream));
        } else {
            gone.into_iter().for_each(|stream| self.pour::<false>(stream));
            come.into_iter().for_each(|stream| self.pour::<true>(stream));
        }
        self.streams = streams;
    }

    /// Adds the work of a stream to the cells of its arrivals, or takes it away.
    fn pour<const ADD: bool>(&mut self, stream: &ArrivingStream) {
        let bits = self.cell_bits(stream.band);
        let length = self.span.before + self.span.after;
        let count = usize::try_from(length.div_ceil(1 << bits)).expect("bounded by the length of cells");
        let cells = self.cells.entry(stream.band).or_default();
        cells.resize(count, 0);
        let (jobs, period) = (stream.trace.jobs(), stream.trace.period().0);
        // The instant of the trace at which the cells begin, in the second period.
        let begin = 2 * period - (self.span.before + stream.shift) % period;
        let position = stream.trace.position(begin);
        let job_count = jobs.len() as u64;
        let mut base = position / job_count * period;
        let mut jobs_left = &jobs[usize::try_from(position % job_count).expect("an index")..];
        loop {
            for job in jobs_left {
                let at = base + job.arrival.0 - begin;
                if at >= length {
                    return;
                }
                let cell = &mut cells[usize::try_from(at >> bits).expect("an index")];
                let work = work_of_all_stages(job);
                *cell = if ADD { *cell + work } else { *cell - work };
            }
            jobs_left = jobs;
            base += period;
        }
    }

    /// The length of a cell of a band, as a power of two.
    fn cell_bits(&self, band: u32) -> u32 {
        let length = self.span.before + self.span.after;
        let few = length.div_ceil(CELLS_MAX).next_power_of_two().ilog2();
        band.saturating_sub(CELL_BITS_BELOW_BAND).max(CELL_BITS_MIN).max(few)
    }

    /// The runs of arrivals up to `close` outside of which no latency of a band exceeds its threshold, nanoseconds, for each
    /// band in ascending order.
    pub(super) fn busy_runs(&mut self, bands: &[BandStart], close: u64) -> Vec<Vec<BusyRun>> {
        let mut sums = std::mem::take(&mut self.sums);
        sums.clear();
        let (mut bits, mut all_runs) = (0, Vec::with_capacity(bands.len()));
        for &BandStart { band, threshold, level } in bands {
            let new_bits = self.cell_bits(band);
            let coarser = if sums.is_empty() { 0 } else { new_bits - bits };
            add_cells(&mut sums, coarser, &self.cells[&band]);
            bits = new_bits;
            let runs = threshold.map(|threshold| busy_runs(&sums, bits, (close, level), threshold));
            all_runs.push(runs.unwrap_or_default());
        }
        self.sums = sums;
        all_runs
    }
}

/// The streams that are only among the old ones and those that are only among the new ones; both are sorted by key.
fn differences<'s>(
    old: &'s [ArrivingStream],
    new: &'s [ArrivingStream],
) -> (Vec<&'s ArrivingStream>, Vec<&'s ArrivingStream>) {
    let (mut gone, mut come) = (Vec::new(), Vec::new());
    let (mut old, mut new) = (old.iter().peekable(), new.iter().peekable());
    while let (Some(a), Some(b)) = (old.peek(), new.peek()) {
        match a.key().cmp(&b.key()) {
            Ordering::Less => gone.extend(old.next()),
            Ordering::Greater => come.extend(new.next()),
            Ordering::Equal => {
                old.next();
                new.next();
            }
        }
    }
    gone.extend(old);
    come.extend(new);
    (gone, come)
}

/// Makes cells 2^`coarser` times as long, and adds others of that length.
fn add_cells(sums: &mut Vec<u64>, coarser: u32, cells: &[u64]) {
    if coarser > 0 {
        let group = 1 << coarser;
        let count = sums.len().div_ceil(group);
        for index in 0..count {
            let end = ((index + 1) * group).min(sums.len());
            sums[index] = sums[index * group..end].iter().sum();
        }
        sums.truncate(count);
    }
    sums.resize(cells.len(), 0);
    sums.iter_mut().zip(cells).for_each(|(sum, cell)| *sum += cell);
}

/// The runs of arrivals up to `close` outside of which no latency exceeds `threshold`; `level` bounds the unfinished work at
/// the beginning.
fn busy_runs(cells: &[u64], bits: u32, (close, mut level): (u64, u64), threshold: u64) -> Vec<BusyRun> {
    let cell = 1u64 << bits;
    let mut runs: Vec<BusyRun> = Vec::new();
    // The last cell with an idle instant, and the level where it begins.
    let (mut last_idle, mut level_there) = (0u64, (level == 0).then_some(0));
    // The work that was there or has arrived since the beginning of that cell.
    let mut since_idle = level;
    let mut add = |from: u64, level: Option<u64>, end: u64| {
        let (first, end) = (from << bits, end.min(close));
        match runs.last_mut() {
            // To look for the arrivals of the next run takes longer than to serve the few between. No arrival is in two runs,
            // also where budgets are shorter than cells.
            Some(before) if first <= before.end.saturating_add(GAP_MIN) => before.end = end,
            _ => runs.push(BusyRun { first, level, end }),
        }
    };
    for (number, &work) in (0u64..).zip(cells) {
        since_idle += work;
        if level + work < cell {
            let left_by = (number + 1) << bits;
            if since_idle.min(left_by - (last_idle << bits)) > threshold {
                // Who arrives less than the threshold before everybody has left is in time.
                add(last_idle, level_there, left_by - threshold);
            }
            (last_idle, level_there, since_idle) = (number, Some(level), work);
            if number << bits >= close {
                return runs;
            }
        }
        level = level.saturating_sub(cell) + work;
    }
    // Nothing is known of what comes after the last cell.
    add(last_idle, level_there, close);
    runs
}

//! Selection of the times in an alignment at which latencies may exceed budgets: no other time needs a
//! replay.
//!
//! The bucket of [`IdleInstants`](super::idle::IdleInstants) bounds the unfinished work from above:
//! requests pour their work at all stages into it, and it drains at rate 1. Time is cut into cells of c
//! nanoseconds. With a level of at most L at the beginning of a cell in which the work w arrives, the
//! level at its end is at most `max(L − c, 0) + w`. If L + w < c, the bucket, hence the system, is empty
//! at some instant of the cell. A request has left by the next such instant after its arrival, and until
//! then as much work is done as time passes. Consider the requests that arrive between the idle instants
//! of one such cell, k, and the next one, l. Their latencies are at most (l + 1 − k)·c, and at most the
//! work that arrives in the cells from k to l. Only if both exceed the budget, the requests have to be
//! replayed, from the idle instant of cell k on. All this holds for any priorities within a band and the
//! bands before it.
//!
//! If requests of a band do not overtake each other, a request that arrives in a cell waits only for the work
//! present, at most L + w, and for the work that earlier bands bring until it leaves. If that sum, with all
//! work of earlier bands within one budget after the cell, is at most the budget, so is the latency.
//!
//! Most bands are idle most of the time. Coarse cells, each of several cells, are therefore scanned first;
//! fine cells only if the coarse ones do not exclude late requests.
//!
//! The work is stored by band. Adding a stream adds its own work and removing one subtracts it, so that the
//! others need not be recomputed. All arithmetic is in integers: a bound is never below the exact value.

use super::cell_scan::{BandCells, BusyRun, CellScan, CellStart, LatePeriod};
use super::latency_band::magnitude;
use super::trace::ReplayTrace;
use super::work_bucket::work_of_all_stages;
use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::ops::Range;

/// Maximum number of cells of a band for which coarse ones are kept.
const CELLS_MAX: u64 = 1 << 18;
/// The shortest cell, as a power of two: 2¹⁸ ns, a quarter of a millisecond.
const CELL_BITS_MIN: u32 = 18;
/// A budget has at least this many cells, as a power of two, unless they would be too many.
const CELL_BITS_BELOW_BAND: u32 = 4;
/// Cells in a coarse cell, as a power of two.
const COARSER: u32 = 3;
/// Runs with a shorter gap between them are one, nanoseconds.
const GAP_MIN: u64 = 1 << 25;

/// A stream of arriving work.
#[derive(Debug, Clone)]
pub(super) struct ArrivingStream {
    pub(super) trace: ReplayTrace,
    /// When its trace begins after the window opens, nanoseconds.
    pub(super) shift: u64,
    pub(super) band: u32,
}

impl ArrivingStream {
    /// Key that is equal for streams with the same work.
    fn key(&self) -> (u32, usize, u64) {
        (self.band, self.trace.address(), self.shift)
    }

    /// The arrivals in this time, and the work of each at all stages, nanoseconds from `before` the opening of the window.
    fn arrivals(&self, before: u64, times: Range<u64>, mut each: impl FnMut(u64, u64)) {
        let jobs = self.trace.jobs();
        let period = self.trace.period().0;
        // The instant of the trace at which the time begins, in the second period.
        let begin = 2 * period - (before + self.shift) % period;
        let position = self.trace.position(begin + times.start);
        let job_count = jobs.len() as u64;
        let mut base = position / job_count * period;
        let mut jobs_left = &jobs[usize::try_from(position % job_count).expect("an index")..];
        loop {
            for job in jobs_left {
                let at = base + job.arrival.0 - begin;
                if at >= times.end {
                    return;
                }
                each(at, work_of_all_stages(job));
            }
            jobs_left = jobs;
            base += period;
        }
    }
}

/// A band at the instant where the cells begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct BandStart {
    pub(super) band: u32,
    /// Latency above which a request of the band is late, nanoseconds; `None` if no request can be.
    pub(super) threshold: Option<u64>,
    /// An upper bound of the unfinished work of the band and those before it, nanoseconds.
    pub(super) level: u64,
    /// True if no request of the band is ever overtaken by a later one of the band.
    pub(super) is_in_order: bool,
}

/// Time covered by the cells, nanoseconds.
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
    /// Streams whose work is in the cells, sorted by key.
    streams: Vec<ArrivingStream>,
    /// The work of the streams of a band that arrives in each coarse cell, by band, nanoseconds.
    cells: BTreeMap<u32, Vec<u64>>,
    /// The work of a band and those before it in each coarse cell, nanoseconds.
    sums: Vec<u64>,
    /// The same without the band itself.
    before: Vec<u64>,
}

impl ArrivedWork {
    /// Returns the time covered by the cells.
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

    /// Subtracts the work of streams that are not among `streams`, and adds that of new ones.
    pub(super) fn follow(&mut self, mut streams: Vec<ArrivingStream>) {
        streams.sort_by_key(ArrivingStream::key);
        let old = std::mem::take(&mut self.streams);
        let (gone, come) = differences(&old, &streams);
        if gone.len() + come.len() > streams.len() {
            self.cells.retain(|band, _| streams.iter().any(|stream| stream.band == *band));
            self.cells.values_mut().for_each(|cells| cells.fill(0));
            streams.iter().for_each(|stream| self.pour::<true>(stream));
        } else {
            gone.into_iter().for_each(|stream| self.pour::<false>(stream));
            come.into_iter().for_each(|stream| self.pour::<true>(stream));
        }
        self.streams = streams;
    }

    /// Adds the work of a stream to the coarse cells of its arrivals, or takes it away.
    fn pour<const ADD: bool>(&mut self, stream: &ArrivingStream) {
        let bits = self.cell_bits(stream.band) + COARSER;
        let before = self.span.before;
        let length = self.span.before + self.span.after;
        let count = usize::try_from(length.div_ceil(1 << bits)).expect("bounded by the length of cells");
        let cells = self.cells.entry(stream.band).or_default();
        cells.resize(count, 0);
        stream.arrivals(before, 0..length, |at, work| {
            let cell = &mut cells[usize::try_from(at >> bits).expect("an index")];
            *cell = if ADD { *cell + work } else { *cell - work };
        });
    }

    /// The length of a cell of a band, as a power of two.
    fn cell_bits(&self, band: u32) -> u32 {
        let length = self.span.before + self.span.after;
        let few = length.div_ceil(CELLS_MAX).next_power_of_two().ilog2();
        magnitude(band).saturating_sub(CELL_BITS_BELOW_BAND).max(CELL_BITS_MIN).max(few)
    }

    /// Returns for each band, in ascending order, the runs of arrivals up to `close` outside of which no
    /// latency exceeds its threshold, nanoseconds.
    pub(super) fn busy_runs(&mut self, bands: &[BandStart], close: u64) -> Vec<Vec<BusyRun>> {
        let [mut sums, mut before] = [&mut self.sums, &mut self.before].map(std::mem::take);
        sums.clear();
        let mut bits = 0;
        let mut all_runs = Vec::with_capacity(bands.len());
        for start in bands {
            let new_bits = self.cell_bits(start.band) + COARSER;
            let of_band = &self.cells[&start.band];
            let coarser = if sums.is_empty() { 0 } else { new_bits - bits };
            lengthen_cells(&mut sums, coarser);
            sums.resize(of_band.len(), 0);
            before.clone_from(&sums);
            sums.iter_mut().zip(of_band).for_each(|(sum, cell)| *sum += cell);
            bits = new_bits;
            let mut runs = BusyRuns { runs: Vec::new(), close };
            if let Some(threshold) = start.threshold {
                let scan = CellScan { bits, close, threshold, ends_idle: false };
                let begin = CellStart { cell: 0, level: start.level, sees_idle: start.level == 0 };
                let complete = self.complete_cells(bits);
                let cells = BandCells { cells: &sums[..complete], before: &before[..complete], first: 0 };
                scan.periods(begin, cells.cells, |period| {
                    if cells.late_cells(scan, period, start.is_in_order).is_some() {
                        self.refine(start, scan, period, &mut runs);
                    }
                });
            }
            all_runs.push(runs.runs);
        }
        (self.sums, self.before) = (sums, before);
        all_runs
    }

    /// Returns the number of cells of this length that are covered in full.
    fn complete_cells(&self, bits: u32) -> usize {
        usize::try_from((self.span.before + self.span.after) >> bits).expect("bounded by the length of cells")
    }

    /// Adds the runs of a period that was found among coarse cells, as cells show them.
    fn refine(&self, band: &BandStart, coarse: CellScan, period: LatePeriod, runs: &mut BusyRuns) {
        let bits = coarse.bits - COARSER;
        let first = period.start.cell << COARSER;
        let end = period.end.map_or(self.complete_cells(bits) as u64, |end| end << COARSER);
        let [cells, before] = self.work_of(band.band, bits, first..end);
        // The system is idle by the end of the coarse period.
        let scan = CellScan { bits, ends_idle: period.end.is_some(), ..coarse };
        let of_band = BandCells { cells: &cells, before: &before, first };
        scan.periods(CellStart { cell: first, ..period.start }, &cells, |late| {
            let arrivals = of_band.late_cells(scan, late, band.is_in_order);
            runs.extend(arrivals.map(|arrivals| arrivals.busy_run(late, scan)));
        });
    }

    /// Returns the work in the cells with this length and these indices: of a band with those before it,
    /// and of the latter alone.
    fn work_of(&self, band: u32, bits: u32, numbers: Range<u64>) -> [Vec<u64>; 2] {
        let count = usize::try_from(numbers.end - numbers.start).expect("an index");
        let [mut own, mut before] = [vec![0; count], vec![0; count]];
        let origin = numbers.start << bits;
        let times = numbers.start << bits..numbers.end << bits;
        for stream in self.streams.iter().filter(|stream| stream.band <= band) {
            let cells = if stream.band == band { &mut own } else { &mut before };
            stream.arrivals(self.span.before, times.clone(), |at, work| {
                cells[usize::try_from((at - origin) >> bits).expect("an index")] += work;
            });
        }
        own.iter_mut().zip(&before).for_each(|(cell, before)| *cell += before);
        [own, before]
    }
}

/// Runs of arrivals in ascending order.
struct BusyRuns {
    runs: Vec<BusyRun>,
    /// The end of the arrivals, exclusive.
    close: u64,
}

impl BusyRuns {
    fn extend(&mut self, run: Option<BusyRun>) {
        let Some(mut run) = run.filter(|run| run.first < run.end.min(self.close)) else { return };
        run.end = run.end.min(self.close);
        match self.runs.last_mut() {
            // To look for the arrivals of the next run takes longer than to serve the few between. No arrival is in two runs,
            // also where budgets are shorter than cells.
            Some(before) if run.from <= before.end.saturating_add(GAP_MIN) => {
                before.end = before.end.max(run.end);
                before.longest = before.longest.max(run.longest);
            }
            _ => self.runs.push(run),
        }
    }
}

/// The streams that are only among the old ones and those that are only among the new ones; both are sorted by key.
fn differences<'s>(
    old: &'s [ArrivingStream],
    new: &'s [ArrivingStream],
) -> (Vec<&'s ArrivingStream>, Vec<&'s ArrivingStream>) {
    let mut gone = Vec::new();
    let mut come = Vec::new();
    let mut old = old.iter().peekable();
    let mut new = new.iter().peekable();
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

/// Makes cells 2^`coarser` times as long.
fn lengthen_cells(sums: &mut Vec<u64>, coarser: u32) {
    if coarser == 0 {
        return;
    }
    let group = 1 << coarser;
    let count = sums.len().div_ceil(group);
    for index in 0..count {
        let end = ((index + 1) * group).min(sums.len());
        sums[index] = sums[index * group..end].iter().sum();
    }
    sums.truncate(count);
}

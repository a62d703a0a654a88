//! The work that arrives in an alignment, by cells of time and band.
//!
//! A stream that comes adds its own work, one that goes takes it away, so that what is known of the others is kept.
//! Where that leaves requests that may be late, `late_runs.rs` says.

use super::late_runs::{CellWork, LateQuestion, LateRun, late_runs};
use super::latency_band::octave_of_band;
use super::trace::ReplayTrace;
use super::work_bucket::{longest_work, work_of_all_stages};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// A band has at most so many cells.
const CELLS_MAX: u64 = 1 << 17;
/// The shortest cell, as a power of two: 2¹⁸ ns, a quarter of a millisecond.
const CELL_BITS_MIN: u32 = 18;
/// A budget has at least this many cells, as a power of two, unless they would be too many.
const CELL_BITS_BELOW_BAND: u32 = 3;

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

/// A band at the instant where the cells begin.
#[derive(Debug, Clone, Copy)]
pub(super) struct BandStart {
    pub(super) band: u32,
    /// The latency above which a request of the band is late, nanoseconds; `None` where nobody is.
    pub(super) threshold: Option<u64>,
    /// An upper bound of the unfinished work of the band and those before it, nanoseconds.
    pub(super) level: u64,
    /// Who comes before a request of the band that arrived earlier; `None` where that is not known.
    pub(super) order: Option<BandOrder>,
}

/// Who waits for whom in a band whose requests do not overtake others of their level.
#[derive(Debug, Clone, Copy)]
pub(super) struct BandOrder {
    /// What jobs that are counted at two stages add to the work ahead of a request, nanoseconds.
    pub(super) counted_twice: u64,
    /// Whether the band is one level, so that only those before the band come before a request that arrived earlier.
    pub(super) is_one_level: bool,
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
    cells: BTreeMap<u32, BandCells>,
    /// The work of a band and those before it in each cell.
    sums: BandCells,
    /// The longest work of the bands before it.
    before: Vec<u64>,
}

/// The work that arrives in each cell of a band, nanoseconds.
#[derive(Debug, Clone, Default)]
struct BandCells {
    /// The sum over all stages.
    all: Vec<u64>,
    /// Of each job at the stage where it has most.
    longest: Vec<u64>,
}

impl BandCells {
    fn fill_with_nothing(&mut self) {
        self.all.fill(0);
        self.longest.fill(0);
    }
}

impl ArrivedWork {
    /// How much time the cells cover.
    pub(super) fn span(&self) -> CellSpan {
        self.span
    }

    /// Forgets all streams and their work.
    pub(super) fn clear(&mut self, span: CellSpan) {
        if self.span == span {
            self.cells.values_mut().for_each(BandCells::fill_with_nothing);
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
            self.cells.values_mut().for_each(BandCells::fill_with_nothing);
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
        let BandCells { all, longest } = self.cells.entry(stream.band).or_default();
        all.resize(count, 0);
        longest.resize(count, 0);
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
                let cell = usize::try_from(at >> bits).expect("an index");
                for (cells, work) in
                    [(&mut *all, work_of_all_stages(job)), (&mut *longest, longest_work(job))]
                {
                    cells[cell] = if ADD { cells[cell] + work } else { cells[cell] - work };
                }
            }
            jobs_left = jobs;
            base += period;
        }
    }

    /// The length of a cell of a band, as a power of two.
    fn cell_bits(&self, band: u32) -> u32 {
        let length = self.span.before + self.span.after;
        let few = length.div_ceil(CELLS_MAX).next_power_of_two().ilog2();
        octave_of_band(band).saturating_sub(CELL_BITS_BELOW_BAND).max(CELL_BITS_MIN).max(few)
    }

    /// The runs of arrivals up to `close` outside of which no latency of a band exceeds its threshold, nanoseconds, for each
    /// band in ascending order.
    pub(super) fn late_runs(&mut self, bands: &[BandStart], close: u64) -> Vec<Vec<LateRun>> {
        let (mut sums, mut before) = (std::mem::take(&mut self.sums), std::mem::take(&mut self.before));
        sums.all.clear();
        sums.longest.clear();
        let (mut bits, mut all_runs) = (0, Vec::with_capacity(bands.len()));
        for &BandStart { band, threshold, level, order } in bands {
            let new_bits = self.cell_bits(band);
            let (coarser, cells) = (new_bits.saturating_sub(bits), &self.cells[&band]);
            let coarser = if sums.all.is_empty() { 0 } else { coarser };
            merge_cells(&mut sums.all, coarser, cells.all.len());
            merge_cells(&mut sums.longest, coarser, cells.longest.len());
            before.clone_from(&sums.longest);
            add_cells(&mut sums.all, &cells.all);
            add_cells(&mut sums.longest, &cells.longest);
            bits = new_bits;
            let is_one_level = order.is_some_and(|order| order.is_one_level);
            let overtaking = if is_one_level { &before } else { &sums.longest };
            let work = CellWork { all: &sums.all, longest: &sums.longest, overtaking };
            let counted_twice = order.map(|order| order.counted_twice);
            let runs = threshold.map(|threshold| {
                late_runs(work, LateQuestion { bits, close, level, threshold, counted_twice })
            });
            all_runs.push(runs.unwrap_or_default());
        }
        (self.sums, self.before) = (sums, before);
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

/// Makes cells 2^`coarser` times as long, `count` of them.
fn merge_cells(sums: &mut Vec<u64>, coarser: u32, count: usize) {
    if coarser > 0 {
        let group = 1 << coarser;
        for index in 0..sums.len().div_ceil(group) {
            let end = ((index + 1) * group).min(sums.len());
            sums[index] = sums[index * group..end].iter().sum();
        }
    }
    sums.resize(count, 0);
}

fn add_cells(sums: &mut [u64], cells: &[u64]) {
    sums.iter_mut().zip(cells).for_each(|(sum, cell)| *sum += cell);
}

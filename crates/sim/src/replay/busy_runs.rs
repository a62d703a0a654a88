//! Where in a replay latencies can be longer than some threshold: elsewhere nothing needs to be replayed.
//!
//! The bucket of [`IdleInstants`](super::idle::IdleInstants), into which all requests pour their work at all stages and
//! which drains at rate 1, bounds the unfinished work from above. Time is cut into cells of c nanoseconds. With a level of
//! at most L at the beginning of a cell in which the work w arrives, the level at its end is at most
//! `max(L − c, 0) + w`; and when L + w < c the bucket, hence the system, is empty at some instant of the cell. A request
//! has left by the next such instant after its arrival. So the latencies of those that arrive from one such cell, k, until
//! before the next one, l, are at most (l + 1 − k)·c; only where that exceeds the threshold, the requests have to be
//! replayed, from an instant on at which the bucket is certainly empty. Whatever the priorities.
//!
//! All in integers: a bound is never below the exact value.

use super::stream::ReplayStream;
use model::Stage;

/// A stretch of cells takes at most so many.
const CELLS_MAX: u64 = 1 << 20;
/// The shortest cell, as a power of two: 2¹⁸ ns, a quarter of a millisecond.
const CELL_BITS_MIN: u32 = 18;
/// The threshold has at least this many cells, or nothing is gained.
const CELLS_OF_THRESHOLD: u64 = 16;

/// Arrivals among which there may be one with a long latency.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BusyRun {
    /// An instant before them at which the system is idle, nanoseconds.
    pub(super) idle: u64,
    /// When the arrivals begin, nanoseconds.
    pub(super) first: u64,
    /// The end of the arrivals, exclusive, nanoseconds.
    pub(super) end: u64,
}

/// The search for busy runs; keeps its memory.
#[derive(Debug, Clone, Default)]
pub(super) struct BusyRuns {
    /// The work that arrives in each cell, nanoseconds.
    cells: Vec<u64>,
    runs: Vec<BusyRun>,
}

impl BusyRuns {
    /// The runs of arrivals from `start`, at which the system is idle, until before `close`, outside of which no latency
    /// exceeds `threshold`, all in nanoseconds. The first period of stream i begins at `offsets[i]`. `None` where cells
    /// that are short enough would be too many.
    pub(super) fn find(
        &mut self,
        streams: &[ReplayStream<'_>],
        offsets: &[u64],
        (start, close): (u64, u64),
        threshold: u64,
    ) -> Option<&[BusyRun]> {
        let longest = (threshold / CELLS_OF_THRESHOLD).checked_ilog2()?;
        // Short cells tell more, until most of them are empty.
        let bits = (close - start).div_ceil(CELLS_MAX).next_power_of_two().ilog2().max(CELL_BITS_MIN);
        if bits > longest {
            return None;
        }
        let count = usize::try_from((close - start).div_ceil(1 << bits)).ok()?;
        self.cells.clear();
        self.cells.resize(count, 0);
        for (stream, &offset) in streams.iter().zip(offsets) {
            self.pour(stream, offset, (start, close), bits);
        }
        self.scan((start, close), bits, threshold);
        Some(&self.runs)
    }

    /// Adds the work of a stream to the cells of its arrivals.
    fn pour(&mut self, stream: &ReplayStream<'_>, offset: u64, (start, close): (u64, u64), bits: u32) {
        let (jobs, period) = (stream.trace.jobs(), stream.trace.period().0);
        let position = stream.trace.position(start - offset);
        let count = jobs.len() as u64;
        let mut base = offset + position / count * period;
        let mut jobs_left = &jobs[usize::try_from(position % count).expect("an index")..];
        while base < close {
            for job in jobs_left {
                let at = base + job.arrival.0;
                if at >= close {
                    return;
                }
                let cell = usize::try_from((at - start) >> bits).expect("an index");
                self.cells[cell] += Stage::ALL.iter().map(|stage| job.work[*stage].0).sum::<u64>();
            }
            jobs_left = jobs;
            base += period;
        }
    }

    fn scan(&mut self, (start, close): (u64, u64), bits: u32, threshold: u64) {
        self.runs.clear();
        let cell = 1u64 << bits;
        // The instant before which the bucket was last seen empty, and the last cell with an idle instant.
        let (mut empty, mut last_idle, mut empty_before_idle) = (0u64, 0u64, 0u64);
        let mut level = 0u64;
        let cells = std::mem::take(&mut self.cells);
        for (number, &work) in (0u64..).zip(&cells) {
            if level + work < cell && number > 0 {
                if (number + 1 - last_idle) << bits > threshold {
                    self.add(start, [empty_before_idle, last_idle, number].map(|cell| cell << bits), close);
                }
                (last_idle, empty_before_idle) = (number, empty);
            }
            level = level.saturating_sub(cell) + work;
            if level == 0 {
                empty = number + 1;
            }
        }
        let end = cells.len() as u64;
        self.cells = cells;
        // Nothing is known of what comes after the last cell.
        self.add(start, [empty_before_idle, last_idle, end].map(|cell| cell << bits), close);
    }

    /// Adds a run; times count from `start`. One whose replay would begin before the run before has ended, continues it.
    fn add(&mut self, start: u64, [idle, first, end]: [u64; 3], close: u64) {
        let run = BusyRun { idle: start + idle, first: start + first, end: (start + end).min(close) };
        match self.runs.last_mut() {
            Some(last) if run.idle <= last.end => last.end = run.end,
            _ => self.runs.push(run),
        }
    }
}

//! A trace that repeats for ever.

use model::{Job, PerStage, Stage};
use std::fmt;
use units::Nanos;

/// Longest period: 36 years, so that sums of a few periods and backlogs stay far from overflow.
const LONGEST: Nanos = Nanos(1 << 60);
/// Length of a cell of the sketch of a recording: 2²⁷ ns, an eighth of a second.
pub(crate) const CELL: u64 = 1 << 27;
/// A sketch has no more cells than this (a day); later work is left out of it.
const MAX_CELLS: u64 = 1 << 20;

/// Jobs in order of arrival that come again after a period, for ever.
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    jobs: Box<[Job]>,
    period: Nanos,
    work: PerStage<u64>,
    /// Work at all stages by cell of the arrival, in cells.
    cells: Box<[f32]>,
}

/// Jobs that make no recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordingError {
    /// There are none.
    Empty,
    /// This one (counted from 0) arrives before the one before it.
    Unsorted(usize),
    /// The period is zero, ends before the last arrival, or exceeds 36 years.
    Period,
    /// The work at this stage is longer than 36 years.
    Work(Stage),
}

impl fmt::Display for RecordingError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("there are no jobs: expected at least one"),
            Self::Unsorted(index) => write!(f, "job {index} arrives before the one before it"),
            Self::Period => {
                f.write_str("the period must be positive, reach the last arrival, and be at most 36 years")
            }
            Self::Work(stage) => write!(f, "the work of all jobs at {stage} exceeds 36 years"),
        }
    }
}

impl std::error::Error for RecordingError {}

impl Recording {
    /// Jobs in order of arrival, none later than `period`, after which the first comes again.
    pub fn new(jobs: &[Job], period: Nanos) -> Result<Self, RecordingError> {
        let last = jobs.last().ok_or(RecordingError::Empty)?;
        if let Some(late) = jobs.windows(2).position(|pair| pair[1].arrival < pair[0].arrival) {
            return Err(RecordingError::Unsorted(late + 1));
        }
        if period == Nanos::ZERO || last.arrival > period || period > LONGEST {
            return Err(RecordingError::Period);
        }
        let mut work = PerStage::from_fn(|_| 0u64);
        for stage in Stage::ALL {
            let all = jobs.iter().try_fold(0u64, |sum, job| sum.checked_add(job.work[stage].0));
            work[stage] = all.filter(|sum| *sum <= LONGEST.0).ok_or(RecordingError::Work(stage))?;
        }
        Ok(Self { jobs: jobs.into(), period, work, cells: cells(jobs, period) })
    }

    /// In order of arrival.
    pub fn jobs(&self) -> &[Job] {
        &self.jobs
    }

    /// After which the first job comes again.
    pub fn period(&self) -> Nanos {
        self.period
    }

    /// Work per second of each stage, seconds.
    pub fn utilisation(&self) -> PerStage<f64> {
        self.work.map(|work| *work as f64 / self.period.0 as f64)
    }

    /// Roughly when how much work arrives: by cell of [`CELL`], all stages together, in cells.
    pub(crate) fn cells(&self) -> &[f32] {
        &self.cells
    }

    /// Position in the endless sequence of jobs (0 is the first job of the period that begins at 0) of the first
    /// that arrives at or after `time`.
    pub(crate) fn position(&self, time: u64) -> u64 {
        let (count, period) = (self.jobs.len() as u64, self.period.0);
        let (round, within) = (time / period, time % period);
        let before = |limit: u64| self.jobs.partition_point(|job| job.arrival.0 < limit) as u64;
        // Jobs at the very end of a period arrive together with the first of the next.
        if within == 0 && round > 0 {
            (round - 1) * count + before(period)
        } else {
            round * count + before(within)
        }
    }
}

fn cells(jobs: &[Job], period: Nanos) -> Box<[f32]> {
    let count = period.0.div_ceil(CELL).clamp(1, MAX_CELLS);
    let mut cells = vec![0.0; usize::try_from(count).expect("fits the address space")];
    for job in jobs {
        let work: u64 = Stage::ALL.iter().map(|stage| job.work[*stage].0).sum();
        let cell = usize::try_from(job.arrival.0 / CELL).expect("fits the address space");
        if let Some(sum) = cells.get_mut(cell) {
            *sum += work as f32 / CELL as f32;
        }
    }
    cells.into()
}

//! A circular trace with data derived from it once for replays: the work of a period, and its arrivals.

use super::arrival_index::ArrivalIndex;
use super::work_bucket::{DRAIN_STEPS, WorkBucket};
use model::{CircularTrace, Job, PerStage, Stage};
use std::fmt;
use std::sync::{Arc, OnceLock};
use units::Nanos;

/// Most work of a period at one stage: 36 years, so that backlogs stay far from overflow.
const WORK_MAX: Nanos = CircularTrace::<Job>::PERIOD_MAX;
/// Length of a cell of the work profile of a trace: 2²⁷ ns, an eighth of a second.
pub(super) const CELL: u64 = 1 << 27;
/// Maximum number of cells of a work profile (a day and a half); later work is omitted.
const CELLS_MAX: u64 = 1 << 20;

/// A [`CircularTrace`] that is ready to be replayed. Clones share it.
#[derive(Debug, Clone)]
pub struct ReplayTrace(Arc<PreparedTrace>);

#[derive(Debug)]
struct PreparedTrace {
    trace: CircularTrace<Job>,
    /// Work of one period by stage, nanoseconds.
    work: PerStage<u64>,
    /// Work at all stages together by cell of the arrival, in cells.
    work_profile: Box<[f32]>,
    arrivals: ArrivalIndex,
    /// Which stages have work for each job, where these are the same for all.
    passes: Option<PerStage<bool>>,
    /// Buckets computed so far, by step of their drain rate; `None` if the levels do not repeat.
    buckets: [OnceLock<Option<WorkBucket>>; DRAIN_STEPS.len()],
}

/// The work of a trace at one stage is longer than 36 years.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkOverflowError {
    /// The stage with too much work.
    pub stage: Stage,
}

impl fmt::Display for WorkOverflowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the work of all jobs at {} exceeds 36 years", self.stage)
    }
}

impl std::error::Error for WorkOverflowError {}

impl ReplayTrace {
    /// Derives the data that replays need from a trace.
    ///
    /// # Errors
    /// When the work of a period at one stage exceeds 36 years.
    pub fn new(trace: CircularTrace<Job>) -> Result<Self, WorkOverflowError> {
        let mut work = PerStage::from_fn(|_| 0u64);
        for stage in Stage::ALL {
            let sum = trace.items().iter().try_fold(0u64, |sum, job| sum.checked_add(job.work[stage].0));
            work[stage] = sum.filter(|sum| *sum <= WORK_MAX.0).ok_or(WorkOverflowError { stage })?;
        }
        let buckets = std::array::from_fn(|_| OnceLock::new());
        let work_profile = work_profile(&trace);
        let arrivals = ArrivalIndex::new(&trace);
        Ok(Self(Arc::new(PreparedTrace {
            work,
            work_profile,
            arrivals,
            passes: passes(&trace),
            trace,
            buckets,
        })))
    }

    /// The trace that is replayed.
    pub fn trace(&self) -> &CircularTrace<Job> {
        &self.0.trace
    }

    /// The jobs of one period, in order of arrival.
    pub fn jobs(&self) -> &[Job] {
        self.0.trace.items()
    }

    /// The time after which the first job arrives again.
    pub fn period(&self) -> Nanos {
        self.0.trace.period()
    }

    /// Work per second of each stage, seconds.
    pub fn utilisation(&self) -> PerStage<f64> {
        self.0.work.map(|work| *work as f64 / self.period().0 as f64)
    }

    /// Work per second of all stages together, seconds.
    pub(super) fn utilisation_of_all_stages(&self) -> f64 {
        self.utilisation().into_array().iter().sum()
    }

    /// Returns the work that arrives in each cell of [`CELL`] nanoseconds, all stages together, in cells.
    pub(super) fn work_profile(&self) -> &[f32] {
        &self.0.work_profile
    }

    /// Which stages have work for each job; `None` where that differs from job to job.
    pub(super) fn passes(&self) -> Option<PerStage<bool>> {
        self.0.passes
    }

    /// The bucket of this trace that drains at `DRAIN_STEPS[step]` times the work per second of all stages.
    pub(super) fn bucket(&self, step: usize) -> Option<&WorkBucket> {
        self.0.buckets[step]
            .get_or_init(|| {
                WorkBucket::draining(self.trace(), self.utilisation_of_all_stages(), DRAIN_STEPS[step])
            })
            .as_ref()
    }

    /// A number that the clones of a trace share, and that no other trace has while one of them is there.
    pub(super) fn address(&self) -> usize {
        Arc::as_ptr(&self.0).addr()
    }

    /// Position in the endless sequence of jobs of the first that arrives at or after `time`, as
    /// [`CircularTrace::position`] counts it.
    pub(super) fn position(&self, time: u64) -> u64 {
        let period = self.period().0;
        // An instant between two periods is the end of the first: what arrives there comes before the next one.
        let periods = time.saturating_sub(1) / period;
        periods * self.jobs().len() as u64 + self.arrivals_before(time - periods * period) as u64
    }

    /// Returns the number of jobs of a period that arrive before `time`, nanoseconds from its beginning and
    /// at most the period.
    #[inline]
    pub(super) fn arrivals_before(&self, time: u64) -> usize {
        self.0.arrivals.arrivals_before(self.jobs(), time)
    }
}

fn passes(trace: &CircularTrace<Job>) -> Option<PerStage<bool>> {
    let mut jobs = trace.items().iter().map(|job| job.work.map(|work| work.0 > 0));
    let first = jobs.next()?;
    jobs.all(|other| other == first).then_some(first)
}

fn work_profile(trace: &CircularTrace<Job>) -> Box<[f32]> {
    let count = trace.period().0.div_ceil(CELL).clamp(1, CELLS_MAX);
    let mut cells = vec![0.0; usize::try_from(count).expect("fits the address space")];
    for job in trace.items() {
        let work: u64 = Stage::ALL.iter().map(|stage| job.work[*stage].0).sum();
        let cell = usize::try_from(job.arrival.0 / CELL).expect("fits the address space");
        if let Some(sum) = cells.get_mut(cell) {
            *sum += work as f32 / CELL as f32;
        }
    }
    cells.into()
}

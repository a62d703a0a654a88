//! The bucket of one trace: into it the jobs pour their work at all stages, and it drains at a constant rate.
//!
//! All in integers, rounded so that levels are never understated.

use model::{CircularTrace, Job, Stage};
use units::Nanos;

/// Drain rates are multiples of 2⁻³².
const FRACTION_BITS: u32 = 32;

/// The drain rates for which traces keep their buckets, as multiples of the trace's own work per second, ascending.
pub(super) const DRAIN_STEPS: [f64; 18] = [
    1.0 + 1.0 / 1024.0,
    1.0 + 1.0 / 512.0,
    1.0 + 1.0 / 256.0,
    1.0 + 1.0 / 128.0,
    1.0 + 1.0 / 64.0,
    1.0 + 1.0 / 32.0,
    1.0 + 1.0 / 16.0,
    1.125,
    1.25,
    1.5,
    2.0,
    3.0,
    4.0,
    8.0,
    16.0,
    64.0,
    256.0,
    1024.0,
];

/// The levels of a bucket over a period.
#[derive(Debug, Clone)]
pub(super) struct WorkBucket {
    /// Work that drains in a nanosecond, in units of 2⁻³² ns.
    rate: u64,
    /// The level just after each job of the period, nanoseconds.
    levels: Vec<u64>,
}

/// The work of a job at all stages together, nanoseconds.
pub(super) fn work_of_all_stages(job: &Job) -> u64 {
    Stage::ALL.iter().map(|stage| job.work[*stage].0).sum()
}

impl WorkBucket {
    /// Creates the bucket of a trace that drains at `multiple` times the trace's work per second at all
    /// stages, which is `utilisation`. The rates of several traces sum to at most 1 if they have the same
    /// multiple and their work per second sums to at most 1 ÷ `multiple`. `None` unless the levels repeat
    /// after one period.
    pub(super) fn draining(trace: &CircularTrace<Job>, utilisation: f64, multiple: f64) -> Option<Self> {
        let whole = (1u64 << FRACTION_BITS) as f64;
        let rate = utilisation * multiple;
        // Rates sum to at most 1 except for rounding, which the factor allows for; `as` saturates.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rate = (rate * whole * (1.0 - 1e-12)) as u64;
        Self::fill(trace, rate)
    }

    /// `None` unless the levels repeat after one period.
    fn fill(trace: &CircularTrace<Job>, rate: u64) -> Option<Self> {
        let mut bucket = Self { rate, levels: vec![0; trace.items().len()] };
        let mut level = 0;
        let mut before = 0;
        for base in [0, trace.period().0] {
            let last = bucket.levels.last().copied();
            for (kept, job) in bucket.levels.iter_mut().zip(trace.items()) {
                let time = base + job.arrival.0;
                level = drain(level, rate, time - before) + work_of_all_stages(job);
                before = time;
                *kept = level;
            }
            if base > 0 && last != Some(level) {
                return None;
            }
        }
        Some(bucket)
    }

    /// The level just before the jobs that arrive at `time`.
    pub(super) fn level(&self, trace: &CircularTrace<Job>, time: u64) -> u64 {
        // Levels are the same in all periods; in a later one there is a job before.
        let time = time + trace.period().0;
        let position = trace.position(Nanos(time)) - 1;
        let count = self.levels.len() as u64;
        let index = usize::try_from(position % count).expect("an index");
        let arrived = position / count * trace.period().0 + trace.items()[index].arrival.0;
        drain(self.levels[index], self.rate, time - arrived)
    }
}

/// Returns an upper bound on the rest of `level` after `span` nanoseconds.
fn drain(level: u64, rate: u64, span: u64) -> u64 {
    let drained = (u128::from(rate) * u128::from(span)) >> FRACTION_BITS;
    u64::try_from(drained).map_or(0, |drained| level.saturating_sub(drained))
}

//! A moment at which the system is certainly idle, so that a replay can begin there with empty queues and yet be
//! in the steady state of a system that has always run.
//!
//! Add up the work of a request over all stages. Whenever a request is in the system, at least one stage works,
//! whatever the priorities; so the total unfinished work falls at least at rate 1 and is at most the level of a
//! bucket into which all requests pour their total work and which drains at rate 1. The bucket's level at a
//! moment s, from an infinite past, is at most the sum of the levels of one bucket per stream, drained at rates
//! that sum to at most 1. A stream's bucket is periodic, hence known exactly at s. From s on, the arrivals are
//! merged and the common bucket is followed; where it is empty, the system is idle.
//!
//! This needs a total utilisation, summed over the stages, below 1. Above, or when no idle moment is found within
//! a longest period, nothing is certain.
//!
//! All in integers, rounded so that levels are never understated.

use crate::merge::{Merge, Source};
use crate::{ReplayStream, ReplaySystem, ReplayTrace};
use model::{Job, Stage};

/// Rates are multiples of 2⁻³².
const FRACTION: u32 = 32;

/// Levels of the buckets of all streams.
#[derive(Debug, Clone)]
pub(crate) struct Idle {
    /// `None` where a bucket has no finite level.
    buckets: Option<Vec<Bucket>>,
}

#[derive(Debug, Clone)]
struct Bucket {
    rate: u64,
    /// Just after each job.
    levels: Vec<u64>,
}

/// Work of a job at all stages.
fn total(job: &Job) -> u64 {
    Stage::ALL.iter().map(|stage| job.work[*stage].0).sum()
}

impl Idle {
    /// Drains each stream at its share of the total work.
    pub(crate) fn new(streams: &[ReplayStream<'_>]) -> Self {
        let each = |r: &ReplayTrace| r.utilisation().into_array().iter().sum::<f64>();
        let all: f64 = streams.iter().map(|s| each(s.trace)).sum();
        if all >= 1.0 {
            return Self { buckets: None };
        }
        let whole = (1u64 << FRACTION) as f64;
        let fill = |stream: &ReplayStream<'_>| {
            let share = if all > 0.0 { each(stream.trace) / all } else { 0.0 };
            // Shares sum to 1 but for rounding, for which the factor makes room.
            #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
            Bucket::fill(stream.trace, (share * whole * (1.0 - 1e-12)) as u64)
        };
        Self { buckets: streams.iter().map(fill).collect() }
    }

    /// A moment, at most a longest period before `time`, at which the system is certainly idle.
    pub(crate) fn last_before<'a>(
        &self,
        system: &ReplaySystem<'a>,
        merge: &mut Merge<'a>,
        offsets: &[u64],
        time: u64,
    ) -> Option<u64> {
        let buckets = self.buckets.as_ref()?;
        let traces = || system.streams.iter().map(|s| s.trace);
        let longest = system.longest_period();
        let mut look = (longest >> 12).max(1);
        loop {
            let from = time - look;
            let levels = traces().zip(buckets).zip(offsets).map(|((r, b), offset)| b.level(r, from - offset));
            let level = levels.sum();
            merge.seek(traces(), offsets, from);
            if let Some(idle) = last_empty(merge, from, level, time) {
                return Some(idle);
            }
            if look == longest {
                return None;
            }
            look = (look * 2).min(longest);
        }
    }
}

/// The last moment up to `until` known to see the common bucket empty, whose level at `now` is at most `level`.
fn last_empty(merge: &mut Merge<'_>, mut now: u64, mut level: u64, until: u64) -> Option<u64> {
    let mut found = None;
    loop {
        let next = merge.peek().min(until);
        if level <= next - now {
            found = Some(now + level);
        }
        if next == until {
            return found;
        }
        let packet = merge.next();
        level = level.saturating_sub(packet.at - now) + total(packet.job);
        now = packet.at;
    }
}

impl Bucket {
    /// `None` unless the levels repeat after one round.
    fn fill(trace: &ReplayTrace, rate: u64) -> Option<Self> {
        let mut bucket = Self { rate, levels: vec![0; trace.jobs().len()] };
        let (mut level, mut before) = (0, 0);
        for base in [0, trace.period().0] {
            let last = bucket.levels.last().copied();
            for (kept, job) in bucket.levels.iter_mut().zip(trace.jobs()) {
                let time = base + job.arrival.0;
                level = drain(level, rate, time - before) + total(job);
                before = time;
                *kept = level;
            }
            if base > 0 && last != Some(level) {
                return None;
            }
        }
        Some(bucket)
    }

    /// Before the jobs that arrive at `time`.
    fn level(&self, trace: &ReplayTrace, time: u64) -> u64 {
        // Levels are the same in all rounds; in a later one there is a job before.
        let time = time + trace.period().0;
        let position = trace.position(time) - 1;
        let count = self.levels.len() as u64;
        let index = usize::try_from(position % count).expect("an index");
        let arrived = position / count * trace.period().0 + trace.jobs()[index].arrival.0;
        drain(self.levels[index], self.rate, time - arrived)
    }
}

/// At least what is left of `level` after `span`.
fn drain(level: u64, rate: u64, span: u64) -> u64 {
    let drained = (u128::from(rate) * u128::from(span)) >> FRACTION;
    u64::try_from(drained).map_or(0, |drained| level.saturating_sub(drained))
}

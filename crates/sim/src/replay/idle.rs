//! Instants at which the system is certainly idle, so that a replay can begin there with empty queues and yet be
//! in the steady state of a system that has always run.
//!
//! Add up the work of a request over all stages. Whenever a request is in the system, at least one stage works,
//! whatever the priorities; so the total unfinished work falls at least at rate 1 and is at most the level of a
//! bucket into which all requests pour their total work and which drains at rate 1. The bucket's level at an
//! instant s, from an infinite past, is at most the sum of the levels of one bucket per stream, drained at rates
//! that sum to at most 1. A stream's bucket is periodic, hence known exactly at s. From s on, the arrivals are
//! merged and the common bucket is followed; where it is empty, the system is idle.
//!
//! This needs a total utilisation, summed over the stages, below 1. Above, or when no idle instant is found within
//! a longest period, nothing is certain.
//!
//! All in integers, rounded so that levels are never understated.

use super::arrival_merge::ArrivalMerge;
use super::stream::ReplayStream;
use super::trace::ReplayTrace;
use super::transit::TransitSource;
use model::{Job, Stage};

/// Drain rates are multiples of 2⁻³².
const FRACTION_BITS: u32 = 32;

/// The search for idle instants, with the bucket of each stream.
#[derive(Debug, Clone)]
pub(super) struct IdleInstants {
    /// `None` where a bucket has no finite level.
    buckets: Option<Vec<WorkBucket>>,
}

/// A bucket into which the jobs of a stream pour their work at all stages, and which drains at a constant rate.
#[derive(Debug, Clone)]
struct WorkBucket {
    /// Work that drains in a nanosecond, in units of 2⁻³² ns.
    rate: u64,
    /// The level just after each job of the period, nanoseconds.
    levels: Vec<u64>,
}

fn work_of_all_stages(job: &Job) -> u64 {
    Stage::ALL.iter().map(|stage| job.work[*stage].0).sum()
}

fn utilisation_of_all_stages(trace: &ReplayTrace) -> f64 {
    trace.utilisation().into_array().iter().sum()
}

impl IdleInstants {
    /// Fills the buckets, each of which drains at its stream's share of the total work.
    pub(super) fn new(streams: &[ReplayStream<'_>]) -> Self {
        let total: f64 = streams.iter().map(|stream| utilisation_of_all_stages(stream.trace)).sum();
        if total >= 1.0 {
            return Self { buckets: None };
        }
        Self { buckets: streams.iter().map(|stream| WorkBucket::of_share(stream.trace, total)).collect() }
    }

    /// An instant, at most `longest_period` before `time`, at which the system is certainly idle. The first period of
    /// stream i begins at `offsets[i]`; the position of `merge` changes.
    pub(super) fn last_before<'a>(
        &self,
        streams: &[ReplayStream<'a>],
        merge: &mut ArrivalMerge<'a>,
        offsets: &[u64],
        time: u64,
        longest_period: u64,
    ) -> Option<u64> {
        let buckets = self.buckets.as_ref()?;
        // An idle instant is usually near, and a look further back costs more: the distance doubles.
        let mut distance = (longest_period >> 12).max(1);
        loop {
            let from = time - distance;
            let mut level = 0;
            for ((stream, bucket), offset) in streams.iter().zip(buckets).zip(offsets) {
                level += bucket.level(stream.trace, from - offset);
            }
            merge.seek(streams.iter().map(|stream| stream.trace), offsets, from);
            if let Some(idle) = last_empty(merge, from, level, time) {
                return Some(idle);
            }
            if distance == longest_period {
                return None;
            }
            distance = (distance * 2).min(longest_period);
        }
    }
}

/// The last instant up to `until` that is known to see the common bucket empty, whose level at `now` is at most
/// `level`.
fn last_empty(merge: &mut ArrivalMerge<'_>, mut now: u64, mut level: u64, until: u64) -> Option<u64> {
    let mut last = None;
    loop {
        let next = merge.next_arrival().min(until);
        if level <= next - now {
            last = Some(now + level);
        }
        if next == until {
            return last;
        }
        let arrived = merge.next();
        level = level.saturating_sub(arrived.at - now) + work_of_all_stages(arrived.job);
        now = arrived.at;
    }
}

impl WorkBucket {
    /// The bucket of a trace that is drained at its share of the `total` utilisation, which is below 1.
    fn of_share(trace: &ReplayTrace, total: f64) -> Option<Self> {
        let whole = (1u64 << FRACTION_BITS) as f64;
        let share = if total > 0.0 { utilisation_of_all_stages(trace) / total } else { 0.0 };
        // Shares sum to 1 but for rounding, for which the factor makes room; a share is from 0 to 1.
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let rate = (share * whole * (1.0 - 1e-12)) as u64;
        Self::fill(trace, rate)
    }

    /// `None` unless the levels repeat after one period.
    fn fill(trace: &ReplayTrace, rate: u64) -> Option<Self> {
        let mut bucket = Self { rate, levels: vec![0; trace.jobs().len()] };
        let (mut level, mut before) = (0, 0);
        for base in [0, trace.period().0] {
            let last = bucket.levels.last().copied();
            for (kept, job) in bucket.levels.iter_mut().zip(trace.jobs()) {
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
    fn level(&self, trace: &ReplayTrace, time: u64) -> u64 {
        // Levels are the same in all periods; in a later one there is a job before.
        let time = time + trace.period().0;
        let position = trace.position(time) - 1;
        let count = self.levels.len() as u64;
        let index = usize::try_from(position % count).expect("an index");
        let arrived = position / count * trace.period().0 + trace.jobs()[index].arrival.0;
        drain(self.levels[index], self.rate, time - arrived)
    }
}

/// An upper bound of what is left of `level` after `span` nanoseconds.
fn drain(level: u64, rate: u64, span: u64) -> u64 {
    let drained = (u128::from(rate) * u128::from(span)) >> FRACTION_BITS;
    u64::try_from(drained).map_or(0, |drained| level.saturating_sub(drained))
}

//! Instants at which the system is certainly idle. A replay that begins there with empty queues is in the
//! steady state of a system that has always run.
//!
//! Add up the work of a request over all stages. Whenever a request is in the system, at least one stage
//! works, for any priorities; so the total unfinished work falls at least at rate 1. It is at most the
//! level of a bucket into which all requests pour their total work and which drains at rate 1. The
//! bucket's level at an instant s, from an infinite past, is at most the sum of the levels of one bucket
//! per stream, drained at rates that sum to at most 1. A stream's bucket is periodic, hence known exactly
//! at s. From s on, the arrivals are merged and the common bucket is followed; when it is empty, the
//! system is idle.
//!
//! This needs a total utilisation, summed over the stages, below 1. Above, or if a search of the longest
//! period finds no idle instant, nothing is certain.
//!
//! All arithmetic is in integers, rounded so that levels are never understated.

use super::arrival_merge::ArrivalMerge;
use super::stream::ReplayStream;
use super::transit::TransitSource;
use super::work_bucket::{DRAIN_STEPS, work_of_all_stages};

/// Bound on the work of the streams before any replay.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdleInstants {
    /// The step of the drain rates of the streams' buckets; `None` where the rates would exceed 1.
    step: Option<usize>,
}

impl IdleInstants {
    /// Chooses the drain rates: for every stream the same multiple of its work per second.
    pub(super) fn new(streams: &[ReplayStream<'_>]) -> Self {
        let total: f64 = streams.iter().map(|stream| stream.trace.utilisation_of_all_stages()).sum();
        let slow_enough = DRAIN_STEPS.partition_point(|multiple| multiple * total <= 1.0);
        Self { step: slow_enough.checked_sub(1) }
    }

    /// An upper bound of the unfinished work at `time`, nanoseconds. The first period of stream i begins at `offsets[i]`,
    /// which is at most `time`. `None` where nothing is known.
    pub(super) fn level(&self, streams: &[ReplayStream<'_>], offsets: &[u64], time: u64) -> Option<u64> {
        let mut level = 0;
        for (stream, offset) in streams.iter().zip(offsets) {
            level += stream.trace.bucket(self.step?)?.level(stream.trace.trace(), time - offset);
        }
        Some(level)
    }

    /// An instant, at most `farthest` before `time`, at which the system is certainly idle. The first period of
    /// stream i begins at `offsets[i]`; the position of `merge` changes.
    pub(super) fn last_before<'a>(
        &self,
        streams: &[ReplayStream<'a>],
        merge: &mut ArrivalMerge<'a>,
        offsets: &[u64],
        time: u64,
        farthest: u64,
    ) -> Option<u64> {
        // An idle instant is usually near, and a look further back costs more: the distance doubles.
        let mut distance = (farthest >> 12).max(1);
        loop {
            let from = time - distance;
            let level = self.level(streams, offsets, from)?;
            merge.seek(streams.iter().map(|stream| stream.trace), offsets, from);
            if let Some(idle) = last_empty(merge, from, level, time) {
                return Some(idle);
            }
            if distance == farthest {
                return None;
            }
            distance = (distance * 2).min(farthest);
        }
    }
}

/// Returns the last instant up to `until` at which the common bucket is known to be empty, given a level of
/// at most `level` at `now`.
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

/// Returns the first instant from `now` on at which the common bucket is certainly empty, given a level of at
/// most `level` at `now`.
pub(super) fn first_empty(merge: &mut ArrivalMerge<'_>, mut now: u64, mut level: u64) -> u64 {
    while level > merge.next_arrival() - now {
        let arrived = merge.next();
        level = level.saturating_sub(arrived.at - now) + work_of_all_stages(arrived.job);
        now = arrived.at;
    }
    now + level
}

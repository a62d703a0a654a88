//! Whether the percentiles of all streams stay within their budgets, decided as early as possible.
//!
//! A replay ends at the first request that makes it certain that a percentile exceeds its budget, and alignments
//! that can no longer change the answer are not run. The answer does not depend on the number of threads.

use crate::observe::{Exceedances, Observer};
use crate::{Alignment, PreemptionMode, Replay, ReplaySystem};
use machine::parallel;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use units::{Nanos, Percentile};

/// What a stream is to keep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LatencyTarget {
    /// Of its latencies over one alignment.
    pub percentile: Percentile,
    /// That the percentile may not exceed.
    pub budget: Nanos,
}

/// Why budgets are not kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetMiss {
    /// The stream that is the first to exceed its budget once too often.
    pub stream: usize,
    /// Alignments up to and including the one that decided.
    pub alignments: usize,
}

/// The stream that is the first, in order of alignments, to exceed its budget in more than `spare` of them;
/// `None` when none does.
///
/// # Panics
/// When there is not one target per stream.
pub fn first_target_miss(
    system: &ReplaySystem<'_>,
    service: PreemptionMode,
    alignments: &[Alignment],
    targets: &[LatencyTarget],
    spare: usize,
) -> Option<TargetMiss> {
    assert_eq!(targets.len(), system.streams().len(), "one target per stream");
    let tally = Tally {
        failures: Mutex::new(vec![Vec::new(); targets.len()]),
        cutoff: AtomicUsize::new(usize::MAX),
        spare,
    };
    let make = || (Replay::new(system, service), Exceedances::default());
    parallel::map_with(alignments.len(), make, |(replay, exceedances), index| {
        if tally.cutoff.load(Ordering::Relaxed) < index {
            return;
        }
        let shifts = alignments[index].shifts(system);
        exceedances.reset(&replay.counts(&shifts), targets, spare == 0);
        let mut watched = Watched { inner: exceedances, cutoff: &tally.cutoff, index };
        replay.run(&shifts, &mut watched);
        tally.add(index, exceedances.exceeded());
    });
    tally.decide()
}

/// Which alignments each stream has failed so far.
struct Tally {
    failures: Mutex<Vec<Vec<usize>>>,
    /// Later alignments cannot change the answer.
    cutoff: AtomicUsize,
    spare: usize,
}

impl Tally {
    fn add(&self, index: usize, streams: &[usize]) {
        let mut failures = self.failures.lock().expect("no thread panics while it holds the lock");
        for &stream in streams {
            let of_stream = &mut failures[stream];
            of_stream.insert(of_stream.partition_point(|i| *i < index), index);
            if let Some(&decisive) = of_stream.get(self.spare) {
                self.cutoff.fetch_min(decisive, Ordering::Relaxed);
            }
        }
    }

    fn decide(self) -> Option<TargetMiss> {
        let failures = self.failures.into_inner().expect("all threads have ended well");
        let decisive =
            failures.iter().enumerate().filter_map(|(stream, f)| Some((*f.get(self.spare)?, stream)));
        decisive.min().map(|(index, stream)| TargetMiss { stream, alignments: index + 1 })
    }
}

/// Ends a replay whose result is no longer of interest.
struct Watched<'r> {
    inner: &'r mut Exceedances,
    cutoff: &'r AtomicUsize,
    index: usize,
}

impl Observer for Watched<'_> {
    #[inline]
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()> {
        if self.cutoff.load(Ordering::Relaxed) < self.index {
            return ControlFlow::Break(());
        }
        self.inner.latency(stream, latency)
    }
}

//! Decision if all streams meet their latency targets, as early as possible.
//!
//! A replay ends at the first request that makes it certain that a percentile exceeds its budget, and alignments
//! that can no longer change the answer are not run. The answer does not depend on the number of threads.

use super::alignment::Alignment;
use super::arrived_work::ArrivedWork;
use super::banded::{AlignedArrivals, BandedServer};
use super::latency_target::{Exceedances, LatencyTarget};
use super::observer::Observer;
use super::system::ReplaySystem;
use machine::parallel;
use std::ops::ControlFlow;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use units::Nanos;

/// Stream that misses its target, and the time at which that was certain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TargetMiss {
    /// The stream that exceeds its budget once too often in that alignment; of several, one that is found first.
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
    alignments: &[Alignment],
    targets: &[LatencyTarget],
    spare: usize,
) -> Option<TargetMiss> {
    let server = BandedServer::new(system, targets);
    let tally = MissTally::new(targets.len(), spare);
    let make_scratch = || (server.replays(), ArrivedWork::default(), Exceedances::default());
    parallel::map_with(alignments.len(), make_scratch, |(replays, work, exceedances), index| {
        work.clear(server.span());
        let arrivals = AlignedArrivals::new(system, alignments[index]);
        tally.look(index, exceedances, &arrivals.counts, targets, |observer| {
            server.replay_late(&[], replays, work, &arrivals, observer)
        });
    });
    tally.decide()
}

/// Which alignments have missed the target of each stream so far.
pub(super) struct MissTally {
    /// The indices of these alignments by stream, in ascending order.
    misses: Mutex<Vec<Vec<usize>>>,
    /// Alignments with a higher index cannot change the answer.
    cutoff: AtomicUsize,
    spare: usize,
}

impl MissTally {
    /// Creates a tally of `streams` streams, before any alignment.
    pub(super) fn new(streams: usize, spare: usize) -> Self {
        Self { misses: Mutex::new(vec![Vec::new(); streams]), cutoff: AtomicUsize::new(usize::MAX), spare }
    }

    /// Examines an alignment, unless it can no longer change the answer. `replay` reports late requests to
    /// the observer and returns true if the observer ended it. Returns true if all streams are known to be in
    /// time.
    pub(super) fn look(
        &self,
        index: usize,
        exceedances: &mut Exceedances,
        counts: &[usize],
        targets: &[LatencyTarget],
        replay: impl FnOnce(&mut CancellableObserver<'_>) -> bool,
    ) -> bool {
        if self.cutoff.load(Ordering::Relaxed) < index {
            return false;
        }
        exceedances.reset(counts, targets, self.spare == 0);
        let stopped = replay(&mut CancellableObserver { inner: exceedances, cutoff: &self.cutoff, index });
        self.add(index, exceedances.exceeded());
        !stopped && exceedances.exceeded().is_empty()
    }

    fn add(&self, index: usize, streams: &[usize]) {
        let mut misses = self.misses.lock().expect("no thread panics while it holds the lock");
        for &stream in streams {
            let stream_misses = &mut misses[stream];
            stream_misses.insert(stream_misses.partition_point(|i| *i < index), index);
            if let Some(&decisive) = stream_misses.get(self.spare) {
                self.cutoff.fetch_min(decisive, Ordering::Relaxed);
            }
        }
    }

    /// Returns the first miss, after all alignments have been examined.
    pub(super) fn decide(self) -> Option<TargetMiss> {
        let misses = self.misses.into_inner().expect("all threads have ended well");
        let decisive = misses.iter().enumerate();
        let decisive = decisive.filter_map(|(stream, misses)| Some((*misses.get(self.spare)?, stream)));
        decisive.min().map(|(index, stream)| TargetMiss { stream, alignments: index + 1 })
    }
}

/// Ends the replay of an alignment when a lower one has decided the answer.
pub(super) struct CancellableObserver<'r> {
    inner: &'r mut Exceedances,
    cutoff: &'r AtomicUsize,
    index: usize,
}

impl Observer for CancellableObserver<'_> {
    #[inline]
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()> {
        if self.cutoff.load(Ordering::Relaxed) < self.index {
            return ControlFlow::Break(());
        }
        self.inner.latency(stream, latency)
    }

    fn depends_on(&mut self, stream: usize, longest: Nanos) -> bool {
        self.inner.depends_on(stream, longest)
    }
}

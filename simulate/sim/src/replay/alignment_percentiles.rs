//! Percentiles of many alignments, computed on all processors.

use super::alignment::Alignment;
use super::arrived_work::ArrivedWork;
use super::banded::{AlignedArrivals, BandedServer};
use super::latency_target::LatencyTarget;
use super::percentile_search::{PercentileSearch, floor_of_percentile};
use super::percentiles::Percentiles;
use super::run::{PreemptionMode, Replay, ReplayOutcome};
use super::system::ReplaySystem;
use machine::parallel;
use units::{Nanos, Percentile};

/// Replays every alignment. Each result has the percentile of each stream over its requests within the
/// window (`None` without requests), and statistics of the replay.
pub fn alignment_percentiles(
    system: &ReplaySystem<'_>,
    preemption: PreemptionMode,
    alignments: &[Alignment],
    percentiles: &[Percentile],
) -> Vec<(Vec<Option<Nanos>>, ReplayOutcome)> {
    let make_scratch = || (Replay::new(system, preemption), Percentiles::default());
    parallel::map_with(alignments.len(), make_scratch, |(replay, observer), index| {
        let shifts = alignments[index].shifts(system);
        observer.reset(&replay.counts(&shifts), percentiles);
        let outcome = replay.run(&shifts, observer);
        (observer.take(), outcome)
    })
}

/// Returns the percentile of each stream in each alignment of a preemptive server: the result of
/// [`alignment_percentiles`], sooner. `None` once `interrupted`, which several threads call, before each
/// alignment.
///
/// # Panics
/// When there is not one percentile per stream.
pub fn preemptive_percentiles(
    system: &ReplaySystem<'_>,
    alignments: &[Alignment],
    percentiles: &[Percentile],
    interrupted: &(dyn Fn() -> bool + Sync),
) -> Option<Vec<Vec<Option<Nanos>>>> {
    assert_eq!(percentiles.len(), system.streams().len(), "one percentile per stream");
    let mut floors = Vec::with_capacity(percentiles.len());
    for (stream, &percentile) in system.streams().iter().zip(percentiles) {
        floors.push(floor_of_percentile(stream.trace, percentile));
    }
    let make_scratch = || PercentileSearch::new(system, percentiles, &floors);
    let runs = parallel::map_with(alignments.len(), make_scratch, |search, index| {
        (!interrupted()).then(|| search.percentiles(alignments[index]))
    });
    runs.into_iter().collect()
}

/// The percentile of each stream in each alignment of a preemptive server where it exceeds its target, `None` elsewhere: what
/// [`alignment_percentiles`] gives, sooner.
///
/// # Panics
/// When there is not one target per stream.
pub fn percentiles_above(
    system: &ReplaySystem<'_>,
    alignments: &[Alignment],
    targets: &[LatencyTarget],
) -> Vec<Vec<Option<Nanos>>> {
    assert_eq!(targets.len(), system.streams().len(), "one target per stream");
    let server = BandedServer::new(system, targets);
    let percentiles: Vec<Percentile> = targets.iter().map(|target| target.percentile).collect();
    let make_scratch = || (server.replays(), ArrivedWork::default(), Percentiles::default());
    parallel::map_with(alignments.len(), make_scratch, |(replays, work, observer), index| {
        let arrivals = AlignedArrivals::new(system, alignments[index]);
        observer.reset(&arrivals.counts, &percentiles);
        work.clear(server.span());
        server.replay_late(&[], replays, work, &arrivals, observer);
        observer.take_above(targets.iter().map(|target| target.budget))
    })
}

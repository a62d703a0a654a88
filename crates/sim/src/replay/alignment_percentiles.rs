//! Percentiles of many alignments, computed on all processors.

use super::alignment::Alignment;
use super::percentiles::Percentiles;
use super::run::{PreemptionMode, Replay, ReplayOutcome};
use super::system::ReplaySystem;
use machine::parallel;
use units::{Nanos, Percentile};

/// Replays every alignment. Each result has the percentile of each stream over its requests within the window (`None`
/// without requests), and how the replay went.
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

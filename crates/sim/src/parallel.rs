//! Many alignments on several threads.

use crate::{Alignment, Percentiles, PreemptionMode, Replay, ReplayOutcome, ReplaySystem};
use machine::parallel;
use units::{Nanos, Percentile};

/// For each alignment: the percentile of each stream over its requests within the window (`None` without
/// requests), and how the replay went.
pub fn alignment_percentiles(
    system: &ReplaySystem<'_>,
    service: PreemptionMode,
    alignments: &[Alignment],
    percentiles: &[Percentile],
) -> Vec<(Vec<Option<Nanos>>, ReplayOutcome)> {
    let make = || (Replay::new(system, service), Percentiles::default());
    parallel::map_with(alignments.len(), make, |(replay, tails), index| {
        let shifts = alignments[index].shifts(system);
        tails.reset(&replay.counts(&shifts), percentiles);
        let outcome = replay.run(&shifts, tails);
        (tails.take(), outcome)
    })
}

//! Bands: streams whose latency budgets are of the same order of magnitude.
//!
//! The latencies of a stream depend only on streams of its own and of higher priorities. With the streams of
//! all priorities there would be work near each instant, and almost everything would have to be replayed for
//! the smallest budget. So streams are divided into bands by the power of two below their budgets, four bands
//! to each. A band is examined with the bands before it: every stream in a later band has a lower priority
//! than all of them.
//!
//! If priorities do not follow budgets, or differ between stages, the affected streams share a band.

use super::latency_target::LatencyTarget;
use super::stream::ReplayStream;
use model::Stage;

/// The bands between one power of two and the next, as a power of two.
const BITS_PER_MAGNITUDE: u32 = 2;

/// The power of two below the budgets of a band, nanoseconds.
pub(super) fn magnitude(band: u32) -> u32 {
    band >> BITS_PER_MAGNITUDE
}

/// The band of a stream by its budget alone.
fn band_of_budget(target: &LatencyTarget) -> u32 {
    let budget = target.budget.0.max(1);
    let magnitude = budget.ilog2();
    // The bits behind the first one.
    let fraction = (u128::from(budget) << BITS_PER_MAGNITUDE) >> magnitude;
    let fraction = u32::try_from(fraction).expect("below 8") - (1 << BITS_PER_MAGNITUDE);
    (magnitude << BITS_PER_MAGNITUDE) + fraction
}

/// The band of each stream: no stream delays one of a lower band.
pub(super) fn latency_bands(streams: &[ReplayStream<'_>], targets: &[LatencyTarget]) -> Vec<u32> {
    let ranks = if same_at_all_stages(streams) {
        streams.iter().map(|stream| stream.priority[Stage::NetworkIn]).collect()
    } else {
        vec![0; streams.len()]
    };
    // Every stream that another may delay is in the latter's band or a later one: from the lowest priority
    // up, bands never rise.
    let mut order: Vec<usize> = (0..streams.len()).collect();
    order.sort_by_key(|&stream| std::cmp::Reverse(ranks[stream]));
    let mut bands = vec![0; streams.len()];
    let mut least = u32::MAX;
    for equals in order.chunk_by(|&a, &b| ranks[a] == ranks[b]) {
        least = equals.iter().map(|&stream| band_of_budget(&targets[stream])).fold(least, u32::min);
        equals.iter().for_each(|&stream| bands[stream] = least);
    }
    bands
}

/// Returns true if every stream has the same priority at all stages.
fn same_at_all_stages(streams: &[ReplayStream<'_>]) -> bool {
    streams.iter().all(|stream| {
        let first = stream.priority[Stage::NetworkIn];
        Stage::ALL.into_iter().all(|stage| stream.priority[stage] == first)
    })
}

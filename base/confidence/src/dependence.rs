//! Effective number of independent values in a sequence of dependent ones.

use std::ops::Range;

/// Numbers of blocks that a sequence is cut into. More blocks estimate the variance between them more
/// precisely; fewer, longer blocks capture longer dependence. The larger effect of the two counts.
pub const BLOCKS: [usize; 2] = [32, 12];

/// Returns the *design effect*: the variance of the number of events in a block ÷ that of independent
/// events. `events` are the positions, ascending, of the values that have some property, among `count`
/// values in order of time. The effect is 1 for independent events, the size of a cluster when events
/// come in clusters, and never below 1. It is also 1 with fewer than two events a block on average, which
/// hide any dependence: use a more frequent property then.
///
/// Blocks are equally many consecutive values. Dependence that reaches beyond a twelfth of the sequence is not seen.
pub fn design_effect(events: impl IntoIterator<Item = usize>, count: usize) -> f64 {
    design_effect_of_runs(events.into_iter().map(|at| at..at + 1), count)
}

/// Returns the [`design_effect`] of events that follow each other without a gap in each of these runs: ascending ranges of
/// positions that do not overlap. The time grows with the number of runs, not of events.
pub fn design_effect_of_runs(runs: impl IntoIterator<Item = Range<usize>>, count: usize) -> f64 {
    let runs: Vec<Range<usize>> = runs.into_iter().collect();
    BLOCKS.map(|blocks| between(blocks, &runs, count)).into_iter().fold(1.0, f64::max)
}

fn between(blocks: usize, runs: &[Range<usize>], count: usize) -> f64 {
    let block = count / blocks;
    if block == 0 {
        return 1.0;
    }
    let mut found = vec![0u64; blocks];
    for run in runs {
        // The rest of the division belongs to no block.
        let mut at = run.start;
        let end = run.end.min(block * blocks);
        while at < end {
            let next = (at - at % block + block).min(end);
            found[at / block] += (next - at) as u64;
            at = next;
        }
    }
    let mean = found.iter().sum::<u64>() as f64 / blocks as f64;
    let share = mean / block as f64;
    let independent = mean * (1.0 - share);
    if independent <= 0.0 {
        return 1.0;
    }
    let squares: f64 = found.iter().map(|n| (*n as f64 - mean).powi(2)).sum();
    squares / (blocks - 1) as f64 / independent
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt as _, SeedableRng as _};

    #[test]
    fn clusters_count_as_one() {
        let mut random = StdRng::seed_from_u64(1);
        let starts: Vec<usize> = (0..320_000).step_by(10).filter(|_| random.random_bool(0.1)).collect();
        let alone = design_effect(starts.iter().copied(), 320_000);
        assert!((1.0..3.0).contains(&alone), "{alone}");
        let clusters = starts.iter().flat_map(|start| *start..start + 10);
        let ten = design_effect(clusters, 320_000);
        assert!((5.5..30.0).contains(&ten), "{ten}");
    }

    #[test]
    fn nothing_to_see() {
        assert_eq!(design_effect([], 1000), 1.0);
        assert_eq!(design_effect(0..1000, 1000), 1.0);
        assert_eq!(design_effect([3], 5), 1.0);
    }

    #[test]
    fn runs_are_their_events() {
        let mut random = StdRng::seed_from_u64(2);
        for count in [1, 31, 33, 1000, 4_321] {
            let mut runs = Vec::new();
            let mut at = 0;
            while at < count {
                let begin = at + random.random_range(0..50);
                at = begin + random.random_range(0..300);
                runs.push(begin.min(count)..at.min(count));
            }
            let events = design_effect(runs.iter().cloned().flatten(), count);
            assert_eq!(design_effect_of_runs(runs, count), events, "{count}");
        }
        // More events than a machine has bytes.
        let huge = usize::MAX / 4;
        assert!(design_effect_of_runs(std::iter::once(0..huge / 2), huge) > 1e15);
    }
}

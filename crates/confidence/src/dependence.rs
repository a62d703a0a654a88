//! How many independent values a sequence of dependent ones is worth.

/// Blocks that a sequence is cut into.
pub const BLOCKS: usize = 32;

/// The variance of the number of events in a block ÷ that of independent events: the *design effect*. `events`
/// are the positions, ascending, of the values that have some property, among `count` in order of time.
/// 1 for independent ones, the size of a cluster when events come in clusters, never below 1; 1 also where it
/// cannot be said: fewer than two events a block on average hide any dependence, so ask for a more frequent
/// property then.
///
/// Blocks are equally many consecutive values. Dependence that reaches beyond a block is not seen.
pub fn design_effect(events: impl IntoIterator<Item = usize>, count: usize) -> f64 {
    let block = count / BLOCKS;
    if block == 0 {
        return 1.0;
    }
    let mut found = [0u64; BLOCKS];
    // The rest of the division belongs to no block.
    events.into_iter().filter(|at| *at < block * BLOCKS).for_each(|at| found[at / block] += 1);
    let mean = found.iter().sum::<u64>() as f64 / BLOCKS as f64;
    let share = mean / block as f64;
    let independent = mean * (1.0 - share);
    if independent <= 0.0 {
        return 1.0;
    }
    let squares: f64 = found.iter().map(|n| (*n as f64 - mean).powi(2)).sum();
    (squares / (BLOCKS - 1) as f64 / independent).max(1.0)
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
        assert!((1.0..1.7).contains(&alone), "{alone}");
        let clusters = starts.iter().flat_map(|start| *start..start + 10);
        let ten = design_effect(clusters, 320_000);
        // The estimate has 31 degrees of freedom: within a factor of 1.7 in all but a millionth of cases.
        assert!((5.5..17.0).contains(&ten), "{ten}");
    }

    #[test]
    fn nothing_to_see() {
        assert_eq!(design_effect([], 1000), 1.0);
        assert_eq!(design_effect(0..1000, 1000), 1.0);
        assert_eq!(design_effect([3], 5), 1.0);
    }
}

//! Early decisions against complete ones.

mod support;

use proptest::prelude::*;
use sim::{
    Alignment, LatencyTarget, PreemptionMode, ReplaySystem, ReplayTrace, TargetMiss, alignment_percentiles,
    first_target_miss,
};
use support::{Plain, plain, streams};
use units::{Nanos, Percentile};

proptest! {
    #[test]
    fn the_first_excess_is_that_of_all_percentiles(
        plain in proptest::collection::vec(plain(), 1..4),
        budgets in [0u64..20, 0u64..20, 0u64..20],
        percent in prop_oneof![Just(100.0), 20.0f64..100.0],
        (count, spare) in (1usize..12, 0usize..4),
    ) {
        let traces: Vec<ReplayTrace> = plain.iter().map(Plain::trace).collect();
        let Ok(system) = ReplaySystem::new(streams(&plain, &traces)) else { return Ok(()) };
        let percentile = Percentile::new(percent).unwrap();
        let target = |i: usize| LatencyTarget { percentile, budget: Nanos(budgets[i]) };
        let targets: Vec<LatencyTarget> = (0..plain.len()).map(target).collect();
        let alignments: Vec<Alignment> = Alignment::random(5, count).collect();
        let runs = alignment_percentiles(&system, PreemptionMode::Preemptive, &alignments, &vec![percentile; plain.len()]);
        // One alignment after the other, until a stream has failed once too often.
        let mut failures = vec![0; plain.len()];
        let decided = runs.iter().enumerate().find_map(|(index, (values, _))| {
            for (stream, value) in values.iter().enumerate() {
                failures[stream] += usize::from(value.unwrap() > targets[stream].budget);
            }
            failures.iter().any(|f| *f > spare).then_some(index + 1)
        });
        let got = first_target_miss(&system, &alignments, &targets, spare);
        prop_assert_eq!(got.map(|excess| excess.alignments), decided);
        if let Some(TargetMiss { stream, .. }) = got {
            prop_assert!(failures[stream] > spare);
        }
    }
}

//! Replays of the stretches in which a request may be late, against replays of everything.

mod support;

use proptest::prelude::*;
use sim::{
    Alignment, LatencyTarget, PreemptionMode, ReplaySystem, ReplayTrace, TargetSearch, alignment_percentiles,
    first_target_miss, percentiles_above, preemptive_percentiles,
};
use support::{Plain, streams};
use units::{Nanos, Percentile};

/// Nanoseconds of a millisecond.
const MS: u64 = 1_000_000;

/// Factor on pauses in traces of hours, whose work is counted in longer cells.
const LONG: u64 = 5_000;

/// Bursts with pauses: seconds long, works of up to 40 ms; of half of the streams some stages without work.
fn bursty() -> impl Strategy<Value = Plain> {
    let work = || prop_oneof![2 => Just(0u64), 3 => 0..2 * MS, 1 => 0..40 * MS];
    let job = (prop_oneof![3 => 0..3 * MS, 1 => 0..900 * MS], [work(), work(), work()]);
    let priorities = [0u32..3, 0u32..3, 0u32..3];
    (prop::collection::vec(job, 1..60), 0..2000 * MS, priorities, prop_oneof![Just(0u64), Just(1000)])
        .prop_map(|(gaps, rest, priority, work_min)| {
            let mut at = 0;
            let mut jobs = Vec::new();
            for (gap, work) in gaps {
                at += gap;
                jobs.push((at, work.map(|work| work.max(work_min))));
            }
            Plain { jobs, period: at + rest + 1, priority, shift: 0 }
        })
}

/// The same bursts with longer pauses.
fn stretched(plain: Plain, factor: u64) -> Plain {
    let mut before = 0;
    let mut at = 0;
    let mut jobs = Vec::new();
    for (arrival, work) in plain.jobs {
        let gap = arrival - before;
        at += if gap < 3 * MS { gap } else { gap * factor };
        before = arrival;
        jobs.push((at, work));
    }
    Plain { jobs, period: at + (plain.period - before) * factor, ..plain }
}

/// Streams with the target of each.
fn targeted() -> impl Strategy<Value = Vec<(Plain, LatencyTarget)>> {
    let budget = prop_oneof![1 => 0..5 * MS, 4 => 4 * MS..400 * MS, 1 => Just(u64::MAX)];
    let percentile = prop_oneof![Just(100.0), 20.0f64..100.0];
    // Mostly one priority at all stages, and mostly small budgets for high ones, as in plans.
    let stream =
        (bursty(), budget, percentile, any::<bool>()).prop_map(|(mut plain, budget, percent, alike)| {
            let percentile = Percentile::new(percent).expect("a percentile");
            if alike {
                plain.priority = [budget.checked_ilog2().unwrap_or(0); 3];
            }
            (plain, LatencyTarget { percentile, budget: Nanos(budget) })
        });
    // All pauses alike: seconds of one stream would repeat too often within hours of another.
    let stretch = prop_oneof![3 => Just(1u64), 1 => Just(LONG)];
    (prop::collection::vec(stream, 1..6), stretch).prop_map(|(streams, factor)| {
        streams.into_iter().map(|(plain, target)| (stretched(plain, factor), target)).collect()
    })
}

/// Returns the results of complete replays: the percentiles above targets, and true if every stream keeps
/// its target except in `spare` alignments.
fn by_complete_replays(
    system: &ReplaySystem<'_>,
    alignments: &[Alignment],
    targets: &[LatencyTarget],
    spare: usize,
) -> (Vec<Vec<Option<Nanos>>>, bool) {
    let percentiles: Vec<Percentile> = targets.iter().map(|target| target.percentile).collect();
    let runs = alignment_percentiles(system, PreemptionMode::Preemptive, alignments, &percentiles);
    let mut above = Vec::new();
    for (values, _) in runs {
        let values = values.into_iter().zip(targets);
        above.push(
            values.map(|(value, target)| value.filter(|value| *value > target.budget)).collect::<Vec<_>>(),
        );
    }
    let misses = |stream: usize| above.iter().filter(|run| run[stream].is_some()).count();
    let kept = (0..targets.len()).all(|stream| misses(stream) <= spare);
    (above, kept)
}

#[test]
fn a_window_shorter_than_a_cell_is_replayed() {
    let plain = Plain { jobs: vec![(0, [0, 0, 1])], period: 100, priority: [0; 3], shift: 0 };
    let traces = [plain.trace()];
    let system = ReplaySystem::new(streams(&[plain], &traces)).expect("a steady system");
    let alignments: Vec<Alignment> = Alignment::random(7, 4).collect();
    let percentile = Percentile::new(100.0).expect("a percentile");
    for (budget, kept) in [(0, false), (1, true)] {
        let targets = [LatencyTarget { percentile, budget: Nanos(budget) }];
        assert_eq!(first_target_miss(&system, &alignments, &targets, 0).is_none(), kept, "{budget} ns");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nobody_who_is_late_is_missed(streams_and_targets in targeted(), spare in 0usize..3) {
        let (plain, targets): (Vec<Plain>, Vec<LatencyTarget>) = streams_and_targets.into_iter().unzip();
        let traces: Vec<ReplayTrace> = plain.iter().map(Plain::trace).collect();
        let Ok(system) = ReplaySystem::new(streams(&plain, &traces)) else { return Ok(()) };
        let alignments: Vec<Alignment> = Alignment::random(7, 4).collect();
        let (above, kept) = by_complete_replays(&system, &alignments, &targets, spare);
        prop_assert_eq!(percentiles_above(&system, &alignments, &targets), above);
        prop_assert_eq!(first_target_miss(&system, &alignments, &targets, spare).is_none(), kept);
    }

    /// Percentiles by the longest stretches, guessed from one alignment to the next, against complete replays.
    #[test]
    fn percentiles_are_those_of_complete_replays(streams_and_targets in targeted(), short in any::<bool>()) {
        let (plain, targets): (Vec<Plain>, Vec<LatencyTarget>) = streams_and_targets.into_iter().unzip();
        let traces: Vec<ReplayTrace> = plain.iter().map(Plain::trace).collect();
        let Ok(system) = ReplaySystem::new(streams(&plain, &traces)) else { return Ok(()) };
        let longest = system.horizon().0;
        let system = if short { system.with_horizon(Nanos(longest.div_ceil(7))) } else { system };
        let percentiles: Vec<Percentile> = targets.iter().map(|target| target.percentile).collect();
        let mut alignments: Vec<Alignment> = Alignment::random(5, 6).collect();
        alignments.extend([Alignment::Recorded, Alignment::BurstsTogether]);
        let complete = alignment_percentiles(&system, PreemptionMode::Preemptive, &alignments, &percentiles);
        let complete: Vec<_> = complete.into_iter().map(|(values, _)| values).collect();
        prop_assert_eq!(preemptive_percentiles(&system, &alignments, &percentiles, &|| false), Some(complete));
    }

    /// One question after the other, about parts of the same streams.
    #[test]
    fn a_search_remembers_nothing_wrong(
        streams_and_targets in targeted(),
        questions in prop::collection::vec(prop::collection::vec(any::<bool>(), 5), 1..8),
        spare in 0usize..3,
    ) {
        let (plain, targets): (Vec<Plain>, Vec<LatencyTarget>) = streams_and_targets.into_iter().unzip();
        let traces: Vec<ReplayTrace> = plain.iter().map(Plain::trace).collect();
        let all = streams(&plain, &traces);
        let alignments: Vec<Alignment> = Alignment::random(7, 4).collect();
        let mut search = TargetSearch::new(alignments.clone(), spare);
        for question in questions {
            let asked = |stream: &usize| question[*stream];
            let part = (0..plain.len()).filter(asked).map(|stream| all[stream]).collect();
            let part_targets: Vec<LatencyTarget> = (0..plain.len()).filter(asked).map(|stream| targets[stream]).collect();
            let Ok(system) = ReplaySystem::new(part) else { continue };
            let (_, kept) = by_complete_replays(&system, &alignments, &part_targets, spare);
            prop_assert_eq!(search.keeps_targets(&system, &part_targets), kept);
        }
    }
}

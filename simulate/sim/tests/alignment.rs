//! Shifts: sampled against all that there are, groups, and the correlated day.

mod support;

use confidence::tolerance_rank;
use model::{PerStage, Stage};
use proptest::prelude::*;
use sim::{
    Alignment, PreemptionMode, Replay, ReplayOutcome, ReplayStream, ReplaySystem, ReplayTrace,
    alignment_percentiles,
};
use std::collections::BTreeMap;
use support::{Departures, Plain, plain, streams};
use units::{Nanos, Percentile};

fn storage(jobs: &[(u64, u64)], period: u64, priority: u32) -> Plain {
    let jobs = jobs.iter().map(|&(arrival, work)| (arrival, [0, work, 0])).collect();
    Plain { jobs, period, priority: [priority; 3], shift: 0 }
}

/// The percentiles of one alignment.
fn one(system: &ReplaySystem<'_>, shifts: &[Nanos], percentile: f64) -> Vec<Nanos> {
    let mut tails = sim::Percentiles::default();
    let mut replay = Replay::new(system, PreemptionMode::Preemptive);
    let wanted = vec![Percentile::new(percentile).unwrap(); shifts.len()];
    tails.reset(&replay.counts(shifts), &wanted);
    replay.run(shifts, &mut tails);
    tails.take().into_iter().map(Option::unwrap).collect()
}

#[test]
fn samples_have_the_distribution_of_all_shifts() {
    let plain = [
        storage(&[(0, 3), (2, 4), (17, 1)], 29, 0),
        storage(&[(1, 5), (9, 2)], 29, 1),
        storage(&[(0, 1), (3, 2), (5, 1)], 29, 1),
    ];
    let traces: Vec<ReplayTrace> = plain.iter().map(Plain::trace).collect();
    let system = ReplaySystem::new(streams(&plain, &traces)).unwrap();
    // Only relative shifts matter when all periods are equal: 29² alignments are all there are.
    let mut all: BTreeMap<Nanos, f64> = BTreeMap::new();
    for second in 0..29 {
        for third in 0..29 {
            let latency = one(&system, &[Nanos(0), Nanos(second), Nanos(third)], 100.0)[2];
            *all.entry(latency).or_default() += 1.0 / 841.0;
        }
    }
    assert!(all.len() > 8, "a distribution worth comparing: {all:?}");
    let alignments: Vec<Alignment> = Alignment::random(7, 4000).collect();
    let maximum = [Percentile::new(100.0).unwrap(); 3];
    let runs = alignment_percentiles(&system, PreemptionMode::Preemptive, &alignments, &maximum);
    let mut values: Vec<Nanos> = runs.iter().map(|(values, _)| values[2].unwrap()).collect();
    values.sort_unstable();
    let mut cumulated = 0.0;
    let mut furthest = 0.0f64;
    for (latency, share) in &all {
        cumulated += share;
        let sampled = values.partition_point(|v| v <= latency) as f64 / values.len() as f64;
        furthest = furthest.max((sampled - cumulated).abs());
    }
    // Kolmogorov: 1.95/√n is exceeded once in a thousand.
    assert!(furthest < 1.95 / (values.len() as f64).sqrt(), "{furthest}");
    // The promise of the tolerance limit, family by family.
    let rank = tolerance_rank(59, 0.95, 0.95).unwrap();
    let kept = values.len() / 59;
    let runs: Vec<Nanos> = runs.iter().map(|(values, _)| values[2].unwrap()).collect();
    let covers = |family: &&[Nanos]| {
        let mut family = family.to_vec();
        family.sort_unstable();
        all.range(..=family[rank - 1]).map(|(_, share)| share).sum::<f64>() >= 0.95
    };
    let good = runs.chunks_exact(59).filter(covers).count();
    assert!(good as f64 >= 0.88 * kept as f64, "{good} of {kept} families cover 95 %");
}

#[test]
fn a_group_keeps_its_alignment_and_others_do_not_move_it() {
    let plain = [storage(&[(0, 1)], 50, 0), storage(&[(0, 1)], 70, 0), storage(&[(0, 1)], 90, 0)];
    let traces: Vec<ReplayTrace> = plain.iter().map(Plain::trace).collect();
    let grouped = |groups: &[usize]| {
        let mut streams = streams(&plain[..groups.len()], &traces);
        streams.iter_mut().zip(groups).for_each(|(stream, group)| stream.group = *group);
        ReplaySystem::new(streams).unwrap()
    };
    let together = grouped(&[4, 2, 4]);
    let apart = grouped(&[4, 2, 9]);
    let fewer = grouped(&[4, 2]);
    let mut differ = 0;
    for alignment in Alignment::random(3, 50) {
        let shifts = alignment.shifts(&together);
        assert_eq!(shifts[0], shifts[2]);
        assert!(shifts[1] < Nanos(70));
        let without = alignment.shifts(&apart);
        assert_eq!(without[..2], alignment.shifts(&fewer));
        assert_eq!(without[1], shifts[1]);
        differ += usize::from(without[0] != without[2]);
    }
    assert!(differ > 40);
    assert_eq!(Alignment::Recorded.shifts(&together), [Nanos::ZERO; 3]);
}

#[test]
fn a_correlated_day_meets_at_the_worst_moment() {
    // The worst burst of the first ends at 11, of the second at 40, independent of the arrivals in
    // between.
    let plain = [storage(&[(3, 1), (10, 5), (11, 6)], 100, 0), storage(&[(0, 2), (40, 9), (70, 8)], 100, 1)];
    let traces: Vec<ReplayTrace> = plain.iter().map(Plain::trace).collect();
    let system = ReplaySystem::new(streams(&plain, &traces)).unwrap();
    let shifts = Alignment::BurstsTogether.shifts(&system);
    assert_eq!(shifts, [Nanos(39), Nanos(10)]);
    // 9 of its own and the 10 of the first that are left; met just before its burst, all 12 of the first come
    // between. Bursts that end together are bad, not the worst there is.
    let worst = (0..100).map(|s| one(&system, &[Nanos(0), Nanos(s)], 100.0)[1]).max().unwrap();
    assert_eq!((one(&system, &shifts, 100.0)[1], worst), (Nanos(19), Nanos(21)));
}

#[test]
fn a_burst_may_cross_the_end_of_the_period() {
    let plain = [storage(&[(1, 6), (50, 7), (98, 6)], 100, 0), storage(&[(0, 1)], 100, 1)];
    let traces: Vec<ReplayTrace> = plain.iter().map(Plain::trace).collect();
    let system = ReplaySystem::new(streams(&plain, &traces)).unwrap();
    assert_eq!(Alignment::BurstsTogether.shifts(&system), [Nanos(49), Nanos(50)]);
}

#[test]
fn busy_systems_say_when_they_are_not_certain() {
    // Each stage is busy 60 % of the time, all together more than one.
    let busy = Plain { jobs: vec![(0, [6, 6, 6])], period: 10, priority: [0; 3], shift: 0 };
    let calm = Plain { jobs: vec![(0, [2, 2, 2])], ..busy.clone() };
    let run = |plain: Plain| -> (Departures, ReplayOutcome) {
        let traces = [plain.trace()];
        let system = ReplaySystem::new(streams(&[plain], &traces)).unwrap();
        let mut departures = Departures::default();
        let outcome = Replay::new(&system, PreemptionMode::Preemptive).run(&[Nanos::ZERO], &mut departures);
        (departures, outcome)
    };
    let (departures, outcome) = run(busy);
    assert_eq!((departures.0, outcome.steady, outcome.warm_up), (vec![(0, 18)], false, Nanos(10)));
    let (departures, outcome) = run(calm);
    assert_eq!((departures.0, outcome.steady), (vec![(0, 6)], true));
}

proptest! {
    /// Found by sorting all latencies.
    #[test]
    fn percentiles_are_nearest_ranks(
        plain in proptest::collection::vec(plain(), 1..4),
        percent in prop_oneof![Just(100.0), Just(99.9), Just(50.0), 0.1f64..100.0],
    ) {
        let traces: Vec<ReplayTrace> = plain.iter().map(Plain::trace).collect();
        let Ok(system) = ReplaySystem::new(streams(&plain, &traces)) else { return Ok(()) };
        let system = system.with_horizon(Nanos(500));
        let shifts: Vec<Nanos> = plain.iter().map(|p| Nanos(p.shift)).collect();
        let mut all = Departures::default();
        Replay::new(&system, PreemptionMode::Preemptive).run(&shifts, &mut all);
        let got = one(&system, &shifts, percent);
        for (stream, got) in got.into_iter().enumerate() {
            let mut own: Vec<u64> = all.0.iter().filter(|d| d.0 == stream).map(|d| d.1).collect();
            own.sort_unstable();
            let share = |latency: u64| own.iter().filter(|l| **l <= latency).count() as f64 / own.len() as f64;
            let expected = own.iter().copied().find(|l| share(*l) >= percent / 100.0 - 1e-12);
            prop_assert_eq!(Some(got.0), expected);
        }
    }
}

#[test]
fn overload_is_refused_and_full_load_too() {
    let plain = [storage(&[(0, 6)], 10, 0), storage(&[(0, 4)], 10, 1)];
    let traces: Vec<ReplayTrace> = plain.iter().map(Plain::trace).collect();
    let error = ReplaySystem::new(streams(&plain, &traces)).unwrap_err();
    assert!(error.to_string().contains("storage is overloaded: 100.0%"), "{error}");
    assert!(ReplaySystem::new(Vec::new()).is_err());
    let idle = storage(&[(0, 0)], 1, 0).trace();
    let stream = ReplayStream { trace: &idle, priority: PerStage::from_fn(|_: Stage| u32::MAX), group: 0 };
    let system = ReplaySystem::new(vec![stream]).unwrap();
    assert_eq!(one(&system, &[Nanos::ZERO], 50.0), [Nanos::ZERO]);
}

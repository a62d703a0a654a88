//! Replays of the stretches in which somebody may be late, against replays of everything.

mod support;

use proptest::prelude::*;
use support::{Departures, Plain, streams};
use tailwright_sim::{Alignment, PreemptionMode, Replay, ReplaySystem, ReplayTrace};
use units::Nanos;

/// Nanoseconds of a millisecond.
const MS: u64 = 1_000_000;

/// Bursts with pauses: seconds long, works of up to 40 ms, some stages without work.
fn bursty() -> impl Strategy<Value = Plain> {
    let work = || prop_oneof![2 => Just(0u64), 3 => 0..2 * MS, 1 => 0..40 * MS];
    let job = (prop_oneof![3 => 0..3 * MS, 1 => 0..900 * MS], [work(), work(), work()]);
    (prop::collection::vec(job, 1..60), 0..2000 * MS, [0u32..3, 0u32..3, 0u32..3]).prop_map(
        |(gaps, rest, priority)| {
            let mut at = 0;
            let mut jobs = Vec::new();
            for (gap, work) in gaps {
                at += gap;
                jobs.push((at, work));
            }
            Plain { jobs, period: at + rest + 1, priority, shift: 0 }
        },
    )
}

fn late(departures: &Departures, threshold: u64) -> Vec<(usize, u64)> {
    departures.0.iter().copied().filter(|(_, latency)| *latency > threshold).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn nobody_who_is_late_is_missed(
        plain in prop::collection::vec(bursty(), 1..5),
        threshold in 4 * MS..400 * MS,
        preemption in prop_oneof![Just(PreemptionMode::Preemptive), Just(PreemptionMode::NonPreemptive)],
    ) {
        let traces: Vec<ReplayTrace> = plain.iter().map(Plain::trace).collect();
        let Ok(system) = ReplaySystem::new(streams(&plain, &traces)) else { return Ok(()) };
        let mut replay = Replay::new(&system, preemption);
        for alignment in Alignment::random(7, 3) {
            let shifts = alignment.shifts(&system);
            let (mut all, mut some) = (Departures::default(), Departures::default());
            replay.run(&shifts, &mut all);
            replay.run_above(&shifts, Nanos(threshold), &mut some);
            prop_assert_eq!(late(&some, threshold), late(&all, threshold));
            prop_assert!(some.0.len() <= all.0.len());
        }
    }
}

#[test]
fn what_is_certainly_in_time_is_not_replayed() {
    // A burst of a second's half, then ten seconds of small requests.
    let mut jobs: Vec<(u64, [u64; 3])> = vec![(0, [0, 500 * MS, 0])];
    jobs.extend((1..1000).map(|number| (1000 * MS + number * 10 * MS, [0, MS, 0])));
    let plain = [Plain { jobs, period: 11_000 * MS, priority: [0; 3], shift: 0 }];
    let traces: Vec<ReplayTrace> = plain.iter().map(Plain::trace).collect();
    let system = ReplaySystem::new(streams(&plain, &traces)).expect("not overloaded");
    let mut replay = Replay::new(&system, PreemptionMode::Preemptive);
    let mut seen = Departures::default();
    replay.run_above(&[Nanos(3 * MS)], Nanos(100 * MS), &mut seen);
    assert_eq!(late(&seen, 100 * MS), [(0, 500 * MS)]);
    assert!(seen.0.len() < 50, "{} of 1000 were replayed", seen.0.len());
}

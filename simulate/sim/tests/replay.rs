//! The replay against a simulator that steps from nanosecond to nanosecond.

mod support;

use proptest::prelude::*;
use sim::{PreemptionMode, Replay, ReplaySystem, ReplayTrace};
use support::{Departures, plain, step_by_step, streams};
use units::Nanos;

proptest! {
    #[test]
    fn agrees_with_a_simulation_in_steps(
        plain in proptest::collection::vec(plain(), 1..5),
        service in prop_oneof![Just(PreemptionMode::Preemptive), Just(PreemptionMode::NonPreemptive)],
        horizon in proptest::option::of(0u64..100),
    ) {
        let traces: Vec<ReplayTrace> = plain.iter().map(support::Plain::trace).collect();
        let Ok(mut system) = ReplaySystem::new(streams(&plain, &traces)) else { return Ok(()) };
        if let Some(horizon) = horizon {
            system = system.with_horizon(Nanos(horizon));
        }
        let shifts: Vec<Nanos> = plain.iter().map(|p| Nanos(p.shift)).collect();
        let mut replay = Replay::new(&system, service);
        let mut departures = Departures::default();
        let outcome = replay.run(&shifts, &mut departures);
        let longest = plain.iter().map(|p| i64::try_from(p.period).unwrap()).max().unwrap();
        let past = if outcome.steady { 20 * longest } else { longest };
        let horizon = i64::try_from(system.horizon().0).unwrap();
        let judge = step_by_step(&plain, service, -past, horizon);
        prop_assert_eq!(&departures, &judge);
        prop_assert_eq!(departures.0.len(), replay.counts(&shifts).iter().sum::<usize>());
        // The memory that a replay leaves behind is of no consequence to the next.
        let mut again = Departures::default();
        prop_assert_eq!(replay.run(&shifts, &mut again), outcome);
        prop_assert_eq!(again, departures);
    }
}

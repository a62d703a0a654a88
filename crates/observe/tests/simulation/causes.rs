//! The causes of requests of a worker whose every nanosecond is known, counted one by one.

use crate::machine::Machine;
use crate::worker::WorkerScript;
use proptest::prelude::*;
use tailwright_observe::{
    AttributedRequest, Cause, CauseAttribution, CauseObserver, IntendedWaits, RequestJoiner, TakenOut,
};

fn divided(script: &WorkerScript) -> Vec<AttributedRequest> {
    let mut attribution = CauseAttribution::new();
    script.events.iter().for_each(|event| attribution.handle(event));
    script.requests.iter().map(|request| attribution.divide(request)).collect()
}

proptest! {
    #[test]
    fn every_nanosecond_has_its_cause(seed: u64, steps in 1..150usize, softirqs: bool) {
        let script = WorkerScript::play(seed, steps, softirqs);
        for (request, divided) in script.requests.iter().zip(divided(&script)) {
            let truth = script.truth(request);
            let count = |cause: Cause| truth.iter().filter(|other| **other == cause).count() as u64;
            let queue = [Cause::AllBusy, Cause::OtherIdle];
            for cause in Cause::ALL.into_iter().filter(|cause| !queue.contains(cause)) {
                let network = match cause {
                    Cause::NetworkIn => request.points[2] - request.points[0],
                    Cause::NetworkOut => 3,
                    _ => 0,
                };
                prop_assert_eq!(divided.time(cause), count(cause) + network, "{:?} of {:?}", cause, request);
            }
            let found = queue.map(|cause| divided.time(cause));
            let true_queue = queue.map(count);
            prop_assert_eq!(found.iter().sum::<u64>(), true_queue.iter().sum::<u64>());
            // When in a run its interrupts were is not known.
            prop_assert!(softirqs || found == true_queue, "{:?} {:?}", found, true_queue);
            prop_assert_eq!(divided.latency(), request.latency_from_wire());
            let hog: u64 = divided.interferers.iter().map(|(_, time)| time).sum();
            prop_assert_eq!(hog, divided.time(Cause::OtherProcess));
        }
    }

    /// Whatever is missing, the causes add up to the latency, and what is missing is not seen.
    #[test]
    fn missing_events_leave_the_sum(seed: u64, keep in prop::collection::vec(any::<bool>(), 400)) {
        let mut script = WorkerScript::play(seed, 120, true);
        let mut keep = keep.iter();
        script.events.retain(|_| keep.next().copied().unwrap_or(true));
        for (request, divided) in script.requests.iter().zip(divided(&script)) {
            prop_assert_eq!(divided.latency(), request.latency_from_wire());
        }
    }

    #[test]
    fn a_machine_that_tells_nothing_of_its_threads(seed: u64, swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..20)) {
        let mut machine = Machine::run(seed, 60);
        let length = machine.events.len();
        for (a, b) in swaps {
            machine.events.swap(a.index(length), b.index(length));
        }
        let (mut joiner, mut finished) = (RequestJoiner::new(), Vec::new());
        let mut causes = CauseObserver::new(IntendedWaits::Included);
        for event in &machine.events {
            causes.handle(event);
            joiner.handle(event, &mut finished);
        }
        joiner.finish(&mut finished);
        finished.iter().for_each(|request| causes.add(request));
        let report = causes.report();
        prop_assert_eq!(report.replayed, finished.len());
        let mut latencies: Vec<u64> = finished.iter().map(tailwright_observe::ObservedRequest::latency_from_wire).collect();
        latencies.sort_unstable();
        if let Some(nothing) = report.without(TakenOut::Nothing) {
            // There are fewer than 1000.
            prop_assert_eq!(nothing.percentiles[2], latencies[latencies.len() - 1]);
        }
    }
}

#[test]
fn the_script_does_what_is_to_be_tested() {
    let mut seen = [0u64; tailwright_observe::CAUSES];
    for seed in 0..20 {
        let script = WorkerScript::play(seed, 150, true);
        for request in divided(&script) {
            seen.iter_mut().zip(Cause::ALL).for_each(|(sum, cause)| *sum += request.time(cause));
        }
    }
    // One request of a worker at a time, all of which is seen.
    for cause in Cause::ALL.into_iter().filter(|cause| ![Cause::ReadTogether, Cause::Unknown].contains(cause))
    {
        assert!(seen[cause as usize] > 0, "{cause:?}: {seen:?}");
    }
}

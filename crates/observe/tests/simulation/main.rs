//! Requests of a simulated machine, reconstructed from its events: exactly those that there were, with exactly their
//! instants, whatever the segments, the reads, the writes and the order of packets.

mod causes;
mod machine;
mod worker;

use machine::{Machine, Truth};
use proptest::prelude::*;
use std::net::{IpAddr, Ipv4Addr};
use tailwright_observe::{
    EventKind, KernelEvent, ObservedRequest, POINTS, RequestJoiner, RequestQuality, ThreadSchedule,
};

/// An event at a server with port 80 that says nothing but its instant and its kind.
fn blank_event(time: u64, kind: EventKind) -> KernelEvent {
    KernelEvent {
        time,
        flow: 0,
        earlier: 0,
        socket: 0,
        begin: 0,
        end: 0,
        thread: 0,
        process: 0,
        local_port: 80,
        peer_port: 0,
        kind,
        push: false,
        udp: false,
        answer: false,
        datagram_head: [0; 8],
        lost: 0,
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        schedule: ThreadSchedule::default(),
    }
}

/// Joins all events, and sorts what comes of them.
fn join(machine: &Machine) -> (Vec<ObservedRequest>, RequestJoiner) {
    let (mut joiner, mut finished) = (RequestJoiner::new(), Vec::new());
    machine.events.iter().for_each(|event| joiner.handle(event, &mut finished));
    joiner.finish(&mut finished);
    finished.sort_by_key(|request| (request.peer, request.points));
    (finished, joiner)
}

fn truths(machine: &Machine) -> Vec<&Truth> {
    let mut truths: Vec<&Truth> = machine.truths.iter().collect();
    truths.sort_by_key(|truth| (truth.peer, truth.points));
    truths
}

proptest! {
    #[test]
    fn every_request_is_found_with_its_instants(seed: u64, steps in 1..200usize) {
        let mut machine = Machine::run(seed, steps);
        // So that the last round of each connection is known to be complete.
        machine.close();
        let (found, joiner) = join(&machine);
        let truths = truths(&machine);
        prop_assert_eq!(found.len(), truths.len(), "{:?}", joiner.counts());
        for (request, truth) in found.iter().zip(truths) {
            prop_assert_eq!(request.peer, truth.peer);
            prop_assert_eq!(request.points, truth.points, "{:?}", truth);
            prop_assert_eq!((request.request_bytes, request.answer_bytes), (truth.request_bytes, truth.answer_bytes));
            prop_assert!(!request.quality.has(RequestQuality::GUESSED));
            prop_assert!(!request.quality.has(RequestQuality::MOVED));
            prop_assert_eq!(request.stages().iter().sum::<u64>(), request.points[7] - request.points[0]);
        }
        let counts = joiner.counts();
        prop_assert_eq!((counts.unrequested, counts.unseen_arrivals, counts.gaps), (0, 0, 0));
    }

    /// Events are missing: what is reported after all is true, and the rest is counted.
    #[test]
    fn after_a_gap_nothing_false_is_reported(seed: u64, from: prop::sample::Index, missing in 1..50u16) {
        let mut machine = Machine::run(seed, 100);
        let from = from.index(machine.events.len());
        let until = (from + usize::from(missing)).min(machine.events.len() - 1);
        machine.events.drain(from.min(until)..until);
        machine.events[from..].iter_mut().for_each(|event| event.lost = event.lost.wrapping_add(missing));
        let (found, joiner) = join(&machine);
        let truths = truths(&machine);
        // Since when a thread was free is not known to what it does first after the gap.
        let known = |points: &[u64; POINTS]| [0, 1, 2, 4, 6, 7].map(|point: usize| points[point]);
        let is_true = |request: &ObservedRequest| {
            let is_it = |truth: &&Truth| truth.peer == request.peer && known(&truth.points) == known(&request.points);
            truths.iter().any(is_it)
        };
        // A packet that was there in the gap and comes again is taken to be new, and marked.
        for request in found.iter().filter(|request| !request.quality.has(RequestQuality::READY_UNSEEN)) {
            prop_assert!(is_true(request), "{:?}", request);
        }
        prop_assert_eq!(joiner.counts().gaps, u64::from(from > 0));
        prop_assert!(found.len() <= truths.len());
    }

    /// Whatever the events, stages are what their sum takes, and nothing panics.
    #[test]
    fn events_in_any_order_do_no_harm(seed: u64, swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..40)) {
        let mut machine = Machine::run(seed, 60);
        let length = machine.events.len();
        for (a, b) in swaps {
            machine.events.swap(a.index(length), b.index(length));
        }
        for request in join(&machine).0 {
            prop_assert!(request.points.is_sorted());
            prop_assert_eq!(request.stages().iter().sum::<u64>(), request.latency_from_wire());
        }
    }
}

#[test]
fn the_machine_does_what_is_to_be_tested() {
    let mut seen = [0; 3];
    for seed in 0..50 {
        let machine = Machine::run(seed, 200);
        let (found, _) = join(&machine);
        for (count, flag) in seen.iter_mut().zip([
            RequestQuality::SEVERAL_READS,
            RequestQuality::SEVERAL_WRITES,
            RequestQuality::SHARED_ANSWER,
        ]) {
            *count += found.iter().filter(|request| request.quality.has(flag)).count();
        }
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}

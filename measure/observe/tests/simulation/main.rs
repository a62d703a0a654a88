//! Requests of a simulated machine, reconstructed from its events: exactly those that there were, with exactly their
//! instants, whatever the segments, the reads, the writes and the order of packets.

mod block;
mod calls;
mod causes;
mod days;
mod early;
mod limits;
mod machine;
mod messages;
mod price;
mod random;
mod taken;
mod worker;

use machine::{Machine, Truth};
use messages::{Conversation, call, facts, reply};
use observe::{
    EventKind, KernelEvent, ObservedRequest, POINTS, Protocol, RequestJoiner, RequestQuality, ThreadSchedule,
};
use proptest::prelude::*;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

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
        is_kernel_nfs: false,
        is_mptcp: false,
        datagram_head: [0; 8],
        lost: 0,
        peer: IpAddr::V4(Ipv4Addr::LOCALHOST),
        schedule: ThreadSchedule::default(),
        freed: 0,
    }
}

/// Joins all events, and sorts what comes of them.
fn join(machine: &Machine) -> (Vec<ObservedRequest>, RequestJoiner) {
    let mut joiner = RequestJoiner::new();
    let mut finished = Vec::new();
    machine.events.iter().for_each(|event| joiner.handle(event, &mut finished));
    joiner.finish(&mut finished);
    finished.sort_by_key(|request| (request.peer, request.points));
    (finished, joiner)
}

/// Whether a request was told apart by its protocol, without a guess.
fn is_told_surely(request: &&ObservedRequest) -> bool {
    !request.quality.has(RequestQuality::WITHOUT_PROTOCOL) && !request.quality.has(RequestQuality::GUESSED)
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
            prop_assert_eq!(request.last_awaited_write, truth.last_awaited_write, "{:?}", truth);
            prop_assert_eq!((request.request_bytes, request.answer_bytes), (truth.request_bytes, truth.answer_bytes));
            prop_assert!(!request.quality.has(RequestQuality::GUESSED));
            prop_assert!(!request.quality.has(RequestQuality::MOVED));
            prop_assert_eq!(request.stages().iter().sum::<u64>(), request.points[7] - request.points[0]);
        }
        let counts = joiner.counts();
        prop_assert_eq!((counts.unrequested, counts.unseen_arrivals, counts.gaps), (0, 0, 0));
    }

    /// Wherever the observation ends: of the requests that have arrived each is finished or known to be open, so that those
    /// who wait for the last ones do not end too early; and nothing is open when everything is answered.
    #[test]
    fn no_open_request_is_overlooked(seed: u64, steps in 1..200usize, cut: prop::sample::Index) {
        let mut machine = Machine::run(seed, steps);
        machine.close();
        let events = &machine.events[..=cut.index(machine.events.len())];
        let mut joiner = RequestJoiner::new();
        let mut finished = Vec::new();
        events.iter().for_each(|event| joiner.handle(event, &mut finished));
        let open = joiner.open_between(&(0..u64::MAX));
        joiner.finish(&mut finished);
        let ends: BTreeSet<u64> =
            events.iter().filter(|event| event.kind == EventKind::Arrival).map(|event| event.time).collect();
        let arrived = machine.truths.iter().filter(|truth| ends.contains(&truth.points[1])).count() as u64;
        prop_assert!(arrived <= finished.len() as u64 + open, "{arrived} > {} + {open}", finished.len());
        let mut joiner = RequestJoiner::new();
        machine.events.iter().for_each(|event| joiner.handle(event, &mut finished));
        prop_assert_eq!(joiner.open_between(&(0..u64::MAX)), 0);
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

    /// Wherever packets, reads and writes are cut, and in whatever order answers come: exactly the requests that there
    /// were, by looking at each byte.
    #[test]
    fn messages_are_found_wherever_they_are_cut(seed: u64, steps in 1..400usize, in_order: bool) {
        let protocol = if in_order { Protocol::Resp } else { Protocol::Nfs };
        let conversation = Conversation::hold(protocol, seed, steps, usize::MAX);
        let (found, joiner) = conversation.join();
        let mut truths = conversation.truths();
        truths.sort_unstable();
        prop_assert_eq!(found.iter().map(facts).collect::<Vec<_>>(), truths);
        let doubtful = RequestQuality::GUESSED.with(RequestQuality::WITHOUT_PROTOCOL).with(RequestQuality::MOVED);
        let all = RequestQuality::ALL.map(|(flag, _)| flag);
        let doubts = |request: &ObservedRequest| all.iter().any(|flag| doubtful.has(*flag) && request.quality.has(*flag));
        prop_assert!(!found.iter().any(doubts));
        let counts = joiner.counts();
        prop_assert_eq!((counts.untold, counts.unanswered, counts.unrequested, counts.unseen_arrivals), (0, 0, 0, 0));
    }

    /// Where only the first bytes of reads and writes are seen, what is told apart by messages is true all the same.
    #[test]
    fn messages_with_holes_are_true_or_counted(seed: u64, seen_max in 1..400usize, in_order: bool) {
        let protocol = if in_order { Protocol::Resp } else { Protocol::Nfs };
        let conversation = Conversation::hold(protocol, seed, 200, seen_max);
        let (found, joiner) = conversation.join();
        let mut truths = conversation.truths();
        truths.sort_unstable();
        let mut told: Vec<_> = found.iter().filter(is_told_surely).map(facts).collect();
        told.dedup();
        for request in &told {
            prop_assert!(truths.binary_search(request).is_ok(), "{:?}", request);
        }
        prop_assert!(told.len() == truths.len() || joiner.counts().untold > 0);
    }

    /// Events are missing, and the kernel says so: what is told apart by messages is true all the same.
    #[test]
    fn messages_after_a_gap_are_true(seed: u64, from: prop::sample::Index, missing in 1..50u16, in_order: bool) {
        let protocol = if in_order { Protocol::Resp } else { Protocol::Nfs };
        let mut conversation = Conversation::hold(protocol, seed, 200, usize::MAX);
        let from = from.index(conversation.events.len());
        let until = (from + usize::from(missing)).min(conversation.events.len() - 1);
        conversation.events.drain(from.min(until)..until);
        conversation.events[from.min(until)..].iter_mut().for_each(|(event, _)| event.lost = missing);
        let truths = conversation.truths();
        for request in &conversation.join().0 {
            let is_seen = !request.quality.has(RequestQuality::READY_UNSEEN);
            prop_assert!(!is_told_surely(&request) || !is_seen || truths.contains(&facts(request)), "{:?}", request);
        }
    }

    /// Bytes that are no messages, and events in any order, do no harm.
    #[test]
    fn hostile_bytes_do_no_harm(
        seed: u64,
        protocol in prop::sample::select(vec![
            Protocol::Http1, Protocol::Resp, Protocol::Memcached,
            Protocol::Nbd, Protocol::Nfs,
        ]),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40),
        swaps in prop::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 0..20),
    ) {
        let mut conversation = Conversation::hold(Protocol::Resp, seed, 100, usize::MAX);
        let length = conversation.events.len();
        for (place, with) in damage {
            let (_, bytes) = &mut conversation.events[place.index(length)];
            bytes.iter_mut().step_by(7).for_each(|byte| *byte ^= with);
        }
        for (a, b) in swaps {
            conversation.events.swap(a.index(length), b.index(length));
        }
        let mut joiner = RequestJoiner::of_protocol(Some(protocol));
        let mut found = Vec::new();
        for (event, bytes) in &conversation.events {
            joiner.handle_with_bytes(event, bytes, &mut found);
        }
        joiner.finish(&mut found);
        prop_assert!(found.iter().all(|request| request.points.is_sorted()));
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

/// A client pushes in the middle of a message, and its server answers an earlier one before it reads the rest, whose zeros
/// pass for empty fragments of the next message: that is a guess, and those after it are none.
#[test]
fn where_a_first_message_begins_is_a_guess() {
    let mut joiner = RequestJoiner::of_protocol(Some(Protocol::Nfs));
    let mut found = Vec::new();
    let mut time = 1000;
    let mut asked = 0;
    let mut answered = 0;
    let mut exchange = |sent: &[u8], reply: &[u8]| {
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("messages are short");
        let end = asked + length(sent);
        let written = answered + length(reply);
        let mut report = |kind, (begin, end), answer, bytes: &[u8]| {
            time += 10;
            let event = KernelEvent { begin, end, answer, push: true, thread: 7, ..blank_event(time, kind) };
            joiner.handle_with_bytes(&event, bytes, &mut found);
        };
        report(EventKind::Arrival, (asked, end), false, &[]);
        report(EventKind::Ready, (0, end), false, &[]);
        report(EventKind::Bytes, (asked, end), false, sent);
        report(EventKind::Receive, (asked, end), false, &[]);
        report(EventKind::Bytes, (answered, written), true, reply);
        report(EventKind::Send, (answered, written), false, &[]);
        report(EventKind::Transmit, (answered, written), false, &[]);
        (asked, answered) = (end, written);
    };
    let first = &call(1, 0)[..32];
    let rest = &call(1, 0)[32..];
    assert!(rest.iter().all(|byte| *byte == 0) && rest.len().is_multiple_of(4));
    exchange(first, &reply(0, 9));
    exchange(&[rest, &call(2, 5)].concat(), &reply(2, 7));
    exchange(&call(3, 5), &reply(3, 7));
    let told: Vec<&ObservedRequest> =
        found.iter().filter(|request| !request.quality.has(RequestQuality::WITHOUT_PROTOCOL)).collect();
    let sure: Vec<u64> =
        told.iter().filter(|request| is_told_surely(request)).map(|it| it.request_bytes).collect();
    assert_eq!((told.len(), sure), (2, vec![call(3, 5).len() as u64]), "{told:?}");
}

/// A client that sends without end to a server that does not answer: what is kept of it is given up in time.
#[test]
fn what_is_kept_of_a_connection_is_bounded() {
    let mut joiner = RequestJoiner::of_protocol(Some(Protocol::Resp));
    let mut found = Vec::new();
    joiner.handle(&blank_event(1, EventKind::Open), &mut found);
    for number in 0..20_000u32 {
        let begin = number * 6;
        let time = u64::from(number) * 10 + 2;
        let event = |kind, later| KernelEvent {
            begin,
            end: begin + 6,
            push: true,
            ..blank_event(time + later, kind)
        };
        joiner.handle(&event(EventKind::Arrival, 0), &mut found);
        joiner.handle(&event(EventKind::Ready, 1), &mut found);
        joiner.handle_with_bytes(&event(EventKind::Bytes, 2), b"PING\r\n", &mut found);
        joiner.handle(&event(EventKind::Receive, 3), &mut found);
    }
    let counts = joiner.counts();
    assert_eq!((counts.untold, counts.discarded, found.len()), (1, 16 << 10, 0));
}

/// Requests that are read and never answered, on this many connections in turn: how many are counted as unanswered on the
/// way, and when the observation ends.
fn unanswered(requests: u32, connections: u32) -> (u64, u64) {
    let mut joiner = RequestJoiner::new();
    let mut found = Vec::new();
    for number in 0..requests {
        let begin = number / connections * 6;
        for (later, kind) in (0..).zip([EventKind::Arrival, EventKind::Ready, EventKind::Receive]) {
            let event = blank_event(u64::from(number) * 10 + later + 1, kind);
            let flow = u64::from(number % connections);
            joiner.handle(&KernelEvent { flow, begin, end: begin + 6, push: true, ..event }, &mut found);
        }
    }
    let before = joiner.counts().unanswered;
    joiner.finish(&mut found);
    assert!(found.is_empty());
    (before, joiner.counts().unanswered)
}

/// Servers that read and do not answer, and connections whose ends are not seen: what is kept is given up, and counted once.
#[test]
fn what_is_never_answered_is_given_up_and_counted_once() {
    assert_eq!(unanswered(20_000, 1), ((16 << 10) + 1, 20_000));
    let (before, all) = unanswered(70_000, 70_000);
    assert_eq!(all, 70_000);
    assert!((30_000..40_000).contains(&before), "about half of 65,536 connections: {before}");
    assert_eq!(unanswered(10_000, 10_000), (0, 10_000));
}

#[test]
fn the_machine_does_what_is_to_be_tested() {
    let mut seen = [0; 2];
    for seed in 0..50 {
        let machine = Machine::run(seed, 200);
        let (found, _) = join(&machine);
        for (count, flag) in
            seen.iter_mut().zip([RequestQuality::SEVERAL_READS, RequestQuality::SHARED_ANSWER])
        {
            *count += found.iter().filter(|request| request.quality.has(flag)).count();
        }
    }
    assert!(seen.iter().all(|count| *count > 20), "{seen:?}");
}

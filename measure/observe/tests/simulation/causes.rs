//! The causes of requests of a worker whose every nanosecond is known, counted one by one.

use crate::blank_event;
use crate::machine::Machine;
use crate::worker::WorkerScript;
use observe::{
    AttributedRequest, Cause, CauseAttribution, CauseObserver, EventKind, HeldUpTime, IntendedWaits,
    KernelEvent, ObservedRequest, RequestJoiner, RequestPoint, RequestQuality, TakenOut, ThreadSchedule,
};
use proptest::prelude::*;

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
        let mut joiner = RequestJoiner::new();
        let mut finished = Vec::new();
        let mut causes = CauseObserver::new(IntendedWaits::Included);
        for event in &machine.events {
            causes.handle(event);
            joiner.handle(event, &mut finished);
        }
        joiner.finish(&mut finished);
        for request in &finished {
            causes.add(request);
        }
        let report = causes.report();
        prop_assert_eq!(report.replayed, finished.len());
        let mut latencies: Vec<u64> = finished.iter().map(ObservedRequest::latency_from_wire).collect();
        latencies.sort_unstable();
        if let Some(nothing) = report.without(TakenOut::Nothing) {
            // There are fewer than 1000.
            prop_assert_eq!(nothing.percentiles[2].known(), latencies.last().copied());
        }
    }
}

/// A worker that is woken at 100, is in the queue of CPU 3 and runs from 1,000 on, with what is said of that CPU.
fn waiting_worker(was_idle: bool, reports: &[KernelEvent]) -> AttributedRequest {
    let server = 10;
    let worker = 11;
    let event = |time, kind| KernelEvent { thread: worker, process: server, ..blank_event(time, kind) };
    let schedule = ThreadSchedule { cpu: 3, woken: 100, was_idle, state: 1, ..ThreadSchedule::default() };
    let mut attribution = CauseAttribution::new();
    attribution.handle(&event(10, EventKind::Send));
    attribution.handle(&KernelEvent {
        earlier: 10,
        schedule: ThreadSchedule { state: 1, ..ThreadSchedule::default() },
        ..event(50, EventKind::Leave)
    });
    reports.iter().for_each(|report| attribution.handle(report));
    for (time, kind) in [(1_010, EventKind::Receive), (1_020, EventKind::Send)] {
        attribution.handle(&KernelEvent { earlier: 1_000, schedule, ..event(time, kind) });
    }
    attribution.divide(&waiting_request())
}

fn waiting_request() -> ObservedRequest {
    ObservedRequest {
        points: [100, 100, 100, 1_000, 1_010, 1_010, 1_020, 1_020],
        first_wire: 100,
        last_awaited_write: 1_020,
        peer: ([127, 0, 0, 1], 5).into(),
        port: 80,
        udp: false,
        request_bytes: 1,
        answer_bytes: 1,
        reader: 11,
        writer: 11,
        quality: RequestQuality::default(),
        held_up: HeldUpTime::default(),
    }
}

/// Someone, or nobody, had CPU 3 for a time, of which the hypervisor took some.
fn occupant(process: u32, from: u64, until: u64, stolen_ns: u32) -> KernelEvent {
    let schedule = ThreadSchedule { cpu: 3, stolen_ns, ..ThreadSchedule::default() };
    KernelEvent { earlier: from, process, schedule, ..blank_event(until, EventKind::Occupant) }
}

#[test]
fn a_cpu_of_which_nothing_is_said_is_not_idle() {
    let times = |request: &AttributedRequest| {
        [Cause::BeingWoken, Cause::IdleCpu, Cause::OtherProcess, Cause::Stolen, Cause::UnseenOccupant]
            .map(|cause| request.time(cause))
    };
    assert_eq!(times(&waiting_worker(false, &[])), [0, 0, 0, 0, 900]);
    assert_eq!(times(&waiting_worker(true, &[])), [0, 900, 0, 0, 0]);
    // Idle until somebody else had it, and who had it afterwards is not said.
    assert_eq!(times(&waiting_worker(true, &[occupant(77, 300, 700, 0)])), [0, 200, 400, 0, 300]);
    assert_eq!(times(&waiting_worker(false, &[occupant(77, 300, 1_000, 150)])), [200, 0, 550, 150, 0]);
    // The hypervisor had the CPU while it was being woken.
    assert_eq!(times(&waiting_worker(true, &[occupant(0, 100, 1_000, 880)])), [0, 20, 0, 880, 0]);
    assert_eq!(times(&waiting_worker(true, &[occupant(0, 100, 1_000, u32::MAX)])), [0, 0, 0, 900, 0]);
    // Moved at 600: what is said of the first CPU counts until then.
    let moved = |was_idle| {
        let schedule = ThreadSchedule { cpu: 7, was_idle, ..ThreadSchedule::default() };
        KernelEvent { thread: 11, process: 10, schedule, ..blank_event(600, EventKind::Move) }
    };
    let behind = occupant(77, 200, 1_000, 0);
    assert_eq!(times(&waiting_worker(false, &[moved(true), behind])), [0, 500, 400, 0, 0]);
    assert_eq!(times(&waiting_worker(true, &[moved(false)])), [0, 400, 0, 0, 500]);
}

/// More occupants than are kept: that the CPU was idle before the first of those that are left is not known.
#[test]
fn occupants_that_are_forgotten_are_not_idle_times() {
    let mut times: Vec<u64> = (0..20_000).map(|number| 150 + number * 850 / 20_000).collect();
    times.dedup();
    let mut reports: Vec<KernelEvent> =
        times.windows(2).map(|ends| occupant(77, ends[0], ends[1], 0)).collect();
    // Behind them, so many of another time that the first are pushed out.
    let shorter = waiting_worker(true, &reports);
    assert_eq!((shorter.time(Cause::IdleCpu), shorter.time(Cause::OtherProcess)), (50, 849));
    reports.extend((0..4_096).map(|number| occupant(77, 2_000 + number, 2_001 + number, 0)));
    let pushed_out = waiting_worker(true, &reports);
    assert_eq!((pushed_out.time(Cause::IdleCpu), pushed_out.time(Cause::UnseenOccupant)), (0, 900));
}

/// A thread that has left its CPU and acts, and was not seen to come back: what it did meanwhile is not its work.
#[test]
fn a_thread_that_was_not_seen_to_come_back() {
    let mut attribution = CauseAttribution::new();
    for (time, kind, earlier) in [
        (10, EventKind::Send, 0),
        (20, EventKind::Receive, 10),
        (50, EventKind::Leave, 10),
        (900, EventKind::Send, 10),
    ] {
        let schedule = ThreadSchedule { state: 1, woken: 5, ..ThreadSchedule::default() };
        let event = KernelEvent { thread: 11, process: 10, ..blank_event(time, kind) };
        attribution.handle(&KernelEvent { earlier, schedule, ..event });
    }
    let points = [15, 15, 15, 15, 20, 20, 900, 900];
    let divided = attribution.divide(&ObservedRequest {
        points,
        first_wire: 15,
        last_awaited_write: 900,
        ..waiting_request()
    });
    assert_eq!((divided.time(Cause::Work), divided.time(Cause::Unknown)), (35, 850));
}

/// A thread that slept, and of which it is not known since when it is awake.
#[test]
fn a_wakeup_that_is_not_seen_is_no_sleep() {
    let script = |woken| {
        let mut attribution = CauseAttribution::new();
        for (time, kind, earlier) in
            [(10, EventKind::Send, 0), (50, EventKind::Leave, 10), (1_010, EventKind::Receive, 1_000)]
        {
            let schedule = ThreadSchedule { woken, was_idle: true, state: 1, ..ThreadSchedule::default() };
            let event = KernelEvent { thread: 11, process: 10, ..blank_event(time, kind) };
            attribution.handle(&KernelEvent { earlier, schedule, ..event });
        }
        let mut request = waiting_request();
        request.points = [60, 60, 60, 1_000, 1_010, 1_010, 1_010, 1_010];
        request.last_awaited_write = 1_010;
        attribution.divide(&request)
    };
    assert_eq!(script(400).time(Cause::NotWoken), 340);
    assert_eq!((script(0).time(Cause::NotWoken), script(0).time(Cause::Unknown)), (0, 940));
}

/// A server that sleeps from 200 to 9,000 within its answer. The first half is at the device before or after that.
fn pausing_server(first_transmitted: u64) -> Vec<AttributedRequest> {
    let mut events = Vec::new();
    let mut at = |time, kind, bytes: u32| {
        let (earlier, woken) = match time {
            0..=200 => (20, 0),
            _ => (9_000, 9_000),
        };
        let schedule = ThreadSchedule { state: 1, woken, was_idle: true, ..ThreadSchedule::default() };
        let event = KernelEvent {
            flow: 1,
            socket: 1,
            thread: 11,
            process: 10,
            peer_port: 5,
            ..blank_event(time, kind)
        };
        events.push(KernelEvent { earlier, begin: bytes, end: bytes + 1, push: true, schedule, ..event });
    };
    at(50, EventKind::Arrival, 0);
    at(60, EventKind::Ready, 0);
    at(100, EventKind::Receive, 0);
    at(110, EventKind::Send, 0);
    at(first_transmitted, EventKind::Transmit, 0);
    at(200, EventKind::Leave, 0);
    at(9_020, EventKind::Send, 1);
    at(9_050, EventKind::Transmit, 1);
    at(9_060, EventKind::Close, 0);
    events.sort_by_key(|event| event.time);
    let mut joiner = RequestJoiner::new();
    let mut finished = Vec::new();
    let mut attribution = CauseAttribution::new();
    for event in &events {
        attribution.handle(event);
        joiner.handle(event, &mut finished);
    }
    finished.iter().map(|request| attribution.divide(request)).collect()
}

#[test]
fn a_server_that_pauses_within_its_answer_is_no_slow_network() {
    let times = |requests: &[AttributedRequest]| {
        assert_eq!(requests.len(), 1);
        [Cause::Asleep, Cause::Work, Cause::NetworkOut].map(|cause| requests[0].time(cause))
    };
    // It has its CPU from before 60 to 200 and from 9,000 on.
    let paused = pausing_server(120);
    assert_eq!(times(&paused), [8_800, 160, 30]);
    assert_eq!(paused[0].done, 9_020);
    // What was written first left only after the second write: the network was waited for all the time.
    assert_eq!(times(&pausing_server(9_030)), [0, 50, 8_940]);
}

/// Two requests on two connections that are read before either is answered. The write of the first answer returns at
/// `freed`, after its packet has left: until then the worker wakes the client.
fn answered_in_turn(freed: u64) -> Vec<(ObservedRequest, AttributedRequest)> {
    let mut joiner = RequestJoiner::new();
    let mut finished = Vec::new();
    let mut attribution = CauseAttribution::new();
    let script = [
        (1, 40, EventKind::Arrival),
        (1, 41, EventKind::Ready),
        (2, 42, EventKind::Arrival),
        (2, 43, EventKind::Ready),
        (1, 100, EventKind::Receive),
        (2, 110, EventKind::Receive),
        (1, 120, EventKind::Send),
        (1, 125, EventKind::Transmit),
        (2, 150, EventKind::Send),
        (2, 155, EventKind::Transmit),
        (1, 170, EventKind::Close),
        (2, 171, EventKind::Close),
    ];
    for (flow, time, kind) in script {
        let event = KernelEvent {
            flow,
            socket: flow,
            thread: 11,
            process: 10,
            peer_port: 5,
            begin: 0,
            end: 1,
            push: true,
            earlier: 20,
            freed: if time == 150 { freed } else { 0 },
            ..blank_event(time, kind)
        };
        attribution.handle(&event);
        joiner.handle(&event, &mut finished);
    }
    finished.into_iter().map(|request| (request, attribution.divide(&request))).collect()
}

#[test]
fn processing_begins_when_the_write_before_has_returned() {
    for (freed, expected) in [(140, 140), (0, 125)] {
        let requests = answered_in_turn(freed);
        assert_eq!(requests.len(), 2);
        let (second, divided) = &requests[1];
        assert_eq!(second.at(RequestPoint::Started), expected, "{second:?}");
        assert_eq!((divided.start, divided.begun), (expected, expected));
    }
}

/// The worker loses its CPU in its write, before the packet is handed to the device, and before its next event.
#[test]
fn a_worker_that_is_held_up_in_a_write_is_not_busy() {
    let mut attribution = CauseAttribution::new();
    for (time, kind) in [(1_010, EventKind::Receive), (1_020, EventKind::Send), (1_025, EventKind::Leave)] {
        let event = KernelEvent { thread: 11, process: 10, ..blank_event(time, kind) };
        attribution.handle(&KernelEvent { earlier: 1_000, ..event });
    }
    let mut request = waiting_request();
    request.points[7] = 9_030;
    assert_eq!(
        attribution.divide(&request).held_up,
        HeldUpTime { processing: 8_005, ..HeldUpTime::default() }
    );
}

#[test]
fn the_script_does_what_is_to_be_tested() {
    let mut seen = [0u64; observe::CAUSES];
    for seed in 0..20 {
        let script = WorkerScript::play(seed, 150, true);
        for request in divided(&script) {
            seen.iter_mut().zip(Cause::ALL).for_each(|(sum, cause)| *sum += request.time(cause));
        }
    }
    // One request of a worker at a time, whose worker is seen.
    for cause in Cause::ALL.into_iter().filter(|cause| ![Cause::ReadTogether, Cause::Unknown].contains(cause))
    {
        assert!(seen[cause as usize] > 0, "{cause:?}: {seen:?}");
    }
}

//! A simulated NFS server of the kernel: several threads, which take one call each from any connection, in whatever
//! pieces it comes, and answer in whatever order. Every call is found once, with its own answer and its own instants.

use crate::blank_event;
use observe::{
    EventKind, JoinCounts, KernelEvent, ObservedRequest, Protocol, RequestJoiner, RequestPoint,
    RequestQuality,
};
use proptest::prelude::*;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

const MARK: u32 = 4;

/// What a call is: its bytes, those of its answer, and how long the server needs for it.
#[derive(Debug, Clone)]
struct PlannedCall {
    bytes: u32,
    answer: u32,
    work: u64,
}

/// A connection: what it begins with, its calls, and the lengths of segments, again and again.
#[derive(Debug, Clone)]
struct PlannedConnection {
    first: u32,
    calls: Vec<PlannedCall>,
    segments: Vec<u32>,
}

/// What is true of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct CallTruth {
    peer: SocketAddr,
    wire: u64,
    read: u64,
    written: u64,
    transmitted: u64,
    bytes: u64,
    answer: u64,
    thread: u32,
}

/// How much of an answer is reported as written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReportedWrites {
    Whole,
    /// As Linux up to 6.4 has it.
    MarkOnly,
}

/// A connection as the server has it.
struct CallConnection {
    flow: u64,
    peer: SocketAddr,
    /// Ends of calls, and what is planned for each, in order.
    calls: VecDeque<(u32, PlannedCall)>,
    /// Segments to come: begin, end, whether pushed.
    coming: VecDeque<(u32, u32, bool)>,
    /// When the bytes until here arrived: end, time.
    arrived: VecDeque<(u32, u64)>,
    read_until: u32,
    /// Where the call that is being read begins.
    call_begin: u32,
    written_until: u32,
}

/// A call that a thread works on.
struct WorkedCall {
    connection: usize,
    done: u64,
    truth: CallTruth,
}

struct CallServer {
    now: u64,
    writes: ReportedWrites,
    connections: Vec<CallConnection>,
    free: BTreeSet<u32>,
    working: BTreeMap<u32, WorkedCall>,
    events: Vec<KernelEvent>,
    truths: Vec<CallTruth>,
}

fn connection(number: usize, planned: &PlannedConnection) -> CallConnection {
    let mut calls = VecDeque::new();
    let mut coming = VecDeque::new();
    let mut end = planned.first;
    for call in &planned.calls {
        end = end.wrapping_add(call.bytes);
        calls.push_back((end, call.clone()));
    }
    let total = end.wrapping_sub(planned.first);
    let mut cut = 0;
    let mut lengths = planned.segments.iter().cycle();
    while cut < total {
        let next = total.min(cut + lengths.next().expect("an endless cycle"));
        let begins_at = |at: u32| planned.first.wrapping_add(at);
        let is_end = calls.iter().any(|(end, _)| *end == begins_at(next));
        coming.push_back((begins_at(cut), begins_at(next), is_end));
        cut = next;
    }
    let port = 1000 + u16::try_from(number).expect("few connections");
    CallConnection {
        flow: number as u64 + 1,
        peer: SocketAddr::from((Ipv4Addr::new(10, 0, 0, 1), port)),
        calls,
        coming,
        arrived: VecDeque::new(),
        read_until: planned.first,
        call_begin: planned.first,
        written_until: 7u32.wrapping_sub(planned.first),
    }
}

impl CallServer {
    fn report(&mut self, connection: usize, kind: EventKind, begin: u32, end: u32, thread: u32) -> u64 {
        self.now += 10;
        let served = &self.connections[connection];
        self.events.push(KernelEvent {
            flow: served.flow,
            begin,
            end,
            thread,
            process: thread,
            peer_port: served.peer.port(),
            peer: IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)),
            is_kernel_nfs: kind == EventKind::Receive,
            earlier: if kind == EventKind::Receive { self.now - 1 } else { 0 },
            ..blank_event(self.now, kind)
        });
        self.now
    }

    /// The next segment comes.
    fn arrive(&mut self, connection: usize) {
        let Some((begin, end, push)) = self.connections[connection].coming.pop_front() else { return };
        let time = self.report(connection, EventKind::Arrival, begin, end, 0);
        self.events.last_mut().expect("one was just reported").push = push;
        self.report(connection, EventKind::Ready, 0, end, 0);
        self.connections[connection].arrived.push_back((end, time));
    }

    /// A free thread takes what there is of a call: first its length, then the rest.
    fn serve(&mut self, connection: usize, thread: u32) {
        let served = &self.connections[connection];
        let (Some((end, planned)), Some((arrived, _))) =
            (served.calls.front().cloned(), served.arrived.back().copied())
        else {
            return;
        };
        if served.read_until == arrived {
            return;
        }
        let after = |from: u32, to: u32| to.wrapping_sub(from);
        let begin = served.call_begin;
        let mut time = 0;
        for until in [begin.wrapping_add(MARK), end] {
            let from = self.connections[connection].read_until;
            let there = after(begin, arrived).min(after(begin, until));
            if there <= after(begin, from) {
                continue;
            }
            let to = begin.wrapping_add(there);
            time = self.report(connection, EventKind::Receive, from, to, thread);
            self.connections[connection].read_until = to;
        }
        if self.connections[connection].read_until != end {
            return;
        }
        let served = &mut self.connections[connection];
        let is_before = |(until, _): &&(u32, u64)| after(begin, *until) < after(begin, end);
        let wire = served.arrived.iter().find(|arrived| !is_before(arrived)).expect("it was read").1;
        served.arrived.retain(|(until, _)| after(begin, *until) >= after(begin, end));
        (served.call_begin, served.read_until) = (end, end);
        served.calls.pop_front();
        let truth = CallTruth {
            peer: served.peer,
            wire,
            read: time,
            written: 0,
            transmitted: 0,
            bytes: u64::from(planned.bytes),
            answer: u64::from(planned.answer),
            thread,
        };
        self.free.remove(&thread);
        self.working.insert(thread, WorkedCall { connection, done: time + planned.work, truth });
    }

    /// The thread whose work is done first answers.
    fn answer(&mut self) {
        let Some(thread) = self.working.iter().min_by_key(|(_, call)| call.done).map(|(thread, _)| *thread)
        else {
            return;
        };
        let call = self.working.remove(&thread).expect("it was just found");
        let begin = self.connections[call.connection].written_until;
        let answer = u32::try_from(call.truth.answer).expect("short");
        let end = begin.wrapping_add(answer);
        let reported = if self.writes == ReportedWrites::Whole { end } else { begin.wrapping_add(MARK) };
        let written = self.report(call.connection, EventKind::Send, begin, reported, thread);
        let middle = begin.wrapping_add(answer / 2);
        self.report(call.connection, EventKind::Transmit, begin, middle, thread);
        let transmitted = self.report(call.connection, EventKind::Transmit, middle, end, thread);
        self.connections[call.connection].written_until = end;
        self.truths.push(CallTruth { written, transmitted, ..call.truth });
        self.free.insert(thread);
    }

    fn is_done(&self) -> bool {
        let is_served = |served: &CallConnection| served.calls.is_empty();
        self.working.is_empty() && self.connections.iter().all(is_served)
    }
}

/// Plays everything in an order that `choices` say.
fn play(planned: &[PlannedConnection], choices: &[u8], writes: ReportedWrites) -> CallServer {
    let connections =
        planned.iter().enumerate().map(|(number, planned)| connection(number, planned)).collect();
    let mut server = CallServer {
        now: 1000,
        writes,
        connections,
        free: (1..=4).collect(),
        working: BTreeMap::new(),
        events: Vec::new(),
        truths: Vec::new(),
    };
    let mut choices = choices.iter().cycle();
    while !server.is_done() {
        let choice = usize::from(*choices.next().expect("an endless cycle"));
        let connection = choice / 8 % planned.len();
        let threads: Vec<u32> = server.free.iter().copied().collect();
        match (choice % 8, threads.get(choice / 8 % threads.len().max(1))) {
            (0..3, _) => server.arrive(connection),
            (3..6, Some(thread)) => server.serve(connection, *thread),
            _ => server.answer(),
        }
    }
    server
}

fn join(events: &[KernelEvent], protocol: Option<Protocol>) -> (Vec<ObservedRequest>, JoinCounts) {
    let mut joiner = RequestJoiner::of_protocol(protocol);
    let mut finished = Vec::new();
    events.iter().for_each(|event| joiner.handle(event, &mut finished));
    joiner.finish(&mut finished);
    (finished, joiner.counts())
}

fn found(request: &ObservedRequest) -> CallTruth {
    CallTruth {
        peer: request.peer,
        wire: request.at(RequestPoint::Wire),
        read: request.at(RequestPoint::Read),
        written: request.at(RequestPoint::Written),
        transmitted: request.at(RequestPoint::Transmitted),
        bytes: request.request_bytes,
        answer: request.answer_bytes,
        thread: request.writer,
    }
}

fn planned() -> impl Strategy<Value = Vec<PlannedConnection>> {
    let call = (28u32..300, 28u32..300, 0u64..400).prop_map(|(bytes, answer, work)| PlannedCall {
        bytes,
        answer,
        work,
    });
    let calls = prop::collection::vec(call, 1..12);
    let segments = prop::collection::vec(1u32..400, 1..8);
    let connection = (any::<u32>(), calls, segments).prop_map(|(first, calls, segments)| PlannedConnection {
        first,
        calls,
        segments,
    });
    prop::collection::vec(connection, 1..4)
}

proptest! {
    #[test]
    fn every_call_has_its_own_answer(
        planned in planned(),
        choices in prop::collection::vec(any::<u8>(), 8..64),
        is_old in any::<bool>(),
        is_named in any::<bool>(),
    ) {
        // Each of the three things that happen has to happen again and again.
        let choices: Vec<u8> = choices.into_iter().chain((0..=255).step_by(3)).collect();
        let writes = if is_old { ReportedWrites::MarkOnly } else { ReportedWrites::Whole };
        let server = play(&planned, &choices, writes);
        let (requests, counts) = join(&server.events, is_named.then_some(Protocol::Nfs));
        let mut calls: Vec<CallTruth> = requests.iter().map(found).collect();
        let mut truths = server.truths.clone();
        calls.sort_unstable();
        truths.sort_unstable();
        prop_assert_eq!(calls, truths);
        prop_assert_eq!(counts, JoinCounts::default());
        let by_packets = |request: &&ObservedRequest| request.quality.has(RequestQuality::WITHOUT_PROTOCOL);
        prop_assert_eq!(requests.iter().find(by_packets), None);
    }

    /// Wherever the observation ends: of the calls that have been read each is finished or known to be open.
    #[test]
    fn no_open_call_is_overlooked(
        planned in planned(),
        choices in prop::collection::vec(any::<u8>(), 8..64),
        cut: prop::sample::Index,
    ) {
        let choices: Vec<u8> = choices.into_iter().chain((0..=255).step_by(3)).collect();
        let server = play(&planned, &choices, ReportedWrites::Whole);
        let events = &server.events[..=cut.index(server.events.len())];
        let mut joiner = RequestJoiner::new();
        let mut finished = Vec::new();
        events.iter().for_each(|event| joiner.handle(event, &mut finished));
        let open = joiner.open_between(&(0..u64::MAX));
        joiner.finish(&mut finished);
        let last = events[events.len() - 1].time;
        let read = server.truths.iter().filter(|truth| truth.read <= last).count() as u64;
        prop_assert!(read <= finished.len() as u64 + open, "{read} > {} + {open}", finished.len());
        let mut joiner = RequestJoiner::new();
        server.events.iter().for_each(|event| joiner.handle(event, &mut finished));
        prop_assert_eq!(joiner.open_between(&(0..u64::MAX)), 0);
    }

    /// Whatever is missing, nothing is invented: what is found has the instants of events, and less is found than there was.
    #[test]
    fn missing_events_invent_nothing(
        planned in planned(),
        choices in prop::collection::vec(any::<u8>(), 8..64),
        missing in prop::collection::btree_set(0usize..400, 1..20),
    ) {
        let choices: Vec<u8> = choices.into_iter().chain((0..=255).step_by(3)).collect();
        let server = play(&planned, &choices, ReportedWrites::Whole);
        let kept = server.events.iter().enumerate().filter(|(place, _)| !missing.contains(place));
        let events: Vec<KernelEvent> = kept.map(|(_, event)| *event).collect();
        let (requests, _) = join(&events, None);
        prop_assert!(requests.len() <= server.truths.len());
        let times: BTreeSet<u64> = events.iter().map(|event| event.time).collect();
        for request in &requests {
            prop_assert!(request.points.is_sorted());
            prop_assert!(times.contains(&request.at(RequestPoint::Transmitted)), "{request:?}");
        }
    }
}

/// An answer in two writes, or in two datagrams: the last write that found all before it transmitted is known.
#[test]
fn further_writes_of_an_answer_are_waited_for() {
    let awaited = |udp: bool, order: [EventKind; 4]| {
        let mut joiner = RequestJoiner::new();
        let mut finished = Vec::new();
        let mut bytes = [0, 0];
        let before = [EventKind::Arrival, EventKind::Ready, EventKind::Receive];
        for (time, kind) in (1..).zip(before.into_iter().chain(order).chain([EventKind::Close])) {
            let (begin, end) = match kind {
                EventKind::Send | EventKind::Transmit => {
                    let end = &mut bytes[usize::from(kind == EventKind::Transmit)];
                    // A kernel whose first write is longer would have ended the answer.
                    let begin = std::mem::replace(end, if *end == 0 { MARK } else { MARK + 30 });
                    (begin, *end)
                }
                _ => (0, 40),
            };
            let event =
                KernelEvent { flow: 1, socket: 1, thread: 3, udp, begin, end, ..blank_event(time, kind) };
            let event =
                KernelEvent { push: true, is_kernel_nfs: !udp && kind == EventKind::Receive, ..event };
            joiner.handle(&event, &mut finished);
        }
        joiner.finish(&mut finished);
        assert_eq!(finished.len(), 1, "{:?}", joiner.counts());
        (finished[0].at(RequestPoint::Written), finished[0].last_awaited_write, finished[0].points[7])
    };
    let write = EventKind::Send;
    let transmit = EventKind::Transmit;
    assert_eq!(awaited(false, [write, transmit, write, transmit]), (4, 6, 7));
    assert_eq!(awaited(false, [write, write, transmit, transmit]), (4, 4, 7));
    assert_eq!(awaited(true, [write, transmit, write, transmit]), (4, 6, 7));
}

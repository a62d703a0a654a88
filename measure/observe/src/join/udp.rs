//! The datagrams of one UDP port.
//!
//! A read tells the socket and the thread, not the client; an answer tells the client. So a request is joined when it is
//! answered: it is the oldest datagram of that client that was there when the answering thread read last. A client that
//! has several requests open on one port, and a thread that reads several datagrams before it answers, leave room for
//! error, and are marked.
//!
//! Where the protocol has identifiers of datagrams, an answer goes to the datagram of its client with the same one.
//!
//! An answer is written (T5) when its thread looks for its way. A socket that is connected does not: then T5 is taken to
//! be T6.

use super::counts::JoinCounts;
use super::sizes::TableSizes;
use super::threads::ThreadActivity;
use super::udp_reads::{DatagramRead, DatagramReads};
use crate::event::{EventKind, KernelEvent};
use crate::request::{HeldUpTime, ObservedRequest, RequestQuality, in_order};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;
use wire::Protocol;

/// A datagram that is not answered after this time, in nanoseconds, was dropped if a later one is answered.
const ANSWER_WAIT_NS: u64 = 1_000_000_000;

/// A request that has arrived.
#[derive(Debug, Clone, Copy)]
struct Datagram {
    wire: u64,
    stack: u64,
    ready: u64,
    bytes: u64,
    /// What the protocol tells datagrams apart by.
    id: Option<u32>,
}

/// An answer that a thread begins to write.
#[derive(Debug, Clone, Copy)]
struct DatagramWrite {
    time: u64,
    /// When the thread was active before.
    free_since: u64,
}

/// What is known about a port.
#[derive(Debug, Default)]
pub(super) struct UdpPort {
    protocol: Option<Protocol>,
    /// The most entries of each table; a server that does not answer uses them up.
    kept_max: usize,
    /// Unanswered datagrams by flow, oldest first.
    datagrams: BTreeMap<u64, VecDeque<Datagram>>,
    /// How many these are.
    open: usize,
    /// Flows with datagrams that are not in a socket yet.
    fresh: Vec<u64>,
    reads: DatagramReads,
    /// What threads have begun to write, and was not transmitted yet.
    writes: BTreeMap<u32, DatagramWrite>,
    /// The last request of each thread, to which it may send more datagrams; with its flow and identifier.
    answers: BTreeMap<u32, (u64, Option<u32>, ObservedRequest)>,
}

impl UdpPort {
    /// A port at which a protocol is spoken, if that is known.
    pub(super) fn new(protocol: Option<Protocol>, kept_max: usize) -> Self {
        Self { protocol, kept_max, ..Self::default() }
    }

    fn id_of(&self, event: &KernelEvent) -> Option<u32> {
        let id = self.protocol?.row().datagram_id?;
        Some(id(event.datagram_head))
    }

    /// Takes the next event of this port.
    pub(super) fn handle(
        &mut self,
        event: &KernelEvent,
        threads: &mut ThreadActivity,
        counts: &mut JoinCounts,
        finished: &mut Vec<ObservedRequest>,
    ) {
        match event.kind {
            EventKind::Arrival => self.arrive(event, counts),
            EventKind::Ready => self.ready(event.time),
            EventKind::Receive => {
                let free_since = threads.touch(event.thread, event.time);
                finished.extend(self.answers.remove(&event.thread).map(|(_, _, request)| request));
                self.writes.remove(&event.thread);
                let read = DatagramRead { time: event.time, switched_in: event.earlier, free_since };
                self.reads.add(event.thread, read, self.kept_max);
            }
            EventKind::Transmit => {
                threads.touch(event.thread, event.time);
                self.transmit(event, counts, finished);
            }
            EventKind::Send => {
                let time = event.time;
                let free_since = threads.touch(event.thread, event.time);
                if self.writes.len() >= self.kept_max {
                    self.writes.clear();
                }
                self.writes.entry(event.thread).or_insert(DatagramWrite { time, free_since });
            }
            EventKind::Close
            | EventKind::Leave
            | EventKind::Occupant
            | EventKind::Bytes
            | EventKind::Open
            | EventKind::Accept
            | EventKind::Move
            | EventKind::Throttled => {}
        }
    }

    /// The observation has ended.
    pub(super) fn finish(&mut self, counts: &mut JoinCounts, finished: &mut Vec<ObservedRequest>) {
        counts.unanswered += self.open();
        finished.extend(std::mem::take(&mut self.answers).into_values().map(|(_, _, request)| request));
    }

    /// The number of requests that are not answered.
    pub(super) fn open(&self) -> u64 {
        self.open as u64
    }

    /// The number of requests that are not answered, or whose answers may have more datagrams.
    pub(super) fn unfinished(&self) -> u64 {
        self.open() + self.answers.len() as u64
    }

    /// How many entries its tables have.
    pub(super) fn sizes(&self) -> TableSizes {
        let tables = [self.open, self.fresh.len(), self.reads.len(), self.writes.len(), self.answers.len()];
        TableSizes { datagrams: tables.into_iter().max().unwrap_or_default(), ..TableSizes::default() }
    }

    /// Open requests by their arrival, as [`super::RequestJoiner::open_between`] counts them.
    pub(super) fn open_between(&self, arrival: &Range<u64>) -> u64 {
        let began = |datagram: &&Datagram| {
            arrival.contains(if datagram.wire == 0 { &datagram.stack } else { &datagram.wire })
        };
        self.datagrams.values().flatten().filter(began).count() as u64
    }

    fn arrive(&mut self, event: &KernelEvent, counts: &mut JoinCounts) {
        if self.open >= self.kept_max {
            counts.unanswered += self.open();
            self.datagrams.clear();
            self.fresh.clear();
            self.open = 0;
        }
        // Where no socket is seen to become ready.
        if self.fresh.len() >= self.kept_max {
            self.fresh.clear();
        }
        let id = self.id_of(event);
        self.datagrams.entry(event.flow).or_default().push_back(Datagram {
            wire: event.earlier,
            stack: event.time,
            ready: 0,
            bytes: u64::from(event.end.wrapping_sub(event.begin)),
            id,
        });
        self.open += 1;
        self.fresh.push(event.flow);
    }

    /// Sockets take several datagrams at once, and report them together.
    fn ready(&mut self, time: u64) {
        for flow in std::mem::take(&mut self.fresh) {
            let of_flow = self.datagrams.get_mut(&flow);
            let fresh = of_flow.into_iter().flatten().filter(|datagram| datagram.ready == 0);
            fresh.for_each(|datagram| datagram.ready = time);
        }
    }

    fn transmit(
        &mut self,
        event: &KernelEvent,
        counts: &mut JoinCounts,
        finished: &mut Vec<ObservedRequest>,
    ) {
        let bytes = u64::from(event.end.wrapping_sub(event.begin));
        let id = self.id_of(event);
        let write = self.writes.remove(&event.thread);
        let has_read = self.reads.has(event.thread);
        if let Some((flow, answer_id, answer)) = self.answers.get_mut(&event.thread)
            && (*flow, *answer_id) == (event.flow, id)
            && (id.is_some() || !has_read)
        {
            add_datagram(answer, event.time, bytes, write);
            return;
        }
        match self.join(event, write, counts) {
            Some(request) => {
                if self.answers.len() >= self.kept_max {
                    let answers = std::mem::take(&mut self.answers);
                    finished.extend(answers.into_values().map(|(_, _, request)| request));
                }
                let before = self.answers.insert(event.thread, (event.flow, id, request));
                finished.extend(before.map(|(_, _, request)| request));
            }
            None => counts.unrequested += 1,
        }
    }

    /// The request that a datagram answers.
    fn join(
        &mut self,
        event: &KernelEvent,
        write: Option<DatagramWrite>,
        counts: &mut JoinCounts,
    ) -> Option<ObservedRequest> {
        let id = self.id_of(event);
        let of_flow = self.datagrams.get_mut(&event.flow)?;
        while of_flow.len() > 1 && event.time.saturating_sub(of_flow[0].stack) > ANSWER_WAIT_NS {
            of_flow.pop_front();
            self.open -= 1;
            counts.unanswered += 1;
        }
        let is_guess = id.is_none() && of_flow.len() > 1;
        let place = of_flow.iter().position(|datagram| datagram.id == id)?;
        let datagram = of_flow.remove(place)?;
        if of_flow.is_empty() {
            self.datagrams.remove(&event.flow);
        }
        self.open -= 1;
        let (read, is_only) = self.reads.take(event.thread, datagram.stack);
        Some(observed(event, &datagram, read, write, is_guess || !is_only))
    }
}

/// A further datagram of an answer; `write` is nothing where it is a part of the last one, or writes are not seen.
fn add_datagram(answer: &mut ObservedRequest, time: u64, bytes: u64, write: Option<DatagramWrite>) {
    let first = if answer.quality.has(RequestQuality::WRITE_UNSEEN) { 6 } else { 7 };
    for point in &mut answer.points[first..] {
        *point = time.max(*point);
    }
    answer.await_write(write.map_or(0, |write| write.time));
    answer.answer_bytes += bytes;
    answer.quality = answer.quality.with(RequestQuality::SEVERAL_WRITES);
}

fn observed(
    event: &KernelEvent,
    datagram: &Datagram,
    read: Option<DatagramRead>,
    write: Option<DatagramWrite>,
    is_guess: bool,
) -> ObservedRequest {
    let is_new_reader = read.is_none_or(|read| read.switched_in == 0 || read.free_since == 0);
    let quality = RequestQuality::default().with_those_that_hold(&[
        (write.is_none(), RequestQuality::WRITE_UNSEEN),
        (datagram.wire == 0, RequestQuality::WIRE_UNSEEN),
        (datagram.ready == 0, RequestQuality::READY_UNSEEN),
        (is_new_reader, RequestQuality::SWITCH_UNSEEN),
        (is_guess, RequestQuality::GUESSED),
    ]);
    let wire = if datagram.wire == 0 { datagram.stack } else { datagram.wire };
    let ready = if datagram.ready == 0 { datagram.stack } else { datagram.ready };
    // Another thread has read it: nothing is known of when.
    let read = read.unwrap_or(DatagramRead { time: event.time, switched_in: 0, free_since: 0 });
    // A reader that is awake may take a datagram before its readiness is reported.
    let ready = ready.min(read.time);
    let scheduled = ready.max(read.switched_in).max(read.free_since).min(read.time);
    let DatagramWrite { time, free_since } =
        write.unwrap_or(DatagramWrite { time: event.time, free_since: read.time });
    let started = read.time.max(free_since).min(time);
    let times = [wire, datagram.stack, ready, scheduled, read.time, started, time, event.time];
    let (points, moved) = in_order(times);
    ObservedRequest {
        points,
        first_wire: points[0],
        last_awaited_write: points[6],
        peer: SocketAddr::new(event.peer, event.peer_port),
        port: event.local_port,
        udp: true,
        request_bytes: datagram.bytes,
        answer_bytes: u64::from(event.end.wrapping_sub(event.begin)),
        reader: event.thread,
        writer: event.thread,
        quality: if moved { quality.with(RequestQuality::MOVED) } else { quality },
        held_up: HeldUpTime::default(),
    }
}

//! Days of operation, with small limits: connections whose ends are not seen, requests that nobody reads or answers, threads
//! and clients that come and go, requests in many pieces, and events that are lost. At no time has a table more entries than
//! its limit, and each request is reported once, as it was, or counted.
#![allow(clippy::cast_possible_truncation, reason = "the numbers are small")]

use crate::messages::{RequestFacts, facts};
use crate::random::RandomNumbers;
use crate::{blank_event, is_told_surely};
use observe::{EventKind, KernelEvent, ObservedRequest, Protocol, RequestJoiner, RequestQuality, TableSizes};
use std::collections::{BTreeMap, VecDeque};

/// Small enough that each table is full many times a day.
pub(crate) const LIMITS: TableSizes = TableSizes {
    connections: 64,
    threads: 48,
    open_requests: 32,
    segments: 40,
    incomplete: 36,
    writes: 8,
    datagrams: 50,
    // Never reached: other tests have this limit.
    bytes: usize::MAX,
};

/// Memory for half of the connections that these days have at a time.
const LITTLE_MEMORY: TableSizes = TableSizes { bytes: 100_000, ..LIMITS };

const DAYS: usize = 7;
const STEPS_OF_A_DAY: usize = 3000;

/// Connections of each kind that are used again.
const POOL: usize = 8;

/// A connection of a client: where its bytes end, those that were read, and those of the answers.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Client {
    flow: u64,
    sent: u32,
    read: u32,
    answered: u32,
}

/// In how many pieces a request and its answer go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pieces {
    pub(crate) segments: u32,
    pub(crate) reads: u32,
    pub(crate) writes: u32,
}

/// The server's machine, as its events tell of it, and what is true.
pub(crate) struct Days {
    random: RandomNumbers,
    now: u64,
    lost: u16,
    clients: u64,
    threads: u32,
    kept: VecDeque<Client>,
    unanswered: VecDeque<Client>,
    unread: VecDeque<Client>,
    calls: VecDeque<Client>,
    protocol: Option<Protocol>,
    limits: &'static TableSizes,
    pub(crate) joiner: RequestJoiner,
    pub(crate) found: Vec<ObservedRequest>,
    /// By T0 of the last byte.
    truths: BTreeMap<u64, RequestFacts>,
    /// Requests that were read, and datagrams that arrived.
    requests: u64,
    /// The most entries that each table ever had.
    pub(crate) largest: TableSizes,
}

impl Days {
    pub(crate) fn new(protocol: Option<Protocol>, seed: u64) -> Self {
        Self::with_limits(protocol, seed, &LIMITS)
    }

    pub(crate) fn with_limits(protocol: Option<Protocol>, seed: u64, limits: &'static TableSizes) -> Self {
        Self {
            random: RandomNumbers::new(seed),
            now: 1_000_000,
            lost: 0,
            clients: 1,
            threads: 1,
            kept: VecDeque::new(),
            unanswered: VecDeque::new(),
            unread: VecDeque::new(),
            calls: VecDeque::new(),
            protocol,
            limits,
            joiner: RequestJoiner::with_limits(protocol, limits),
            found: Vec::new(),
            truths: BTreeMap::new(),
            requests: 0,
            largest: TableSizes::default(),
        }
    }

    fn tick(&mut self) -> u64 {
        self.now += 1 + self.random.below(1_000_000);
        self.now
    }

    /// Something happens, a while after what was before.
    fn report(&mut self, event: KernelEvent, bytes: &[u8]) -> u64 {
        let time = self.tick();
        self.joiner.handle_with_bytes(
            &KernelEvent { time, lost: self.lost, ..event },
            bytes,
            &mut self.found,
        );
        let sizes = self.joiner.sizes();
        assert!(sizes.are_within(self.limits), "{sizes:?}");
        self.largest = self.largest.or_larger(sizes);
        time
    }

    fn of(client: &Client, kind: EventKind) -> KernelEvent {
        KernelEvent { flow: client.flow, peer_port: client.flow as u16, ..blank_event(0, kind) }
    }

    /// Threads come and go: one of the last that began.
    fn thread(&mut self) -> u32 {
        self.threads += u32::from(self.random.below(10) == 0);
        self.threads + self.random.below(4) as u32
    }

    pub(crate) fn connect(&mut self) -> Client {
        self.clients += 1;
        // Sequence numbers that may soon begin again at 0.
        let first = 0u32.wrapping_sub(self.random.below(5000) as u32);
        let client = Client { flow: self.clients, sent: first, read: first, answered: first };
        if self.random.below(2) == 0 {
            self.report(Self::of(&client, EventKind::Open), &[]);
        }
        client
    }

    fn again(&mut self, pool: fn(&mut Self) -> &mut VecDeque<Client>) -> Client {
        let is_new = pool(self).len() < POOL || self.random.below(40) == 0;
        if is_new { self.connect() } else { pool(self).pop_front().expect("it is full") }
    }

    /// A packet comes: T0 to T2.
    fn arrive(&mut self, client: &mut Client, bytes: u32, push: bool) -> [u64; 3] {
        let begin = client.sent;
        let wire = self.tick();
        client.sent = begin.wrapping_add(bytes);
        let packet = KernelEvent { begin, end: client.sent, ..Self::of(client, EventKind::Arrival) };
        let stack = self.report(KernelEvent { earlier: wire, push, ..packet }, &[]);
        let ready = self.report(KernelEvent { kind: EventKind::Ready, begin: 0, ..packet }, &[]);
        [wire, stack, ready]
    }

    /// A thread that came to its CPU at an instant reads what was said up to here.
    fn read(&mut self, client: &mut Client, until: u32, said: &[u8], (thread, earlier): (u32, u64)) -> u64 {
        let begin = std::mem::replace(&mut client.read, until);
        let event =
            KernelEvent { begin, end: until, thread, earlier, ..Self::of(client, EventKind::Receive) };
        if self.protocol.is_some() {
            let length = until.wrapping_sub(begin) as usize;
            self.report(KernelEvent { kind: EventKind::Bytes, ..event }, &said[..length]);
        }
        self.report(event, &[])
    }

    /// A request in so many segments is read in so many goes; T0 of its first byte, and T0, T1, T2 and T4.
    pub(crate) fn ask(&mut self, client: &mut Client, pieces: Pieces, thread: u32) -> (u64, [u64; 4]) {
        let said = message(b"*1\r\n$", 100 * pieces.segments);
        let begin = client.sent;
        let length = said.len() as u32;
        let mut arrivals = Vec::new();
        for number in 1..=pieces.segments {
            let end = length * number / pieces.segments;
            let bytes = begin.wrapping_add(end).wrapping_sub(client.sent);
            arrivals.push(self.arrive(client, bytes, number == pieces.segments));
        }
        let switched_in = self.tick();
        let mut time = 0;
        for number in 1..=pieces.reads {
            let end = length * number / pieces.reads;
            let from = client.read.wrapping_sub(begin) as usize;
            time = self.read(client, begin.wrapping_add(end), &said[from..], (thread, switched_in));
        }
        self.requests += 1;
        let [wire, stack, ready] = arrivals[arrivals.len() - 1];
        (arrivals[0][0], [wire, stack, ready, time])
    }

    /// The answer goes in so many writes: T5 and T6, and its bytes.
    pub(crate) fn answer(&mut self, client: &mut Client, writes: u32, thread: u32) -> (u64, u64, u64) {
        let said = message(b"$", 200 * writes);
        let begin = client.answered;
        let length = said.len() as u32;
        let mut times = Vec::new();
        for number in 1..=writes {
            let from = client.answered.wrapping_sub(begin) as usize;
            let end = begin.wrapping_add(length * number / writes);
            let event =
                KernelEvent { begin: client.answered, end, thread, ..Self::of(client, EventKind::Send) };
            client.answered = end;
            if self.protocol.is_some() {
                let bytes = &said[from..end.wrapping_sub(begin) as usize];
                self.report(KernelEvent { kind: EventKind::Bytes, answer: true, ..event }, bytes);
            }
            times.push(self.report(event, &[]));
        }
        let end = client.answered;
        let packet = KernelEvent { begin, end, thread, ..Self::of(client, EventKind::Transmit) };
        let sent = self.report(packet, &[]);
        (times[0], sent, u64::from(length))
    }

    /// A request with its answer.
    pub(crate) fn exchange(&mut self, client: &mut Client, pieces: Pieces) {
        let thread = self.thread();
        let begin = client.sent;
        let (first, [wire, stack, ready, read]) = self.ask(client, pieces, thread);
        let bytes = u64::from(client.sent.wrapping_sub(begin));
        let (written, sent, answered) = self.answer(client, pieces.writes, thread);
        // Of what is in more segments than are kept the beginning is not known.
        if pieces.segments as usize <= LIMITS.segments {
            self.truths
                .insert(wire, (first, [wire, stack, ready, read, written, written, sent], bytes, answered));
        }
    }

    pub(crate) fn close(&mut self, client: &Client) {
        self.report(Self::of(client, EventKind::Close), &[]);
    }

    fn step(&mut self) {
        match self.random.below(16) {
            0 | 1 => self.use_new_connection(),
            2 | 3 => self.use_old_connection(),
            4..=6 => self.ask_in_vain(),
            7 | 8 => self.send_what_nobody_reads(),
            9 | 10 => self.send_datagram(true, true),
            11 | 12 => {
                let is_ready = self.random.below(2) == 0;
                self.send_datagram(is_ready, false);
            }
            13 | 14 if self.protocol.is_none() => {
                let mut client = self.again(|days| &mut days.calls);
                let thread = self.thread();
                let is_answered = self.random.below(3) > 0;
                self.call_kernel(&mut client, thread, is_answered);
                self.calls.push_back(client);
            }
            15 if self.random.below(40) == 0 => {
                self.lost = self.lost.wrapping_add(1 + self.random.below(100) as u16);
            }
            _ => self.transmit_what_nobody_asked_for(),
        }
    }

    fn use_new_connection(&mut self) {
        let mut client = self.connect();
        let mut pieces =
            |max: u64| 1 + if self.random.below(3) == 0 { self.random.below(max) as u32 } else { 0 };
        let pieces = Pieces { segments: pieces(80), reads: pieces(50), writes: pieces(20) };
        self.exchange(&mut client, pieces);
        if self.random.below(2) == 0 {
            self.close(&client);
        }
    }

    fn use_old_connection(&mut self) {
        let mut client = self.again(|days| &mut days.kept);
        self.exchange(&mut client, Pieces { segments: 1, reads: 1, writes: 1 });
        self.kept.push_back(client);
    }

    fn ask_in_vain(&mut self) {
        let mut client = self.again(|days| &mut days.unanswered);
        let thread = self.thread();
        self.ask(&mut client, Pieces { segments: 1, reads: 1, writes: 0 }, thread);
        // Mostly the same one, so that much is open there.
        match self.random.below(8) {
            0 => self.unanswered.push_back(client),
            _ => self.unanswered.push_front(client),
        }
    }

    fn send_what_nobody_reads(&mut self) {
        let mut client = self.again(|days| &mut days.unread);
        for _ in 0..self.random.below(10) {
            self.arrive(&mut client, 7, true);
        }
        self.unread.push_back(client);
    }

    /// A datagram; whether its socket is seen to become ready, and whether it is answered. It is read if any of these holds.
    pub(crate) fn send_datagram(&mut self, is_ready: bool, is_answered: bool) {
        self.clients += u64::from(self.random.below(3) == 0);
        // Answered datagrams have clients of their own, none of whom waits for another answer.
        let flow = 2 * self.clients + u64::from(is_answered);
        let client = Client { flow, ..Client::default() };
        let of = |kind, thread| KernelEvent { udp: true, end: 30, thread, ..Self::of(&client, kind) };
        let wire = self.tick();
        let thread = self.thread();
        self.requests += 1;
        let stack = self.report(KernelEvent { earlier: wire, ..of(EventKind::Arrival, 0) }, &[]);
        let ready = if is_ready { self.report(of(EventKind::Ready, 0), &[]) } else { stack };
        if !is_ready && !is_answered {
            return;
        }
        let read = self.report(of(EventKind::Receive, thread), &[]);
        if is_answered {
            let written = self.report(of(EventKind::Send, thread), &[]);
            let sent = self.report(of(EventKind::Transmit, thread), &[]);
            self.truths.insert(wire, (wire, [wire, stack, ready, read, written, written, sent], 30, 30));
        }
    }

    fn transmit_what_nobody_asked_for(&mut self) {
        let thread = self.thread();
        let event = Self::of(&Client::default(), EventKind::Send);
        let event = KernelEvent { udp: true, thread, end: 9, ..event };
        self.report(event, &[]);
        if self.random.below(2) == 0 {
            self.report(KernelEvent { kind: EventKind::Transmit, ..event }, &[]);
        }
    }

    /// A call to the NFS server of the kernel.
    pub(crate) fn call_kernel(&mut self, client: &mut Client, thread: u32, is_answered: bool) {
        let begin = client.sent;
        let [wire, stack, ready] = self.arrive(client, 44, true);
        let event = KernelEvent { thread, is_kernel_nfs: true, ..Self::of(client, EventKind::Receive) };
        let rest = begin.wrapping_add(4);
        let end = client.sent;
        let earlier = self.tick();
        self.report(KernelEvent { begin, end: rest, earlier, ..event }, &[]);
        let read = self.report(KernelEvent { begin: rest, end, earlier, ..event }, &[]);
        self.requests += 1;
        if is_answered {
            let (written, sent, bytes) = self.answer(client, 1, thread);
            self.truths.insert(wire, (wire, [wire, stack, ready, read, written, written, sent], 44, bytes));
        }
    }

    /// What was found since the last time is true; how many of these are no guesses.
    pub(crate) fn check_found(&mut self) -> usize {
        let has_protocol = self.protocol.is_some();
        let is_sure = |request: &&ObservedRequest| match has_protocol && !request.udp {
            true => is_told_surely(request),
            false => !request.quality.has(RequestQuality::GUESSED),
        };
        let sure = self.found.iter().filter(is_sure);
        let mut count = 0;
        for request in sure {
            let truth = self.truths.remove(&request.points[0]);
            assert_eq!(Some(facts(request)), truth, "{request:?}");
            count += 1;
        }
        count
    }
}

/// A message of Redis with a value of this length.
fn message(kind: &[u8], length: u32) -> Vec<u8> {
    [kind, format!("{length}\r\n").as_bytes(), &vec![b'x'; length as usize], b"\r\n"].concat()
}

/// Lets days pass: the number of requests that were found.
fn pass(days: &mut Days) -> u64 {
    let mut found = 0;
    for _ in 0..DAYS {
        (0..STEPS_OF_A_DAY).for_each(|_| days.step());
        let sure = days.check_found();
        assert!(sure > STEPS_OF_A_DAY / 10, "{sure} of a day");
        found += std::mem::take(&mut days.found).len() as u64;
    }
    days.joiner.finish(&mut days.found);
    days.check_found();
    found + days.found.len() as u64
}

#[test]
fn memory_is_bounded_over_days() {
    for seed in 0..3 {
        let mut days = Days::new(None, seed);
        let found = pass(&mut days);
        let counts = days.joiner.counts();
        println!("{found} of {}: {counts:?}, {:?}", days.requests, days.largest);
        assert_eq!(found + counts.unanswered + counts.discarded, days.requests, "{counts:?}");
        let TableSizes { incomplete, bytes, .. } = days.largest;
        assert_eq!(days.largest, TableSizes { incomplete, bytes, ..LIMITS }, "each was full");
    }
}

#[test]
fn memory_is_bounded_where_the_protocol_is_known() {
    for seed in 0..3 {
        let mut days = Days::new(Some(Protocol::Resp), seed);
        let found = pass(&mut days);
        let counts = days.joiner.counts();
        println!("{found} of {}: {counts:?}, {:?}", days.requests, days.largest);
        let sum = found + counts.unanswered + counts.discarded;
        assert!((sum..=sum + counts.unseen_arrivals).contains(&days.requests), "{sum}");
        let bytes = days.largest.bytes;
        assert_eq!(days.largest, TableSizes { bytes, ..LIMITS }, "each was full");
    }
}

#[test]
fn memory_of_all_connections_together_is_bounded_over_days() {
    for (seed, protocol) in [None, Some(Protocol::Resp)].into_iter().enumerate() {
        let mut days = Days::with_limits(protocol, seed as u64, &LITTLE_MEMORY);
        let found = pass(&mut days);
        let counts = days.joiner.counts();
        println!("{found} of {}: {counts:?}, {:?}", days.requests, days.largest);
        let sum = found + counts.unanswered + counts.discarded;
        assert!((sum..=sum + counts.unseen_arrivals).contains(&days.requests), "{sum}");
        assert!(days.largest.bytes > LITTLE_MEMORY.bytes * 9 / 10, "{:?}", days.largest);
    }
}

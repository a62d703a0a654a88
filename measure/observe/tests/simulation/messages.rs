//! A connection whose every byte is known: requests and answers of a protocol, cut into packets, reads and writes
//! wherever chance wants, and what each request's points truly are, by looking at its bytes one by one.
#![allow(clippy::cast_possible_truncation, reason = "the numbers are small")]

use crate::blank_event;
use observe::{EventKind, KernelEvent, ObservedRequest, Protocol, RequestJoiner};
use std::collections::VecDeque;

const PACKET_MAX: u64 = 1400;
const THREAD: u32 = 7;

/// What is compared of a request: T0 of its first byte; T0, T1, T2, T4, T5, the last write that was awaited, and T6; its
/// bytes and those of its answer.
pub(crate) type RequestFacts = (u64, [u64; 7], u64, u64);

pub(crate) fn facts(request: &ObservedRequest) -> RequestFacts {
    let [wire, stack, ready, _, read, _, written, transmitted] = request.points;
    let points = [wire, stack, ready, read, written, request.last_awaited_write, transmitted];
    (request.first_wire, points, request.request_bytes, request.answer_bytes)
}

/// A message in one of the two directions: where it begins and ends.
#[derive(Debug, Clone, Copy)]
struct Message {
    begin: usize,
    end: usize,
}

/// What has happened on the connection.
pub(crate) struct Conversation {
    pub(crate) events: Vec<(KernelEvent, Vec<u8>)>,
    protocol: Protocol,
    random: u64,
    now: u64,
    /// What each side has said; requests and their answers, those without one yet at the end.
    client: Vec<u8>,
    server: Vec<u8>,
    requests: Vec<Message>,
    answers: Vec<Option<Message>>,
    /// By byte: T0 to T2, T4; T5, T6.
    arrived: Vec<[u64; 3]>,
    read: Vec<u64>,
    written: Vec<u64>,
    /// Where writes began for which everything before was transmitted, and when.
    awaited: Vec<(usize, u64)>,
    transmitted: Vec<u64>,
    /// Answers that are not written yet.
    to_write: VecDeque<usize>,
    first_client: u32,
    first_server: u32,
    /// How many bytes of a read or write are seen.
    seen_max: usize,
}

impl Conversation {
    /// Some steps of a connection that is new, and then everything that is left.
    pub(crate) fn hold(protocol: Protocol, seed: u64, steps: usize, seen_max: usize) -> Self {
        let mut conversation = Self {
            events: Vec::new(),
            protocol,
            random: seed,
            now: 1_000_000,
            client: Vec::new(),
            server: Vec::new(),
            requests: Vec::new(),
            answers: Vec::new(),
            arrived: Vec::new(),
            read: Vec::new(),
            written: Vec::new(),
            awaited: Vec::new(),
            transmitted: Vec::new(),
            to_write: VecDeque::new(),
            first_client: u32::MAX - 2000,
            first_server: u32::MAX - 500,
            seen_max,
        };
        conversation.report(EventKind::Open, 0, 0, false, &[]);
        for _ in 0..steps {
            match conversation.below(5) {
                0 => conversation.ask(),
                1 => conversation.send_packet(),
                2 => conversation.read_some(),
                3 => conversation.answer_some(),
                _ => conversation.transmit_some(),
            }
        }
        for _ in 0..20 * steps + 1000 {
            conversation.send_packet();
            conversation.read_some();
            conversation.answer_some();
            conversation.transmit_some();
        }
        conversation.report(EventKind::Close, 0, 0, false, &[]);
        conversation
    }

    /// What is true of every request.
    pub(crate) fn truths(&self) -> Vec<RequestFacts> {
        let truth = |(request, answer): (&Message, &Option<Message>)| {
            let answer = answer.expect("everything is answered");
            let [wire, stack, ready] = self.arrived[request.end - 1];
            let read = self.read[request.end - 1];
            let last = self.transmitted[answer.end - 1];
            let is_in_answer = |(begin, _): &&(usize, u64)| (answer.begin..answer.end).contains(begin);
            let written = self.written[answer.begin];
            let awaited = self.awaited.iter().rfind(is_in_answer).map_or(written, |(_, time)| *time);
            let points = [wire, stack, ready, read, written, awaited, last];
            let asked = request.end - request.begin;
            let answered = answer.end - answer.begin;
            (self.arrived[request.begin][0], points, asked as u64, answered as u64)
        };
        self.requests.iter().zip(&self.answers).map(truth).collect()
    }

    /// What the joiner makes of the events.
    pub(crate) fn join(&self) -> (Vec<ObservedRequest>, RequestJoiner) {
        let mut joiner = RequestJoiner::of_protocol(Some(self.protocol));
        let mut found = Vec::new();
        for (event, bytes) in &self.events {
            joiner.handle_with_bytes(event, bytes, &mut found);
        }
        joiner.finish(&mut found);
        found.sort_by_key(facts);
        (found, joiner)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.random =
            self.random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.random >> 33) % limit
    }

    fn tick(&mut self) -> u64 {
        self.now += 1 + self.below(1000);
        self.now
    }

    fn report(&mut self, kind: EventKind, begin: u32, end: u32, answer: bool, bytes: &[u8]) -> u64 {
        let time = self.tick();
        let wire = if kind == EventKind::Arrival { time - 1 } else { 0 };
        let event = KernelEvent {
            flow: 5,
            socket: 1,
            peer_port: 9,
            begin,
            end,
            answer,
            thread: THREAD,
            earlier: wire,
            push: begin.is_multiple_of(3),
            ..blank_event(time, kind)
        };
        self.events.push((event, bytes.to_vec()));
        time
    }

    /// The client decides to send up to four requests, which it has not sent yet.
    fn ask(&mut self) {
        for _ in 0..1 + self.below(4) {
            let length = if self.below(4) == 0 { self.below(3000) } else { self.below(60) } as usize;
            let number = self.requests.len() as u32;
            let said = match self.protocol {
                Protocol::Nfs => call(number, length),
                _ => command(length),
            };
            let begin = self.client.len();
            self.client.extend(said);
            self.requests.push(Message { begin, end: self.client.len() });
            self.answers.push(None);
        }
    }

    fn send_packet(&mut self) {
        let begin = self.arrived.len();
        let length = (1 + self.below(PACKET_MAX) as usize).min(self.client.len() - begin);
        if length == 0 {
            return;
        }
        let [first, last] = [begin, begin + length].map(|place| self.first_client.wrapping_add(place as u32));
        let stack = self.report(EventKind::Arrival, first, last, false, &[]);
        let ready = self.report(EventKind::Ready, 0, last, false, &[]);
        if self.below(8) == 0 {
            self.report(EventKind::Arrival, first, last, false, &[]);
        }
        self.arrived.extend((0..length).map(|_| [stack - 1, stack, ready]));
    }

    fn read_some(&mut self) {
        let begin = self.read.len();
        let there = self.arrived.len() - begin;
        if there == 0 {
            return;
        }
        let length = if self.below(2) == 0 { there } else { 1 + self.below(there as u64) as usize };
        let [first, last] = [begin, begin + length].map(|place| self.first_client.wrapping_add(place as u32));
        let bytes = self.client[begin..begin + length.min(self.seen_max)].to_vec();
        let end = first.wrapping_add(bytes.len() as u32);
        self.report(EventKind::Bytes, first, end, false, &bytes);
        let time = self.report(EventKind::Receive, first, last, false, &[]);
        self.read.extend((0..length).map(|_| time));
        let is_read = |request: &Message| (begin + 1..=begin + length).contains(&request.end);
        let done: Vec<usize> = (0..self.requests.len()).filter(|n| is_read(&self.requests[*n])).collect();
        for number in done {
            // Replies of RPC come in any order.
            let places = self.to_write.len() as u64 + 1;
            let place = if self.protocol == Protocol::Nfs { self.below(places) } else { places - 1 };
            self.to_write.insert(place as usize, number);
        }
    }

    /// One write with what is to be answered, or a part of it.
    fn answer_some(&mut self) {
        for _ in 0..self.below(4) {
            let Some(number) = self.to_write.pop_front() else { break };
            let length = self.below(2000) as usize;
            let said = match self.protocol {
                Protocol::Nfs => reply(number as u32, length),
                _ => [format!("${length}\r\n").as_bytes(), &vec![b'$'; length], b"\r\n"].concat(),
            };
            let begin = self.server.len();
            self.server.extend(said);
            self.answers[number] = Some(Message { begin, end: self.server.len() });
        }
        let begin = self.written.len();
        let there = self.server.len() - begin;
        if there == 0 {
            return;
        }
        let length = if self.below(2) == 0 { there } else { 1 + self.below(there as u64) as usize };
        let [first, last] = [begin, begin + length].map(|place| self.first_server.wrapping_add(place as u32));
        let bytes = self.server[begin..begin + length.min(self.seen_max)].to_vec();
        let end = first.wrapping_add(bytes.len() as u32);
        self.report(EventKind::Bytes, first, end, true, &bytes);
        let time = self.report(EventKind::Send, first, last, false, &[]);
        self.written.extend((0..length).map(|_| time));
        if self.transmitted.len() == begin {
            self.awaited.push((begin, time));
        }
    }

    fn transmit_some(&mut self) {
        let begin = self.transmitted.len();
        let there = self.written.len() - begin;
        if there == 0 {
            return;
        }
        let length = 1 + self.below(there as u64) as usize;
        let [first, last] = [begin, begin + length].map(|place| self.first_server.wrapping_add(place as u32));
        let time = self.report(EventKind::Transmit, first, last, false, &[]);
        self.transmitted.extend((0..length).map(|_| time));
    }
}

/// A command of Redis whose words hold what looks like commands.
fn command(length: usize) -> Vec<u8> {
    if length == 7 {
        return b"PING\r\n".to_vec();
    }
    let value: Vec<u8> = b"*1\r\n$4\r\nPING\r\n".iter().copied().cycle().take(length).collect();
    [format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${length}\r\n").as_bytes(), &value, b"\r\n"].concat()
}

fn record(words: &[u32], length: usize) -> Vec<u8> {
    let body: Vec<u8> = words.iter().flat_map(|word| word.to_be_bytes()).collect();
    let mark = 1 << 31 | (body.len() + length) as u32;
    [&mark.to_be_bytes()[..], &body, &vec![0xff; length]].concat()
}

/// A call of NFSv3's procedure 0 with arguments that nobody looks at.
pub(crate) fn call(xid: u32, length: usize) -> Vec<u8> {
    record(&[xid, 0, 2, 100_003, 3, 0, 0, 0, 0, 0], length)
}

pub(crate) fn reply(xid: u32, length: usize) -> Vec<u8> {
    record(&[xid, 1, 0, 0, 0, 0], length)
}

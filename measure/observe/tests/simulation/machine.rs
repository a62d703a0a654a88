//! A machine with connections and threads, that says what happens and what is true.
#![allow(clippy::cast_possible_truncation, reason = "the numbers are small")]

use crate::blank_event;
use crate::random::RandomNumbers;
use observe::{EventKind, KernelEvent, POINTS};
use std::collections::VecDeque;
use std::net::SocketAddr;

/// A request as it really was.
#[derive(Debug)]
pub(crate) struct Truth {
    pub(crate) peer: SocketAddr,
    pub(crate) points: [u64; POINTS],
    pub(crate) last_awaited_write: u64,
    pub(crate) request_bytes: u64,
    pub(crate) answer_bytes: u64,
}

/// The machine with all that has happened.
pub(crate) struct Machine {
    pub(crate) events: Vec<KernelEvent>,
    pub(crate) truths: Vec<Truth>,
    now: u64,
    random: RandomNumbers,
    connections: Vec<Connection>,
    threads: Vec<Thread>,
}

struct Connection {
    flow: u64,
    thread: usize,
    /// The sequence numbers of the next byte of the client and of the server.
    client: u32,
    server: u32,
    read: u32,
    /// Requests in the socket.
    waiting: VecDeque<Waiting>,
    /// The end of an answer that is not transmitted yet, with its requests.
    held: Option<(u32, Vec<Truth>)>,
}

/// A request in the socket: where its bytes end, and T0 to T2.
struct Waiting {
    bytes: u32,
    end: u32,
    arrived: [u64; 3],
    /// Its client sends it in two goes, the first of which ends here; the server is waiting for the second.
    first_part: Option<u32>,
}

#[derive(Default)]
struct Thread {
    active: u64,
    switched_in: u64,
}

impl Machine {
    /// Runs some steps and then answers everything.
    pub(crate) fn run(seed: u64, steps: usize) -> Self {
        let mut machine = Self {
            events: Vec::new(),
            truths: Vec::new(),
            now: 1_000_000,
            random: RandomNumbers::new(seed),
            connections: Vec::new(),
            threads: (0..3).map(|_| Thread::default()).collect(),
        };
        for number in 0..1 + machine.random.below(4) {
            // Sequence numbers that soon begin again at 0.
            let client = machine.random.below(3000) as u32;
            let server = machine.random.below(3000) as u32;
            let client = client.wrapping_sub(1500);
            machine.connections.push(Connection {
                flow: 100 + number,
                thread: (number % 3) as usize,
                client,
                server: server.wrapping_sub(1500),
                read: client,
                waiting: VecDeque::new(),
                held: None,
            });
        }
        for _ in 0..steps {
            machine.step();
        }
        for index in 0..machine.connections.len() {
            while !machine.connections[index].waiting.is_empty() {
                machine.serve(index);
            }
            machine.transmit_held(index);
        }
        machine
    }

    /// The end of every connection.
    pub(crate) fn close(&mut self) {
        for index in 0..self.connections.len() {
            let event = self.event(index, EventKind::Close);
            self.events.push(event);
        }
    }

    fn step(&mut self) {
        let index = self.random.below(self.connections.len() as u64) as usize;
        match self.random.below(4) {
            0 | 1 => self.arrive(index),
            2 => self.serve(index),
            _ => self.transmit_held(index),
        }
    }

    fn tick(&mut self) -> u64 {
        self.now += 1 + self.random.below(1000);
        self.now
    }

    fn event(&mut self, index: usize, kind: EventKind) -> KernelEvent {
        let time = self.tick();
        let connection = &self.connections[index];
        KernelEvent {
            flow: connection.flow,
            socket: 1,
            peer_port: connection.flow as u16,
            ..blank_event(time, kind)
        }
    }

    /// A request arrives in up to three segments, perhaps one of them twice or the last two in the other order.
    fn arrive(&mut self, index: usize) {
        let count = 1 + self.random.below(3) as u32;
        let mut segments = Vec::new();
        for number in 0..count {
            let wire = self.tick();
            let bytes = 1 + self.random.below(1400) as u32;
            let mut event = self.event(index, EventKind::Arrival);
            let connection = &mut self.connections[index];
            (event.earlier, event.push) = (wire, number + 1 == count);
            event.begin = connection.client;
            connection.client = connection.client.wrapping_add(bytes);
            event.end = connection.client;
            segments.push(event);
        }
        let first = segments[0].begin;
        let is_in_two_goes = count > 1 && self.random.below(4) == 0;
        segments[0].push |= is_in_two_goes;
        let is_swapped = !is_in_two_goes && count > 1 && self.random.below(4) == 0;
        if is_swapped {
            let last = segments.len() - 1;
            let a = segments[last - 1].time;
            let b = segments[last].time;
            let c = segments[last - 1].earlier;
            let d = segments[last].earlier;
            (segments[last - 1].time, segments[last].time) = (b, a);
            (segments[last - 1].earlier, segments[last].earlier) = (d, c);
            segments.swap(last - 1, last);
        }
        self.events.extend(&segments);
        let mut ready = self.event(index, EventKind::Ready);
        ready.end = self.connections[index].client;
        self.events.push(ready);
        if self.random.below(5) == 0 {
            let mut again = segments[0];
            again.time = self.tick();
            self.events.push(again);
        }
        let last = segments.iter().rfind(|segment| segment.push).expect("the last one carries PSH");
        let waiting = Waiting {
            bytes: ready.end.wrapping_sub(first),
            end: ready.end,
            arrived: [last.earlier, last.time, ready.time],
            first_part: is_in_two_goes.then_some(segments[0].end),
        };
        self.connections[index].waiting.push_back(waiting);
    }

    /// The thread reads one request, or all, and answers.
    fn serve(&mut self, index: usize) {
        let there = self.connections[index].waiting.len();
        if there == 0 {
            return;
        }
        // What is not complete is waited for alone.
        let whole = self.connections[index].waiting.iter().take_while(|request| request.first_part.is_none());
        let whole = whole.count();
        let count = if self.random.below(2) == 0 { 1 } else { whole.clamp(1, there) };
        self.sleep(index, false);
        if let Some(part) = self.part_to_read_first(index, count) {
            self.read(index, part);
            self.sleep(index, self.connections[index].waiting[0].first_part.is_some());
        }
        let requests: Vec<Waiting> = self.connections[index].waiting.drain(..count).collect();
        let until = requests[count - 1].end;
        let (scheduled_from, read) = self.read(index, until);
        let truths = requests.into_iter().map(|request| {
            let [wire, stack, ready] = request.arrived;
            let points = [wire, stack, ready, ready.max(scheduled_from), read, 0, 0, 0];
            let peer = SocketAddr::from(([127, 0, 0, 1], self.connections[index].flow as u16));
            Truth {
                peer,
                points,
                last_awaited_write: 0,
                request_bytes: u64::from(request.bytes),
                answer_bytes: 0,
            }
        });
        let truths = truths.collect();
        self.answer(index, truths);
    }

    /// Where a first read of a single request ends, if it is read in parts.
    fn part_to_read_first(&mut self, index: usize, count: usize) -> Option<u32> {
        let Waiting { bytes, first_part, .. } = self.connections[index].waiting[0];
        if first_part.is_some() {
            return first_part;
        }
        let is_in_parts = count == 1 && bytes > 1 && self.random.below(4) == 0;
        is_in_parts.then(|| {
            let part = 1 + self.random.below(u64::from(bytes) - 1) as u32;
            self.connections[index].read.wrapping_add(part)
        })
    }

    /// The thread of a connection sleeps and is switched in, or not.
    fn sleep(&mut self, index: usize, certainly: bool) {
        if certainly || self.random.below(2) == 0 {
            let now = self.tick();
            let thread = self.connections[index].thread;
            self.threads[thread].switched_in = now;
        }
    }

    /// Returns from when on the thread was on a CPU and free, and when the read returned.
    fn read(&mut self, index: usize, until: u32) -> (u64, u64) {
        let mut event = self.event(index, EventKind::Receive);
        event.begin = std::mem::replace(&mut self.connections[index].read, until);
        let number = self.connections[index].thread;
        let thread = &mut self.threads[number];
        (event.end, event.earlier, event.thread) = (until, thread.switched_in, 1 + number as u32);
        let free = thread.active.max(thread.switched_in);
        thread.active = event.time;
        self.events.push(event);
        (free, event.time)
    }

    /// One write for all requests, one for each, or several for the only one.
    fn answer(&mut self, index: usize, mut requests: Vec<Truth>) {
        if requests.len() > 1 && self.random.below(3) > 0 {
            while !requests.is_empty() {
                let request = requests.remove(0);
                self.write_answer(index, vec![request], 1);
            }
        } else {
            let writes = if requests.len() == 1 { 1 + self.random.below(3) } else { 1 };
            self.write_answer(index, requests, writes);
        }
    }

    fn write_answer(&mut self, index: usize, mut requests: Vec<Truth>, writes: u64) {
        // What is not transmitted goes first.
        self.transmit_held(index);
        let begin = self.connections[index].server;
        let mut is_awaited = true;
        for number in 0..writes {
            let bytes = 1 + self.random.below(100_000) as u32;
            let free = self.threads[self.connections[index].thread].active;
            let event = self.send(index, bytes);
            for request in requests.iter_mut().filter(|_| number == 0) {
                request.points[5] = request.points[4].max(free);
                request.points[6] = event.time;
            }
            for request in requests.iter_mut().filter(|_| is_awaited) {
                request.last_awaited_write = event.time;
            }
            is_awaited = number + 1 < writes && self.random.below(3) > 0;
            if is_awaited {
                self.transmit(index, true);
            }
        }
        let end = self.connections[index].server;
        requests.iter_mut().for_each(|request| request.answer_bytes = u64::from(end.wrapping_sub(begin)));
        self.connections[index].held = Some((end, requests));
        if self.random.below(3) > 0 {
            self.transmit_held_by_writer(index);
        }
    }

    fn send(&mut self, index: usize, bytes: u32) -> KernelEvent {
        let mut event = self.event(index, EventKind::Send);
        let connection = &mut self.connections[index];
        event.begin = connection.server;
        connection.server = connection.server.wrapping_add(bytes);
        event.end = connection.server;
        event.thread = 1 + connection.thread as u32;
        self.threads[connection.thread].active = event.time;
        self.events.push(event);
        // Reported again for each further packet that the bytes fill.
        if bytes > 50_000 {
            let mut again = event;
            again.begin = event.begin.wrapping_add(40_000);
            again.time = self.tick();
            self.threads[self.connections[index].thread].active = again.time;
            self.events.push(again);
        }
        event
    }

    /// Everything that was written and not transmitted, in one packet.
    fn transmit(&mut self, index: usize, by_writer: bool) -> u64 {
        let mut event = self.event(index, EventKind::Transmit);
        let connection = &self.connections[index];
        (event.begin, event.end) = (connection.server.wrapping_sub(1), connection.server);
        if by_writer {
            event.thread = 1 + connection.thread as u32;
            self.threads[connection.thread].active = event.time;
        }
        self.events.push(event);
        event.time
    }

    fn transmit_held_by_writer(&mut self, index: usize) {
        let time = self.transmit(index, true);
        self.release(index, time);
    }

    /// While an acknowledgement is received, in no thread of the server.
    fn transmit_held(&mut self, index: usize) {
        if self.connections[index].held.is_some() {
            let time = self.transmit(index, false);
            self.release(index, time);
        }
    }

    fn release(&mut self, index: usize, time: u64) {
        let (_, requests) = self.connections[index].held.take().expect("something is held");
        for mut request in requests {
            request.points[7] = time;
            self.truths.push(request);
        }
    }
}

//! One connection in a run: requests go out as far as the socket takes them, answers come in.

use super::Clock;
use super::book::{Book, Gauges, Number};
use super::flow::{Flow, ask};
use crate::content::Ended;
use crate::setup::Opened;
use crate::speak::{DEPTH_MAX, Heard, Said, Speak};
use model::Outcome;
use rustix::buffer::spare_capacity;
use rustix::io::Errno;
use std::collections::VecDeque;
use std::net::TcpStream;
use units::Nanos;

/// Encoded bytes that may wait for the socket: beyond that requests wait unencoded.
const OUT_MAX: usize = 256 << 10;
/// Room for what is read at once; and most that is read before others have their turn.
const READ: usize = 64 << 10;

/// A connection of a workload, which may be down.
pub(crate) struct Link {
    /// Its workload.
    pub(crate) flow: usize,
    pub(crate) up: Option<Up>,
    /// Requests that wait to be encoded.
    pub(crate) queue: VecDeque<Number>,
}

/// A request whose last byte the kernel has not taken.
struct Unsent {
    /// First and last byte, counted over the connection.
    start: u64,
    end: u64,
    request: Number,
}

/// A connection that works.
pub(crate) struct Up {
    pub(crate) stream: TcpStream,
    speaker: Box<dyn Speak>,
    out: Vec<u8>,
    /// Bytes of `out` that the kernel has.
    out_taken: usize,
    /// Bytes that the kernel has taken since the start.
    written: u64,
    unsent: VecDeque<Unsent>,
    /// Requests that wait for an answer, by number; `None` is answered.
    flying: VecDeque<Option<Number>>,
    /// Number of the first of `flying`.
    first: u64,
    /// Of `flying`, those that wait.
    live: usize,
    input: Vec<u8>,
    input_used: usize,
    /// Bytes that the next answer needs.
    needed: usize,
    /// Events of a writable socket are asked for.
    pub(crate) waits_for_room: bool,
}

/// What the requests of a lost connection become.
pub(crate) struct Remains {
    /// On their way: not to be known whether the server did them.
    pub(crate) gone: Vec<Number>,
    /// Never sent, or refused unprocessed; in order.
    pub(crate) unsent: Vec<Number>,
}

impl Up {
    pub(crate) fn new(opened: Opened) -> Self {
        Self {
            stream: opened.stream,
            speaker: opened.speaker,
            out: Vec::new(),
            out_taken: 0,
            written: 0,
            unsent: VecDeque::new(),
            flying: VecDeque::new(),
            first: 0,
            live: 0,
            input: Vec::new(),
            input_used: 0,
            needed: 1,
            waits_for_room: false,
        }
    }

    /// Sends what can be sent now. An error ends the connection.
    pub(crate) fn send(
        &mut self,
        queue: &mut VecDeque<Number>,
        flow: &mut Flow,
        book: &mut Book,
        tools: &mut super::Tools,
    ) -> Result<(), String> {
        loop {
            while self.out.len() - self.out_taken < OUT_MAX && self.live < DEPTH_MAX {
                let Some(request) = queue.pop_front() else { break };
                if let Err(why) = self.encode(request, flow, book, tools) {
                    queue.push_front(request);
                    return Err(why);
                }
            }
            if self.out_taken == self.out.len() {
                self.out.clear();
                self.out_taken = 0;
                self.waits_for_room = false;
                return Ok(());
            }
            match rustix::io::write(&self.stream, &self.out[self.out_taken..]) {
                Ok(count) => self.taken(count, book, tools.clock),
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.waits_for_room = true;
                    return Ok(());
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    fn encode(
        &mut self,
        request: Number,
        flow: &mut Flow,
        book: &mut Book,
        tools: &mut super::Tools,
    ) -> Result<(), String> {
        let id = self.first + self.flying.len() as u64;
        let start = self.written + (self.out.len() - self.out_taken) as u64;
        let (asked, mark, data) = flow.begin(book.get(request), tools.clock.now(), &mut tools.scratch);
        book.get_mut(request).mark = mark;
        self.flying.push_back(Some(request));
        self.live += 1;
        let before = self.out.len();
        if let Err(why) = self.speaker.ask(&mut self.out, id, asked, data) {
            self.out.truncate(before);
            self.flying.pop_back();
            self.live -= 1;
            flow.written(book.get(request), Ended::NotSent, tools.clock.now());
            return Err(why);
        }
        let end = start + (self.out.len() - before) as u64;
        self.unsent.push_back(Unsent { start, end, request });
        Ok(())
    }

    /// The kernel took so many bytes.
    fn taken(&mut self, count: usize, book: &mut Book, clock: Clock) {
        let now = clock.now();
        self.out_taken += count;
        self.written += count as u64;
        while self.unsent.front().is_some_and(|unsent| unsent.end <= self.written) {
            let unsent = self.unsent.pop_front().expect("there is one");
            book.sent(unsent.request, now);
        }
        // Long queues move to the front now and then, so that memory follows what waits.
        if self.out_taken >= OUT_MAX {
            self.out.drain(..self.out_taken);
            self.out_taken = 0;
        }
    }

    /// Takes what has come, at most one reading; how many requests were answered. An error ends the connection.
    pub(crate) fn receive(
        &mut self,
        flow: &mut Flow,
        book: &mut Book,
        gauges: &Gauges,
        clock: Clock,
    ) -> Result<u32, String> {
        let missing = self.needed.saturating_sub(self.input.len() - self.input_used);
        self.input.reserve(missing.max(READ));
        match rustix::io::read(&self.stream, spare_capacity(&mut self.input)) {
            Ok(0) => return Err("the server hung up".to_owned()),
            Ok(_) => {}
            Err(Errno::AGAIN | Errno::INTR) => return Ok(0),
            Err(error) => return Err(error.to_string()),
        }
        let now = clock.now();
        let mut answered = 0;
        while self.input.len() - self.input_used >= self.needed {
            match self.speaker.hear(&self.input[self.input_used..])? {
                Heard::More(more) => self.needed = more,
                Heard::Skip(used) => self.used(used),
                Heard::Answer { used, id, head } => {
                    self.answer(id, used, head, flow, book, gauges, now)?;
                    self.used(used);
                    answered += 1;
                }
            }
        }
        if self.input_used >= READ || self.input_used == self.input.len() {
            self.input.drain(..self.input_used);
            self.input_used = 0;
        }
        Ok(answered)
    }

    fn used(&mut self, bytes: usize) {
        self.input_used += bytes;
        self.needed = 1;
    }

    #[allow(clippy::too_many_arguments)]
    fn answer(
        &mut self,
        id: u32,
        used: usize,
        head: usize,
        flow: &mut Flow,
        book: &mut Book,
        gauges: &Gauges,
        now: Nanos,
    ) -> Result<(), String> {
        #[allow(clippy::cast_possible_truncation)]
        let place = id.wrapping_sub(self.first as u32) as usize;
        let request = self.flying.get_mut(place).and_then(Option::take);
        let request = request.ok_or("an answer to what was not asked")?;
        self.live -= 1;
        while let Some(None) = self.flying.front() {
            self.flying.pop_front();
            self.first += 1;
        }
        let raw = &self.input[self.input_used..self.input_used + used];
        let record = *book.get(request);
        let (outcome, ended) = match self.speaker.said(ask(&record), raw, head) {
            Said::Done(data) => {
                flow.read(&record, &data);
                (Outcome::Done(now), Ended::Stored)
            }
            Said::Missed => {
                flow.counts.misses += 1;
                (Outcome::Done(now), Ended::Stored)
            }
            Said::Failed(why) => {
                flow.failed_because(|| why);
                (Outcome::Failed(now), Ended::Unsure)
            }
        };
        flow.written(&record, ended, now);
        book.end(request, outcome, gauges);
        Ok(())
    }

    /// Whether the server announced that it will answer nothing more.
    pub(crate) fn is_closing(&self) -> bool {
        self.speaker.is_closing()
    }

    /// Hangs up. What was asked and not answered is gone, unless the server said that it will not do it.
    pub(crate) fn end(self, flow: &mut Flow, book: &Book, now: Nanos) -> Remains {
        let written = self.written;
        let mut flying: Vec<Number> = self.flying.iter().flatten().copied().collect();
        // They went out in order, so that what was not sent is the end of what flies.
        let unsent = self.unsent.iter().filter(|unsent| unsent.start >= written).count();
        let unsent = flying.split_off(flying.len() - unsent);
        for (requests, ended) in [(&unsent, Ended::NotSent), (&flying, Ended::Unsure)] {
            requests.iter().for_each(|request| flow.written(book.get(*request), ended, now));
        }
        if self.speaker.is_closing() {
            return Remains { gone: Vec::new(), unsent: [flying, unsent].concat() };
        }
        Remains { gone: flying, unsent }
    }
}

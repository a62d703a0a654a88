//! The event loop: one thread, one `epoll`, no task or queue between a socket and the queueing logic.
//!
//! A round takes what is ready, reads and takes apart, then lets requests go until the queue says no, then writes:
//! bytes for one socket leave in one system call. Nothing waits for a timer's granularity: `epoll_pwait2` takes
//! nanoseconds.

mod doors;
mod orders;

use super::queue::Ticket;
use super::remote::Orders;
use super::session::{Cut, Interest, Session};
use super::shared::Shared;
use super::spin::Spin;
use crate::deployment::Deployment;
use doors::connected;
pub(super) use doors::{Door, spare};
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use std::time::Instant;

/// Taken at once.
const EVENTS: usize = 256;
/// How often sessions that time may end are looked at.
const TICK_NS: u64 = 50_000_000;
/// Lines that are written in a second; the rest is counted.
const LINES_MAX: u32 = 20;

const BELL: u64 = u64::MAX;
const LISTENER: u64 = 1 << 63;
const SERVER: u64 = 1 << 62;
const NUMBER: u64 = (1 << 30) - 1;

/// Sessions and what they share.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) poll: OwnedFd,
    pub(super) doors: Vec<Door>,
    pub(super) orders: Orders,
    pub(super) shared: Shared,
    pub(super) deployment: Deployment,
    pub(super) server: String,
    pub(super) connections_max: u64,
    pub(super) spin: Spin,
    pub(super) drain_ns: u64,
    pub(super) begun: Instant,
    pub(super) sessions: Vec<Option<Box<Session>>>,
    /// Numbers of sessions that have ended, and how often each number was used.
    pub(super) free: Vec<usize>,
    pub(super) uses: Vec<u64>,
    /// Sessions to be looked at before sleeping.
    pub(super) touched: Vec<usize>,
    pub(super) draining: Option<u64>,
    pub(super) stopped: bool,
    pub(super) lines: Lines,
    /// Kept for when there are no more files.
    pub(super) spare: Option<OwnedFd>,
}

/// What was written about sessions lately.
#[derive(Debug, Default)]
pub(super) struct Lines {
    second: u64,
    written: u32,
    left_out: u64,
}

impl Lines {
    fn write(&mut self, now: u64, line: impl FnOnce() -> String) {
        let second = now / 1_000_000_000;
        if second != self.second {
            if self.left_out > 0 {
                eprintln!("proxy: {} more lines", self.left_out);
            }
            *self = Self { second, ..Self::default() };
        }
        if self.written < LINES_MAX {
            self.written += 1;
            eprintln!("proxy: {}", line());
        } else {
            self.left_out += 1;
        }
    }
}

impl Engine {
    /// Watches doors and bell.
    pub(super) fn watch(&self) -> std::io::Result<()> {
        epoll::add(&self.poll, self.orders.bell(), epoll::EventData::new_u64(BELL), epoll::EventFlags::IN)?;
        for (number, door) in (0u64..).zip(&self.doors) {
            let data = epoll::EventData::new_u64(LISTENER | number);
            epoll::add(&self.poll, &door.listener, data, epoll::EventFlags::IN)?;
        }
        Ok(())
    }

    fn clock(&self) -> u64 {
        u64::try_from(self.begun.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Until it is told to end.
    pub(super) fn run(&mut self) -> std::io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS);
        let mut ticked = 0;
        while !self.stopped {
            self.wait(&mut events)?;
            self.shared.now = self.clock();
            for event in events.drain(..) {
                self.event(event.data.u64(), event.flags);
            }
            if self.shared.now >= ticked + TICK_NS {
                ticked = self.shared.now;
                self.tick();
            }
            self.shared.queue.wake(self.shared.now);
            self.settle();
        }
        Ok(())
    }

    /// The next events: at once if there are, looked for while that pays, or slept for.
    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> std::io::Result<()> {
        let begun = self.clock();
        let wake = [self.shared.queue.wake_at(), self.is_timed().then_some(self.shared.now + TICK_NS)];
        let wake = wake.into_iter().flatten().min();
        let spin_until = begun + self.spin.length(self.shared.queue.outstanding());
        let mut clock = begun;
        loop {
            let left = wake.map(|wake| wake.saturating_sub(clock));
            let spinning = clock < spin_until;
            let timeout = if spinning { Some(0) } else { left };
            let timeout = timeout.map(|ns| Timespec {
                tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
                tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
            });
            let found =
                match epoll::wait(&self.poll, rustix::buffer::spare_capacity(events), timeout.as_ref()) {
                    Ok(found) => found,
                    Err(rustix::io::Errno::INTR) => 0,
                    Err(error) => return Err(error.into()),
                };
            clock = self.clock();
            if found > 0 || !spinning || left == Some(0) {
                self.spin.learn(clock - begun);
                return Ok(());
            }
            // Who waits for this CPU may be who the event comes from.
            std::thread::yield_now();
        }
    }

    fn is_timed(&self) -> bool {
        // Which session it is, a tick finds out: asking all of them in every round would cost more.
        self.draining.is_some() || self.shared.status.connections > 0
    }

    fn event(&mut self, data: u64, flags: epoll::EventFlags) {
        if data == BELL {
            self.orders.heard();
            return self.obey();
        }
        if data & LISTENER != 0 {
            return self.accept((data & NUMBER) as usize);
        }
        let (number, use_count) = ((data & NUMBER) as usize, (data & !SERVER) >> 30);
        if self.uses[number] != use_count {
            return;
        }
        let Some(session) = &mut self.sessions[number] else { return };
        let hung_up = epoll::EventFlags::HUP | epoll::EventFlags::ERR;
        let ready = flags.intersects(epoll::EventFlags::IN | hung_up);
        let result = match (data & SERVER != 0, ready) {
            (true, _) if !session.connected => connected(session, flags),
            (true, true) if session.interest(&self.shared)[1].read => {
                session.server_readable(&mut self.shared)
            }
            // Its last words are read when there is room for them.
            (true, true) if flags.intersects(hung_up) => {
                session.watched[1] = epoll::delete(&self.poll, &session.server).is_err();
                Ok(())
            }
            (false, true) if session.interest(&self.shared)[0].read => {
                session.client_readable(&mut self.shared)
            }
            // Not to be read now, but broken: nothing will come of it.
            (false, true) if flags.intersects(hung_up) => {
                session.watched[0] = epoll::delete(&self.poll, &session.client).is_err();
                session.client_gone(&mut self.shared);
                Ok(())
            }
            _ => Ok(()),
        };
        match result {
            Ok(()) => self.touched.push(number),
            Err(cut) => self.close(number, &cut),
        }
    }

    fn token(&self, number: usize) -> u64 {
        number as u64 | self.uses[number] << 30
    }

    fn close(&mut self, number: usize, cut: &Cut) {
        let Some(session) = &mut self.sessions[number] else { return };
        if !matches!(cut, Cut::Over) {
            self.shared.status.cut += 1;
            self.lines.write(self.shared.now, || format!("{}: {cut}", session.peer));
        }
        if cut.is_of_client() && session.is_owed() {
            session.client_gone(&mut self.shared);
            return self.touched.push(number);
        }
        session.close(&mut self.shared);
        self.sessions[number] = None;
        self.shared.status.connections -= 1;
        self.uses[number] = (self.uses[number] + 1) & ((1 << 31) - 1);
        self.free.push(number);
    }

    /// Lets go what may go, and does what follows from it, until nothing more happens.
    fn settle(&mut self) {
        loop {
            let mut touched = std::mem::take(&mut self.touched);
            touched.sort_unstable();
            touched.dedup();
            self.identify(&touched);
            for number in &touched {
                let Some(session) = &mut self.sessions[*number] else { continue };
                if let Err(cut) = session.settle(&mut self.shared) {
                    self.close(*number, &cut);
                }
            }
            self.dispatch();
            for number in touched {
                self.watch_for(number);
            }
            if self.touched.is_empty() {
                return;
            }
        }
    }

    fn dispatch(&mut self) {
        let now = self.shared.now;
        while let Some((number, ticket)) = self.shared.queue.next(now) {
            let followers = self.followers(number, &ticket);
            self.let_go(number, ticket);
            for (number, ticket) in followers {
                self.let_go(number, ticket);
            }
        }
    }

    /// Waiting writes that continue this one, and each other.
    fn followers(&mut self, number: u32, ticket: &Ticket) -> Vec<(u32, Ticket)> {
        let Shared { queue, requests, batch, now, .. } = &mut self.shared;
        let mut found: Vec<(u32, Ticket)> = Vec::new();
        let mut last = number;
        while found.len() + 1 < *batch as usize {
            let ticket = found.last().map_or(ticket, |(_, ticket)| ticket);
            let continues = |next: u32| requests.get(next).continues(requests.get(last));
            let Some(next) = queue.follow(*now, ticket, continues) else { break };
            last = next.0;
            found.push(next);
        }
        found
    }

    /// A request goes to its session.
    fn let_go(&mut self, number: u32, ticket: Ticket) {
        let session = self.shared.requests.get(number).session;
        let Some(session) = self.sessions.get_mut(session).and_then(Option::as_mut) else {
            self.shared.queue.done(self.shared.now, ticket);
            return self.shared.requests.remove(number);
        };
        session.send(number, ticket, &mut self.shared);
        self.touched.push(session.number);
    }

    /// Asks the kernel for what the session can use now.
    fn watch_for(&mut self, number: usize) {
        let token = self.token(number);
        let Some(session) = &mut self.sessions[number] else { return };
        let wanted = session.interest(&self.shared);
        let sockets = [(&session.client, token), (&session.server, token | SERVER)];
        for (index, (socket, token)) in sockets.into_iter().enumerate() {
            let flags = flags(wanted[index]);
            let data = epoll::EventData::new_u64(token);
            if !session.watched[index] {
                if !flags.is_empty() {
                    epoll::add(&self.poll, socket, data, flags).expect("it was watched before");
                    (session.watched[index], session.interest[index]) = (true, flags.bits());
                }
            } else if session.interest[index] != flags.bits() {
                session.interest[index] = flags.bits();
                // A descriptor that is watched stays watched until it is closed.
                epoll::modify(&self.poll, socket, data, flags).expect("a socket of a session is watched");
            }
        }
    }

    /// Sessions of whom more is known: where something has happened, those that were granted an export, and all of
    /// clients that have mounted one.
    fn identify(&mut self, touched: &[usize]) {
        for number in touched {
            let Some(session) = &mut self.sessions[*number] else { continue };
            if session.has_new_name() {
                session.belongs_to(self.shared.flow_of(session.peer, session.export()));
            }
        }
        let clients = std::mem::take(&mut self.shared.known_better);
        if clients.is_empty() {
            return;
        }
        for session in self.sessions.iter_mut().flatten() {
            if clients.contains(&session.peer.ip().to_canonical()) {
                session.belongs_to(self.shared.flow_of(session.peer, session.export()));
            }
        }
    }

    fn tick(&mut self) {
        for number in 0..self.sessions.len() {
            let Some(session) = &mut self.sessions[number] else { continue };
            if !session.is_timed() && self.draining.is_none() {
                continue;
            }
            match session.tick(&mut self.shared) {
                Ok(()) => self.touched.push(number),
                Err(cut) => self.close(number, &cut),
            }
        }
        if let Some(since) = self.draining {
            let over = self.shared.now > since + self.drain_ns;
            if over && self.shared.status.connections > 0 {
                let left = self.shared.status.connections;
                self.lines.write(self.shared.now, || format!("{left} connections did not end in time"));
            }
            self.stopped |= over || self.shared.status.connections == 0;
        }
    }
}

fn flags(interest: Interest) -> epoll::EventFlags {
    let mut flags = epoll::EventFlags::empty();
    flags.set(epoll::EventFlags::IN, interest.read);
    flags.set(epoll::EventFlags::OUT, interest.write);
    flags
}

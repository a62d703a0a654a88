//! The simulated machine under the proxy: every call may fail, and time passes only in `wait`.

use super::faults::FaultKind;
use super::link::FarEnd;
use super::nbd_reader::NbdDialect;
use super::plan::MS;
use super::reader::RequestReader;
use super::session::HandedRequest;
use super::tamper::ProxyMistake;
use super::world::{World, WorldEvent};
use enforce::storage::{ProxyStream, StreamInterest, StreamToken, System, SystemEvent};
use std::cell::RefCell;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use wire::Protocol;

/// Maximum number of consecutive rounds with ready events but without progress.
const CIRCLES_MAX: u64 = 400;

/// The error of a process that may open no more files.
const NO_FILES: i32 = 24;

/// A world, as the proxy's machine.
#[derive(Debug, Clone)]
pub struct SimulatedSystem(pub Rc<RefCell<World>>);

/// The proxy's end of a connection.
#[derive(Debug)]
pub struct SimulatedStream {
    world: Rc<RefCell<World>>,
    link: usize,
}

impl SimulatedSystem {
    fn open(&self, link: usize) -> SimulatedStream {
        self.0.borrow_mut().open_links.push(link);
        SimulatedStream { world: self.0.clone(), link }
    }
}

impl Drop for SimulatedStream {
    fn drop(&mut self) {
        self.world.borrow_mut().proxy_closes(self.link);
    }
}

impl ProxyStream for SimulatedStream {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.world.borrow_mut().proxy_reads(self.link, buffer)
    }

    fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        self.world.borrow_mut().proxy_writes(self.link, pieces)
    }

    fn shutdown_write(&mut self) -> io::Result<()> {
        let mut world = self.world.borrow_mut();
        let now = world.now;
        let link = &mut world.links[self.link];
        link.check_usable(now)?;
        let at = link.from_proxy.end(now + link.latency_ns);
        world.progress += 1;
        world.schedule(at, WorldEvent::Look(self.link));
        Ok(())
    }

    fn finish_connecting(&mut self) -> io::Result<()> {
        let world = self.world.borrow();
        world.links[self.link].check_usable(world.now)
    }
}

impl System for SimulatedSystem {
    type Stream = SimulatedStream;

    fn now(&self) -> u64 {
        self.0.borrow().now
    }

    fn accept(&mut self, front: usize) -> io::Result<(SimulatedStream, SocketAddr)> {
        let link = self.0.borrow_mut().proxy_accepts(front)?;
        let address = self.0.borrow().links[link].address;
        Ok((self.open(link), address))
    }

    fn restore_reserve(&mut self) -> bool {
        self.0.borrow_mut().restore_files()
    }

    fn clients_max(&self) -> u64 {
        let world = self.0.borrow();
        if !world.plan.are_files_known {
            return u64::MAX;
        }
        (world.files_max.saturating_sub(world.files_in_use()) / 2) as u64
    }

    fn report_clients(&mut self, are_reported: bool) {
        self.0.borrow_mut().reports_clients = are_reported;
    }

    fn may_share(&self, front: usize) -> bool {
        self.0.borrow().shares(front)
    }

    fn connect(&mut self, front: usize, client: Option<SocketAddr>) -> io::Result<SimulatedStream> {
        let mut world = self.0.borrow_mut();
        let World { faults, dice, .. } = &mut *world;
        if faults.strikes(FaultKind::ConnectFails, dice) {
            if world.shares(front) {
                world.excuse_sharing(front, "the proxy could not connect");
            }
            return Err(io::ErrorKind::AddrNotAvailable.into());
        }
        if !world.open_file() {
            if world.shares(front) {
                world.excuse_sharing(front, "there were no files");
            }
            return Err(io::Error::from_raw_os_error(NO_FILES));
        }
        let link = match client {
            Some(client) => world.open_server_link(front, client),
            None => world.open_shared_link(front),
        };
        drop(world);
        Ok(self.open(link))
    }

    fn watch(
        &mut self,
        stream: &mut SimulatedStream,
        token: StreamToken,
        interest: StreamInterest,
    ) -> io::Result<()> {
        let mut world = self.0.borrow_mut();
        let World { faults, dice, links, sessions, .. } = &mut *world;
        let link = &mut links[stream.link];
        if link.watched.is_none() && faults.strikes(FaultKind::WatchFails, dice) {
            if let Some(session) = link.session {
                sessions[session].excuse("the kernel could not watch it");
            }
            let front = link.shared.as_ref().map(|_| link.front);
            for session in sessions.iter_mut().filter(|session| session.is_sharing) {
                if front == Some(session.front) {
                    session.excuse("the kernel could not watch a shared connection");
                }
            }
            // No space for another watch, or no memory.
            return Err(io::Error::from_raw_os_error(dice.pick(&[28, 12])));
        }
        link.watched = Some((token, interest));
        Ok(())
    }

    fn unwatch(&mut self, stream: &mut SimulatedStream) {
        self.0.borrow_mut().links[stream.link].watched = None;
    }

    fn wait(&mut self, until: Option<u64>, _: u32, events: &mut Vec<SystemEvent>) -> io::Result<()> {
        self.0.borrow_mut().wait(until, events);
        Ok(())
    }

    fn stop_listening(&mut self) {
        let mut world = self.0.borrow_mut();
        world.is_listening = false;
        for front in 0..world.fronts.len() {
            while let Some(link) = world.fronts[front].backlog.pop_front() {
                world.proxy_closes(link);
            }
        }
    }
}

impl World {
    fn proxy_accepts(&mut self, front: usize) -> io::Result<usize> {
        if self.fronts[front].backlog.is_empty() || !self.is_listening {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        if self.faults.strikes(FaultKind::AcceptNoFiles, &mut self.dice) {
            return Err(io::Error::from_raw_os_error(NO_FILES));
        }
        if !self.open_file() {
            return Err(io::Error::from_raw_os_error(NO_FILES));
        }
        let link = self.fronts[front].backlog.pop_front().expect("it is not empty");
        if self.faults.strikes(FaultKind::AcceptAborted, &mut self.dice) {
            self.proxy_closes(link);
            return Err(io::ErrorKind::ConnectionAborted.into());
        }
        self.progress += 1;
        self.cpu_ns += self.plan.cpu.connect_ns;
        if self.shares(front) {
            let session = self.begin_session(link);
            (self.sessions[session].is_sharing, self.sessions[session].is_blocked) = (true, false);
        }
        Ok(link)
    }

    /// Closes the proxy's end of a connection. Unread bytes reset it, and bytes on their way to the far
    /// end are lost.
    fn proxy_closes(&mut self, number: usize) {
        let now = self.now;
        self.open_links.retain(|open| *open != number);
        let link = &mut self.links[number];
        if link.is_proxy_gone {
            return;
        }
        link.is_proxy_gone = true;
        link.watched = None;
        if !link.to_proxy.is_empty() {
            link.from_proxy.lose();
        }
        let at = link.from_proxy.end(now + link.latency_ns);
        let session = link.session;
        if let Some(session) = session {
            self.sessions[session].is_over = true;
            if self.is_short_of_files() {
                self.sessions[session].excuse("there were no files");
            }
        }
        self.progress += 1;
        self.cpu_ns += self.plan.cpu.close_ns + self.unread_cost_ns(number);
        self.note(|| format!("proxy closes link {number}"));
        self.schedule(at, WorldEvent::Look(number));
    }

    fn proxy_reads(&mut self, number: usize, buffer: &mut [u8]) -> io::Result<usize> {
        let now = self.now;
        self.cpu_ns += self.plan.cpu.call_ns;
        self.links[number].check_usable(now)?;
        let link = &mut self.links[number];
        if !link.to_proxy.has_bytes(now) {
            return if link.to_proxy.is_at_end(now) { Ok(0) } else { Err(io::ErrorKind::WouldBlock.into()) };
        }
        if self.faults.strikes(FaultKind::SpuriousWouldBlock, &mut self.dice)
            || (self.makes(ProxyMistake::RunsInCircles) && number % 8 == 7)
        {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut most = buffer.len();
        if most > 1 && self.faults.strikes(FaultKind::PartialRead, &mut self.dice) {
            most = self.dice.length(1, most as u64).try_into().expect("it is at most a length");
        }
        let link = &mut self.links[number];
        let bytes = link.to_proxy.pop(most, now);
        buffer[..bytes.len()].copy_from_slice(&bytes);
        self.cpu_ns += self.plan.cpu.copying_ns(bytes.len());
        let latency = link.latency_ns;
        let session = link.session;
        let is_client = matches!(link.far, FarEnd::Client(_));
        self.progress += 1;
        self.schedule(now + latency, WorldEvent::Look(number));
        self.note(|| format!("proxy reads {} bytes of link {number}", bytes.len()));
        if !is_client {
            self.device.note_read(number, bytes.len(), now);
        }
        if let Some(session) = session {
            let observed = if is_client {
                self.sessions[session].on_read_from_client(&bytes, now)
            } else {
                self.sessions[session].on_read_from_server(bytes.len(), now)
            };
            if let Err(message) = observed {
                self.violate(&format!("{message} (session {session})"));
            }
        }
        Ok(bytes.len())
    }

    fn proxy_writes(&mut self, number: usize, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
        let now = self.now;
        let len: usize = pieces.iter().map(|piece| piece.len()).sum();
        self.cpu_ns += self.plan.cpu.call_ns;
        self.links[number].check_usable(now)?;
        let link = &mut self.links[number];
        if link.from_proxy.is_ended() && !link.is_far_gone {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        let is_client = matches!(link.far, FarEnd::Client(_));
        if link.is_far_gone {
            link.reset_at.get_or_insert(now + link.latency_ns);
            let at = link.reset_at.expect("it was set");
            self.schedule(at, WorldEvent::Wake);
            return Ok(len);
        }
        let room = link.from_proxy.room();
        let spurious = self.faults.strikes(FaultKind::SpuriousWouldBlock, &mut self.dice);
        if room == 0 || spurious {
            self.note_blocked(number, is_client);
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let mut count = room.min(len);
        if count > 1 && self.faults.strikes(FaultKind::PartialWrite, &mut self.dice) {
            count = self.dice.index(count - 1) + 1;
        }
        if count < len {
            self.note_blocked(number, is_client);
        } else if let Some(session) = self.links[number].session.filter(|_| !is_client) {
            self.sessions[session].is_blocked = false;
        } else if let Some(shared) = self.links[number].shared.as_mut().filter(|shared| shared.has_greeted) {
            (shared.is_blocked, self.shared_blocked_at) = (false, now);
        }
        let mut passed = Vec::with_capacity(count);
        for piece in pieces {
            passed.extend_from_slice(&piece[..piece.len().min(count - passed.len())]);
        }
        if is_client {
            self.pass_to_client(number, &mut passed);
        } else {
            passed = self.pass_to_server(number, &passed);
        }
        if count == len
            && let Some(session) = self.links[number].session.filter(|_| !is_client)
        {
            self.sessions[session].blocked_since = None;
        }
        let shared = self.links[number].shared.as_mut();
        // The requests behind the greeting wait for its answer.
        if let Some(shared) = shared.filter(|shared| count == len && !shared.is_blocked) {
            shared.blocked_since = None;
        }
        self.cpu_ns += self.plan.cpu.copying_ns(count);
        self.note(|| format!("proxy writes {count} of {len} bytes to link {number}"));
        let link = &mut self.links[number];
        let at = link.from_proxy.push(&passed, now + link.latency_ns);
        self.progress += 1;
        self.schedule(at, WorldEvent::Look(number));
        Ok(count)
    }

    /// Returns the CPU time of discarding the bytes that the proxy has not read.
    fn unread_cost_ns(&self, number: usize) -> u64 {
        self.plan.cpu.copying_ns(self.links[number].to_proxy.len())
    }

    /// Notes that the server does not accept the proxy's bytes.
    fn note_blocked(&mut self, number: usize, is_client: bool) {
        let now = self.now;
        if let Some(shared) = &mut self.links[number].shared {
            shared.is_blocked = true;
            shared.blocked_since.get_or_insert(now);
        }
        if let Some(session) = self.links[number].session.filter(|_| !is_client) {
            let session = &mut self.sessions[session];
            (session.blocked_at, session.is_blocked) = (now, true);
            session.blocked_since.get_or_insert(now);
        }
    }

    fn pass_to_client(&mut self, number: usize, bytes: &mut Vec<u8>) {
        if let Some(tampering) = &mut self.tampering {
            tampering.pass_to_client(bytes);
        }
        if let Some(session) = self.links[number].session
            && let Some(since) = self.sessions[session].on_written_to_client(bytes.len())
            && since + super::server::HELD_UP_NS <= self.now
        {
            self.exempt_session(session);
        }
    }

    fn pass_to_server(&mut self, number: usize, bytes: &[u8]) -> Vec<u8> {
        let now = self.now;
        let protocol = self.plan.fronts[self.links[number].front];
        let dialect = NbdDialect::new(self.plan.nbd.0, self.plan.nbd.1);
        let passed = match &mut self.tampering {
            Some(tampering) => {
                tampering.pass_to_server(number, bytes, || RequestReader::new(protocol, dialect))
            }
            None => bytes.to_vec(),
        };
        if self.links[number].shared.is_some() {
            self.pass_shared(number, &passed);
        }
        let Some(number) = self.links[number].session else { return passed };
        match self.sessions[number].on_written_to_server(&passed, now) {
            Ok(handed) => {
                for request in handed {
                    self.check_handed(number, &request);
                }
            }
            Err(message) => self.violate(&format!("{message} (session {number})")),
        }
        passed
    }

    /// Matches requests on a connection that sessions share with those of sessions.
    fn pass_shared(&mut self, number: usize, bytes: &[u8]) {
        let now = self.now;
        let Some(mut shared) = self.links[number].shared.take() else { return };
        let front = self.links[number].front;
        shared.written.feed(bytes);
        let mut begun_at = shared.begun_at.take().unwrap_or(now);
        while let Some(request) = shared.written.next_request() {
            if !std::mem::replace(&mut shared.has_greeted, true) {
                if !request.is_noop {
                    self.violate("conservation: the server got a request before the greeting");
                }
                shared.owners.push_back((None, now));
                continue;
            }
            let generation = self.generation;
            let sharing = self.sessions.iter().enumerate().filter(|(_, session)| {
                session.is_sharing && session.front == front && session.generation == generation
            });
            // Several may have sent the same; of one whose client has gone the proxy may not know yet.
            let owner = sharing
                .filter_map(|(owner, session)| {
                    Some((session.is_over, session.first_held_at(&request)?, owner))
                })
                .min()
                .map(|(.., owner)| owner);
            let dispatched_at = begun_at.min(shared.blocked_since.unwrap_or(u64::MAX));
            shared.owners.push_back((owner, dispatched_at));
            match owner {
                Some(owner) => {
                    self.sessions[owner].on_shared(&request);
                    let begun_at = dispatched_at;
                    self.check_handed(owner, &HandedRequest { request, begun_at, is_added: false });
                }
                // A no-op in place of a request that the proxy answers.
                None if request.is_noop => {}
                None => {
                    self.violate(
                        "conservation: the server got a request that no client sent first, or twice",
                    );
                }
            }
            begun_at = now;
        }
        shared.begun_at = (!shared.written.is_between()).then_some(begun_at);
        self.links[number].shared = Some(shared);
    }

    /// Returns true if the clients of a front share connections to the server.
    pub fn shares(&self, front: usize) -> bool {
        self.plan.shares && self.plan.fronts[front] == Protocol::Memcached
    }

    /// Advances time until an event that the proxy waits for, or until an instant.
    fn wait(&mut self, until: Option<u64>, events: &mut Vec<SystemEvent>) {
        self.rounds += 1;
        self.confirm_overtaken();
        let is_past = until.is_some_and(|until| until <= self.now);
        if self.rounds.is_multiple_of(100_000) {
            let left = until.map(|until| i128::from(until) - i128::from(self.now));
            self.note(|| format!("the proxy waits for {left:?} ns"));
        }
        let worked = std::mem::take(&mut self.cpu_ns);
        let worked = worked + 1 + self.dice.below(self.plan.round_ns);
        self.pass_time(worked);
        // A loop that the machine does not run counts as a server that does not answer, which the judge cannot tell.
        let may_jump = !self.loops_have_orders;
        if may_jump && self.faults.strikes(FaultKind::ClockJump, &mut self.dice) {
            self.note(|| "the proxy does not run for a while".to_owned());
            let jump = self.dice.between(1, 2000) * self.dice.pick(&[MS / 100, MS, 3 * MS]);
            self.pass_time(jump);
        }
        let is_early = self.faults.strikes(FaultKind::EarlyWakeUp, &mut self.dice);
        loop {
            self.happen();
            if is_early || !self.actions.is_empty() {
                break;
            }
            self.collect_events(events);
            if !events.is_empty() || until.is_some_and(|until| until <= self.now) {
                break;
            }
            let next = self.next_event_at().into_iter().chain(until).min();
            let Some(next) = next.filter(|_| !self.is_over()) else { break };
            self.now = self.now.max(next);
        }
        let is_circle = (!events.is_empty() || is_past) && !is_early && self.progress == self.progress_seen;
        self.progress_seen = self.progress;
        self.idle_rounds = if is_circle { self.idle_rounds + 1 } else { 0 };
        self.most_idle_rounds = self.most_idle_rounds.max(self.idle_rounds);
        if self.idle_rounds == CIRCLES_MAX {
            self.violate("circles: the proxy goes in circles, and nothing changes");
        }
    }

    /// Advances time without the proxy, while everything else runs.
    fn pass_time(&mut self, jump: u64) {
        let until = self.now + jump;
        while let Some(at) = self.next_event_at()
            && at <= until
        {
            self.now = self.now.max(at);
            self.happen();
        }
        self.now = until;
    }

    /// Collects the ready events that the proxy waits for, in random order; sometimes not all of them.
    fn collect_events(&mut self, events: &mut Vec<SystemEvent>) {
        for front in 0..self.fronts.len() {
            if self.is_listening && self.reports_clients && !self.fronts[front].backlog.is_empty() {
                events.push(SystemEvent::Incoming(front));
            }
        }
        for number in &self.open_links {
            let link = &self.links[*number];
            let Some((token, interest)) = link.watched else { continue };
            let (readable, writable, hung_up) = link.readiness(self.now);
            if (readable && interest.readable) || (writable && interest.writable) || hung_up {
                let readable = readable && interest.readable;
                let writable = writable && interest.writable;
                events.push(SystemEvent::Stream { token, readable, writable, hung_up });
            }
        }
        for place in (1..events.len()).rev() {
            events.swap(place, self.dice.index(place + 1));
        }
        if events.len() > 1 && self.faults.strikes(FaultKind::WithheldEvents, &mut self.dice) {
            events.truncate(self.dice.index(events.len() - 1) + 1);
        }
    }

    /// Returns true if a mistake is injected.
    pub fn makes(&self, mistake: ProxyMistake) -> bool {
        self.tampering.as_ref().is_some_and(|tampering| tampering.mistake == mistake)
    }
}

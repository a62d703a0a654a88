//! The event loop: one thread, one `epoll`, no task or queue between a socket and the queueing logic.
//!
//! A round takes the events that are ready, reads and parses, then dispatches requests until the queue has none that may
//! go, then writes: bytes for one socket leave in one system call. Nothing waits for a timer's granularity:
//! `epoll_pwait2` takes nanoseconds.

mod accept;
mod commands;

use super::busy_poll::BusyPoll;
use super::control::CommandReceiver;
use super::event_log::RateLimitedLog;
use super::event_token::{self, EventSource};
use super::flows::WorkloadNames;
use super::listener::{FrontListener, SpareDescriptor};
use super::options::ProxyOptions;
use super::queue::{DispatchTicket, RequestQueue};
use super::rules::ProxyRules;
use super::session::{CloseReason, ProxySession};
use super::shared::SharedState;
use super::statistics::ProxyStatistics;
use crate::deployment::Deployment;
use model::{Observations, OperationError};
use rustix::event::{Timespec, epoll};
use rustix::fd::OwnedFd;
use slab::Slab;
use std::net::SocketAddr;
use std::time::Instant;

/// How many events one round takes: enough to share the work of a round, few enough not to keep the first ones waiting.
const EVENTS_PER_ROUND: usize = 256;
/// How often sessions are looked at that time alone may end: a fraction of the shortest time that they are given.
const TICK_NS: u64 = 50_000_000;

/// All sessions of a proxy, and what they share.
#[derive(Debug)]
pub(super) struct ProxyEngine {
    epoll: OwnedFd,
    listeners: Vec<FrontListener>,
    commands: CommandReceiver,
    shared: SharedState,
    deployment: Deployment,
    /// The name of the server behind the proxy.
    server: String,
    connections_max: u64,
    busy_poll: BusyPoll,
    drain_ns: u64,
    started: Instant,
    sessions: Slab<Box<ProxySession>>,
    next_serial: u32,
    /// The slots of sessions that can make progress before the engine sleeps; some of them may be vacant.
    ready: Vec<usize>,
    /// When the proxy was told to drain.
    draining_since: Option<u64>,
    is_stopped: bool,
    log: RateLimitedLog,
    spare: SpareDescriptor,
}

impl ProxyEngine {
    /// Listens at the fronts, and watches listeners and commands.
    ///
    /// # Errors
    /// When policy, deployment or baseline are wrong, an address cannot be had, or the process may open no more files.
    pub(super) fn new(options: ProxyOptions, commands: CommandReceiver) -> Result<Self, OperationError> {
        let ProxyOptions { server, deployment, policy, profile, baseline, .. } = options;
        let mut names = WorkloadNames::default();
        let rules = ProxyRules::new(policy.as_ref(), &deployment, &server, &profile, &mut names)?;
        let queue = RequestQueue::new(0, &rules.rules, baseline.as_ref())
            .map_err(|message| OperationError::input(message).hint("docs/proxy.md says what is allowed"))?;
        let listeners = FrontListener::bind_all(&deployment, &server)?;
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(|error| no_epoll(&error.into()))?;
        let statistics = ProxyStatistics::new(options.record);
        let spare = SpareDescriptor::new(&epoll);
        // On a single CPU the event that is polled for cannot happen meanwhile.
        let has_one_cpu = std::thread::available_parallelism().is_ok_and(|cpus| cpus.get() == 1);
        let engine = Self {
            epoll,
            listeners,
            commands,
            shared: SharedState::new(queue, names, rules, profile, statistics),
            deployment,
            server,
            connections_max: options.connections_max,
            busy_poll: BusyPoll::new(if has_one_cpu { 0 } else { options.busy_poll_max.0 }),
            drain_ns: options.drain.0,
            started: Instant::now(),
            sessions: Slab::new(),
            next_serial: 0,
            ready: Vec::new(),
            draining_since: None,
            is_stopped: false,
            log: RateLimitedLog::default(),
            spare,
        };
        engine.watch_listeners_and_commands().map_err(|error| no_epoll(&error))?;
        Ok(engine)
    }

    fn watch_listeners_and_commands(&self) -> std::io::Result<()> {
        let waker = epoll::EventData::new_u64(event_token::WAKER);
        epoll::add(&self.epoll, self.commands.waker(), waker, epoll::EventFlags::IN)?;
        for (number, front) in self.listeners.iter().enumerate() {
            let token = epoll::EventData::new_u64(event_token::listener_token(number));
            epoll::add(&self.epoll, &front.listener, token, epoll::EventFlags::IN)?;
        }
        Ok(())
    }

    /// The addresses that the proxy listens at.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        self.listeners.iter().filter_map(|front| front.listener.local_addr().ok()).collect()
    }

    /// Takes the recorded requests, and the number of those that were left out.
    pub(super) fn take_observations(&mut self) -> (Observations, u64) {
        self.shared.statistics.take_observations(&self.shared.names)
    }

    fn clock_ns(&self) -> u64 {
        u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// Serves until the proxy is told to end.
    ///
    /// # Errors
    /// When the kernel does not deliver events.
    pub(super) fn run(&mut self) -> std::io::Result<()> {
        let mut events = Vec::with_capacity(EVENTS_PER_ROUND);
        let mut ticked_at = 0;
        while !self.is_stopped {
            self.wait(&mut events)?;
            self.shared.now = self.clock_ns();
            for event in events.drain(..) {
                self.handle_event(event.data.u64(), event.flags);
            }
            if self.shared.now >= ticked_at + TICK_NS {
                ticked_at = self.shared.now;
                self.tick();
            }
            self.shared.queue.wake(self.shared.now);
            self.make_progress();
        }
        Ok(())
    }

    /// Waits for the next events or the next instant at which something is to be done. It polls while that pays, and
    /// then sleeps.
    fn wait(&mut self, events: &mut Vec<epoll::Event>) -> std::io::Result<()> {
        let begun = self.clock_ns();
        let next_tick = self.needs_ticks().then_some(self.shared.now + TICK_NS);
        let wake_at = [self.shared.queue.wake_at(), next_tick].into_iter().flatten().min();
        let poll_until = begun + self.busy_poll.duration_ns(self.shared.queue.outstanding());
        let mut clock = begun;
        loop {
            let left = wake_at.map(|wake_at| wake_at.saturating_sub(clock));
            let is_polling = clock < poll_until;
            let timeout = if is_polling { Some(0) } else { left };
            let timeout = timeout.map(timespec);
            let count =
                match epoll::wait(&self.epoll, rustix::buffer::spare_capacity(events), timeout.as_ref()) {
                    Ok(count) => count,
                    Err(rustix::io::Errno::INTR) => 0,
                    Err(error) => return Err(error.into()),
                };
            clock = self.clock_ns();
            if count > 0 || !is_polling || left == Some(0) {
                self.busy_poll.learn(clock - begun);
                return Ok(());
            }
            // A thread that waits for this CPU may be the one that causes the event.
            std::thread::yield_now();
        }
    }

    /// Whether some session may be timed. Which one it is, a tick finds out: asking all of them in every round would
    /// cost more.
    fn needs_ticks(&self) -> bool {
        self.draining_since.is_some() || self.shared.statistics.connections > 0
    }

    fn handle_event(&mut self, token: u64, flags: epoll::EventFlags) {
        match EventSource::from_token(token) {
            EventSource::Waker => {
                self.commands.reset_waker();
                self.handle_commands();
            }
            EventSource::Listener(number) => self.accept(number),
            EventSource::Session { slot, serial, is_server_side } => {
                // An event about an earlier session in the slot is late, and means nothing.
                let Some(session) = self.sessions.get_mut(slot) else { return };
                if session.serial != serial {
                    return;
                }
                let result = if is_server_side {
                    handle_server_event(&self.epoll, session, &mut self.shared, flags)
                } else {
                    handle_client_event(&self.epoll, session, &mut self.shared, flags)
                };
                match result {
                    Ok(()) => self.ready.push(slot),
                    Err(reason) => self.close(slot, &reason),
                }
            }
        }
    }

    /// Ends a session. One that its client breaks off stays without the client until the server has answered.
    fn close(&mut self, slot: usize, reason: &CloseReason) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        if !matches!(reason, CloseReason::Finished) {
            self.shared.statistics.cut += 1;
            self.log.write(self.shared.now, || format!("{}: {reason}", session.peer));
        }
        if reason.is_caused_by_client() && session.awaits_replies() {
            session.close_client(&mut self.shared);
            return self.ready.push(slot);
        }
        session.close(&mut self.shared);
        self.sessions.remove(slot);
        self.shared.statistics.connections -= 1;
    }

    /// Lets sessions make progress and dispatches requests, until nothing more happens.
    fn make_progress(&mut self) {
        loop {
            let mut ready = std::mem::take(&mut self.ready);
            ready.sort_unstable();
            ready.dedup();
            self.identify(&ready);
            for slot in &ready {
                let Some(session) = self.sessions.get_mut(*slot) else { continue };
                if let Err(reason) = session.make_progress(&mut self.shared) {
                    self.close(*slot, &reason);
                }
            }
            self.dispatch_all();
            for slot in ready {
                self.update_interest(slot);
            }
            if self.ready.is_empty() {
                return;
            }
        }
    }

    /// Dispatches all requests that may go now.
    fn dispatch_all(&mut self) {
        let now = self.shared.now;
        while let Some((number, ticket)) = self.shared.queue.next(now) {
            let followers = self.followers(number, &ticket);
            self.dispatch(number, ticket);
            for (number, ticket) in followers {
                self.dispatch(number, ticket);
            }
        }
    }

    /// Waiting writes that continue this one, and each other, up to the size of a batch.
    fn followers(&mut self, number: u32, ticket: &DispatchTicket) -> Vec<(u32, DispatchTicket)> {
        let SharedState { queue, requests, batch, now, .. } = &mut self.shared;
        let mut followers: Vec<(u32, DispatchTicket)> = Vec::new();
        let mut last = number;
        while followers.len() + 1 < *batch as usize {
            let ticket = followers.last().map_or(ticket, |(_, ticket)| ticket);
            let next = queue.follow(*now, ticket, |next| requests.get(next).continues(requests.get(last)));
            let Some(next) = next else { break };
            last = next.0;
            followers.push(next);
        }
        followers
    }

    /// Hands a dispatched request to its session.
    fn dispatch(&mut self, number: u32, ticket: DispatchTicket) {
        let slot = self.shared.requests.get(number).session;
        let Some(session) = self.sessions.get_mut(slot) else {
            self.shared.queue.done(self.shared.now, ticket);
            return self.shared.requests.remove(number);
        };
        session.dispatch(number, ticket, &mut self.shared);
        self.ready.push(slot);
    }

    /// Tells epoll which events the session can use now, where that has changed.
    fn update_interest(&mut self, slot: usize) {
        let Some(session) = self.sessions.get_mut(slot) else { return };
        let interest = session.epoll_interest(&self.shared);
        let tokens = event_token::session_tokens(slot, session.serial);
        let sockets = [&session.client, &session.server];
        for side in 0..2 {
            let (socket, flags) = (sockets[side], interest[side]);
            let token = epoll::EventData::new_u64(tokens[side]);
            if !session.is_watched[side] {
                if !flags.is_empty() {
                    epoll::add(&self.epoll, socket, token, flags).expect("it was watched before");
                    (session.is_watched[side], session.registered_flags[side]) = (true, flags.bits());
                }
            } else if session.registered_flags[side] != flags.bits() {
                session.registered_flags[side] = flags.bits();
                // A descriptor that is watched stays watched until it is closed.
                epoll::modify(&self.epoll, socket, token, flags).expect("a socket of a session is watched");
            }
        }
    }

    /// Moves sessions to the flows of their exports: those that were granted one, and all sessions of clients that have
    /// mounted one.
    fn identify(&mut self, ready: &[usize]) {
        for slot in ready {
            let Some(session) = self.sessions.get_mut(*slot) else { continue };
            if session.has_new_export() {
                session.move_to_flow(self.shared.flow_for(session.peer, session.export()));
            }
        }
        let clients = std::mem::take(&mut self.shared.newly_mounted);
        if clients.is_empty() {
            return;
        }
        for (_, session) in &mut self.sessions {
            if clients.contains(&session.peer.ip().to_canonical()) {
                session.move_to_flow(self.shared.flow_for(session.peer, session.export()));
            }
        }
    }

    /// Does what time alone demands of sessions, and ends a proxy that has drained.
    fn tick(&mut self) {
        let is_draining = self.draining_since.is_some();
        let timed = self.sessions.iter().filter(|(_, session)| session.is_timed() || is_draining);
        let slots: Vec<usize> = timed.map(|(slot, _)| slot).collect();
        for slot in slots {
            let Some(session) = self.sessions.get_mut(slot) else { continue };
            match session.on_tick(&mut self.shared) {
                Ok(()) => self.ready.push(slot),
                Err(reason) => self.close(slot, &reason),
            }
        }
        if let Some(since) = self.draining_since {
            let is_late = self.shared.now > since + self.drain_ns;
            let left = self.shared.statistics.connections;
            if is_late && left > 0 {
                self.log.write(self.shared.now, || format!("{left} connections did not end in time"));
            }
            self.is_stopped |= is_late || left == 0;
        }
    }
}

fn no_epoll(error: &std::io::Error) -> OperationError {
    OperationError::machine(format_args!("epoll: {error}")).hint("raise the limit of open files")
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
    }
}

const HUNG_UP: epoll::EventFlags = epoll::EventFlags::HUP.union(epoll::EventFlags::ERR);

fn handle_server_event(
    poll: &OwnedFd,
    session: &mut ProxySession,
    shared: &mut SharedState,
    flags: epoll::EventFlags,
) -> Result<(), CloseReason> {
    if !session.is_connected {
        return session.on_connection_event(flags.contains(epoll::EventFlags::OUT));
    }
    if flags.intersects(epoll::EventFlags::IN | HUNG_UP) && session.may_read_server() {
        return session.on_server_readable(shared);
    }
    if flags.intersects(HUNG_UP) {
        // Its last replies are read when there is room for them. Until then epoll would report the end in every round.
        session.is_watched[1] = epoll::delete(poll, &session.server).is_err();
    }
    Ok(())
}

fn handle_client_event(
    poll: &OwnedFd,
    session: &mut ProxySession,
    shared: &mut SharedState,
    flags: epoll::EventFlags,
) -> Result<(), CloseReason> {
    if flags.intersects(epoll::EventFlags::IN | HUNG_UP) && session.may_read_client(shared) {
        return session.on_client_readable(shared);
    }
    if flags.intersects(HUNG_UP) {
        // It is not to be read now, but it is broken: nothing that it has sent can be answered.
        session.is_watched[0] = epoll::delete(poll, &session.client).is_err();
        session.close_client(shared);
    }
    Ok(())
}

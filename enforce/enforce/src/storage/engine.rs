//! The engine: all sessions of a proxy and their shared state, as a state machine over a [`System`].
//!
//! A round takes the ready events, reads and parses, dispatches requests until no queued request may go, and
//! then writes, so that all bytes for a socket leave in one system call. Waits end at instants in
//! nanoseconds, not at the granularity of a timer.
//!
//! `accept` decides which clients may connect, `shared_connections` has the connections to the server that
//! sessions share, `transfer` moves bytes between connections and sessions,
//! `commands` serves other threads, `handover` passes everything to another proxy, and `invariants` checks the state after every round.

mod accept;
mod admission;
mod commands;
mod handover;
mod invariants;
mod rounds;
mod shared_connections;
mod transfer;

use super::event_log::RateLimitedLog;
use super::flows::WorkloadNames;
use super::options::ProxyOptions;
use super::places::ClientPlaces;
use super::queue::{DispatchTicket, RequestQueue};
use super::round_work::{CLOSING_WORK, EventRank, ROUND_WORK};
use super::rules::ProxyRules;
use super::session::{CloseReason, ProxySession};
use super::shared::SharedState;
use super::shared_pool::SharedPool;
use super::statistics::ProxyStatistics;
use super::system::{StreamRole, StreamToken, System, SystemEvent};
use super::watched_stream::WatchedStream;
use crate::deployment::Deployment;
use model::{Observations, OperationError};
use slab::Slab;
use std::io;
use wire::Protocol;

/// Interval between checks for timeouts of sessions; a fraction of the shortest timeout.
const TICK_NS: u64 = 10_000_000;
/// Time since the last check after which the next one is left out.
const STALL_NS: u64 = 500_000_000;
/// Bytes read with one system call; a socket's receive buffer rarely has more.
const READ_SIZE: usize = 64 << 10;

/// All sessions of a proxy and their shared state.
#[derive(Debug)]
pub struct ProxyEngine<S: System> {
    system: S,
    /// Protocols of the fronts, by index.
    fronts: Vec<Protocol>,
    shared: SharedState,
    deployment: Deployment,
    /// Name of the server behind the proxy.
    server: String,
    connections_max: u64,
    places: ClientPlaces,
    /// Clients wait in the backlog until the next tick, because none could be accepted.
    is_accepting_paused: bool,
    /// Time until which no client of equal rights is closed to let another connect, because none was found.
    no_victim_until: u64,
    drain_ns: u64,
    sessions: Slab<Box<ConnectedSession<S::Stream>>>,
    /// Connections to the server that sessions share.
    pool: SharedPool<S::Stream>,
    next_serial: u32,
    /// Slots of sessions that can make progress before the engine sleeps; some may be vacant.
    ready: Vec<usize>,
    events: Vec<SystemEvent>,
    /// Buffer for the events of a round, in their order.
    ranked: Vec<(EventRank, SystemEvent)>,
    /// Number of rounds so far.
    rounds: u64,
    /// Latest round that accepted clients.
    accepted_in: u64,
    /// Work done in this round, in bytes moved or their equivalent.
    work: usize,
    /// Buffer for reads, before a session takes the bytes.
    scratch: Vec<u8>,
    ticked_at: u64,
    /// Some session was subject to a timeout when it was last checked.
    has_timed_session: bool,
    /// Instant at which draining began.
    draining_since: Option<u64>,
    is_stopped: bool,
    /// Instant until which the proxy comes to rest, to hand over to another one.
    holding_until: Option<u64>,
    /// Process that has handed over to this one, and the number of hand-overs so far.
    predecessor: Option<u32>,
    take_overs: u64,
    has_orders: bool,
    #[cfg(debug_assertions)]
    rounds_unchecked: u64,
    log: RateLimitedLog,
}

/// A session and its connections.
#[derive(Debug)]
struct ConnectedSession<C> {
    session: ProxySession,
    /// Serial number that distinguishes the session from earlier ones in its slot.
    serial: u32,
    /// Index of the front at which the client has connected.
    front: usize,
    /// Workload on whose account it has its place.
    owner: Option<u32>,
    /// Shared connection that carries its requests in flight.
    carrier: Option<usize>,
    client: WatchedStream<C>,
    server: WatchedStream<C>,
}

impl<S: System> ProxyEngine<S> {
    /// Creates an engine whose system listens at fronts with these protocols.
    ///
    /// # Errors
    /// If policy or deployment are invalid.
    pub fn new(system: S, fronts: Vec<Protocol>, options: &ProxyOptions) -> Result<Self, OperationError> {
        let ProxyOptions { server, deployment, policy, profile, baseline, .. } = options;
        let mut names = WorkloadNames::default();
        let rules = ProxyRules::new(policy.as_ref(), deployment, server, profile, &mut names)?;
        let now = system.now();
        let queue = RequestQueue::new(now, &rules.rules, baseline.as_deref()).map_err(|message| {
            OperationError::input(message).hint("docs/reference/hosts-file.md says what is allowed")
        })?;
        let statistics = ProxyStatistics::new(options.record, options.recording.clone());
        let mut shared = SharedState::new(queue, names, rules, profile.clone(), statistics);
        shared.now = now;
        let may_share =
            |(front, protocol): (usize, &Protocol)| protocol.row().shared.filter(|_| system.may_share(front));
        let pool = SharedPool::new(fronts.iter().enumerate().map(may_share).collect());
        let most = options.connections_max.min(system.clients_max());
        let places = ClientPlaces::new(most, shared.enforced.clients.owners());
        Ok(Self {
            system,
            fronts,
            shared,
            deployment: deployment.clone(),
            server: server.clone(),
            connections_max: options.connections_max,
            places,
            is_accepting_paused: false,
            no_victim_until: 0,
            drain_ns: options.drain.0,
            sessions: Slab::new(),
            pool,
            next_serial: 0,
            ready: Vec::new(),
            events: Vec::new(),
            ranked: Vec::new(),
            rounds: 0,
            accepted_in: 0,
            work: 0,
            scratch: vec![0; READ_SIZE],
            ticked_at: now,
            has_timed_session: false,
            draining_since: None,
            is_stopped: false,
            holding_until: None,
            predecessor: None,
            take_overs: 0,
            has_orders: false,
            #[cfg(debug_assertions)]
            rounds_unchecked: 0,
            log: RateLimitedLog::default(),
        })
    }

    pub fn system(&mut self) -> &mut S {
        &mut self.system
    }

    /// Returns true once the engine has ended.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Takes the recorded requests, and the number of requests left out.
    pub(super) fn take_observations(&mut self) -> (Observations, u64) {
        self.shared.statistics.take_observations(&self.shared.names)
    }

    /// Returns the number of requests that the channel of recorded requests did not accept.
    pub(super) fn unrecorded(&self) -> u64 {
        self.shared.statistics.unrecorded()
    }

    /// Waits for events or the next timeout, and does all work that has become possible. Returns true if
    /// other threads have sent commands.
    ///
    /// # Errors
    /// If the system cannot deliver events.
    pub fn round(&mut self) -> io::Result<bool> {
        let next_tick = self.needs_ticks().then_some(self.ticked_at + TICK_NS);
        let wake_at = [self.shared.queue.wake_at(), next_tick, self.pool.sweep_at()];
        let wake_at = wake_at.into_iter().flatten().min();
        let mut events = std::mem::take(&mut self.events);
        let waited = self.system.wait(wake_at, self.shared.queue.outstanding(), &mut events);
        self.shared.now = self.system.now().max(self.shared.now);
        self.handle_events(&mut events);
        self.events = events;
        waited?;
        let since_tick = self.shared.now - self.ticked_at;
        if since_tick >= TICK_NS {
            self.ticked_at = self.shared.now;
            // After a long sleep, or a time in which the machine did not run the proxy, what has arrived meanwhile
            // is not late: it comes first.
            if since_tick < STALL_NS || self.draining_since.is_some() {
                self.tick();
            }
        }
        self.close_unused_connections();
        self.shared.queue.wake(self.shared.now);
        self.make_progress();
        Ok(std::mem::take(&mut self.has_orders))
    }

    /// Returns true if the passing of time may change something. A tick finds the sessions concerned: asking
    /// all of them in every round would cost more.
    fn needs_ticks(&self) -> bool {
        self.draining_since.is_some()
            || self.holding_until.is_some()
            || self.has_timed_session
            || self.is_accepting_paused
            || self.is_scarce()
    }

    fn handle_event(&mut self, event: SystemEvent) {
        match event {
            SystemEvent::Orders => self.has_orders = true,
            SystemEvent::Incoming(front) => {
                self.accepted_in = self.rounds;
                self.accept(front);
            }
            SystemEvent::Stream { token, readable, writable, hung_up }
                if token.role == StreamRole::Shared =>
            {
                self.on_shared_event(token, readable, writable, hung_up);
            }
            SystemEvent::Stream { token, readable, writable, hung_up } => {
                let slot = token.slot as usize;
                // The event is about an earlier session in this slot.
                if self.sessions.get(slot).is_none_or(|entry| entry.serial != token.serial) {
                    return;
                }
                let result = if token.role == StreamRole::Server {
                    self.on_server_event(slot, readable, writable, hung_up)
                } else {
                    self.on_client_event(slot, readable, hung_up)
                };
                self.count_work(slot);
                match result {
                    Ok(()) => self.ready.push(slot),
                    Err(reason) => self.end_session(slot, &reason),
                }
            }
        }
    }

    /// Ends a session. If the client broke the session off, it stays without the client until the server has
    /// answered.
    fn end_session(&mut self, slot: usize, reason: &CloseReason) {
        let Some(entry) = self.sessions.get_mut(slot) else { return };
        if !matches!(reason, CloseReason::Finished) {
            self.shared.statistics.cut += 1;
            self.log.write(self.shared.now, || format!("{}: {reason}", entry.session.peer));
        }
        if reason.is_caused_by_client() && entry.session.awaits_replies() {
            entry.session.give_client_up(&mut self.shared);
            self.pool.note(entry.carrier);
            self.close_client_stream(slot);
            return self.ready.push(slot);
        }
        self.remove_session(slot);
    }

    /// Closes both connections of a session and removes it.
    fn remove_session(&mut self, slot: usize) {
        self.close_client_stream(slot);
        self.leave_carrier(slot);
        let Some(mut entry) = self.sessions.try_remove(slot) else { return };
        entry.session.close(&mut self.shared);
        self.shared.addresses.remove(entry.session.address);
        self.work += CLOSING_WORK;
        self.places.remove(entry.owner);
    }

    /// Lets sessions make progress and dispatches requests, until nothing more happens.
    fn make_progress(&mut self) {
        loop {
            let mut ready = std::mem::take(&mut self.ready);
            ready.sort_unstable();
            ready.dedup();
            for slot in &ready {
                let Some(entry) = self.sessions.get_mut(*slot) else { continue };
                if entry.session.has_new_export() {
                    entry.session.identify(&mut self.shared);
                }
                let made = entry.session.make_progress(&mut self.shared);
                if let Err(reason) = made.and_then(|()| self.seek_shared_connection(*slot)) {
                    self.end_session(*slot, &reason);
                }
            }
            if std::mem::take(&mut self.shared.have_allowances_changed) {
                for (slot, entry) in &mut self.sessions {
                    entry.session.park_or_resume(&mut self.shared);
                    self.ready.push(slot);
                }
            }
            self.dispatch_all();
            self.write_shared();
            for slot in ready {
                if let Err(reason) = self.write_session(slot) {
                    self.end_session(slot, &reason);
                }
                if let Err(error) = self.update_interest(slot) {
                    let server = &self.server;
                    self.log.write(self.shared.now, || {
                        format!("{server}: a connection cannot be watched: {error}")
                    });
                    self.remove_session(slot);
                }
            }
            self.write_shared();
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

    /// Takes from the queue the writes that continue this one and each other, up to the size of a batch.
    fn followers(&mut self, number: u32, ticket: &DispatchTicket) -> Vec<(u32, DispatchTicket)> {
        let SharedState { queue, requests, enforced, now, .. } = &mut self.shared;
        let mut followers: Vec<(u32, DispatchTicket)> = Vec::new();
        let mut last = number;
        while followers.len() + 1 < enforced.batch as usize {
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
        let Some(entry) = self.sessions.get_mut(slot) else {
            // A session that has ended cannot withdraw its requests from the queue of a baseline.
            self.shared.refuse_ticket(ticket);
            return self.shared.requests.remove(number);
        };
        entry.session.dispatch(number, ticket, &mut self.shared);
        self.ready.push(slot);
        if entry.session.is_sharing()
            && let Err(reason) = self.send_shared(slot)
        {
            self.end_session(slot, &reason);
        }
    }

    /// Updates the registration of the session's streams if its interests have changed.
    fn update_interest(&mut self, slot: usize) -> io::Result<()> {
        let Some(entry) = self.sessions.get_mut(slot) else { return Ok(()) };
        let interests = entry.session.interest(&self.shared);
        let ConnectedSession { client, server, serial, .. } = &mut **entry;
        let slot = u32::try_from(slot).expect("fewer sessions than files");
        let roles = [StreamRole::Client, StreamRole::Server];
        for ((role, side), interest) in roles.into_iter().zip([client, server]).zip(interests) {
            let token = StreamToken { role, slot, serial: *serial };
            side.watch(&mut self.system, token, interest)?;
        }
        Ok(())
    }

    /// Handles timeouts of all sessions, and ends a proxy that has drained.
    fn tick(&mut self) {
        self.has_timed_session = false;
        self.work = 0;
        // By slot, because a session may be removed while it is handled.
        for slot in 0..self.sessions.capacity() {
            if self.sessions.contains(slot) {
                self.tick_session(slot);
            }
        }
        self.has_timed_session |= self.give_up_late_connections();
        self.places.end_shortage(self.shared.now);
        self.close_silent_when_crowded();
        if std::mem::take(&mut self.is_accepting_paused) && self.holding_until.is_none() {
            self.system.report_clients(true);
        }
        if let Some(since) = self.draining_since {
            let is_late = self.shared.now > since + self.drain_ns;
            let left = self.sessions.len();
            if is_late && left > 0 {
                self.log.write(self.shared.now, || {
                    format!("{} did not end in time", units::plural(left, "connection"))
                });
            }
            self.is_stopped |= is_late || left == 0;
        }
    }

    fn tick_session(&mut self, slot: usize) {
        let Some(entry) = self.sessions.get_mut(slot) else { return };
        let outcome = entry.session.on_tick(&mut self.shared);
        self.has_timed_session |= entry.session.is_timed();
        match outcome {
            Ok(order) => {
                if let Err(reason) = self.carry_out(slot, order) {
                    self.end_session(slot, &reason);
                }
            }
            Err(reason) if self.work < ROUND_WORK => self.end_session(slot, &reason),
            // Many sessions at once would keep the others waiting; the next tick finds it again.
            Err(_) => self.has_timed_session = true,
        }
    }
}

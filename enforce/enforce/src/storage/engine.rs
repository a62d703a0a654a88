//! The engine: all sessions of a proxy and what they share, as a state machine over a [`System`].
//!
//! A round takes the events that are ready, reads and parses, then dispatches requests until the queue has none that may
//! go, then writes: bytes for one socket leave in one system call. Nothing waits for a timer's granularity: the system
//! is given instants in nanoseconds.
//!
//! The files: `accept` decides who may connect, `transfer` moves bytes between connections and sessions, `commands` are
//! what others ask of the proxy, `invariants` what holds after every round.

mod accept;
mod admission;
mod commands;
mod invariants;
mod transfer;

use super::address_counts::AddressCounts;
use super::event_log::RateLimitedLog;
use super::flows::WorkloadNames;
use super::options::ProxyOptions;
use super::queue::{DispatchTicket, RequestQueue};
use super::rules::ProxyRules;
use super::session::{CloseReason, ProxySession};
use super::shared::SharedState;
use super::statistics::ProxyStatistics;
use super::system::{StreamInterest, StreamToken, System, SystemEvent};
use crate::deployment::{Deployment, FrontProtocol};
use model::{Observations, OperationError};
use slab::Slab;
use std::io;

/// How often sessions are looked at that time alone may end: a fraction of the shortest time that they are given.
const TICK_NS: u64 = 10_000_000;
/// How many bytes are read with one system call: what a socket usually has at most.
const READ_SIZE: usize = 64 << 10;

/// All sessions of a proxy, and what they share.
#[derive(Debug)]
pub struct ProxyEngine<S: System> {
    system: S,
    /// The protocols of the fronts, by their numbers.
    fronts: Vec<FrontProtocol>,
    shared: SharedState,
    deployment: Deployment,
    /// The name of the server behind the proxy.
    server: String,
    connections_max: u64,
    drain_ns: u64,
    sessions: Slab<Box<ConnectedSession<S::Stream>>>,
    addresses: AddressCounts,
    next_serial: u32,
    /// The slots of sessions that can make progress before the engine sleeps; some of them may be vacant.
    ready: Vec<usize>,
    events: Vec<SystemEvent>,
    /// Where bytes are read to before a session takes them.
    scratch: Vec<u8>,
    ticked_at: u64,
    /// Whether some session was waiting for something when it was last looked at.
    has_timed_session: bool,
    /// When the proxy was told to drain.
    draining_since: Option<u64>,
    is_stopped: bool,
    has_orders: bool,
    #[cfg(debug_assertions)]
    rounds_unchecked: u64,
    log: RateLimitedLog,
}

/// A session with its connections.
#[derive(Debug)]
struct ConnectedSession<C> {
    session: ProxySession,
    /// The number that tells it from earlier sessions in the slot.
    serial: u32,
    /// The number of the front that the client has connected at.
    front: usize,
    client: WatchedStream<C>,
    server: WatchedStream<C>,
}

/// A connection and what the system was last told to watch it for.
#[derive(Debug)]
struct WatchedStream<C> {
    /// The connection; none when it is closed.
    stream: Option<C>,
    /// What it is watched for, if it is watched.
    watched: Option<StreamInterest>,
    /// Whether it has hung up and is not watched until something is wanted of it: the end would be reported again and
    /// again.
    is_set_aside: bool,
}

impl<C> WatchedStream<C> {
    fn new(stream: C) -> Self {
        Self { stream: Some(stream), watched: None, is_set_aside: false }
    }
}

impl<S: System> ProxyEngine<S> {
    /// An engine whose system listens at the fronts with these protocols.
    ///
    /// # Errors
    /// When policy, deployment or baseline are wrong.
    pub fn new(
        system: S,
        fronts: Vec<FrontProtocol>,
        options: &ProxyOptions,
    ) -> Result<Self, OperationError> {
        let ProxyOptions { server, deployment, policy, profile, baseline, .. } = options;
        let mut names = WorkloadNames::default();
        let rules = ProxyRules::new(policy.as_ref(), deployment, server, profile, &mut names)?;
        let now = system.now();
        let queue = RequestQueue::new(now, &rules.rules, baseline.as_ref()).map_err(|message| {
            OperationError::input(message).hint("docs/reference/hosts-file.md says what is allowed")
        })?;
        let statistics = ProxyStatistics::new(options.record, options.recording.clone());
        let mut shared = SharedState::new(queue, names, rules, profile.clone(), statistics);
        shared.now = now;
        Ok(Self {
            system,
            fronts,
            shared,
            deployment: deployment.clone(),
            server: server.clone(),
            connections_max: options.connections_max,
            drain_ns: options.drain.0,
            sessions: Slab::new(),
            addresses: AddressCounts::default(),
            next_serial: 0,
            ready: Vec::new(),
            events: Vec::new(),
            scratch: vec![0; READ_SIZE],
            ticked_at: now,
            has_timed_session: false,
            draining_since: None,
            is_stopped: false,
            has_orders: false,
            #[cfg(debug_assertions)]
            rounds_unchecked: 0,
            log: RateLimitedLog::default(),
        })
    }

    /// The system that the engine runs on.
    pub fn system(&mut self) -> &mut S {
        &mut self.system
    }

    /// Whether the engine is at its end.
    pub fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// Takes the recorded requests, and the number of those that were left out.
    pub(super) fn take_observations(&mut self) -> (Observations, u64) {
        self.shared.statistics.take_observations(&self.shared.names)
    }

    /// How many requests were not recorded because whoever records them was too slow.
    pub(super) fn unrecorded(&self) -> u64 {
        self.shared.statistics.unrecorded()
    }

    /// Waits for the next events or the next instant at which something is to be done, and does all that can be done
    /// then; whether there are orders of other threads.
    ///
    /// # Errors
    /// When the system does not deliver events.
    pub fn round(&mut self) -> io::Result<bool> {
        let next_tick = self.needs_ticks().then_some(self.ticked_at + TICK_NS);
        let wake_at = [self.shared.queue.wake_at(), next_tick].into_iter().flatten().min();
        let mut events = std::mem::take(&mut self.events);
        let waited = self.system.wait(wake_at, self.shared.queue.outstanding(), &mut events);
        self.shared.now = self.system.now().max(self.shared.now);
        for event in events.drain(..) {
            self.handle_event(event);
        }
        self.events = events;
        waited?;
        if self.shared.now >= self.ticked_at + TICK_NS {
            self.ticked_at = self.shared.now;
            self.tick();
        }
        self.shared.queue.wake(self.shared.now);
        let was_crowded = self.shared.is_crowded();
        self.make_progress();
        if was_crowded && !self.shared.is_crowded() {
            // Sessions that were read less than they may be now get no event for it.
            self.ready.extend(self.sessions.iter().map(|(slot, _)| slot));
            self.make_progress();
        }
        Ok(std::mem::take(&mut self.has_orders))
    }

    /// Whether time alone may change something. Which session that concerns, a tick finds out: asking all of them in
    /// every round would cost more.
    fn needs_ticks(&self) -> bool {
        self.draining_since.is_some() || self.has_timed_session || self.is_scarce()
    }

    fn handle_event(&mut self, event: SystemEvent) {
        match event {
            SystemEvent::Orders => self.has_orders = true,
            SystemEvent::Incoming(front) => self.accept(front),
            SystemEvent::Stream { token, readable, writable, hung_up } => {
                let slot = token.slot as usize;
                // An event about an earlier session in the slot is late, and means nothing.
                if self.sessions.get(slot).is_none_or(|entry| entry.serial != token.serial) {
                    return;
                }
                let result = if token.is_server_side {
                    self.on_server_event(slot, readable, writable, hung_up)
                } else {
                    self.on_client_event(slot, readable, hung_up)
                };
                match result {
                    Ok(()) => self.ready.push(slot),
                    Err(reason) => self.end_session(slot, &reason),
                }
            }
        }
    }

    /// Ends a session. One that its client breaks off stays without the client until the server has answered.
    fn end_session(&mut self, slot: usize, reason: &CloseReason) {
        let Some(entry) = self.sessions.get_mut(slot) else { return };
        if !matches!(reason, CloseReason::Finished) {
            self.shared.statistics.cut += 1;
            self.log.write(self.shared.now, || format!("{}: {reason}", entry.session.peer));
        }
        if reason.is_caused_by_client() && entry.session.awaits_replies() {
            entry.session.give_client_up(&mut self.shared);
            self.close_client_stream(slot);
            return self.ready.push(slot);
        }
        self.remove_session(slot);
    }

    /// Closes both connections of a session and forgets it.
    fn remove_session(&mut self, slot: usize) {
        self.close_client_stream(slot);
        let Some(mut entry) = self.sessions.try_remove(slot) else { return };
        entry.session.close(&mut self.shared);
        self.addresses.remove(entry.session.peer.ip());
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
                if let Err(reason) = entry.session.make_progress(&mut self.shared) {
                    self.end_session(*slot, &reason);
                }
            }
            self.dispatch_all();
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
            self.shared.refuse_ticket(ticket);
            return self.shared.requests.remove(number);
        };
        entry.session.dispatch(number, ticket, &mut self.shared);
        self.ready.push(slot);
    }

    /// Tells the system which events the session can use now, where that has changed.
    fn update_interest(&mut self, slot: usize) -> io::Result<()> {
        let Some(entry) = self.sessions.get_mut(slot) else { return Ok(()) };
        let interests = entry.session.interest(&self.shared);
        let ConnectedSession { client, server, serial, .. } = &mut **entry;
        let slot = u32::try_from(slot).expect("fewer sessions than files");
        for (is_server_side, side) in [(false, client), (true, server)] {
            let interest = interests[usize::from(is_server_side)];
            let Some(stream) = &mut side.stream else { continue };
            // What has hung up and is not watched stays so until something is wanted of it.
            let is_same = side.watched.unwrap_or_default() == interest;
            if is_same && (side.watched.is_some() || side.is_set_aside) {
                continue;
            }
            let token = StreamToken { slot, serial: *serial, is_server_side };
            self.system.watch(stream, token, interest)?;
            (side.watched, side.is_set_aside) = (Some(interest), false);
        }
        Ok(())
    }

    /// Does what time alone demands of sessions, and ends a proxy that has drained.
    fn tick(&mut self) {
        self.has_timed_session = false;
        for slot in 0..self.sessions.capacity() {
            if self.sessions.contains(slot) {
                self.tick_session(slot);
            }
        }
        self.close_silent_when_crowded();
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
            Ok(order) => self.carry_out(slot, order),
            Err(reason) => self.end_session(slot, &reason),
        }
    }
}

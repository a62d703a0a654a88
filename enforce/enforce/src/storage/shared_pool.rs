//! Pool of connections to the server that sessions share.
//!
//! A connection is for the clients of one workload, or of one address without a workload, so that a large reply holds
//! up replies of the same workload only. The requests of a round go over the connection with the fewest unanswered
//! ones, but not behind one that takes long. The next round may choose another, so that a server that serves each
//! connection with one thread uses several.

use super::buffer::{ReadBuffer, WriteQueue};
use super::system::StreamToken;
use super::watched_stream::WatchedStream;
use slab::Slab;
use std::collections::{HashMap, VecDeque};
use wire::SharedConnections;

/// Maximum number of connections for the same clients.
const CONNECTIONS_MAX: usize = 16;
/// Unanswered requests of a connection from which others are preferred.
const UNANSWERED_MANY: usize = 16;
/// Time after which a request without an answer makes others prefer another connection, nanoseconds. Servers answer
/// in order, so they would wait for it.
const SLOW_NS: u64 = 1_000_000;

/// Clients that share connections.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Sharers {
    pub(super) front: usize,
    pub(super) flow: u32,
    /// Address of clients without a workload.
    pub(super) address: Option<usize>,
}

/// Connections that sessions share.
#[derive(Debug)]
pub(super) struct SharedPool<C> {
    /// For each front, the protocol's rules if clients may share connections.
    pub(super) fronts: Vec<Option<SharedConnections>>,
    /// For each front, the time until which its clients connect for themselves.
    pub(super) paused_until: Vec<u64>,
    pub(super) connections: Slab<Box<SharedConnection<C>>>,
    groups: HashMap<Sharers, SharedGroup>,
    /// Connections that may have something to write or to change, in any order.
    pub(super) noted: Vec<usize>,
    /// Instant at which unused connections are looked for.
    pub(super) sweep_at: Option<u64>,
}

/// Connections for the same clients.
#[derive(Debug, Default)]
struct SharedGroup {
    connections: Vec<usize>,
    /// Round in which `chosen` was chosen.
    chosen_in: u64,
    chosen: Option<usize>,
}

#[derive(Debug)]
pub(super) struct SharedConnection<C> {
    pub(super) serial: u32,
    pub(super) sharers: Sharers,
    pub(super) stream: WatchedStream<C>,
    pub(super) phase: SharedPhase,
    pub(super) output: WriteQueue,
    /// Bytes read and not parsed.
    pub(super) input: ReadBuffer,
    /// Requests that are not answered, in their order.
    pub(super) awaited: VecDeque<AwaitedReply>,
    /// Slots of sessions that wait for the connection to open; some may be vacant.
    pub(super) waiting: Vec<usize>,
    /// Time when it began.
    pub(super) begun_at: u64,
    /// Time when it was last used.
    pub(super) used_at: u64,
    /// Latest round that handled an event of the connection.
    pub(super) round: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SharedPhase {
    Connecting,
    /// The server has yet to answer the greeting.
    Greeting,
    Open,
}

/// A request whose reply is awaited.
#[derive(Debug)]
pub(super) struct AwaitedReply {
    pub(super) slot: usize,
    pub(super) serial: u32,
    /// Identifier of the request in its session.
    pub(super) id: u64,
    /// Time of its dispatch.
    pub(super) sent: u64,
    /// Bytes not sent yet, because the server has not answered the greeting.
    pub(super) unsent: Vec<u8>,
}

impl<C> SharedPool<C> {
    pub(super) fn new(fronts: Vec<Option<SharedConnections>>) -> Self {
        Self {
            paused_until: vec![0; fronts.len()],
            fronts,
            connections: Slab::new(),
            groups: HashMap::new(),
            noted: Vec::new(),
            sweep_at: None,
        }
    }

    /// Returns the protocol's rules if clients of a front share connections now.
    pub(super) fn rules(&self, front: usize, now: u64) -> Option<SharedConnections> {
        self.fronts[front].filter(|_| now >= self.paused_until[front])
    }

    pub(super) fn sweep_at(&self) -> Option<u64> {
        self.sweep_at
    }

    /// Returns the number of shared connections.
    pub(super) fn len(&self) -> usize {
        self.connections.len()
    }

    /// Notes that something about a connection may have changed.
    pub(super) fn note(&mut self, number: Option<usize>) {
        self.noted.extend(number);
    }

    /// Returns the flow of a connection and the latest round that handled it.
    pub(super) fn rank(&self, token: &StreamToken) -> Option<(u32, u64)> {
        let connection = self.connections.get(token.slot as usize)?;
        Some((connection.sharers.flow, connection.round))
    }

    /// Returns the open connection for the next request of these sessions, if there is one, and true if another one
    /// should begin.
    pub(super) fn choose(&mut self, sharers: Sharers, round: u64, now: u64) -> (Option<usize>, bool) {
        let Some(group) = self.groups.get_mut(&sharers) else { return (None, true) };
        if let Some(chosen) = group.chosen.filter(|_| group.chosen_in == round) {
            return (Some(chosen), false);
        }
        let load = |number: &usize| {
            let awaited = &self.connections[*number].awaited;
            let is_slow = awaited.front().is_some_and(|first| first.sent + SLOW_NS < now);
            (is_slow || awaited.len() >= UNANSWERED_MANY, awaited.len())
        };
        let is_open = |number: &usize| self.connections[*number].phase == SharedPhase::Open;
        let least = group.connections.iter().copied().filter(is_open).min_by_key(load);
        let is_beginning = !group.connections.iter().all(is_open);
        let is_loaded = least.is_none_or(|number| load(&number).0);
        (group.chosen, group.chosen_in) = (least, round);
        (least, is_loaded && !is_beginning && group.connections.len() < CONNECTIONS_MAX)
    }

    /// Returns the connection of these sessions that has yet to open.
    pub(super) fn beginning(&self, sharers: Sharers) -> Option<usize> {
        let is_beginning = |number: &usize| self.connections[*number].phase != SharedPhase::Open;
        self.groups.get(&sharers)?.connections.iter().copied().find(is_beginning)
    }

    /// Adds a connection.
    pub(super) fn add(&mut self, connection: SharedConnection<C>) -> usize {
        let sharers = connection.sharers;
        let number = self.connections.insert(Box::new(connection));
        self.groups.entry(sharers).or_default().connections.push(number);
        number
    }

    /// Returns true if there is a connection for these sessions.
    pub(super) fn has_any(&self, sharers: Sharers) -> bool {
        self.groups.contains_key(&sharers)
    }

    /// Removes a connection.
    pub(super) fn remove(&mut self, number: usize) -> Option<Box<SharedConnection<C>>> {
        let connection = self.connections.try_remove(number)?;
        if let Some(group) = self.groups.get_mut(&connection.sharers) {
            group.connections.retain(|other| *other != number);
            group.chosen = group.chosen.filter(|chosen| *chosen != number);
            if group.connections.is_empty() {
                self.groups.remove(&connection.sharers);
            }
        }
        Some(connection)
    }

    /// Checks the connections against each other. `is_carried` tells whether a session has its request in flight
    /// on a connection.
    ///
    /// # Panics
    /// When they are inconsistent, which is an error in this code.
    pub(super) fn check_invariants(&self, is_carried: impl Fn(usize, u32, usize) -> bool) {
        for (number, connection) in &self.connections {
            let group = &self.groups[&connection.sharers];
            assert!(group.connections.contains(&number), "a connection is in its group");
            for awaited in &connection.awaited {
                assert!(is_carried(awaited.slot, awaited.serial, number), "a reply is awaited by a session");
            }
        }
        let grouped: usize = self.groups.values().map(|group| group.connections.len()).sum();
        assert_eq!(grouped, self.connections.len(), "groups have all connections");
    }
}

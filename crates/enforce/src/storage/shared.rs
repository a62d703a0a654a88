//! What all sessions of a proxy share.

use super::queue::Queue;
use super::request::{NOBODY, Requests, State};
use super::rules::{Cost, Names, UNKNOWN};
use super::status::Status;
use super::who::Table;
use model::Op;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use units::Bytes;
use workload::device::StorageProfile;

/// Bytes of requests that a proxy holds before everyone gets less.
const CROWDED: usize = 256 << 20;
/// Clients whose mounts are remembered, and mounts of each.
const MOUNTS_MAX: (usize, usize) = (4096, 64);

/// Everything but the sessions.
#[derive(Debug)]
pub(super) struct Shared {
    /// Since the proxy began, in nanoseconds.
    pub(super) now: u64,
    pub(super) queue: Queue,
    pub(super) requests: Requests,
    /// Bytes of requests that wait or come in.
    pub(super) held: usize,
    pub(super) names: Names,
    pub(super) status: Status,
    pub(super) table: Table,
    pub(super) batch: u32,
    pub(super) profile: StorageProfile,
    /// By flow; of unknown clients apart.
    costs: Vec<Cost>,
    unknown: Cost,
    mounts: BTreeMap<IpAddr, BTreeSet<Vec<u8>>>,
    /// Clients of whom more is known than before.
    pub(super) known_better: Vec<IpAddr>,
}

impl Shared {
    pub(super) fn new(queue: Queue, names: Names, table: Table, batch: u32, profile: StorageProfile) -> Self {
        Self {
            now: 0,
            queue,
            requests: Requests::default(),
            held: 0,
            names,
            status: Status::default(),
            table,
            batch,
            unknown: Cost::new(&profile),
            profile,
            costs: Vec::new(),
            mounts: BTreeMap::new(),
            known_better: Vec::new(),
        }
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.held >= CROWDED
    }

    /// Device time of the next request of a flow, in nanoseconds.
    pub(super) fn cost(&mut self, flow: u32, op: Op, size: Bytes, offset: Option<u64>) -> u64 {
        if flow == UNKNOWN {
            return self.unknown.of(op, size, offset);
        }
        let place = flow as usize;
        while self.costs.len() <= place {
            self.costs.push(Cost::new(&self.profile));
        }
        self.costs[place].of(op, size, offset)
    }

    /// Whose a connection is.
    pub(super) fn flow_of(&self, peer: SocketAddr, export: Option<&[u8]>) -> u32 {
        let found = match (export, self.mounts.get(&peer.ip().to_canonical())) {
            (Some(export), _) => self.table.find(peer, std::iter::once(export)),
            (None, Some(mounts)) => self.table.find(peer, mounts.iter().map(Vec::as_slice)),
            (None, None) => self.table.find(peer, std::iter::empty()),
        };
        found.unwrap_or(UNKNOWN)
    }

    /// The server has let a client mount this.
    pub(super) fn mounted(&mut self, client: IpAddr, path: &[u8]) {
        let client = client.to_canonical();
        if self.mounts.len() >= MOUNTS_MAX.0 && !self.mounts.contains_key(&client) {
            self.mounts.pop_first();
        }
        let paths = self.mounts.entry(client).or_default();
        if paths.len() < MOUNTS_MAX.1 && paths.insert(path.to_vec()) {
            self.known_better.push(client);
        }
    }

    /// Takes what waits of a session out of the queue.
    pub(super) fn withdraw(&mut self, session: usize, flow: u32) -> Vec<u32> {
        let requests = &self.requests;
        let mut mine = Vec::new();
        let withdrawn = self.queue.withdraw(self.now, flow, |number| {
            let found = requests.get(number).session == session;
            mine.extend(found.then_some(number));
            found
        });
        if withdrawn {
            return mine;
        }
        let waits = |request: &super::request::Request| {
            request.session == session && request.flow == flow && matches!(request.state, State::Waiting)
        };
        self.requests.find(waits)
    }

    /// A request is of no use any more. One that a queue still has stays until the queue lets it go.
    pub(super) fn forget(&mut self, number: u32) {
        let stays = matches!(self.queue, Queue::Compared(_))
            && matches!(self.requests.get(number).state, State::Waiting);
        if stays {
            self.requests.get_mut(number).session = NOBODY;
        } else {
            self.requests.remove(number);
        }
    }

    /// A request was answered, or passed on for good.
    pub(super) fn observe(&mut self, number: u32) {
        let request = self.requests.get(number);
        self.status.observe(request, self.now);
    }
}

//! What all sessions of a proxy share: the clock, the queue, the requests, and what is known about clients.

use super::client_identity::ClientTable;
use super::cost::RequestCost;
use super::flows::{UNKNOWN_FLOW, WorkloadNames};
use super::queue::RequestQueue;
use super::request::{NO_SESSION, ProxyRequest, RequestState, RequestTable};
use super::rules::ProxyRules;
use super::statistics::ProxyStatistics;
use model::Op;
use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use units::Bytes;
use workload::device::StorageProfile;

/// How many bytes of requests a proxy buffers before every session may buffer less: 256 sessions of 1 MiB.
const CROWDED_BYTES: usize = 256 << 20;
/// How many clients' mounts are remembered: beyond, the client with the smallest address is forgotten.
const CLIENTS_WITH_MOUNTS_MAX: usize = 4096;
/// How many mounts of a client are remembered; further ones are ignored.
const MOUNTS_PER_CLIENT_MAX: usize = 64;

/// The part of the proxy's state that sessions use.
#[derive(Debug)]
pub(super) struct SharedState {
    /// The nanoseconds since the proxy started, as of the latest round of the event loop.
    pub(super) now: u64,
    pub(super) queue: RequestQueue,
    pub(super) requests: RequestTable,
    /// The bytes of requests that wait or are being received, of all sessions.
    pub(super) buffered_bytes: usize,
    pub(super) names: WorkloadNames,
    pub(super) statistics: ProxyStatistics,
    pub(super) clients: ClientTable,
    /// The most sequential writes that are dispatched together.
    pub(super) batch: u32,
    pub(super) profile: StorageProfile,
    /// The cost of requests by flow, and that of unknown clients, whose number is too large for an index.
    costs: Vec<RequestCost>,
    unknown_cost: RequestCost,
    /// The NFS exports that clients have mounted.
    mounts: BTreeMap<IpAddr, BTreeSet<Vec<u8>>>,
    /// Clients that have mounted an export since the engine looked here.
    pub(super) newly_mounted: Vec<IpAddr>,
}

impl SharedState {
    pub(super) fn new(
        queue: RequestQueue,
        names: WorkloadNames,
        rules: ProxyRules,
        profile: StorageProfile,
        statistics: ProxyStatistics,
    ) -> Self {
        Self {
            now: 0,
            queue,
            requests: RequestTable::default(),
            buffered_bytes: 0,
            names,
            statistics,
            clients: rules.clients,
            batch: rules.batch,
            unknown_cost: RequestCost::new(&profile),
            profile,
            costs: Vec::new(),
            mounts: BTreeMap::new(),
            newly_mounted: Vec::new(),
        }
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.buffered_bytes >= CROWDED_BYTES
    }

    /// The device time of the next request of a flow, in nanoseconds.
    pub(super) fn cost_ns(&mut self, flow: u32, op: Op, size: Bytes, offset: Option<u64>) -> u64 {
        if flow == UNKNOWN_FLOW {
            return self.unknown_cost.next_ns(op, size, offset);
        }
        let index = flow as usize;
        while self.costs.len() <= index {
            self.costs.push(RequestCost::new(&self.profile));
        }
        self.costs[index].next_ns(op, size, offset)
    }

    /// The flow of a connection, by its client and the export that is known of it.
    pub(super) fn flow_for(&self, peer: SocketAddr, export: Option<&[u8]>) -> u32 {
        let flow = match (export, self.mounts.get(&peer.ip().to_canonical())) {
            (Some(export), _) => self.clients.flow(peer, std::iter::once(export)),
            (None, Some(mounts)) => self.clients.flow(peer, mounts.iter().map(Vec::as_slice)),
            (None, None) => self.clients.flow(peer, std::iter::empty()),
        };
        flow.unwrap_or(UNKNOWN_FLOW)
    }

    /// Remembers that the server has let a client mount an export.
    pub(super) fn add_mount(&mut self, client: IpAddr, path: &[u8]) {
        let client = client.to_canonical();
        if self.mounts.len() >= CLIENTS_WITH_MOUNTS_MAX && !self.mounts.contains_key(&client) {
            self.mounts.pop_first();
        }
        let paths = self.mounts.entry(client).or_default();
        if paths.len() < MOUNTS_PER_CLIENT_MAX && paths.insert(path.to_vec()) {
            self.newly_mounted.push(client);
        }
    }

    /// Withdraws the waiting requests of a session from the queue, and returns their numbers.
    pub(super) fn withdraw(&mut self, session: usize, flow: u32) -> Vec<u32> {
        let requests = &self.requests;
        let mut withdrawn = Vec::new();
        let can_withdraw = self.queue.withdraw(self.now, flow, |number| {
            let is_own = requests.get(number).session == session;
            withdrawn.extend(is_own.then_some(number));
            is_own
        });
        if can_withdraw {
            return withdrawn;
        }
        self.requests.numbers_where(|request: &ProxyRequest| {
            request.session == session
                && request.flow == flow
                && matches!(request.state, RequestState::Queued)
        })
    }

    /// Forgets a request that is of no use any more. One that a baseline's queue still has stays until it is dispatched.
    pub(super) fn forget(&mut self, number: u32) {
        let is_queued = matches!(self.requests.get(number).state, RequestState::Queued);
        if is_queued && self.queue.keeps_withdrawn() {
            self.requests.get_mut(number).session = NO_SESSION;
        } else {
            self.requests.remove(number);
        }
    }

    /// Counts a request that was answered, or that has no reply and was forwarded.
    pub(super) fn observe(&mut self, number: u32) {
        self.statistics.observe(self.requests.get(number), self.now);
    }

    /// Ends a request's time at the device, if it is outstanding; whether it was.
    pub(super) fn release(&mut self, number: u32) -> bool {
        match self.requests.get_mut(number).state.release() {
            Some(ticket) => {
                self.queue.done(self.now, ticket);
                true
            }
            None => false,
        }
    }
}

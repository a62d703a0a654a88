//! What all sessions of a proxy share: the clock, the queue, the requests, and what is known about clients.

use super::cost::{RequestCost, ServedCost, ServedReply};
use super::exports::ExportTable;
use super::flows::{UNKNOWN_FLOW, WorkloadNames, data_flow};
use super::queue::{DispatchTicket, RequestQueue};
use super::request::{NO_SESSION, RequestState, RequestTable};
use super::rules::ProxyRules;
use super::statistics::ProxyStatistics;
use std::net::SocketAddr;
use units::Bytes;
use wire::RequestClass;
use workload::device::StorageProfile;

/// How many bytes a proxy buffers before every session may buffer less: 256 sessions of 1 MiB.
const CROWDED_BYTES: usize = 256 << 20;

/// The part of the proxy's state that sessions use.
#[derive(Debug)]
pub(super) struct SharedState {
    /// The nanoseconds since the proxy started, as of the latest round of the event loop.
    pub(super) now: u64,
    pub(super) queue: RequestQueue,
    pub(super) requests: RequestTable,
    /// The bytes that all sessions buffer, in both directions.
    pub(super) buffered_bytes: usize,
    pub(super) names: WorkloadNames,
    pub(super) statistics: ProxyStatistics,
    /// What is enforced now.
    pub(super) enforced: ProxyRules,
    pub(super) exports: ExportTable,
    pub(super) profile: StorageProfile,
    /// Whether the proxy ends: no further requests are taken.
    pub(super) is_draining: bool,
    /// How many requests have entered the queue.
    pub(super) enqueued: u64,
    /// The cost of requests by flow, and that of unknown clients, whose number is too large for an index.
    costs: Vec<RequestCost>,
    unknown_cost: RequestCost,
    served_cost: ServedCost,
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
            enforced: rules,
            exports: ExportTable::default(),
            is_draining: false,
            enqueued: 0,
            unknown_cost: RequestCost::new(&profile),
            served_cost: ServedCost::new(&profile),
            profile,
            costs: Vec::new(),
        }
    }

    pub(super) fn is_crowded(&self) -> bool {
        self.buffered_bytes >= CROWDED_BYTES
    }

    /// What requests of a flow cost.
    fn cost(&mut self, flow: u32) -> &mut RequestCost {
        if flow == UNKNOWN_FLOW {
            return &mut self.unknown_cost;
        }
        let index = flow as usize;
        while self.costs.len() <= index {
            self.costs.push(RequestCost::new(&self.profile));
        }
        &mut self.costs[index]
    }

    /// The device time of the next request of a flow, in nanoseconds.
    pub(super) fn cost_ns(&mut self, flow: u32, class: RequestClass, offset: Option<u64>) -> u64 {
        self.cost(flow).next_ns(class, offset)
    }

    /// The flow of what a client asks of an export; without an export, of everything else that it asks.
    pub(super) fn flow_for(&self, peer: SocketAddr, export: Option<&[u8]>) -> u32 {
        self.enforced.clients.flow(peer, export).unwrap_or(UNKNOWN_FLOW)
    }

    /// Learns the root handle of an NFS export, if the deployment names it. What else clients mount is their business: a
    /// folder inside an export, mounted by itself, would look like a second export in the place of the first.
    pub(super) fn learn_export(&mut self, path: &[u8], root: &[u8]) {
        if self.enforced.clients.names_export(path) {
            self.exports.learn(path, root);
        }
    }

    /// Takes a waiting request out of the queue; whether that is possible. A baseline's queue keeps it.
    pub(super) fn withdraw(&mut self, number: u32) -> bool {
        match self.requests.get(number).state {
            RequestState::Queued(Some(waiting)) => {
                self.queue.withdraw(self.now, waiting);
                true
            }
            RequestState::Queued(None) => false,
            _ => true,
        }
    }

    /// Forgets a request that is of no use any more. One that a baseline's queue still has stays until it is dispatched.
    pub(super) fn forget(&mut self, number: u32) {
        if matches!(self.requests.get(number).state, RequestState::Queued(None)) {
            self.requests.get_mut(number).session = NO_SESSION;
        } else {
            self.requests.remove(number);
        }
    }

    /// Ends a request's time at the device, if it is outstanding; whether it was.
    pub(super) fn release(&mut self, number: u32) -> bool {
        let request = self.requests.get_mut(number);
        match request.state.release() {
            Some(ticket) => {
                request.charge = self.queue.done(self.now, ticket);
                true
            }
            None => false,
        }
    }

    /// Takes back the ticket of a request that is not sent after all. It gets its tokens back.
    pub(super) fn refuse_ticket(&mut self, ticket: DispatchTicket) {
        if let Some(charge) = self.queue.done(self.now, ticket) {
            self.queue.settle(self.now, charge, 0);
        }
    }

    /// Ends a request that was answered, or that was forwarded and has no reply: it gives its place back, is charged
    /// what it was served, and is counted.
    pub(super) fn finish(&mut self, number: u32, is_error: bool) {
        self.release(number);
        let request = self.requests.get_mut(number);
        let reply = ServedReply { bytes: request.reply_bytes, is_error };
        let class = request.class;
        let cost = request.cost;
        let flow = request.flow;
        let is_estimate = request.is_size_unknown();
        if let Some(charge) = request.charge.take() {
            let served = self.served_cost.served_ns(class, cost, reply);
            if served != cost || is_estimate {
                self.queue.settle(self.now, charge, served);
            }
        }
        if is_estimate && !is_error {
            self.requests.get_mut(number).class = RequestClass::Read(Bytes(reply.bytes));
            self.cost(data_flow(flow)).learn_reply(reply.bytes);
        }
        self.statistics.observe(self.requests.get(number), self.now, &self.names);
    }
}

//! State shared by all sessions of a proxy: the clock, the queue, the requests, and knowledge about clients.

use super::address_table::AddressTable;
use super::cost::{RequestCost, RequestedWork, ServedCost, ServedReply};
use super::exports::ExportTable;
use super::flows::{UNKNOWN_FLOW, WorkloadNames, data_flow};
use super::overdue::OverdueWatch;
use super::queue::{DispatchTicket, RequestQueue};
use super::request::{NO_SESSION, RequestEnding, RequestState, RequestTable};
use super::rules::ProxyRules;
use super::statistics::{ProxyStatistics, new_identity};
use model::{Op, PerStage, Request, Stage};
use std::net::SocketAddr;
use units::{Bytes, MILLI, Nanos, Work};
use wire::RequestClass;
use workload::device::{NetworkModel, StorageProfile};
use workload::live::{LiveArrival, LiveCurves};

/// Bytes buffered by a proxy before the allowance of every session shrinks, until half of them are left.
const CROWDED_BYTES: usize = 128 << 20;
/// Bytes buffered for one address before no request of it is dispatched, until half of them are left.
const ADDRESS_BYTES: usize = 32 << 20;
/// The same while the proxy as a whole buffers much.
const CROWDED_ADDRESS_BYTES: usize = 4 << 20;

#[derive(Debug)]
pub(super) struct SharedState {
    /// Time since the proxy started, as of the latest round of the event loop, nanoseconds.
    pub(super) now: u64,
    pub(super) queue: RequestQueue,
    pub(super) requests: RequestTable,
    /// Bytes that all sessions buffer, in both directions.
    pub(super) buffered_bytes: usize,
    /// Addresses of clients.
    pub(super) addresses: AddressTable,
    is_crowded: bool,
    /// Sessions may buffer more or less than before; they get no event for it.
    pub(super) have_allowances_changed: bool,
    pub(super) names: WorkloadNames,
    pub(super) statistics: ProxyStatistics,
    /// Burst curves of reads and writes of known workloads.
    pub(super) live: LiveCurves,
    /// Rules in force.
    pub(super) enforced: ProxyRules,
    pub(super) exports: ExportTable,
    overdue: OverdueWatch,
    pub(super) profile: StorageProfile,
    /// The proxy is ending: no further requests are accepted.
    pub(super) is_draining: bool,
    /// The proxy comes to rest for another one: it reads and dispatches only what cannot be handed over.
    pub(super) is_holding: bool,
    /// Number of requests that have entered the queue.
    pub(super) enqueued: u64,
    /// Cost models by flow, and that of unknown clients, whose flow is too large for an index.
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
            addresses: AddressTable::default(),
            is_crowded: false,
            have_allowances_changed: false,
            names,
            statistics,
            live: LiveCurves::new(new_identity()),
            enforced: rules,
            exports: ExportTable::default(),
            overdue: OverdueWatch::default(),
            is_draining: false,
            is_holding: false,
            enqueued: 0,
            unknown_cost: RequestCost::new(&profile),
            served_cost: ServedCost::new(&profile),
            profile,
            costs: Vec::new(),
        }
    }

    /// Returns true if sessions of this address may buffer less of their requests now.
    pub(super) fn is_crowded(&self, address: usize) -> bool {
        self.is_crowded || self.addresses.entry(address).is_full
    }

    /// Returns true if the sessions of this address buffer so much that no request of theirs is dispatched.
    pub(super) fn is_address_full(&self, address: usize) -> bool {
        let entry = self.addresses.entry(address);
        entry.is_full || (self.is_crowded && entry.is_large)
    }

    /// Notes that a session of this address buffers `count` bytes instead of `before`.
    pub(super) fn count_buffered(&mut self, address: usize, before: usize, count: usize) {
        if before == count {
            return;
        }
        self.buffered_bytes = self.buffered_bytes + count - before;
        let entry = self.addresses.entry_mut(address);
        entry.bytes = entry.bytes + count - before;
        let mut has_changed = pass(&mut entry.is_full, entry.bytes, ADDRESS_BYTES);
        has_changed |= pass(&mut entry.is_large, entry.bytes, CROWDED_ADDRESS_BYTES) && self.is_crowded;
        has_changed |= pass(&mut self.is_crowded, self.buffered_bytes, CROWDED_BYTES);
        self.have_allowances_changed |= has_changed;
    }

    /// Returns the cost model of a flow.
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

    /// Returns the device time of a flow's next request, nanoseconds.
    pub(super) fn cost_ns(&mut self, flow: u32, requested: RequestedWork) -> u64 {
        self.cost(flow).next_ns(requested)
    }

    /// Returns the expected length of the reply to a flow's read of so many keys, bytes.
    pub(super) fn reply_expected(&self, flow: u32, keys: u32) -> u64 {
        self.costs.get(data_flow(flow) as usize).unwrap_or(&self.unknown_cost).reply_expected(keys)
    }

    /// Returns the flow of a client's requests to an export; without an export, of all its other requests.
    pub(super) fn flow_for(&self, peer: SocketAddr, export: Option<&[u8]>) -> u32 {
        self.enforced.clients.flow(peer, export).unwrap_or(UNKNOWN_FLOW)
    }

    /// Learns the root handle of an NFS export that the deployment names. Other mounts are ignored: a folder
    /// inside an export, mounted by itself, would replace the export around it.
    pub(super) fn learn_export(&mut self, path: &[u8], root: &[u8]) {
        if self.enforced.clients.names_export(path) {
            self.exports.learn(path, root);
        }
    }

    /// Takes a waiting request out of the queue. Returns false for a baseline's queue, which keeps it.
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

    /// Removes a request that is no longer needed. One in a baseline's queue stays until it is dispatched.
    pub(super) fn forget(&mut self, number: u32) {
        if matches!(self.requests.get(number).state, RequestState::Queued(None)) {
            self.requests.get_mut(number).session = NO_SESSION;
        } else {
            self.requests.remove(number);
        }
    }

    /// Ends a request's time at the device. Returns false if it was not outstanding.
    pub(super) fn release(&mut self, number: u32) -> bool {
        let request = self.requests.get_mut(number);
        let was_overdue = matches!(request.state, RequestState::Overdue(_));
        let Some(ticket) = request.state.release() else { return false };
        self.overdue.note_done(request.cost);
        let workload = data_flow(request.flow);
        if was_overdue && self.overdue.forget_lender(workload) {
            self.queue.bar(workload, false);
        }
        request.charge = self.queue.done(self.now, ticket);
        true
    }

    /// Notes that a request is dispatched.
    pub(super) fn note_sent(&mut self, number: u32, ticket: DispatchTicket) {
        let request = self.requests.get_mut(number);
        request.patience = self.overdue.note_sent(request.cost);
        request.is_beyond_limits = ticket.is_beyond_limits();
        (request.sent, request.state) = (self.now, RequestState::Outstanding(ticket));
    }

    /// Lets a request that is overdue since `overdue_at` count for its own workload only, if the others need its
    /// place. Returns true if it does.
    pub(super) fn give_place_away(&mut self, number: u32, overdue_at: u64) -> bool {
        let request = self.requests.get_mut(number);
        let workload = data_flow(request.flow);
        let is_asked_for = self.queue.waiting() > 0;
        if !self.overdue.gives_away(overdue_at, self.now, workload, is_asked_for) {
            return false;
        }
        let RequestState::Outstanding(ticket) = &mut request.state else { return false };
        if !self.queue.detach(ticket) {
            return false;
        }
        if let RequestState::Outstanding(ticket) =
            std::mem::replace(&mut request.state, RequestState::Released)
        {
            request.state = RequestState::Overdue(ticket);
        }
        if self.overdue.note_given_away(overdue_at, workload) {
            self.queue.bar(workload, true);
        }
        self.statistics.released += 1;
        true
    }

    /// Notes that the server has answered a request.
    fn note_answer(&mut self) {
        for workload in self.overdue.note_answer(self.now) {
            self.queue.bar(workload, false);
        }
    }

    /// Takes back the ticket of a request that is not sent after all, and refunds its tokens.
    pub(super) fn refuse_ticket(&mut self, ticket: DispatchTicket) {
        if let Some(charge) = self.queue.done(self.now, ticket) {
            self.queue.settle(self.now, charge, 0);
        }
    }

    /// Ends a request that was answered, or that was forwarded and has no reply: releases its slot at the
    /// device, charges the work served, and counts it.
    pub(super) fn finish(&mut self, number: u32, is_error: bool) {
        self.release(number);
        let request = self.requests.get(number);
        if request.ending == RequestEnding::Reply && !request.is_control() {
            self.note_answer();
        }
        let request = self.requests.get_mut(number);
        let reply = ServedReply { bytes: request.reply_bytes, is_error };
        let requested = request.requested();
        let cost = request.cost;
        let flow = request.flow;
        let is_estimate = request.is_size_unknown();
        let served = self.served_cost.served_ns(requested, cost, reply);
        if let Some(charge) = request.charge.take()
            && (served != cost || is_estimate)
        {
            self.queue.settle(self.now, charge, served);
        }
        if is_estimate && !is_error {
            self.requests.get_mut(number).class = RequestClass::Read(Bytes(reply.bytes));
            self.cost(data_flow(flow)).learn_reply(reply.bytes, requested.keys);
        }
        let allowed = self.enforced.allowed_ns.get(&data_flow(flow)).copied();
        self.statistics.observe(self.requests.get(number), is_error, allowed, self.now, &self.names);
        self.note_live(number, is_error, served);
    }

    /// Adds a read or write of a known workload, whose work at the storage was `served` nanoseconds, to its burst curve.
    fn note_live(&mut self, number: u32, is_error: bool, served: u64) {
        let request = self.requests.get(number);
        let op = match request.class {
            RequestClass::Control => return,
            RequestClass::Read(_) => Op::Read,
            RequestClass::Write(_) => Op::Write,
        };
        let flow = data_flow(request.flow);
        if flow == UNKNOWN_FLOW {
            return;
        }
        let at = Nanos(request.arrived);
        let size = request.transferred(is_error);
        let moved = Request { arrival: at, size, op, offset: None, response: None };
        let network = NetworkModel::default();
        let work = PerStage::from_fn(|stage| match stage {
            Stage::Storage => Work(served.saturating_mul(MILLI)),
            link => network.work(link, &moved),
        });
        self.live.add(flow, LiveArrival { at, work }, self.now);
    }
}

/// Updates `is_over`: true from `most` bytes on, until half of them are left. Returns true if it has changed.
fn pass(is_over: &mut bool, bytes: usize, most: usize) -> bool {
    let was_over = *is_over;
    *is_over = bytes >= if was_over { most / 2 } else { most };
    was_over != *is_over
}

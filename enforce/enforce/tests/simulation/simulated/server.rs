//! The simulated storage server: connections that read requests and send answers, before one device of several channels.

use super::configuration::Configuration;
use super::faults::FaultKind;
use super::link::FarEnd;
use super::nbd_reader::{NbdDialect, greeting};
use super::plan::{MS, SECOND};
use super::reader::{DeviceWork, RequestReader, SeenRequest};
use super::rpc_reader::{record_of, words};
use super::world::{World, WorldEvent};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use wire::Protocol;

/// The proxy stops counting unanswered requests after 5 s; the margin covers the time since it sent them.
const COUNTED_NS: u64 = 4 * SECOND;
/// The proxy lets requests count for their own workload only after 20 ms at the earliest.
const OVERDUE_NS: u64 = 18 * MS;
/// The proxy stops counting requests of a client that does not read its answers after 20 ms.
pub const HELD_UP_NS: u64 = 15 * MS;

/// Number of clients' networks.
const NETWORKS: usize = 4;

/// The server's end of a connection.
#[derive(Debug)]
pub struct ServerConnection {
    reader: RequestReader,
    output: VecDeque<u8>,
    /// Jobs that wait for their predecessor: memcached serves a connection in order.
    in_order: VecDeque<usize>,
    unanswered: usize,
    is_closing: bool,
    has_greeted: bool,
    /// Calls that the server made, with their times.
    calls: BTreeMap<u32, u64>,
    next_call: u32,
}

impl ServerConnection {
    /// Creates the server's end of a new connection.
    pub fn new(protocol: Protocol, dialect: NbdDialect) -> Self {
        Self {
            reader: RequestReader::new(protocol, dialect),
            output: VecDeque::new(),
            in_order: VecDeque::new(),
            unanswered: 0,
            is_closing: false,
            has_greeted: false,
            calls: BTreeMap::new(),
            next_call: 1 << 30,
        }
    }
}

/// A request at the server.
#[derive(Debug)]
pub struct ServerJob {
    link: usize,
    /// Session whose request it is; `None` if the proxy has added it.
    pub(super) session: Option<usize>,
    /// Earliest time at which the proxy has dispatched it.
    dispatched_at: u64,
    /// True if it no longer counts as outstanding, for a documented reason.
    pub is_exempt: bool,
    is_added: bool,
    request: SeenRequest,
    is_lost: bool,
}

/// An answer that the proxy has not read yet.
#[derive(Debug)]
struct UnreadAnswer {
    link: usize,
    session: Option<usize>,
    dispatched_at: u64,
    /// Bytes of its connection up to its end.
    left: usize,
}

/// The device, and all requests at the server.
#[derive(Debug, Default)]
pub struct ServerDevice {
    /// All unanswered requests, by number.
    pub jobs: BTreeMap<usize, ServerJob>,
    /// Answers on their way to the proxy.
    unread: Vec<UnreadAnswer>,
    next_job: usize,
    waiting: VecDeque<usize>,
    busy: usize,
    /// Time until which it is idle.
    pub stalled_until: u64,
    /// Latest time at which the proxy read an answer.
    pub heard_at: u64,
    /// Maximum number of requests at the device at once.
    pub most_outstanding: u32,
}

impl ServerDevice {
    /// Notes that the proxy has read bytes of a connection to the server.
    pub fn note_read(&mut self, link: usize, count: usize, now: u64) {
        self.heard_at = now;
        self.unread.iter_mut().filter(|answer| answer.link == link).for_each(|answer| {
            answer.left = answer.left.saturating_sub(count);
        });
        self.unread.retain(|answer| answer.left > 0);
    }
}

impl World {
    /// Performs the server's steps on a connection: accepts it, reads requests, sends answers.
    pub fn server_looks(&mut self, number: usize) {
        let now = self.now;
        if !self.links[number].is_made(now) || self.links[number].is_refused || self.links[number].is_far_gone
        {
            return;
        }
        let protocol = self.plan.fronts[self.links[number].front];
        let link = &mut self.links[number];
        let FarEnd::Server(connection) = &mut link.far else { return };
        if !connection.has_greeted {
            connection.has_greeted = true;
            if protocol == Protocol::Nbd {
                self.send_to_client(number, &greeting(), self.links[number].session);
            }
        }
        if self.links[number].stalled_until <= now {
            if self.faults.strikes(FaultKind::ServerStall, &mut self.dice) {
                self.links[number].stalled_until = now + self.dice.between(1, 300) * MS;
                self.schedule(self.links[number].stalled_until, WorldEvent::Look(number));
            } else {
                self.server_reads(number);
            }
        }
        self.flush_server(number);
    }

    fn server_reads(&mut self, number: usize) {
        let now = self.now;
        let link = &mut self.links[number];
        let bytes = link.from_proxy.pop(usize::MAX, now);
        let is_at_end = link.from_proxy.is_at_end(now);
        let session = link.session;
        let FarEnd::Server(connection) = &mut link.far else { return };
        connection.reader.feed(&bytes);
        if !bytes.is_empty() {
            self.progress += 1;
            self.schedule(now, WorldEvent::Wake);
        }
        loop {
            let FarEnd::Server(connection) = &mut self.links[number].far else { return };
            if connection.is_closing {
                break;
            }
            let Some(request) = connection.reader.next_request() else {
                if connection.reader.is_lost {
                    connection.is_closing = true;
                }
                break;
            };
            let (session, on_way) = match (session, &mut self.links[number].shared) {
                (Some(session), _) => {
                    let on_way = self.sessions[session].on_way.pop_front();
                    (Some(session), on_way.unwrap_or((false, self.now)))
                }
                (None, Some(shared)) => {
                    let (owner, dispatched_at) = shared.owners.pop_front().unwrap_or((None, self.now));
                    (owner, (owner.is_none(), dispatched_at))
                }
                (None, None) => unreachable!("a connection to the server is for sessions"),
            };
            self.arrive(number, session, request, on_way);
        }
        let FarEnd::Server(connection) = &mut self.links[number].far else { return };
        connection.is_closing |= is_at_end;
        self.close_if_done(number);
    }

    fn arrive(
        &mut self,
        number: usize,
        session: Option<usize>,
        request: SeenRequest,
        (is_added, dispatched_at): (bool, u64),
    ) {
        let FarEnd::Server(connection) = &mut self.links[number].far else { return };
        connection.is_closing |= request.closes;
        if let Some(call) = request.answers_call {
            return self.on_call_answered(number, call);
        }
        connection.unanswered += 1;
        let job = self.device.next_job;
        self.device.next_job += 1;
        let has_reply = !request.reply.is_empty();
        let is_unanswered =
            session.is_some_and(|session| self.plan.unanswered == Some(self.sessions[session].network));
        let is_lost = has_reply
            && !is_added
            && (is_unanswered || self.faults.strikes(FaultKind::LostReply, &mut self.dice));
        if is_lost {
            self.excuse_link(number, "the server has lost a request");
        }
        // A no-op of the client is indistinguishable from one of the proxy.
        let is_exempt = request.work == DeviceWork::Nothing || request.is_noop;
        let work = request.work;
        let len = request.len;
        self.note(|| {
            format!("server gets job {job} of session {session:?}: {work:?}, {len} bytes, added: {is_added}")
        });
        let arrived =
            ServerJob { link: number, session, dispatched_at, is_exempt, is_added, request, is_lost };
        self.device.jobs.insert(job, arrived);
        self.check_outstanding();
        let link = &mut self.links[number];
        let FarEnd::Server(connection) = &mut link.far else { return };
        if !self.plan.fronts[link.front].row().has_ids {
            connection.in_order.push_back(job);
            if connection.in_order.len() > 1 {
                return;
            }
        }
        self.submit(job);
    }

    /// Checks the bound on requests at the server.
    fn check_outstanding(&mut self) {
        let now = self.now;
        let generation = self.generation;
        let mut count = 0;
        let mut held_up = Vec::new();
        for job in self.device.jobs.values_mut() {
            let Some(session) = job.session else { continue };
            let session = &mut self.sessions[session];
            let is_held_up = session.deaf_since.is_some_and(|since| since + HELD_UP_NS <= now);
            session.is_uncounted |= is_held_up && session.is_blocked;
            if is_held_up {
                session.exempt_on_way();
                held_up.extend(job.session);
            }
            job.is_exempt |= session.is_uncounted
                || is_held_up
                || job.dispatched_at + COUNTED_NS <= now
                || session.generation != generation;
            count += u32::from(!job.is_exempt);
        }
        for session in held_up {
            self.exempt_shared(session);
        }
        count -= self.given_away();
        self.device.most_outstanding = self.device.most_outstanding.max(count);
        self.check_workloads();
        if count > self.checks.outstanding_max {
            let bound = self.checks.outstanding_max;
            self.violate(&format!("outstanding: {count} requests are at the server, where {bound} may be"));
        }
    }

    /// Returns the number of requests that count for their own workloads only: overdue ones if the server has
    /// answered others meanwhile, and otherwise one of each workload.
    fn given_away(&self) -> u32 {
        let mut count = 0;
        let mut lenders = BTreeSet::new();
        for job in self.device.jobs.values().filter(|job| !job.is_exempt) {
            let overdue_at = job.dispatched_at + OVERDUE_NS;
            let Some(session) = job.session else { continue };
            let network = self.sessions[session].network;
            // A workload whose entry changes counts for two.
            let is_proven = self.device.heard_at >= overdue_at || self.configured_at >= job.dispatched_at;
            count += u32::from(overdue_at <= self.now && (is_proven || lenders.insert(network)));
        }
        count
    }

    /// Checks that no workload has more requests at the server than all may have together.
    fn check_workloads(&mut self) {
        let mut counts = [0; NETWORKS];
        // Requests of a workload whose entry has changed may count for two.
        if self.configuration == Configuration::FIRST {
            let jobs = self.device.jobs.values().filter(|job| job.dispatched_at >= self.configured_at);
            for job in jobs.filter(|job| !job.is_exempt && job.request.work.is_data()) {
                if let Some(session) = job.session {
                    counts[self.sessions[session].network] += 1;
                }
            }
        }
        let bound = self.checks.outstanding_max;
        if let Some(network) = counts.iter().position(|count| *count > bound) {
            let count = counts[network];
            self.violate(&format!(
                "workload: {count} requests of network {network} are at the server, where {bound} may be"
            ));
        }
    }

    /// Returns true if a workload's requests may wait for one that the server should have answered.
    pub fn has_overdue(&self, network: usize) -> bool {
        let is_overdue = |dispatched_at: u64| dispatched_at + OVERDUE_NS <= self.now;
        let network_of = |session: Option<usize>| session.map(|session| self.sessions[session].network);
        // The workload of a client may have changed since; the time of a request that no longer counts is 0.
        let is_own = |of: Option<usize>, dispatched_at: u64| {
            of == Some(network) || (1..self.configured_at).contains(&dispatched_at)
        };
        let jobs = self.device.jobs.values().map(|job| (network_of(job.session), job.dispatched_at));
        let unread = self.device.unread.iter().filter(|answer| !self.links[answer.link].is_proxy_gone);
        let unread = unread.map(|answer| (network_of(answer.session), answer.dispatched_at));
        let on_way = self.open_links.iter().flat_map(|link| self.on_way_over(*link));
        let on_way = on_way.map(|(session, dispatched_at)| (network_of(session), dispatched_at));
        jobs.chain(unread).chain(on_way).any(|(of, at)| is_own(of, at) && is_overdue(at))
    }

    /// Returns the requests that may be on their way to the server over a link, with their sessions and the times at
    /// which they were dispatched.
    fn on_way_over(&self, number: usize) -> Vec<(Option<usize>, u64)> {
        let link = &self.links[number];
        if let Some(shared) = &link.shared {
            return shared.owners.iter().copied().collect();
        }
        let Some(number) = link.session.filter(|_| matches!(link.far, FarEnd::Server(_))) else {
            return Vec::new();
        };
        let session = &self.sessions[number];
        let on_way = session.on_way.iter().map(|(_, dispatched_at)| *dispatched_at);
        // Requests that are held may be dispatched, and behind bytes that the connection does not accept.
        let unsent = session.blocked_since.filter(|_| !session.held.is_empty());
        on_way.chain(unsent).map(|dispatched_at| (Some(number), dispatched_at)).collect()
    }

    /// Sends a request to the device, or past it.
    fn submit(&mut self, job: usize) {
        if self.device.jobs[&job].request.work == DeviceWork::Nothing {
            return self.finish_job(job);
        }
        self.device.waiting.push_back(job);
        self.start_service();
    }

    /// Begins services on all free channels.
    pub fn start_service(&mut self) {
        let now = self.now;
        if self.device.stalled_until > now {
            return;
        }
        while self.device.busy < self.plan.channels
            && let Some(job) = self.device.waiting.pop_front()
        {
            let bytes = self.device.jobs.get(&job).map_or(0, |job| job.request.work.bytes());
            self.device.busy += 1;
            let service = self.plan.service_ns(bytes);
            let end = now + service / 2 + self.dice.below(service);
            self.schedule(end, WorldEvent::DeviceDone(job));
        }
    }

    /// Completes a request at the device.
    pub fn on_device_done(&mut self, job: usize) {
        if self.device.stalled_until > self.now {
            return self.schedule(self.device.stalled_until, WorldEvent::DeviceDone(job));
        }
        self.device.busy -= 1;
        self.start_service();
        self.finish_job(job);
    }

    fn finish_job(&mut self, number: usize) {
        let Some(job) = self.device.jobs.get_mut(&number) else { return };
        let link = job.link;
        if job.is_lost {
            // It stays at the server until its connection ends.
            return;
        }
        let reply = std::mem::take(&mut job.request.reply);
        let is_added = job.is_added;
        let session = job.session;
        let dispatched_at = job.dispatched_at;
        let len = reply.len();
        self.note(|| format!("server answers job {number} of session {session:?} with {len} bytes"));
        self.device.jobs.remove(&number);
        let FarEnd::Server(connection) = &mut self.links[link].far else { return };
        connection.unanswered -= 1;
        let is_first = connection.in_order.front() == Some(&number);
        let next = if is_first {
            connection.in_order.pop_front();
            connection.in_order.front().copied()
        } else {
            None
        };
        self.send_to_client(link, &reply, session.filter(|_| !is_added));
        self.note_unread(link, session, dispatched_at);
        if let Some(next) = next {
            self.submit(next);
        }
        self.flush_server(link);
        self.close_if_done(link);
    }

    /// Notes that an answer ends behind all that was sent over a connection so far.
    fn note_unread(&mut self, number: usize, session: Option<usize>, dispatched_at: u64) {
        let link = &self.links[number];
        let FarEnd::Server(connection) = &link.far else { return };
        let left = connection.output.len() + link.to_proxy.len();
        if left > 0 {
            self.device.unread.push(UnreadAnswer { link: number, session, dispatched_at, left });
        }
    }

    /// Sends bytes, which are for the client of this session, if of any.
    fn send_to_client(&mut self, number: usize, bytes: &[u8], session: Option<usize>) {
        if self.links[number].is_far_gone {
            return;
        }
        let FarEnd::Server(connection) = &mut self.links[number].far else { return };
        connection.output.extend(bytes);
        match session {
            Some(session) => self.sessions[session].on_sent_by_server(bytes, self.now),
            // The greeting is answered.
            None => {
                if let Some(shared) = &mut self.links[number].shared {
                    shared.is_blocked = false;
                    self.shared_blocked_at = self.now + MS;
                }
            }
        }
    }

    /// Writes as much as the connection accepts.
    pub fn flush_server(&mut self, number: usize) {
        let now = self.now;
        let link = &mut self.links[number];
        let FarEnd::Server(connection) = &mut link.far else { return };
        let count = link.to_proxy.room().min(connection.output.len());
        if count == 0 || link.is_far_gone {
            return;
        }
        let bytes: Vec<u8> = connection.output.drain(..count).collect();
        let visible_at = link.to_proxy.push(&bytes, now + link.latency_ns);
        self.progress += 1;
        self.schedule(visible_at, WorldEvent::Wake);
        self.close_if_done(number);
    }

    /// Closes a connection whose client has finished, once everything is answered.
    fn close_if_done(&mut self, number: usize) {
        let now = self.now;
        let link = &mut self.links[number];
        let FarEnd::Server(connection) = &mut link.far else { return };
        if connection.is_closing
            && connection.unanswered == 0
            && connection.output.is_empty()
            && !link.is_far_gone
        {
            let visible_at = link.close_far(now);
            self.schedule(visible_at, WorldEvent::Wake);
        }
    }

    /// Ends a connection from the server's side, by a fault.
    pub fn break_server_link(&mut self, number: usize, why: &'static str, is_reset: bool) {
        let now = self.now;
        self.note(|| format!("link {number}: {why}"));
        self.excuse_link(number, why);
        if let Some(session) = self.links[number].session {
            self.sessions[session].is_over = true;
        }
        let link = &mut self.links[number];
        let visible_at = if is_reset { link.reset_far(now) } else { link.close_far(now) };
        self.schedule(visible_at, WorldEvent::Wake);
        self.device.jobs.retain(|_, job| job.link != number);
    }

    /// Makes a call from the server to the client, if the protocol allows it.
    pub fn call_client(&mut self, number: usize) {
        let now = self.now;
        let FarEnd::Server(connection) = &mut self.links[number].far else { return };
        if connection.is_closing || !connection.has_greeted {
            return;
        }
        let call = connection.next_call;
        connection.next_call += 1;
        connection.calls.insert(call, now);
        self.faults.count(FaultKind::Callback);
        let record = record_of(&words(&[call, 0, 2, 0x4000_0000, 1, 1, 0, 0, 0, 0]));
        self.send_to_client(number, &record, self.links[number].session);
        self.flush_server(number);
    }

    fn on_call_answered(&mut self, number: usize, call: u32) {
        let FarEnd::Server(connection) = &mut self.links[number].far else { return };
        let Some(called_at) = connection.calls.remove(&call) else { return };
        let waited = self.now - called_at;
        self.longest_call_ns = self.longest_call_ns.max(waited);
    }
}

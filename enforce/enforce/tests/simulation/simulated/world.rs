//! A simulated world: everything around the proxy, in one thread and with a simulated clock.

use super::client::SimulatedClient;
use super::configuration::Configuration;
use super::dice::Dice;
use super::faults::{FaultKind, FaultLog};
use super::link::{FarEnd, Link, SharedLink};
use super::nbd_reader::NbdDialect;
use super::pipe::BytePipe;
use super::plan::{ClientStyle, MS, SECOND, WorldPlan};
use super::reader::RequestReader;
use super::server::{ServerConnection, ServerDevice};
use super::session::ObservedSession;
use super::tamper::Tampering;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::net::{Ipv4Addr, SocketAddr};

/// Maximum number of violations kept for a world.
const VIOLATIONS_MAX: usize = 5;
/// Files that a proxy keeps in reserve.
const FILES_RESERVED: usize = 4;
/// Time for which honest clients wait for answers after their end.
pub const LEAVES_AFTER_NS: u64 = 30 * SECOND;
/// Time for which a world continues after its clients should have ended.
pub const AFTERMATH_NS: u64 = 200 * SECOND;

/// An event in a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WorldEvent {
    /// Connections may have become ready.
    Wake,
    /// The far end of a connection acts.
    Look(usize),
    /// A client acts.
    Client(usize),
    /// The device is done with a job.
    DeviceDone(usize),
    /// The device works again.
    DeviceResumes,
    /// A fault may happen.
    Accident,
    /// The server behind a front runs again.
    ServerStarts(usize),
    /// The process may open more files again.
    FilesReturn,
}

/// An action of control on a proxy between two rounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ControlAction {
    /// Replaces policy and deployment.
    Configure(Configuration),
    /// Offers a deployment without the server.
    ConfigureWrongly,
    /// Tells the proxy to drain, and starts another when it has stopped.
    Drain,
    /// Stops the proxy at once, and starts another.
    Stop,
    /// Lets another proxy take over.
    TakeOver(TakeOverFate),
}

/// End of an attempt to take over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeOverFate {
    /// The other proxy serves, and clients in the middle of a message may be left behind.
    Succeeds,
    /// The same, but no client is left behind: it fails if some are late.
    SucceedsWithAll,
    /// The other proxy ends before it serves.
    Dies,
}

/// An address where the proxy listens, and the server behind it.
#[derive(Debug, Default)]
pub struct SimulatedFront {
    /// Clients not yet accepted.
    pub backlog: VecDeque<usize>,
    /// True while the server is down.
    pub is_down: bool,
}

/// Promises that the observer checks.
#[derive(Debug, Clone, Copy)]
pub struct WorldChecks {
    /// Maximum number of requests at the server at once.
    pub outstanding_max: u32,
    /// True if requests with a level must go before those of lower levels.
    pub are_levels_checked: bool,
    /// True if workloads are held to their limits.
    pub are_limits_checked: bool,
    /// Maximum latency of a client with the highest priority, in a calm world.
    pub latency_max_ns: Option<u64>,
}

/// Everything around the proxy.
#[derive(Debug)]
pub struct World {
    pub plan: WorldPlan,
    pub checks: WorldChecks,
    pub now: u64,
    /// Source of all further choices.
    pub dice: Dice,
    pub faults: FaultLog,
    /// All connections so far.
    pub links: Vec<Link>,
    /// Connections that the proxy has open.
    pub open_links: Vec<usize>,
    /// All sessions so far.
    pub sessions: Vec<ObservedSession>,
    pub fronts: Vec<SimulatedFront>,
    pub clients: Vec<SimulatedClient>,
    /// Device of the server.
    pub device: ServerDevice,
    /// Configuration in force.
    pub configuration: Configuration,
    /// Time since when it is in force.
    pub configured_at: u64,
    /// Ordinal of the running proxy.
    pub generation: u32,
    /// True if the proxy was told to drain.
    pub is_draining: bool,
    /// True while the proxy comes to rest for another one.
    pub is_holding: bool,
    /// Source of choices about that.
    pub take_over_dice: Dice,
    /// Number of proxies that took over.
    pub taken_over: u64,
    /// True if the proxy listens.
    pub is_listening: bool,
    /// True if the proxy wants to know of clients that wait.
    pub reports_clients: bool,
    /// Maximum number of files that the proxy may have open.
    pub files_max: usize,
    /// Time until which that is less than usual.
    pub files_short_until: u64,
    /// Files that the proxy keeps in reserve.
    pub files_reserved: usize,
    /// CPU time of the proxy's system calls since its latest wait.
    pub cpu_ns: u64,
    /// Pending actions of control.
    pub actions: VecDeque<ControlAction>,
    pub violations: Vec<String>,
    /// Log of events, if it is kept.
    pub log: Option<Vec<String>>,
    /// Count of progress: bytes moved, connections opened and closed.
    pub progress: u64,
    /// Number of the proxy's waits.
    pub rounds: u64,
    /// Number of consecutive waits without progress.
    pub idle_rounds: u64,
    /// Maximum of `idle_rounds`.
    pub most_idle_rounds: u64,
    pub(super) progress_seen: u64,
    /// Longest time that a client took to answer a call of the server, as seen by the server.
    pub longest_call_ns: u64,
    /// Service of the third workload beyond its limit so far, and the time at which it was computed.
    pub limit_level: (f64, u64),
    /// Mistakes injected between the proxy and the server.
    pub tampering: Option<Tampering>,
    /// Time at which a shared connection last accepted less than offered.
    pub shared_blocked_at: u64,
    /// Requests that were passed over: time of the confirmation, session, level bound, and message.
    pub overtaken: Vec<(u64, usize, u32, String)>,
    /// Maximum time from an order of the proxy to a loop to its execution.
    pub orders_late_ns: u64,
    /// Orders are on their way to loops.
    pub loops_have_orders: bool,
    heap: BinaryHeap<Reverse<(u64, u64, WorldEvent)>>,
    scheduled: u64,
    next_port: u16,
}

impl World {
    /// Creates the world of a plan.
    pub fn new(plan: WorldPlan) -> Self {
        let mut dice = Dice::new(plan.seed, 2);
        let clients = plan
            .clients
            .iter()
            .map(|client| SimulatedClient::new(*client, plan.fronts[client.front], &mut dice));
        let clients: Vec<_> = clients.collect();
        let checks = WorldChecks {
            outstanding_max: plan.outstanding,
            are_levels_checked: true,
            are_limits_checked: plan.queues_over_limits,
            latency_max_ns: plan.is_calm.then(|| latency_max_ns(&plan)),
        };
        let mut world = Self {
            checks,
            now: SECOND,
            faults: plan.faults.clone(),
            links: Vec::new(),
            open_links: Vec::new(),
            sessions: Vec::new(),
            fronts: plan.fronts.iter().map(|_| SimulatedFront::default()).collect(),
            clients,
            device: ServerDevice::default(),
            configuration: Configuration::FIRST,
            configured_at: 0,
            generation: 0,
            is_draining: false,
            is_holding: false,
            take_over_dice: Dice::new(plan.seed, 4),
            taken_over: 0,
            is_listening: true,
            reports_clients: true,
            files_max: plan.files_max,
            files_short_until: 0,
            files_reserved: FILES_RESERVED,
            cpu_ns: 0,
            actions: VecDeque::new(),
            violations: Vec::new(),
            log: None,
            progress: 0,
            rounds: 0,
            idle_rounds: 0,
            most_idle_rounds: 0,
            progress_seen: 0,
            longest_call_ns: 0,
            limit_level: (0.0, SECOND),
            tampering: None,
            shared_blocked_at: 0,
            overtaken: Vec::new(),
            orders_late_ns: 0,
            loops_have_orders: false,
            heap: BinaryHeap::new(),
            scheduled: 0,
            next_port: 10_000,
            dice,
            plan,
        };
        world.plan.ends_at += SECOND;
        for number in 0..world.clients.len() {
            let ends_at = world.plan.ends_at;
            for at in [SECOND + world.clients[number].plan.begins_at, ends_at, ends_at + LEAVES_AFTER_NS] {
                world.schedule(at, WorldEvent::Client(number));
            }
        }
        world.schedule(SECOND + 10 * MS, WorldEvent::Accident);
        world
    }

    /// Schedules an event.
    pub fn schedule(&mut self, at: u64, event: WorldEvent) {
        self.scheduled += 1;
        self.heap.push(Reverse((at.max(self.now), self.scheduled, event)));
    }

    /// Returns the time of the next event.
    pub fn next_event_at(&self) -> Option<u64> {
        self.heap.peek().map(|Reverse((at, ..))| *at)
    }

    /// Processes all due events.
    pub fn happen(&mut self) {
        while let Some(Reverse((at, _, event))) = self.heap.peek().copied()
            && at <= self.now
        {
            self.heap.pop();
            match event {
                WorldEvent::Wake => {}
                WorldEvent::Look(link) => self.look(link),
                WorldEvent::Client(client) => self.client_steps(client),
                WorldEvent::DeviceDone(job) => self.on_device_done(job),
                WorldEvent::DeviceResumes => self.start_service(),
                WorldEvent::Accident => self.accident(),
                WorldEvent::ServerStarts(front) => self.fronts[front].is_down = false,
                WorldEvent::FilesReturn => {
                    if self.now >= self.files_short_until {
                        self.files_max = usize::MAX;
                    }
                }
            }
        }
    }

    fn look(&mut self, number: usize) {
        match self.links[number].far {
            FarEnd::Client(client) if self.clients[client].link == Some(number) => self.client_steps(client),
            FarEnd::Client(_) => {}
            FarEnd::Server(_) => self.server_looks(number),
        }
    }

    /// Begins a client's connection to its front.
    pub fn open_client_link(&mut self, number: usize) -> usize {
        let plan = self.clients[number].plan;
        self.next_port = self.next_port.checked_add(1).unwrap_or(10_000);
        let host = plan.host.unwrap_or(number + 1);
        let host = u8::try_from(host).expect("there are few clients");
        let network = u8::try_from(plan.network).expect("there are few networks");
        let address = SocketAddr::from((Ipv4Addr::new(10, 1, network, host), self.next_port));
        let link = self.add_link(plan.front, address, FarEnd::Client(number));
        self.links[link].made_at = Some(self.now);
        self.fronts[plan.front].backlog.push_back(link);
        self.schedule(self.now, WorldEvent::Wake);
        link
    }

    fn add_link(&mut self, front: usize, address: SocketAddr, far: FarEnd) -> usize {
        let sizes = [600, 4 << 10, 64 << 10, 256 << 10];
        let drawn = (self.dice.pick(&sizes), self.dice.pick(&sizes), self.dice.between(1_000, 200_000));
        let fixed = self.plan.link.map(|(capacity, latency)| (capacity, capacity, latency));
        let (capacity, answers, latency_ns) = fixed.unwrap_or(drawn);
        self.links.push(Link {
            front,
            address,
            session: None,
            shared: None,
            far,
            to_proxy: BytePipe::new(capacity),
            from_proxy: BytePipe::new(answers),
            latency_ns,
            made_at: None,
            is_refused: false,
            reset_at: None,
            is_far_gone: false,
            is_proxy_gone: false,
            watched: None,
            stalled_until: 0,
        });
        self.links.len() - 1
    }

    /// Begins the proxy's connection to the server on behalf of a client; returns the number of its link.
    pub fn open_server_link(&mut self, front: usize, client: SocketAddr) -> usize {
        let protocol = self.plan.fronts[front];
        let dialect = NbdDialect::new(self.plan.nbd.0, self.plan.nbd.1);
        let far = FarEnd::Server(Box::new(ServerConnection::new(protocol, dialect)));
        let link = self.add_link(front, client, far);
        let of_client = |link: &Link| link.address == client && matches!(link.far, FarEnd::Client(_));
        let client_link = self.links.iter().rposition(of_client).expect("the proxy connects for a client");
        let session = match self.links[client_link].session {
            Some(session) => session,
            None => self.begin_session(client_link),
        };
        let observed = &mut self.sessions[session];
        (observed.is_sharing, observed.is_blocked, observed.blocked_at) = (false, true, self.now);
        self.links[link].session = Some(session);
        self.establish(front, link);
        link
    }

    /// Begins the observation of an accepted client.
    pub fn begin_session(&mut self, client_link: usize) -> usize {
        let Link { front, far, .. } = &self.links[client_link];
        let FarEnd::Client(number) = *far else { unreachable!("it is the link of a client") };
        let protocol = self.plan.fronts[*front];
        let dialect = NbdDialect::new(self.plan.nbd.0, self.plan.nbd.1);
        let plan = &self.clients[number].plan;
        let session = self.sessions.len();
        let mut observed = ObservedSession::new(protocol, dialect, plan.network, self.generation);
        observed.is_odd = !plan.style.is_ordinary();
        observed.front = *front;
        self.sessions.push(observed);
        self.links[client_link].session = Some(session);
        self.note(|| format!("session {session} begins: link {client_link}"));
        session
    }

    /// Begins a connection to the server that sessions share; returns the number of its link.
    pub fn open_shared_link(&mut self, front: usize) -> usize {
        let protocol = self.plan.fronts[front];
        let dialect = NbdDialect::new(self.plan.nbd.0, self.plan.nbd.1);
        let far = FarEnd::Server(Box::new(ServerConnection::new(protocol, dialect)));
        let link = self.add_link(front, SocketAddr::from(([10, 0, 0, 1], 1)), far);
        self.links[link].shared = Some(Box::new(SharedLink {
            written: RequestReader::new(protocol, dialect),
            begun_at: None,
            has_greeted: false,
            owners: VecDeque::new(),
            is_blocked: true,
            blocked_since: Some(self.now),
        }));
        self.establish(front, link);
        link
    }

    /// Notes an excuse for the end of a connection to the server: of its session, or of all that may have requests
    /// on it.
    pub fn excuse_link(&mut self, number: usize, why: &'static str) {
        if let Some(session) = self.links[number].session {
            self.sessions[session].excuse(why);
        } else if self.links[number].shared.is_some() {
            self.excuse_sharing(self.links[number].front, why);
        }
    }

    /// Stops counting the requests of a session that the server has not read from shared connections.
    pub fn exempt_shared(&mut self, session: usize) {
        for shared in self.links.iter_mut().filter_map(|link| link.shared.as_mut()) {
            let owned = shared.owners.iter_mut().filter(|(owner, _)| *owner == Some(session));
            owned.for_each(|(_, dispatched_at)| *dispatched_at = 0);
        }
    }

    /// Notes an excuse for the end of all sessions of a front that share connections.
    pub fn excuse_sharing(&mut self, front: usize, why: &'static str) {
        for session in self.sessions.iter_mut().filter(|session| session.is_sharing && session.front == front)
        {
            session.excuse(why);
        }
    }

    /// Decides when the proxy's connection to the server is established, if at all.
    fn establish(&mut self, front: usize, link: usize) {
        let mut made_at = self.now + self.links[link].latency_ns;
        if self.faults.strikes(FaultKind::ConnectSlow, &mut self.dice) {
            made_at += self.dice.between(1, 1500) * MS;
        }
        if self.fronts[front].is_down || self.faults.strikes(FaultKind::ConnectRefused, &mut self.dice) {
            self.links[link].is_refused = true;
            self.excuse_link(link, "the server refused the connection");
        }
        if self.faults.strikes(FaultKind::ConnectNever, &mut self.dice) {
            self.excuse_link(link, "the connection to the server is never made");
        } else {
            self.links[link].made_at = Some(made_at);
        }
        self.schedule(made_at, WorldEvent::Look(link));
        let at = self.links[link].made_at;
        let session = self.links[link].session;
        self.note(|| format!("link {link} to the server, session {session:?}, made at {at:?}"));
    }

    /// Returns the number of files that the proxy has open.
    pub fn files_in_use(&self) -> usize {
        self.open_links.len() + self.files_reserved
    }

    /// Opens a file of the proxy, if necessary in place of one of its reserve.
    pub fn open_file(&mut self) -> bool {
        if self.files_in_use() >= self.files_max {
            if self.files_reserved == 0 {
                return false;
            }
            self.files_reserved -= 1;
        }
        true
    }

    /// Fills the reserve of files. Returns false if that is not possible.
    pub fn restore_files(&mut self) -> bool {
        let room = self.files_max.saturating_sub(self.open_links.len());
        self.files_reserved = self.files_reserved.max(room.min(FILES_RESERVED));
        self.files_reserved == FILES_RESERVED
    }

    /// Returns true while the proxy may have to close connections for lack of files.
    pub fn is_short_of_files(&self) -> bool {
        self.files_max < usize::MAX || self.now < self.files_short_until + SECOND
    }

    /// Returns an excuse for closing a client that was never accepted.
    pub fn unaccepted_excuse(&self, link: usize) -> Option<&'static str> {
        self.links[link].is_proxy_gone.then_some("it was not accepted")
    }

    /// Stops counting a session's requests at the server, because its client has held it up for long
    /// enough.
    pub fn exempt_session(&mut self, session: usize) {
        self.sessions[session].is_uncounted |= self.sessions[session].is_blocked;
        self.sessions[session].exempt_on_way();
        self.exempt_shared(session);
        for job in self.device.jobs.values_mut() {
            job.is_exempt |= job.session == Some(session);
        }
    }

    /// Checks the waiting time of the client with the highest priority, in a calm world.
    pub fn check_latency(&mut self, number: usize, link: usize, oldest: Option<u64>) {
        let client = &self.clients[number];
        let (Some(max), Some(oldest)) = (self.checks.latency_max_ns, oldest) else { return };
        let is_highest = client.plan.network == 0 && self.configuration == Configuration::FIRST;
        let is_disturbed =
            self.links[link].session.is_some_and(|session| self.sessions[session].excuse.is_some());
        let is_slow = self.faults.has(FaultKind::HalfRequest) || self.faults.has(FaultKind::ClientStall);
        let waited = self.now - oldest;
        if is_highest && !is_disturbed && !is_slow && client.plan.style == ClientStyle::Honest && waited > max
        {
            let depth = client.plan.depth;
            self.violate(&format!(
                "progress: client {number} of the highest priority (depth {depth}) waited {} ms, and {} ms are enough",
                waited / MS,
                max / MS
            ));
        }
    }

    /// Notes a broken promise of the proxy.
    pub fn violate(&mut self, message: &str) {
        let text = format!("at {:.6} s: {message}", self.now as f64 / 1e9);
        self.note(|| format!("VIOLATION {text}"));
        if self.violations.len() < VIOLATIONS_MAX {
            self.violations.push(text);
        }
    }

    /// Logs an event, if a log is kept.
    pub fn note(&mut self, text: impl FnOnce() -> String) {
        if let Some(log) = &mut self.log {
            log.push(format!("{:.6} {}", self.now as f64 / 1e9, text()));
        }
    }

    /// Returns true if all clients have ended, and enough time has passed.
    pub fn is_over(&self) -> bool {
        let are_done = self.clients.iter().all(|client| client.is_done);
        (are_done && self.open_links.is_empty()) || self.now > self.plan.ends_at + AFTERMATH_NS
    }
}

/// Returns the latency bound of the client with the highest priority without faults. It covers a full
/// device before it, its own requests, twice the duration of everything, and the time for which requests
/// of blocked clients count.
fn latency_max_ns(plan: &WorldPlan) -> u64 {
    let size = plan.clients.iter().map(|client| client.size_max).max().unwrap_or(0);
    let depth = plan.clients.iter().map(|client| client.depth).max().unwrap_or(0) as u64;
    let service = 2 * plan.service_ns(size.max(64 << 10));
    let rounds =
        (u64::from(plan.outstanding) + depth) / plan.channels.min(plan.outstanding as usize) as u64 + 2;
    rounds * service * 2 + 500 * MS
}

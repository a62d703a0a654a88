//! One simulated world: everything that happens in it follows from its seed.
//!
//! Messages take random times, get lost, come twice and out of order; hosts are cut off; processes end between any two
//! writes and start again; the wall clock steps. Faults end at [`FAULTS_END_NS`], and within [`CONVERGENCE_NS`] all hosts
//! must enforce what the controller decided last.

mod agents;
mod control;
mod renewals;
mod tenants;

use super::count::{ToldCurves, ToldRequests};
use super::host::{SimulatedHost, SimulatedProxy};
use super::judge::{InForce, Judge};
use super::mistake::Mistake;
use super::traffic::{CLASS, FOOTPRINTS, KIND, MARGIN, PROFILE, class};
use agent::{AgentAnswer, AgentMemory, AgentReport, ClientPlace, Ticket};
use controller::{
    ClassDescription, ClassesDescription, Controller, Event, HostsDescription, NetworkEnforcement,
    RecordedEvent, ServerChange, ServerPlace, Standing, Withdrawal, WorkloadRequest, full_name,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use std::collections::{BTreeMap, BTreeSet};

const MS: u64 = 1_000_000;
const S: u64 = 1_000 * MS;

/// End of faults and requests.
pub const FAULTS_END_NS: u64 = 40 * S;
/// Time after the last fault in which everything is enforced.
pub const CONVERGENCE_NS: u64 = 30 * S;

const HOSTS: [&str; 5] = ["store-1", "store-2", "app-1", "app-2", "app-3"];
const SERVERS: [(&str, &str); 3] = [("ssd-1", "store-1"), ("ssd-2", "store-2"), ("ssd-3", "store-2")];
const SLOS: [&str; 5] = ["99% < 90ms", "99% < 90ms", "99% < 90ms", "99% < 150ms", "99% < 50ms"];

/// Kinds of faults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    MessageLost,
    MessageTwice,
    MessageLate,
    HostCutOff,
    ControllerCrash,
    AgentCrash,
    AgentDiskLost,
    PolicyRefused,
    EnforcerDown,
    ProxyRestart,
    ClockStep,
}

impl Fault {
    pub const ALL: [Self; 11] = [
        Self::MessageLost,
        Self::MessageTwice,
        Self::MessageLate,
        Self::HostCutOff,
        Self::ControllerCrash,
        Self::AgentCrash,
        Self::AgentDiskLost,
        Self::PolicyRefused,
        Self::EnforcerDown,
        Self::ProxyRestart,
        Self::ClockStep,
    ];
}

/// Account of a world.
#[derive(Debug, Default)]
pub struct WorldReport {
    pub seed: u64,
    pub violation: Option<String>,
    pub faults: BTreeMap<Fault, u64>,
    pub simulated_ns: u64,
    pub happenings: u64,
    pub events: u64,
    pub checks: u64,
    pub admitted: u64,
    pub refused: u64,
    pub without_order: u64,
    pub promised: u64,
    /// Renewals that made a promise larger, in force.
    pub renewed: u64,
    pub given_back: u64,
    pub kept: u64,
    pub renewals_withdrawn: u64,
    /// Number of requests that controllers have counted.
    pub counted: u64,
    /// Number of requests of which controllers had burst curves.
    pub curved: u64,
    /// Time from the last fault until everything was enforced, nanoseconds.
    pub converged_ns: u64,
    pub log: Vec<String>,
}

/// Something that happens at an instant.
#[derive(Debug, Clone)]
enum Happening {
    ToController(Message),
    ToHost {
        host: usize,
        life: u64,
        round: u64,
        answer: Box<AgentAnswer>,
    },
    ToTenant {
        ask: usize,
        reply: Reply,
    },
    StepEnds {
        host: usize,
        life: u64,
    },
    NoAnswer {
        host: usize,
        life: u64,
        round: u64,
    },
    HostStarts {
        host: usize,
    },
    ControllerStarts,
    TenantActs {
        ask: usize,
    },
    TenantRenews {
        ask: usize,
    },
    HostIsCutOff,
    ClockSteps,
    /// An assignment that took effect late, by mistake.
    LateEnforcement {
        host: usize,
        assignment: Box<agent::Assignment>,
    },
}

#[derive(Debug, Clone)]
enum Message {
    /// `proxies` are the lives of the proxies at its observations.
    Report {
        host: usize,
        life: u64,
        round: u64,
        report: Box<AgentReport>,
        proxies: Vec<u64>,
    },
    Request {
        ask: usize,
    },
    Ask {
        ask: usize,
    },
    Remove {
        ask: usize,
    },
    Renew {
        ask: usize,
        number: u64,
    },
    AskRenewal {
        ask: usize,
        number: u64,
    },
}

#[derive(Debug, Clone)]
enum Reply {
    Admitted { id: u64, server: String },
    Refused,
    Standing { id: u64, standing: Standing },
    Removed,
    Renewal { number: u64, answer: RenewalReply },
    Nothing,
}

#[derive(Debug, Clone, Copy)]
enum RenewalReply {
    /// Renewed by the event of this position.
    Renewed {
        seq: u64,
    },
    Kept,
    /// Position of the latest renewal, and whether all hosts are known to enforce it.
    Standing {
        renewed_by: Option<u64>,
        is_enforced: bool,
        is_renewing: bool,
    },
}

/// A tenant with one workload.
#[derive(Debug)]
struct Ask {
    request: WorkloadRequest,
    phase: AskPhase,
    /// Number of renewals that were asked for.
    renewals: u64,
    renewing: Option<renewals::Renewing>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum AskPhase {
    Requesting,
    Waiting { id: u64 },
    Using { id: u64, until: u64 },
    Removing,
    Ended,
}

struct World {
    now: u64,
    dice: StdRng,
    /// Choices of traffic, which change no other.
    traffic_dice: StdRng,
    queue: BTreeMap<(u64, u64), Happening>,
    number: u64,
    controller: Option<Controller>,
    /// The durable history.
    history: Vec<RecordedEvent>,
    wall_ns: u64,
    runs: u64,
    hosts: Vec<SimulatedHost>,
    asks: Vec<Ask>,
    servers_of_asks: BTreeMap<u64, String>,
    /// Identities that tenants were told.
    acknowledged: BTreeSet<u64>,
    tickets: BTreeMap<usize, Ticket>,
    judge: Judge,
    /// Requests that the running controller was told of, by server.
    told: BTreeMap<String, ToldRequests>,
    /// Burst curves that the running controller was told of, by server.
    told_curves: BTreeMap<String, ToldCurves>,
    mistake: Option<Mistake>,
    is_logged: bool,
    report: WorldReport,
}

/// Plays the world of a seed, with a mistake if there is one.
pub fn play(seed: u64, mistake: Option<Mistake>, is_logged: bool) -> WorldReport {
    let mut world = World::new(seed, mistake, is_logged);
    let outcome = world.run();
    let mut report = world.report;
    report.violation = outcome.err();
    if is_logged {
        report.log.extend(world.history.iter().map(summary));
        for host in &world.hosts {
            let servers = host.enforced.iter().flat_map(|assignment| &assignment.servers);
            for part in servers {
                let names: Vec<&str> = part.policy.workloads.iter().map(|it| it.name.as_str()).collect();
                report.log.push(format!("{} enforces {}: {names:?}", host.name, part.server));
            }
        }
    }
    report.simulated_ns = world.now;
    report.events = world.history.len() as u64;
    report.checks = world.judge.checks;
    report
}

fn servers_on(host: &str) -> BTreeSet<String> {
    SERVERS.iter().filter(|(_, of)| *of == host).map(|(name, _)| (*name).to_owned()).collect()
}

/// An event in a line.
fn summary(recorded: &RecordedEvent) -> String {
    let change = |change: &ServerChange| {
        let names: Vec<&str> =
            change.policy.workloads.iter().map(|workload| workload.name.as_str()).collect();
        format!("{} {names:?} by {:?}", change.server, change.order)
    };
    let text = match &recorded.event {
        Event::WorkloadAdmitted(admission) => {
            format!("admitted {}: {}", admission.request.full_name(), change(&admission.change))
        }
        Event::WorkloadRemoved { name, change: removal, .. } => {
            format!("removed {name}: {}", change(removal))
        }
        Event::WorkloadRefused { request, reason } => format!("refused {}: {reason}", request.full_name()),
        Event::Refused { host, epoch, changes, .. } => {
            let taken = |it: &Withdrawal| {
                format!(
                    "{} without {:?}, instead {:?}",
                    it.server,
                    it.workloads,
                    it.instead.as_ref().map(change)
                )
            };
            format!("{host} refuses {epoch}: {:?}", changes.iter().map(taken).collect::<Vec<_>>())
        }
        Event::Applied { host, epoch } => format!("{host} applied {epoch}"),
        Event::Regressed { host, epoch } => format!("{host} regressed to {epoch}"),
        Event::WorkloadRenewed(renewal) => format!(
            "renewed {}, gives back {}: {}; {}",
            renewal.request.full_name(),
            renewal.gives_back,
            renewal.reason,
            change(&renewal.change)
        ),
        Event::RenewalRefused { request, reason } => format!("kept {}: {reason}", request.full_name()),
        _ => "another event".to_owned(),
    };
    format!("{:>4} {text}", recorded.seq)
}

impl World {
    fn new(seed: u64, mistake: Option<Mistake>, is_logged: bool) -> Self {
        let mut dice = StdRng::seed_from_u64(seed);
        let is_network_enforced = dice.random_bool(0.7);
        let hosts = HOSTS.map(|name| SimulatedHost {
            name: name.to_owned(),
            servers: servers_on(name),
            agent: None,
            step: None,
            disk: AgentMemory::default(),
            enforced: None,
            links: None,
            life: 0,
            round: 0,
            cut_off_until: 0,
            proxies: servers_on(name).into_iter().map(|server| (server, SimulatedProxy::default())).collect(),
        });
        let mut world = Self {
            now: 0,
            dice,
            traffic_dice: StdRng::seed_from_u64(seed.wrapping_add(1 << 32)),
            queue: BTreeMap::new(),
            number: 0,
            controller: None,
            history: Vec::new(),
            wall_ns: 1_000 * S,
            runs: 0,
            hosts: hosts.into(),
            asks: Vec::new(),
            servers_of_asks: BTreeMap::new(),
            acknowledged: BTreeSet::new(),
            tickets: BTreeMap::new(),
            judge: Judge {
                server_host: SERVERS
                    .iter()
                    .map(|(name, host)| ((*name).to_owned(), (*host).to_owned()))
                    .collect(),
                is_network_enforced,
                ..Judge::default()
            },
            told: BTreeMap::new(),
            told_curves: BTreeMap::new(),
            mistake,
            is_logged,
            report: WorldReport { seed, ..WorldReport::default() },
        };
        world.found(is_network_enforced);
        for host in 0..HOSTS.len() {
            world.after(1, Happening::HostStarts { host });
        }
        for ask in 0..world.dice.random_range(8..24) {
            world.new_ask(ask);
            let at = world.dice.random_range(0..FAULTS_END_NS * 3 / 4);
            world.after(at, Happening::TenantActs { ask });
        }
        for _ in 0..world.dice.random_range(0..6) {
            let at = world.dice.random_range(0..FAULTS_END_NS - 6 * S);
            world.after(at, Happening::HostIsCutOff);
            let at = world.dice.random_range(0..FAULTS_END_NS);
            world.after(at, Happening::ClockSteps);
        }
        world
    }

    fn found(&mut self, is_network_enforced: bool) {
        let classes = ClassesDescription {
            safety_margin: MARGIN,
            classes: vec![ClassDescription { class: class(), profile: PROFILE.to_owned() }],
        };
        let place = |(server, host): &(&str, &str)| ServerPlace {
            server: (*server).to_owned(),
            class: CLASS.to_owned(),
            host: (*host).to_owned(),
        };
        let hosts = HostsDescription {
            text: String::new(),
            hosts: HOSTS.iter().map(ToString::to_string).collect(),
            servers: SERVERS.iter().map(place).collect(),
            network: if is_network_enforced {
                NetworkEnforcement::Agents
            } else {
                NetworkEnforcement::Assumed
            },
        };
        let mut controller = Controller::new(0);
        for event in [
            Event::Founded { cluster: "simulated".to_owned() },
            Event::ClassesDescribed(classes),
            Event::HostsDescribed(hosts),
        ] {
            let recorded = self.recorded(event);
            controller.apply(&recorded).expect("the beginning of a history");
            self.history.push(recorded);
        }
        self.controller = Some(controller);
    }

    fn new_ask(&mut self, number: usize) {
        let host = HOSTS[self.dice.random_range(2..HOSTS.len())];
        let slo = SLOS[self.dice.random_range(0..SLOS.len())].parse().expect("an SLO");
        let footprint = FOOTPRINTS[self.dice.random_range(0..FOOTPRINTS.len())].clone();
        let name = format!("w{number}");
        let full = full_name("t", &name);
        self.judge.traffic.insert(full.clone(), KIND.workload(&full, slo, &footprint));
        self.judge.client_host.insert(full, host.to_owned());
        let client = ClientPlace {
            host: Some(host.to_owned()),
            address: vec![format!("10.0.0.{number}")],
            export: None,
        };
        let request = WorkloadRequest {
            tenant: "t".to_owned(),
            name,
            slo,
            clients: vec![client],
            key: Some(format!("key-{number}")),
            footprints: BTreeMap::from([(CLASS.to_owned(), footprint)]),
        };
        self.asks.push(Ask { request, phase: AskPhase::Requesting, renewals: 0, renewing: None });
    }

    fn run(&mut self) -> Result<(), String> {
        let end = FAULTS_END_NS + CONVERGENCE_NS;
        while let Some(((at, _), happening)) = self.queue.pop_first() {
            if at > end {
                break;
            }
            self.now = at;
            self.report.happenings += 1;
            if self.is_logged {
                let text = format!("{:>12.6} s  {happening:?}", at as f64 / 1e9);
                self.report.log.push(text.chars().take(400).collect());
            }
            self.happen(happening).map_err(|violation| format!("{:.6} s: {violation}", at as f64 / 1e9))?;
            if at > FAULTS_END_NS && self.is_converged() {
                self.report.converged_ns = at - FAULTS_END_NS;
                return self.check_acknowledged();
            }
        }
        self.now = end;
        Err(format!("convergence: not everything is enforced {} s after the last fault", CONVERGENCE_NS / S))
    }

    fn happen(&mut self, happening: Happening) -> Result<(), String> {
        match happening {
            Happening::ToController(message) => self.controller_handles(message)?,
            Happening::ToHost { host, life, round, answer } => {
                self.host_is_answered(host, life, round, *answer)?;
            }
            Happening::ToTenant { ask, reply } => return self.tenant_reads(ask, reply),
            Happening::StepEnds { host, life } => {
                if self.hosts[host].life == life {
                    return self.step_ends(host);
                }
            }
            Happening::NoAnswer { host, life, round } => {
                if self.awaits_answer(host, life, round) {
                    self.answer_host(host, None);
                }
            }
            Happening::HostStarts { host } => self.host_starts(host)?,
            Happening::ControllerStarts => self.controller_starts()?,
            Happening::TenantActs { ask } => self.tenant_acts(ask),
            Happening::TenantRenews { ask } => self.tenant_renews(ask),
            Happening::HostIsCutOff => {
                let host = self.dice.random_range(0..self.hosts.len());
                self.count(Fault::HostCutOff);
                self.hosts[host].cut_off_until = self.now + self.dice.random_range(S / 10..6 * S);
            }
            Happening::ClockSteps => {
                self.count(Fault::ClockStep);
                self.wall_ns = self.dice.random_range(0..10_000 * S);
            }
            Happening::LateEnforcement { host, assignment } => {
                self.hosts[host].take(&assignment);
                return self.judge_now();
            }
        }
        Ok(())
    }

    fn after(&mut self, delay: u64, happening: Happening) {
        self.number += 1;
        self.queue.insert((self.now + delay, self.number), happening);
    }

    fn has_faults(&self) -> bool {
        self.now < FAULTS_END_NS
    }

    fn fails(&mut self, probability: f64) -> bool {
        self.has_faults() && self.dice.random_bool(probability)
    }

    fn count(&mut self, fault: Fault) {
        *self.report.faults.entry(fault).or_default() += 1;
    }

    /// Sends a message to or from a host, or a tenant.
    #[expect(clippy::needless_pass_by_value, reason = "what is sent is made for it")]
    fn send(&mut self, host: Option<usize>, happening: Happening) {
        let is_cut_off = host.is_some_and(|host| self.hosts[host].cut_off_until > self.now);
        if is_cut_off || self.fails(0.04) {
            self.count(Fault::MessageLost);
            return;
        }
        let copies = if self.fails(0.04) { 2 } else { 1 };
        if copies == 2 {
            self.count(Fault::MessageTwice);
        }
        for _ in 0..copies {
            let mut delay = self.dice.random_range(MS / 10..20 * MS);
            if self.fails(0.05) {
                self.count(Fault::MessageLate);
                delay = self.dice.random_range(20 * MS..8 * S);
            }
            self.after(delay, happening.clone());
        }
    }

    fn judge_now(&mut self) -> Result<(), String> {
        let mut storage = BTreeMap::new();
        let mut links = BTreeMap::new();
        for host in &self.hosts {
            storage.extend(host.enforced.clone().map(|assignment| (host.name.clone(), assignment)));
            links.extend(host.links.clone().map(|assignment| (host.name.clone(), assignment)));
        }
        self.judge.check(&InForce { storage, links }).map_err(|violation| format!("promise: {violation}"))
    }

    /// True if all hosts enforce their assignments, and everything that is admitted is enforced.
    fn is_converged(&self) -> bool {
        let Some(controller) = &self.controller else { return false };
        let state = controller.state();
        let is_quiet = |ask: &Ask| matches!(ask.phase, AskPhase::Using { .. } | AskPhase::Ended);
        self.asks.iter().all(|ask| is_quiet(ask) && ask.renewing.is_none())
            && state.servers().all(|server| server.is_settled)
            && state.workloads().all(|(id, _)| state.standing(id) == Standing::Enforced)
            && self.hosts.iter().all(|host| {
                let wanted = state.assignment(&host.name).map(|assignment| assignment.servers);
                let enforced = host.enforced.as_ref().map(|assignment| assignment.servers.clone());
                let on_links = host.links.as_ref().map(|assignment| assignment.servers.clone());
                let wanted = wanted.unwrap_or_default();
                // An epoch alone enforces nothing.
                enforced.unwrap_or_default() == wanted && on_links.unwrap_or_default() == wanted
            })
    }

    /// Checks that every decision that a tenant was told is in the history.
    fn check_acknowledged(&self) -> Result<(), String> {
        let state = self.controller.as_ref().expect("it runs").state();
        for id in &self.acknowledged {
            if state.workload(*id).is_none() {
                return Err(format!("history: the admission of workload {id} was acknowledged, and is lost"));
            }
        }
        for (ask, id) in self.asks.iter().filter_map(|ask| match ask.phase {
            AskPhase::Using { id, .. } => Some((ask, id)),
            _ => None,
        }) {
            if state.standing(id) != Standing::Enforced {
                return Err(format!(
                    "history: {} was promised and is {:?}",
                    ask.request.name,
                    state.standing(id)
                ));
            }
        }
        Ok(())
    }
}

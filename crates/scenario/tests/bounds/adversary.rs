//! Traffic that tries to break a bound: servers and workloads within their limits, searched by hill climbing for requests
//! that come close to what the analysis promises them.

use arrivals::{DistributionFamily, TimeDistribution};
use discipline::enforce::DeviceAccess;
use model::{
    CircularTrace, Job, PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, RateLimit,
    ServerEnforcement, Stage, StageLimit,
};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::engine::{SimulationEngine, SimulationPlan};
use std::sync::Arc;
use tailwright_scenario::SimulationCase;
use tailwright_scenario::server::{ServerRules, SimulatedWorkload, StorageServer, WorkloadRequests};
use units::{ByteRate, Nanos, Seconds};
use workload::device::StorageProfile;

/// A byte takes a nanosecond on the links.
pub(crate) const BANDWIDTH: f64 = 1e9;
/// How many requests each workload sends.
pub(crate) const REQUESTS: usize = 24;
/// No request arrives later, seconds.
const HORIZON: f64 = 0.6;
/// The period of a trace that is played once, nanoseconds.
pub(crate) const ONCE: u64 = 1 << 50;
/// What rounding to whole nanoseconds may add to a latency, seconds.
const ROUNDING: f64 = 1e-6;

/// Which stages requests pass.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AttackedPath {
    /// The device alone.
    Device,
    /// One link alone.
    Link,
    /// Link, device, link.
    Path,
}

/// A workload within its limits.
#[derive(Debug, Clone)]
struct Member {
    level: u32,
    rate: f64,
    /// Seconds of every stage's capacity.
    burst: f64,
    /// The largest request as a fraction of the burst.
    largest: f64,
    /// The time before each request, nanoseconds, and its size as a fraction of the largest.
    requests: Vec<(u64, f64)>,
}

/// A server with its traffic.
#[derive(Debug, Clone)]
pub(crate) struct Attack {
    route: AttackedPath,
    channels: u32,
    outstanding: u32,
    reserve: u32,
    /// Work of the largest best-effort request, seconds, and the size of those that are sent as a fraction of it.
    best_effort: (f64, f64),
    clients: u32,
    /// The largest packet, seconds.
    packet: f64,
    members: Vec<Member>,
    /// Whether limits on the way out count what overtakes on other channels.
    spares_overtakers: bool,
}

/// The request that came closest to its bound.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Approach {
    /// Its latency ÷ its bound.
    pub(crate) ratio: f64,
    pub(crate) latency: f64,
    pub(crate) bound: f64,
}

impl Attack {
    /// Greedy sources whose bursts come together, a full device and a busy link.
    fn greedy(route: AttackedPath, channels: u32, levels: u32, random: &mut StdRng) -> Self {
        let count = random.random_range(1..6_u32);
        let share = 0.9 / f64::from(count);
        let members = (0..count).map(|member| Member {
            level: if member == 0 { levels - 1 } else { random.random_range(0..levels) },
            rate: random.random_range(0.02..share),
            burst: random.random_range(0.002..0.05),
            largest: random.random_range(0.05..1.0),
            requests: std::iter::once((30_000_000, 1.0)).chain([(0, 1.0); REQUESTS - 1]).collect(),
        });
        let members = members.collect();
        let outstanding = channels + random.random_range(0..3);
        Self {
            route,
            channels,
            outstanding,
            reserve: random.random_range(0..outstanding.min(3)),
            best_effort: (random.random_range(0.001..0.02), 1.0),
            clients: outstanding + 1,
            packet: random.random_range(0.000_01..0.002),
            members,
            spares_overtakers: true,
        }
    }

    /// A workload with a bucket of `burst` seconds that another holds up again and again, so long that the bucket is full
    /// meanwhile and loses tokens. On one link.
    pub(crate) fn held_up(times: usize, burst: f64) -> Self {
        let again = |time| {
            std::iter::once((if time == 0 { 30_000_000 } else { 100_000_000 }, 1.0)).chain([(0, 1.0); 9])
        };
        let above = Member {
            level: 0,
            rate: 0.5,
            burst: 0.05,
            largest: 0.2,
            requests: (0..times).flat_map(again).collect(),
        };
        let held_up = Member {
            level: 1,
            rate: 0.02,
            burst,
            largest: 0.00042 / burst.max(0.00042),
            requests: std::iter::once((30_000_000, 1.0)).chain([(0, 1.0); 2 * REQUESTS]).collect(),
        };
        Self {
            route: AttackedPath::Link,
            channels: 1,
            outstanding: 1,
            reserve: 0,
            best_effort: (0.002, 1.0),
            clients: 1,
            packet: 0.000_01,
            members: vec![above, held_up],
            spares_overtakers: true,
        }
    }

    /// The same attack with one thing changed.
    fn changed(&self, levels: u32, random: &mut StdRng) -> Self {
        let mut other = self.clone();
        let pick = random.random_range(0..other.members.len());
        let member = &mut other.members[pick];
        match random.random_range(0..12) {
            0 => member.level = random.random_range(0..levels),
            1 => member.rate = (member.rate * random.random_range(0.7..1.4)).clamp(0.001, 0.9),
            2 => member.burst = (member.burst * random.random_range(0.6..1.6)).clamp(0.001, 0.1),
            3 => member.largest = (member.largest * random.random_range(0.5..1.5)).clamp(0.02, 1.0),
            4 | 5 => {
                let at = random.random_range(0..REQUESTS);
                member.requests[at].1 = random.random_range(0.05..=1.0);
            }
            6 | 7 => {
                let at = random.random_range(0..REQUESTS);
                member.requests[at].0 =
                    if at > 0 && random.random_bool(0.5) { 0 } else { random.random_range(0..60_000_000) };
            }
            8 => other.best_effort.1 = random.random_range(0.2..=1.0),
            9 => {
                other.best_effort.0 =
                    (other.best_effort.0 * random.random_range(0.5..1.5)).clamp(0.002, 0.03);
            }
            10 => {
                other.outstanding = other.channels + random.random_range(0..=other.channels.max(2));
                other.reserve = random.random_range(0..other.outstanding.min(4));
                other.clients = other.outstanding + random.random_range(0..3);
            }
            _ => other.packet = (other.packet * random.random_range(0.5..2.0)).clamp(0.000_01, 0.005),
        }
        other
    }

    fn rates(&self) -> f64 {
        self.members.iter().map(|member| member.rate).sum()
    }

    /// The largest request of a member, seconds.
    fn largest(member: &Member) -> f64 {
        member.burst * member.largest
    }

    /// What the analysis promises a member, from the formula alone.
    fn bound(&self, own: &Member) -> f64 {
        let at_or_above = self.members.iter().filter(|other| other.level <= own.level);
        let bursts: f64 = at_or_above.map(|other| other.burst).sum();
        let above = self.members.iter().filter(|other| other.level < own.level);
        let left = 1.0 - above.map(|other| other.rate).sum::<f64>();
        let largest = self.members.iter().map(Self::largest).fold(0.0, f64::max);
        let (reserve, shared) = (f64::from(self.reserve), f64::from(self.outstanding - self.reserve));
        let begun = shared * self.best_effort.0.max(largest) + reserve * largest;
        let device = (begun + bursts) / left + f64::from(self.channels - 1) * Self::largest(own);
        // HTB serves a level by turns: what comes to it after a request is sent beside it.
        // Tokens that are lost while it is held up are missed as long again.
        let link = |is_out| {
            let held_up = self.hold_up(own, is_out);
            held_up + held_up.max(self.link_burst(own, is_out) / self.left_by_others(own))
        };
        match self.route {
            AttackedPath::Device => device,
            AttackedPath::Link => link(false),
            AttackedPath::Path => link(false) + device + link(true),
        }
    }

    /// What a link's bucket of a member holds, seconds. On the way out it holds in addition what may overtake a request of
    /// the member on other channels of the device, so that a request never lacks the tokens of those that overtook it.
    fn link_burst(&self, member: &Member, is_out: bool) -> f64 {
        let overtakes = if is_out { f64::from(self.channels - 1) * Self::largest(member) } else { 0.0 };
        member.burst
            + if self.route == AttackedPath::Path && self.spares_overtakers { overtakes } else { 0.0 }
    }

    /// What others of the same level and above leave of a link, as a fraction.
    fn left_by_others(&self, own: &Member) -> f64 {
        1.0 - self.others(own).map(|other| other.rate).sum::<f64>()
    }

    /// The members of the same level and above but this one.
    fn others<'a>(&'a self, own: &'a Member) -> impl Iterator<Item = &'a Member> {
        self.members.iter().filter(|other| !std::ptr::eq(*other, own) && other.level <= own.level)
    }

    /// How long others may keep a link from a member, seconds.
    fn hold_up(&self, own: &Member, is_out: bool) -> f64 {
        let bursts: f64 = self.others(own).map(|other| self.link_burst(other, is_out)).sum();
        (self.packet + bursts) / self.left_by_others(own)
    }

    /// The requests of a member at the earliest instants that its limits allow.
    fn jobs(&self, member: &Member) -> Vec<Job> {
        let (mut now, mut tokens) = (0.0_f64, member.burst);
        let mut jobs = Vec::new();
        for (gap, size) in &member.requests {
            let work = Self::largest(member) * size;
            let gap = *gap as f64 / 1e9;
            let waits = gap.max((work - tokens) / member.rate + 2e-9);
            tokens = (tokens + member.rate * waits).min(member.burst) - work;
            now += waits;
            if now > HORIZON && !jobs.is_empty() {
                break;
            }
            let time = nanoseconds((work * 1e9).floor().max(1.0));
            jobs.push(Job { arrival: nanoseconds((now * 1e9).ceil()), work: self.work(time) });
        }
        jobs
    }

    fn work(&self, time: Nanos) -> PerStage<Nanos> {
        PerStage::from_fn(|stage| match (self.route, stage) {
            (AttackedPath::Path, _)
            | (AttackedPath::Device, Stage::Storage)
            | (AttackedPath::Link, Stage::NetworkIn) => time,
            _ => Nanos::ZERO,
        })
    }

    fn policy(&self) -> Policy {
        let placed = |(index, member): (usize, &Member)| {
            let limit = |stage| {
                let burst = match stage {
                    Stage::NetworkOut => self.link_burst(member, true),
                    Stage::NetworkIn | Stage::Storage => member.burst,
                };
                StageLimit::new(stage, RateLimit { rate: member.rate, burst }, BANDWIDTH)
            };
            let placement = PolicyPlacement {
                server: "s".into(),
                priority: PerStage::from_fn(|_| member.level),
                bound_s: None,
                limits: Stage::ALL.map(limit).to_vec(),
            };
            let slo = "99% < 1000s".parse().expect("an SLO");
            PolicyWorkload::admitted(format!("w{index}"), slo, placement)
                .with_largest_request(Some(Self::largest(member)))
        };
        let server = PolicyServer {
            name: "s".into(),
            class: "s".into(),
            network_bytes_per_s: BANDWIDTH,
            storage_profile: String::new(),
            enforcement: Some(ServerEnforcement {
                channels: self.channels,
                outstanding: self.outstanding,
                beside: (self.outstanding / 2).max(self.channels - 1),
                reserve: self.reserve,
                best_effort_request_s: self.best_effort.0,
                packet_bytes: self.packet * BANDWIDTH,
                proxy_s: 0.0,
            }),
        };
        let workloads = self.members.iter().enumerate().map(placed).collect();
        Policy::new("attack", vec![server], workloads).expect("a sound policy")
    }

    /// Plays the attack; the request of a member that comes closest to its bound.
    pub(crate) fn play(&self) -> Approach {
        let trace = |member| CircularTrace::new(self.jobs(member), Nanos(ONCE)).expect("jobs in order");
        let size = self.best_effort.0 * self.best_effort.1;
        let played = PlayedTraffic {
            policy: self.policy(),
            traces: self.members.iter().map(trace).collect(),
            channels: self.channels,
            clients: self.clients,
            copy: self.work(nanoseconds(size * 1e9)),
        };
        let bounds: Vec<f64> = self.members.iter().map(|member| self.bound(member)).collect();
        played.closest(&bounds)
    }
}

/// A policy with requests of its workloads w0, w1, … beside best-effort clients.
pub(crate) struct PlayedTraffic {
    pub(crate) policy: Policy,
    /// What each workload sends, once.
    pub(crate) traces: Vec<CircularTrace<Job>>,
    pub(crate) channels: u32,
    /// How many best-effort clients send one request after the other, and the work of each.
    pub(crate) clients: u32,
    pub(crate) copy: PerStage<Nanos>,
}

impl PlayedTraffic {
    fn case(self) -> SimulationCase {
        let profile =
            r#"{"bandwidthTable": [{"requestSize": 4096, "readBandwidth": 1e8, "writeBandwidth": 5e7}]}"#;
        let network = ByteRate::from_bytes_per_sec(BANDWIDTH).expect("a bandwidth");
        let profile = StorageProfile::from_json(profile).expect("a profile");
        let server = StorageServer::new(profile, network, self.channels).expect("a server");
        let last = self.traces.iter().filter_map(|trace| trace.items().last().map(|job| job.arrival.0));
        let mut plan = SimulationPlan::of_requests(1, 0);
        plan.window.span = Some((Nanos::ZERO, Nanos(last.max().unwrap_or(0) + 1)));
        let mut workloads = Vec::new();
        for (index, trace) in self.traces.into_iter().enumerate() {
            let requests = WorkloadRequests::Recorded {
                trace: Arc::new(trace),
                accesses: Arc::new([]),
                begin: Some(Nanos::ZERO),
            };
            workloads.push(simulated(format!("w{index}"), false, requests));
        }
        let zero = DistributionFamily::Constant(Seconds(1e-9));
        let requests = WorkloadRequests::Clients {
            clients: self.clients,
            think: TimeDistribution::new(zero).expect("a time"),
            work: self.copy,
            access: DeviceAccess::read(4096),
        };
        workloads.push(simulated("copy".into(), true, requests));
        let rules = ServerRules::Policy(Box::new(self.policy));
        SimulationCase::storage("attack".into(), server, workloads, &rules, plan).expect("a case")
    }

    /// Plays it; the request of a workload that comes closest to the bound of its workload, seconds.
    pub(crate) fn closest(self, bounds: &[f64]) -> Approach {
        let case = self.case();
        let engine = SimulationEngine::new(&case.network, case.entries(1), 1).expect("an engine");
        let (_, logged) = engine.run_logged(case.plan.window).expect("a run");
        let mut closest = Approach { ratio: 0.0, latency: 0.0, bound: f64::INFINITY };
        // The base latency of the device is added to each request.
        let base = case.server.as_ref().map_or(0.0, |server| server.base_latency().as_secs());
        for request in logged {
            let Some(&bound) = bounds.get(request.class as usize) else { continue };
            let done = request.done.map_or(f64::INFINITY, Nanos::as_secs);
            let latency = done - request.arrival.as_secs() - base;
            if latency / bound > closest.ratio {
                closest = Approach { ratio: latency / bound, latency, bound };
            }
        }
        closest
    }
}

fn simulated(name: String, best_effort: bool, requests: WorkloadRequests) -> SimulatedWorkload {
    SimulatedWorkload { name, slo: None, best_effort, weight: 1, requests }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times of a test are small")]
pub(crate) fn nanoseconds(value: f64) -> Nanos {
    Nanos(value as u64)
}

impl Approach {
    /// Whether the bound was broken, by more than rounding explains.
    pub(crate) fn is_broken(&self) -> bool {
        self.latency > self.bound + ROUNDING
    }
}

/// What attacks a search may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchSpace {
    pub(crate) route: AttackedPath,
    pub(crate) channels: u32,
    pub(crate) levels: u32,
    /// Whether workloads may share a level.
    pub(crate) shares_levels: bool,
    /// Whether limits on the way out count what overtakes on other channels.
    pub(crate) spares_overtakers: bool,
    /// Whether every bucket of a link holds what may come while its workload waits for others.
    pub(crate) keeps_tokens: bool,
}

impl SearchSpace {
    /// Whether an attack keeps what the analysis assumes.
    fn allows(&self, attack: &Attack) -> bool {
        let members = &attack.members;
        let has_shared = members
            .iter()
            .enumerate()
            .any(|(at, member)| members[..at].iter().any(|other| other.level == member.level));
        let keeps =
            |member: &Member| attack.link_burst(member, true) >= member.rate * attack.hold_up(member, true);
        attack.rates() < 0.95
            && (self.shares_levels || !has_shared)
            && (!self.keeps_tokens || attack.route == AttackedPath::Device || members.iter().all(keeps))
    }

    fn start(&self, random: &mut StdRng) -> Attack {
        let greedy = Attack::greedy(self.route, self.channels, self.levels, random);
        Attack { spares_overtakers: self.spares_overtakers, ..greedy }
    }

    /// The attack that came closest within this many steps from each of several starts.
    pub(crate) fn search(&self, starts: u64, steps: usize) -> (Approach, Attack) {
        let mut best: Option<(Approach, Attack)> = None;
        for seed in 0..starts {
            let mut random = StdRng::seed_from_u64(seed);
            let mut attack = self.start(&mut random);
            while !self.allows(&attack) {
                attack = self.start(&mut random);
            }
            let mut reached = attack.play();
            for _ in 0..steps {
                let other = attack.changed(self.levels, &mut random);
                if !self.allows(&other) {
                    continue;
                }
                let found = other.play();
                if found.ratio >= reached.ratio {
                    (reached, attack) = (found, other);
                }
            }
            if best.as_ref().is_none_or(|(approach, _)| reached.ratio > approach.ratio) {
                best = Some((reached, attack));
            }
        }
        best.expect("at least one start")
    }
}

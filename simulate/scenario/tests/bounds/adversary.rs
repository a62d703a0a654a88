//! Traffic that tries to break a bound: servers and workloads within their limits. Hill climbing searches
//! for requests with latencies close to their bounds.

use crate::played::{
    AllowingLimit, Approach, BoundAttack, EnforcedMember, ONCE, PlayedTraffic, Spending, attacked_policy,
    enforcement, nanoseconds,
};
use calculus::{DeviceQueue, EnforcedClass};
use model::{CircularTrace, Job, PerStage, Policy, Stage};
use rand::RngExt as _;
use rand::rngs::StdRng;
use testkit::Climb;
use units::Nanos;

/// Number of requests of each workload.
const REQUESTS: usize = 24;
/// No request arrives later, seconds.
const HORIZON: f64 = 0.6;

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
    /// Work of the largest best-effort request, seconds, and the size of sent ones as a fraction of it.
    best_effort: (f64, f64),
    clients: u32,
    /// The largest packet, seconds.
    packet: f64,
    members: Vec<Member>,
    /// True if limits on the way out include the requests that overtake on other channels.
    spares_overtakers: bool,
}

impl Attack {
    /// Creates greedy sources whose bursts coincide, a full device and a busy link.
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

    /// Returns the bound of a member, computed independently from the formula.
    fn bound(&self, own: &Member) -> f64 {
        let at_or_above = self.members.iter().filter(|other| other.level <= own.level);
        let bursts: f64 = at_or_above.map(|other| other.burst).sum();
        let above = self.members.iter().filter(|other| other.level < own.level);
        let left = 1.0 - above.map(|other| other.rate).sum::<f64>();
        let largest = self.members.iter().map(Self::largest).fold(0.0, f64::max);
        let reserve = f64::from(self.reserve);
        let shared = f64::from(self.outstanding - self.reserve);
        let begun = shared * self.best_effort.0.max(largest) + reserve * largest;
        let device = (begun + bursts) / left + f64::from(self.channels - 1) * Self::largest(own);
        // HTB serves a level by turns: later arrivals at the level are sent beside a request. Tokens lost
        // while it is held up delay it for as long again.
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

    /// Returns the size of a member's bucket at a link, seconds. On the way out it also holds the work
    /// that may overtake a request of the member on other channels of the device, so that a request never
    /// lacks the tokens of those that overtook it.
    fn link_burst(&self, member: &Member, is_out: bool) -> f64 {
        let overtakes = if is_out { f64::from(self.channels - 1) * Self::largest(member) } else { 0.0 };
        member.burst
            + if self.route == AttackedPath::Path && self.spares_overtakers { overtakes } else { 0.0 }
    }

    /// Returns the fraction of a link that others of the same level and above leave.
    fn left_by_others(&self, own: &Member) -> f64 {
        1.0 - self.others(own).map(|other| other.rate).sum::<f64>()
    }

    /// The members of the same level and above but this one.
    fn others<'a>(&'a self, own: &'a Member) -> impl Iterator<Item = &'a Member> {
        self.members.iter().filter(|other| !std::ptr::eq(*other, own) && other.level <= own.level)
    }

    /// Returns the time for which others may keep a link from a member, seconds.
    fn hold_up(&self, own: &Member, is_out: bool) -> f64 {
        let bursts: f64 = self.others(own).map(|other| self.link_burst(other, is_out)).sum();
        (self.packet + bursts) / self.left_by_others(own)
    }

    /// The requests of a member at the earliest instants that its limits allow.
    fn jobs(&self, member: &Member) -> Vec<Job> {
        let mut now = 0.0_f64;
        let mut tokens = member.burst;
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
        let enforced = |member: &Member| EnforcedMember {
            level: member.level,
            limits: PerStage::from_fn(|stage| {
                let allowance = match stage {
                    Stage::NetworkOut => self.link_burst(member, true) - member.burst,
                    Stage::NetworkIn | Stage::Storage => 0.0,
                };
                vec![AllowingLimit { rate: member.rate, burst: member.burst, allowance }]
            }),
            largest: Self::largest(member),
        };
        let Self { channels, outstanding, reserve, packet, .. } = *self;
        let class = EnforcedClass {
            channels,
            best_effort_request: self.best_effort.0,
            packet,
            link_burst: 0.0,
            proxy: 0.0,
            densest_answer: 0.0,
            levels_max: 7,
        };
        let enforcement = enforcement(class, DeviceQueue { channels, outstanding, reserve });
        attacked_policy(
            Some(enforcement),
            &self.members.iter().map(enforced).collect::<Vec<_>>(),
            Spending::Limits,
        )
    }
}

impl BoundAttack for Attack {
    fn play(&self) -> Approach {
        let trace = |member| CircularTrace::new(self.jobs(member), Nanos(ONCE)).expect("jobs in order");
        let size = self.best_effort.0 * self.best_effort.1;
        let played = PlayedTraffic {
            policy: self.policy(),
            traces: self.members.iter().map(trace).collect(),
            channels: self.channels,
            base: Nanos::ZERO,
            clients: self.clients,
            copy: self.work(nanoseconds(size * 1e9)),
            from: Nanos::ZERO,
        };
        let bounds: Vec<f64> = self.members.iter().map(|member| self.bound(member)).collect();
        played.closest(&bounds)
    }
}

/// Attacks that a search may use.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SearchSpace {
    pub(crate) route: AttackedPath,
    pub(crate) channels: u32,
    pub(crate) levels: u32,
    /// True if workloads may share a level.
    pub(crate) shares_levels: bool,
    /// True if limits on the way out include the requests that overtake on other channels.
    pub(crate) spares_overtakers: bool,
    /// True if every bucket of a link holds the arrivals during its workload's wait for others.
    pub(crate) keeps_tokens: bool,
}

impl SearchSpace {
    /// Returns true if an attack keeps the assumptions of the analysis.
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
        let start = |random: &mut StdRng| {
            let mut attack = self.start(random);
            while !self.allows(&attack) {
                attack = self.start(random);
            }
            Some(attack)
        };
        let change = |attack: &Attack, random: &mut StdRng| {
            Some(attack.changed(self.levels, random)).filter(|other| self.allows(other))
        };
        Attack::search(Climb { starts, steps }, start, change)
    }
}

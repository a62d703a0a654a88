//! A search for violations of a policy's bounds by control requests. Some workloads keep their limits with
//! data and control requests together, one may exceed its limits with control requests, and unknown clients
//! send both as fast as they can. The rules and the queue are the proxy's, time is simulated, and the bound
//! is the theorem of `calculus::device`, computed here from the limits alone. The search climbs towards
//! requests that come close to it.

use super::cost::control_request_ns;
use super::flows::{CONTROL_FLOW, UNKNOWN_FLOW, WorkloadNames, data_flow};
use super::rules::ProxyRules;
use crate::deployment::Deployment;
use calculus::DeviceQueue;
use discipline::enforce::{
    ArrivingRequest, BEST_EFFORT, DeviceOperation, DispatchedRequest, EnforcementRules, Enforcer,
};
use model::{
    PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, RateLimit, ServerEnforcement, Stage,
    StageLimit,
};
use rand::RngExt as _;
use rand::rngs::StdRng;
use std::collections::{BTreeMap, VecDeque};
use testkit::Climb;
use units::Nanos;
use workload::device::StorageProfile;

/// 1 ms for 4 KiB, and in proportion for other sizes.
const PROFILE: &str =
    r#"{ "bandwidthTable": [{ "requestSize": 4096, "readBandwidth": 4096000, "writeBandwidth": 4096000 }] }"#;
/// Device time of a control request by the profile, seconds: 1 ms, rounded outward.
const CONTROL_S: f64 = 0.001_000_001;
/// Number of requests that each workload sends.
const REQUESTS: usize = 30;
/// End of the traffic, nanoseconds.
const END: u64 = 1_500_000_000;
/// Maximum increase of a latency by rounding to whole nanoseconds, seconds.
const ROUNDING: f64 = 1e-6;

/// A request of a workload: the gap before it in nanoseconds, and its size as a fraction of the largest;
/// `None` for a control request.
type Step = (u64, Option<f64>);

#[derive(Debug, Clone)]
struct ControlMember {
    level: u32,
    rate: f64,
    burst: f64,
    /// Device time of its largest request, seconds.
    largest: f64,
    steps: Vec<Step>,
}

/// A server, its workloads, and the unknown clients that disturb them.
#[derive(Debug, Clone)]
struct ControlAttack {
    queue: DeviceQueue,
    /// Largest best-effort request that the bounds account for, seconds.
    best_effort: f64,
    members: Vec<ControlMember>,
    /// Workload that keeps sending control requests beyond its limits.
    over: Option<usize>,
    /// Data and control requests that unknown clients keep waiting or at the device.
    strangers: [u32; 2],
}

/// Closeness of latencies to their bounds.
#[derive(Debug, Clone, Copy, Default)]
struct ControlApproach {
    /// Largest latency ÷ bound of workloads within their limits.
    ratio: f64,
    latency: f64,
    bound: f64,
    /// Fraction of the device that the rates of higher priorities leave.
    left: f64,
    /// Number of their control requests that were compared.
    control: usize,
    /// Largest latency ÷ bound of the workload beyond its limits.
    over_ratio: f64,
    /// Maximum device time that unknown clients' control requests took before other best effort, in excess of
    /// a hundredth of the elapsed time, seconds.
    stranger_control: f64,
}

/// Device times of the workloads' largest requests relative to control requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LargestRequests {
    Longer,
    /// Every request that the bounds account for is shorter than a control request, which then has no level.
    Shorter,
}

fn member(random: &mut StdRng, share: f64, requests: LargestRequests) -> ControlMember {
    let largest = CONTROL_S
        * match requests {
            LargestRequests::Longer => random.random_range(1.0..6.0),
            LargestRequests::Shorter => random.random_range(0.1..0.9),
        };
    let steps = (0..REQUESTS).map(|_| (0, random.random_bool(0.6).then_some(1.0))).collect();
    let burst = (largest + CONTROL_S) * random.random_range(1.0..4.0);
    ControlMember {
        level: random.random_range(0..4),
        rate: random.random_range(0.02..share),
        burst,
        largest,
        steps,
    }
}

impl ControlAttack {
    fn start(channels: u32, requests: LargestRequests, random: &mut StdRng) -> Self {
        let count = random.random_range(1..5_usize);
        let members = (0..count).map(|_| member(random, 0.9 / count as f64, requests)).collect();
        let outstanding = channels + random.random_range(0..3);
        let reserve = random.random_range(0..outstanding.min(3));
        Self {
            queue: DeviceQueue { channels, outstanding, reserve },
            best_effort: CONTROL_S
                * match requests {
                    LargestRequests::Longer => random.random_range(0.1..8.0),
                    LargestRequests::Shorter => random.random_range(0.1..0.9),
                },
            members,
            over: random.random_bool(0.5).then(|| random.random_range(0..count)),
            strangers: [outstanding + 1, outstanding + 1],
        }
    }

    fn changed(&self, random: &mut StdRng) -> Self {
        let mut other = self.clone();
        let pick = random.random_range(0..other.members.len());
        let member = &mut other.members[pick];
        let step = &mut member.steps[random.random_range(0..REQUESTS)];
        match random.random_range(0..8) {
            0 | 1 => step.0 = if random.random_bool(0.5) { 0 } else { random.random_range(0..40_000_000) },
            2 | 3 => step.1 = random.random_bool(0.6).then(|| random.random_range(0.1..=1.0)),
            4 => member.level = random.random_range(0..4),
            5 => member.burst = (member.largest + CONTROL_S) * random.random_range(1.0..4.0),
            6 => other.over = random.random_bool(0.5).then_some(pick),
            _ => other.strangers = [0, 1].map(|_| random.random_range(0..=2 * self.queue.outstanding)),
        }
        other
    }

    /// Returns the fraction of the device that the rates of higher priorities leave.
    fn left(&self, own: &ControlMember) -> f64 {
        let above = self.members.iter().filter(|other| other.level < own.level);
        1.0 - above.map(|other| other.rate).sum::<f64>()
    }

    fn bound(&self, own: &ControlMember) -> f64 {
        let largest = self.members.iter().map(|member| member.largest).fold(0.0, f64::max);
        let begun = self.queue.blocking(self.best_effort, largest);
        let at_or_above = self.members.iter().filter(|other| other.level <= own.level);
        let bursts: f64 = at_or_above.map(|other| other.burst).sum();
        (begun + bursts) / self.left(own) + self.queue.own_service(own.largest)
    }

    fn policy(&self) -> Policy {
        let placed = |(index, member): (usize, &ControlMember)| {
            let limit = RateLimit { rate: member.rate, burst: member.burst };
            let placement = PolicyPlacement {
                server: "ssd".into(),
                priority: PerStage::from_fn(|_| member.level),
                bound_s: None,
                limits: vec![StageLimit::new(Stage::Storage, limit, 1e9)],
            };
            PolicyWorkload::admitted(format!("w{index}"), "99% < 1000s".parse().expect("an SLO"), placement)
                .with_largest_request(Some(member.largest))
        };
        let server = PolicyServer {
            name: "ssd".into(),
            class: "ssd".into(),
            network_bytes_per_s: 1e9,
            storage_profile: String::new(),
            storage_profile_hash: None,
            enforcement: Some(ServerEnforcement {
                channels: self.queue.channels,
                outstanding: self.queue.outstanding,
                beside: self.queue.beside(),
                reserve: self.queue.reserve,
                best_effort_request_s: self.best_effort,
                packet_bytes: 0.0,
                link_burst_s: None,
                proxy_s: 0.0,
            }),
        };
        let workloads = self.members.iter().enumerate().map(placed).collect();
        Policy::new("attack", vec![server], workloads).expect("a sound policy")
    }

    /// Returns the proxy's rules for the policy, and the flow of each member.
    fn rules(&self) -> (EnforcementRules, Vec<u32>) {
        let front = [("nbd", "127.0.0.1:0".parse().unwrap(), "127.0.0.1:1".parse().unwrap())];
        let hosts = testkit::one_server_hosts(&front, "", "");
        let deployment = Deployment::parse(&hosts).expect("hosts of a test");
        let profile = StorageProfile::from_json(PROFILE).expect("a profile");
        assert_eq!(control_request_ns(&profile), nanoseconds(CONTROL_S));
        let mut names = WorkloadNames::default();
        let rules = ProxyRules::new(Some(&self.policy()), &deployment, "ssd", &profile, &mut names)
            .unwrap_or_else(|error| panic!("{error}"));
        let flows = (0..self.members.len()).map(|index| names.flow(&format!("w{index}"))).collect();
        (rules.rules, flows)
    }

    /// Returns a member's requests at the earliest instants that its limits allow: instant, cost, and true
    /// for control.
    fn requests(member: &ControlMember) -> Vec<(u64, u64, bool)> {
        let mut now = 0.0;
        let mut tokens = member.burst;
        let mut requests = Vec::new();
        for &(gap, size) in &member.steps {
            let work = size.map_or(CONTROL_S, |size| member.largest * size);
            // A control request larger than every request with a level takes no tokens.
            let taken = if work > member.largest { 0.0 } else { work };
            let waits = (gap as f64 / 1e9).max((taken - tokens) / member.rate + 2e-9);
            tokens = (tokens + member.rate * waits).min(member.burst) - taken;
            now += waits;
            requests.push((nanoseconds(now) + 1, nanoseconds(work).max(1), size.is_none()));
        }
        requests
    }

    fn play(&self) -> ControlApproach {
        let (rules, flows) = self.rules();
        let mut server = ControlServer::new(&rules, self.queue.channels);
        for (member, &flow) in self.members.iter().zip(&flows) {
            for (at, cost, is_control) in Self::requests(member) {
                let flow = if is_control { flow | CONTROL_FLOW } else { flow };
                server.arrivals.entry(at).or_default().push((flow, cost, false));
            }
        }
        let control = nanoseconds(CONTROL_S);
        let data = self.strangers[0];
        let best_effort = nanoseconds(self.best_effort);
        let first = server.arrivals.entry(0).or_default();
        first.extend((0..data).map(|_| (UNKNOWN_FLOW, best_effort, true)));
        first.extend((0..self.strangers[1]).map(|_| (UNKNOWN_FLOW | CONTROL_FLOW, control, true)));
        if let Some(over) = self.over {
            let again = (flows[over] | CONTROL_FLOW, control, true);
            first.extend(std::iter::repeat_n(again, 2 * self.queue.outstanding as usize + 2));
        }
        server.run();
        self.judge(&server.served, &flows)
    }

    fn judge(&self, served: &[ServedControl], flows: &[u32]) -> ControlApproach {
        let mut found = ControlApproach::default();
        let mut stranger_ns = 0;
        for request in served {
            if request.flow == (UNKNOWN_FLOW | CONTROL_FLOW) && request.level < BEST_EFFORT {
                stranger_ns += request.cost;
                let more = Nanos(stranger_ns).as_secs() - 0.01 * Nanos(request.done).as_secs();
                found.stranger_control = found.stranger_control.max(more);
            }
            let Some(at) = flows.iter().position(|&flow| flow == data_flow(request.flow)) else { continue };
            let member = &self.members[at];
            let is_control = request.flow & CONTROL_FLOW != 0;
            let bound = self.bound(member);
            let latency = Nanos(request.done - request.arrived).as_secs();
            if self.over == Some(at) {
                found.over_ratio = found.over_ratio.max(latency / bound);
                continue;
            }
            if is_control && CONTROL_S > member.largest {
                continue;
            }
            found.control += usize::from(is_control);
            if latency / bound > found.ratio {
                (found.ratio, found.latency, found.bound) = (latency / bound, latency, bound);
                found.left = self.left(member);
            }
        }
        found
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times of a test are small")]
fn nanoseconds(seconds: f64) -> u64 {
    (seconds * 1e9).round() as u64
}

#[derive(Debug, Clone, Copy)]
struct ServedControl {
    flow: u32,
    level: u32,
    cost: u64,
    arrived: u64,
    done: u64,
}

/// The proxy's queue before a device with several channels, in simulated time.
struct ControlServer {
    enforcer: Enforcer,
    channels: u32,
    /// Flow, cost, and true if the request is repeated on completion, by instant of arrival.
    arrivals: BTreeMap<u64, Vec<(u32, u64, bool)>>,
    /// Requests by number: flow, cost, true if repeated, instant of arrival.
    asked: Vec<(u32, u64, bool, u64)>,
    /// Requests at the device that have not begun.
    waiting: VecDeque<DispatchedRequest>,
    /// Requests on a channel, by instant of completion.
    begun: BTreeMap<(u64, u32), DispatchedRequest>,
    served: Vec<ServedControl>,
}

impl ControlServer {
    fn new(rules: &EnforcementRules, channels: u32) -> Self {
        Self {
            enforcer: Enforcer::new(0, rules).expect("sound rules"),
            channels,
            arrivals: BTreeMap::new(),
            asked: Vec::new(),
            waiting: VecDeque::new(),
            begun: BTreeMap::new(),
            served: Vec::new(),
        }
    }

    fn run(&mut self) {
        let mut now = 0;
        loop {
            self.dispatch(now);
            let arrives = self.arrivals.first_key_value().map(|(at, _)| *at);
            let done = self.begun.first_key_value().map(|((at, _), _)| *at);
            let wakes = self.enforcer.wake_at().map(|at| at.max(now + 1));
            let Some(next) = [arrives, done, wakes].into_iter().flatten().min() else { break };
            now = next;
            self.complete(now);
            let arriving = self.arrivals.remove(&now).unwrap_or_default();
            for (flow, cost, again) in arriving {
                self.arrive(now, (flow, cost, again));
            }
        }
    }

    fn arrive(&mut self, now: u64, (flow, cost, again): (u32, u64, bool)) {
        let id = u32::try_from(self.asked.len()).expect("few requests");
        self.asked.push((flow, cost, again, now));
        let operation = DeviceOperation::Read;
        self.enforcer
            .arrive(now, ArrivingRequest { id, flow, operation, cost, bytes: 1, is_estimate: false });
    }

    fn complete(&mut self, now: u64) {
        while let Some(entry) = self.begun.first_entry().filter(|entry| entry.key().0 <= now) {
            let dispatched = entry.remove();
            let (flow, cost, again, arrived) = self.asked[dispatched.id as usize];
            self.served.push(ServedControl { flow, level: dispatched.level, cost, arrived, done: now });
            let charge = self.enforcer.complete(dispatched);
            self.enforcer.settle(now, charge, cost);
            if again && now < END {
                self.arrive(now, (flow, cost, again));
            }
        }
    }

    fn dispatch(&mut self, now: u64) {
        while let Some(dispatched) = self.enforcer.dispatch_next(now) {
            self.waiting.push_back(dispatched);
        }
        while self.begun.len() < self.channels as usize
            && let Some(dispatched) = self.waiting.pop_front()
        {
            let takes = self.asked[dispatched.id as usize].1 * u64::from(self.channels);
            self.begun.insert((now + takes, dispatched.id), dispatched);
        }
    }
}

/// Returns the attack that came closest, climbing `steps` steps from each of `starts` starts, with the
/// largest control time of unknown clients and the largest excess beyond limits seen on the way.
fn search(
    channels: u32,
    requests: LargestRequests,
    starts: u64,
    steps: usize,
) -> (ControlApproach, ControlAttack) {
    let mut over_ratio = 0.0_f64;
    let mut stranger_control = 0.0_f64;
    let mut control = 0;
    let play = |attack: &ControlAttack| {
        let found = attack.play();
        over_ratio = over_ratio.max(found.over_ratio);
        stranger_control = stranger_control.max(found.stranger_control);
        control += found.control;
        (found.ratio, found)
    };
    let (approach, attack) = Climb { starts, steps }
        .closest(
            |random| Some(ControlAttack::start(channels, requests, random)),
            |attack, random| Some(attack.changed(random)),
            play,
        )
        .expect("at least one start");
    (ControlApproach { over_ratio, stranger_control, control, ..approach }, attack)
}

#[test]
fn control_requests_break_no_bound_but_that_of_who_sends_too_many() {
    for channels in [1, 2, 4, 8] {
        let (found, attack) = search(channels, LargestRequests::Longer, 12, 60);
        assert!(found.latency <= found.bound + ROUNDING, "{channels} channels: {found:?}\n{attack:#?}");
        // A search that comes near no bound, or compares no control requests, would prove nothing.
        assert!(found.ratio > 0.5 && found.control > 1000, "{channels} channels: {found:?}");
        assert!(found.over_ratio > 1.0, "who exceeds its limits is late: {channels} channels: {found:?}");
        assert!(found.stranger_control <= 4.0 * CONTROL_S + ROUNDING, "{channels} channels: {found:?}");
        assert!(found.stranger_control > 2.0 * CONTROL_S, "{channels} channels: {found:?}");
    }
}

/// They have no level then, and are best effort that bounds do not account for: one at a time, on an idle
/// device.
#[test]
fn control_requests_longer_than_all_that_is_counted_are_no_more_than_one_at_a_time() {
    for channels in [1, 2, 4, 8] {
        let (found, attack) = search(channels, LargestRequests::Shorter, 12, 60);
        let allowed = found.bound + f64::from(channels) * CONTROL_S / found.left;
        assert!(found.latency <= allowed + ROUNDING, "{channels} channels: {found:?}\n{attack:#?}");
    }
}

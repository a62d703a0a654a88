//! A storage server under a policy, in plain code: two links that send packets and a device behind a queue, event by event,
//! from the JSON of the policy alone. It shares nothing with the simulator, which it judges, nor with the analysis.

use serde_json::Value;
use std::collections::VecDeque;

/// The level of best effort, below all others.
const BEST_EFFORT: u64 = u64::MAX;
/// The stages by the names that a policy has for them.
const STAGES: [&str; 3] = ["network-in", "storage", "network-out"];
/// Error of tokens by rounding, nanoseconds.
const ROUNDING: f64 = 1e-3;

/// A token bucket; its unit is a nanosecond of the stage's capacity.
#[derive(Debug, Clone)]
pub(crate) struct Bucket {
    rate: f64,
    burst: f64,
    tokens: f64,
    filled: u64,
}

impl Bucket {
    pub(crate) fn fill(&mut self, now: u64) {
        self.tokens = (self.tokens + self.rate * (now - self.filled) as f64).min(self.burst);
        self.filled = now;
    }

    /// Takes tokens, into debt if there are fewer.
    pub(crate) fn take(&mut self, tokens: u64) {
        self.tokens -= tokens as f64;
    }

    /// When it holds `needed` tokens if nothing is taken.
    pub(crate) fn due(&self, needed: f64) -> u64 {
        let lacks = needed.min(self.burst) - self.tokens - ROUNDING;
        if lacks <= 0.0 { self.filled } else { self.filled + whole_up(lacks / self.rate).max(1) }
    }
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times of a test are small")]
fn whole_up(value: f64) -> u64 {
    value.ceil() as u64
}

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "times of a test are small")]
fn whole_down(value: f64) -> u64 {
    value.floor() as u64
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

/// The buckets of a workload at a stage: its limits alone, or with what enforcers allow beyond them.
pub(crate) fn buckets(workload: &Value, stage: usize, with_allowance: bool) -> Vec<Bucket> {
    let limits = workload["limits"].as_array().expect("a policy has limits");
    let at_stage = limits.iter().filter(|limit| limit["stage"] == STAGES[stage]);
    let bucket = |limit: &Value| {
        let allowance = if with_allowance { number(&limit["allowance"]) } else { 0.0 };
        let mut rate = number(&limit["rate"]);
        let mut burst = (number(&limit["burst"]) + allowance) * 1e9;
        if with_allowance {
            // Enforcers count whole units, rounded up.
            (rate, burst) = ((rate * 1e9).ceil() / 1e9, burst.ceil());
        }
        let burst = burst.max(1.0);
        Bucket { rate, burst, tokens: burst, filled: 0 }
    };
    at_stage.map(bucket).collect()
}

pub(crate) fn workload<'a>(policy: &'a Value, name: &str) -> &'a Value {
    let mut workloads = policy["workloads"].as_array().expect("a policy has workloads").iter();
    workloads.find(|workload| workload["name"] == name).expect("the policy has the workload")
}

pub(crate) fn level(workload: &Value, stage: usize) -> u64 {
    let by_stage = workload["priority_by_stage"].as_array();
    by_stage.map_or(&workload["priority"], |levels| &levels[stage]).as_u64().expect("a priority")
}

/// A request: when it arrives, and its work at the three stages, nanoseconds of their capacity.
pub(crate) type Asked = (u64, [u64; 3]);

/// Returns the maximum work of one request that all limits of a workload hold at each stage.
pub(crate) fn most_within_limits(policy: &Value, name: &str) -> [u64; 3] {
    let workload = workload(policy, name);
    [0, 1, 2].map(|stage| {
        let bursts = buckets(workload, stage, false).into_iter().map(|bucket| whole_down(bucket.burst));
        bursts.min().unwrap_or(u64::MAX)
    })
}

/// Delays requests until they are within all limits of a workload, as a reader of the policy counts them: in order of arrival.
pub(crate) fn within_limits(policy: &Value, name: &str, asked: &[Asked]) -> Vec<Asked> {
    let workload = workload(policy, name);
    let mut stages: Vec<Vec<Bucket>> = (0..3).map(|stage| buckets(workload, stage, false)).collect();
    let mut now = 0;
    let mut kept = Vec::new();
    for &(arrival, work) in asked {
        now = arrival.max(now);
        for (stage, work) in stages.iter_mut().zip(work) {
            stage.iter_mut().for_each(|bucket| bucket.fill(now));
            now = stage.iter().map(|bucket| bucket.due(work as f64 + 2.0)).max().unwrap_or(now).max(now);
        }
        for (stage, work) in stages.iter_mut().zip(work) {
            for bucket in stage {
                bucket.fill(now);
                bucket.take(work);
            }
        }
        kept.push((now, work));
    }
    kept
}

/// A class of traffic on a link.
struct LinkClass {
    level: u64,
    buckets: Vec<Bucket>,
    /// Requests and what of each is not sent.
    queue: VecDeque<(usize, u64)>,
    deficit: i128,
    turn: u64,
}

struct Link {
    classes: Vec<LinkClass>,
    packet: u64,
    turns: u64,
    /// Sending class, its work, and the time at which it is done.
    sending: Option<(usize, u64, u64)>,
}

impl Link {
    fn send(&mut self, now: u64) {
        if self.sending.is_some() {
            return;
        }
        for class in &mut self.classes {
            class.buckets.iter_mut().for_each(|bucket| bucket.fill(now));
        }
        let mut chosen: Option<usize> = None;
        for (number, class) in self.classes.iter().enumerate() {
            let is_ready =
                !class.queue.is_empty() && class.buckets.iter().all(|bucket| bucket.tokens >= -ROUNDING);
            let rank = (class.level, class.turn);
            if is_ready
                && chosen.is_none_or(|best| rank < (self.classes[best].level, self.classes[best].turn))
            {
                chosen = Some(number);
            }
        }
        let Some(number) = chosen else { return };
        let class = &mut self.classes[number];
        let time = class.queue[0].1.min(self.packet);
        class.buckets.iter_mut().for_each(|bucket| bucket.take(time));
        class.deficit -= i128::from(time);
        if class.deficit < 0 {
            class.deficit += i128::from(self.packet);
            self.turns += 1;
            class.turn = self.turns;
        }
        self.sending = Some((number, time, now + time));
    }

    /// Returns the request whose last packet has passed at this instant.
    fn finish(&mut self, now: u64) -> Option<usize> {
        let (number, time, _) = self.sending.take_if(|(_, _, end)| *end == now)?;
        let (request, left) = self.classes[number].queue.front_mut().expect("it sends");
        *left -= time;
        let request = (*left == 0).then_some(*request)?;
        self.classes[number].queue.pop_front();
        Some(request)
    }

    fn next(&self) -> Option<u64> {
        if let Some((_, _, end)) = self.sending {
            return Some(end);
        }
        let waiting = self.classes.iter().filter(|class| !class.queue.is_empty());
        waiting.map(|class| class.buckets.iter().map(|bucket| bucket.due(0.0)).max().unwrap_or(0)).min()
    }
}

/// A request in front of the device.
struct Waiting {
    request: usize,
    came: u64,
    number: u64,
    /// Since when it is within the limits.
    within: Option<u64>,
}

/// A workload in front of the device.
struct DeviceClass {
    level: u64,
    largest: f64,
    buckets: Vec<Bucket>,
    queue: VecDeque<Waiting>,
}

struct Device {
    classes: Vec<DeviceClass>,
    channels: usize,
    outstanding: usize,
    beside: usize,
    reserve: usize,
    best_effort: f64,
    arrivals: u64,
    /// Requests at the device that are not begun, with their levels.
    sent: VecDeque<(usize, u64)>,
    /// Requests that are served, with their levels and when they are done.
    served: Vec<(usize, u64, u64)>,
}

impl Device {
    /// Lets requests come within their limits, in order within each workload.
    fn pass(&mut self, now: u64, work: &[[u64; 3]]) {
        for class in &mut self.classes {
            class.buckets.iter_mut().for_each(|bucket| bucket.fill(now));
            for waiting in class.queue.iter_mut().filter(|waiting| waiting.within.is_none()) {
                let cost = work[waiting.request][1] as f64;
                let is_due = class.buckets.iter().all(|bucket| bucket.due(cost) <= now);
                if class.level == BEST_EFFORT || cost > class.largest || !is_due {
                    break;
                }
                class.buckets.iter_mut().for_each(|bucket| bucket.take(work[waiting.request][1]));
                waiting.within = Some(now);
            }
        }
    }

    fn dispatch(&mut self, now: u64, work: &[[u64; 3]]) {
        loop {
            self.pass(now, work);
            let mut next: Option<((u64, u64, u64), usize)> = None;
            for (number, class) in self.classes.iter().enumerate() {
                let Some(head) = class.queue.front() else { continue };
                let level = if head.within.is_some() { class.level } else { BEST_EFFORT };
                let rank = (level, head.within.unwrap_or(head.came), head.number);
                if next.is_none_or(|(best, _)| rank < best) {
                    next = Some((rank, number));
                }
            }
            let Some(((level, ..), number)) = next else { return };
            let request = self.classes[number].queue[0].request;
            if !self.admits(level, work[request][1] as f64) {
                return;
            }
            self.classes[number].queue.pop_front();
            self.sent.push_back((request, level));
            self.begin(now, work);
        }
    }

    fn admits(&self, level: u64, cost: f64) -> bool {
        let levels = || self.sent.iter().map(|sent| sent.1).chain(self.served.iter().map(|served| served.1));
        let count = levels().count();
        if count == 0 {
            return true;
        }
        let top = levels().min().expect("some are there");
        let below = levels().filter(|other| *other > top).count();
        let kept_free = if level == BEST_EFFORT { self.reserve } else { 0 };
        let is_expected = level != BEST_EFFORT || cost <= self.best_effort;
        is_expected && count + kept_free < self.outstanding && (level <= top || below < self.beside)
    }

    fn begin(&mut self, now: u64, work: &[[u64; 3]]) {
        while self.served.len() < self.channels
            && let Some((request, level)) = self.sent.pop_front()
        {
            self.served.push((request, level, now + work[request][1] * self.channels as u64));
        }
    }

    fn next(&self, work: &[[u64; 3]]) -> Option<u64> {
        let mut next = self.served.iter().map(|served| served.2).min();
        for class in &self.classes {
            let Some(first) = class.queue.iter().find(|waiting| waiting.within.is_none()) else { continue };
            let cost = work[first.request][1] as f64;
            if class.level != BEST_EFFORT && cost <= class.largest {
                let due = class.buckets.iter().map(|bucket| bucket.due(cost)).max().unwrap_or(0);
                next = Some(next.map_or(due, |next| next.min(due)));
            }
        }
        next
    }
}

/// Serves the requests of workloads of one server, each by its name, beside best-effort clients that send one request after the
/// other. An answer takes `base` nanoseconds from the device to the link. Returns the latencies of the requests of each
/// workload in order of arrival, nanoseconds, without `base` and the proxy.
pub(crate) fn request_latencies(
    policy: &Value,
    loads: &[(String, Vec<Asked>)],
    (clients, copy): (u32, [u64; 3]),
    base: u64,
) -> Vec<Vec<u64>> {
    let placed: Vec<&Value> = loads.iter().map(|(name, _)| workload(policy, name)).collect();
    let mut servers = policy["servers"].as_array().expect("a policy has servers").iter();
    let server = servers.find(|server| server["name"] == placed[0]["server"]).expect("a server");
    let used = &server["enforcement"];
    let packet =
        whole_up(number(&used["packet_bytes"]) / number(&server["network_bytes_per_s"]) * 1e9).max(1);
    let link = |stage| {
        let mut classes = Vec::new();
        for workload in &placed {
            classes.push((level(workload, stage), buckets(workload, stage, true)));
        }
        classes.push((BEST_EFFORT, Vec::new()));
        let class = |(level, buckets)| LinkClass {
            level,
            buckets,
            queue: VecDeque::new(),
            deficit: i128::from(packet),
            turn: 0,
        };
        Link { classes: classes.into_iter().map(class).collect(), packet, turns: 0, sending: None }
    };
    let count = |field: &str| usize::try_from(used[field].as_u64().expect("a count")).expect("a small count");
    let mut at_device = Vec::new();
    for workload in &placed {
        let largest =
            workload["largest_request"].as_f64().map_or(f64::INFINITY, |largest| largest * 1e9 + 1.0);
        let level = level(workload, 1);
        let buckets = buckets(workload, 1, true);
        at_device.push(DeviceClass { level, largest, buckets, queue: VecDeque::new() });
    }
    at_device.push(DeviceClass {
        level: BEST_EFFORT,
        largest: 0.0,
        buckets: Vec::new(),
        queue: VecDeque::new(),
    });
    let mut links = [link(0), link(2)];
    let mut device = Device {
        classes: at_device,
        channels: count("channels"),
        outstanding: count("outstanding"),
        beside: count("beside"),
        reserve: count("reserve"),
        best_effort: number(&used["best_effort_request_s"]) * 1e9 + 1.0,
        arrivals: 0,
        sent: VecDeque::new(),
        served: Vec::new(),
    };
    // Of all requests: class, arrival, and work.
    let mut of = Vec::new();
    let mut arrived = Vec::new();
    let mut work = Vec::new();
    let mut coming: Vec<(u64, usize, [u64; 3])> = (0..clients).map(|_| (1, loads.len(), copy)).collect();
    for (class, (_, asked)) in loads.iter().enumerate() {
        coming.extend(asked.iter().map(|(arrival, work)| (*arrival, class, *work)));
    }
    let mut open: usize = loads.iter().map(|(_, asked)| asked.len()).sum();
    let mut latencies: Vec<Vec<u64>> = loads.iter().map(|(_, asked)| vec![0; asked.len()]).collect();
    // Maps the number of a request among all to its position within its workload.
    let mut positions = Vec::new();
    let mut begun = vec![0; loads.len() + 1];
    coming.sort_by_key(|(arrival, ..)| *arrival);
    let mut coming = VecDeque::from(coming);
    // Answers between the device and the link, with when they reach it.
    let mut answers: VecDeque<(u64, usize)> = VecDeque::new();
    let mut now = 0;
    while open > 0 {
        let soonest = [
            coming.front().map(|next| next.0),
            links[0].next(),
            device.next(&work),
            answers.front().map(|answer| answer.0),
            links[1].next(),
        ];
        now = soonest.into_iter().flatten().min().expect("something is open").max(now);
        // Events are processed one after the other, as in a log: a free resource takes the first arrival.
        let answered = links[1].finish(now);
        links[1].send(now);
        if let Some(request) = answered {
            let class: usize = of[request];
            if class < loads.len() {
                latencies[class][positions[request]] = now - arrived[request] - base;
                open -= 1;
            } else {
                coming.push_front((now, class, copy));
            }
        }
        while let Some(done) = device.served.iter().position(|served| served.2 <= now) {
            let (request, ..) = device.served.remove(done);
            answers.push_back((now + base, request));
        }
        while let Some(&(_, request)) = answers.front().filter(|(at, _)| *at <= now) {
            answers.pop_front();
            let class: usize = of[request];
            links[1].classes[class].queue.push_back((request, work[request][2]));
            links[1].send(now);
        }
        device.begin(now, &work);
        let passed = links[0].finish(now);
        links[0].send(now);
        if let Some(request) = passed {
            let number = device.arrivals;
            device.arrivals += 1;
            let waiting = Waiting { request, came: now, number, within: None };
            device.classes[of[request]].queue.push_back(waiting);
        }
        while coming.front().is_some_and(|next| next.0 <= now) {
            let (_, class, asked) = coming.pop_front().expect("there is a first");
            links[0].classes[class].queue.push_back((work.len(), asked[0]));
            of.push(class);
            positions.push(begun[class]);
            begun[class] += 1;
            arrived.push(now);
            work.push(asked);
            links[0].send(now);
        }
        device.dispatch(now, &work);
        links.iter_mut().for_each(|link| link.send(now));
    }
    latencies
}

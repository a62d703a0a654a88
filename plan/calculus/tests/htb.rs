//! The work that a link has begun, against Linux's HTB and the wire behind it.
//!
//! The shaper here is HTB's algorithm packet by packet, from `net/sched/sch_htb.c`: two buckets for each class, modes,
//! lending by level, charges of all ancestors, and deficit round robin. It knows nothing of the bound. Its timer is as
//! late as the bound permits, and senders choose the worst instants.

use calculus::{EnforcedClass, StageLoad, stage_delay};
use proptest::prelude::*;
use std::collections::VecDeque;

/// Rate of the link and the wire, bytes per second.
const LINK: f64 = 125e6;
/// The largest frame, bytes.
const FRAME: f64 = 1514.0;
/// Rate of every class that must borrow, bytes per second, and the burst of that rate, bytes.
const TINY: (f64, f64) = (125.0, 1.0);
/// Instant of the first arrivals, seconds: a class that is in debt by a frame has paid it.
const START: f64 = 20.0;
/// Slack for sums of real numbers, bytes.
const ROUNDING: f64 = 1e-3;

/// A token bucket of HTB: it passes while it is not in debt.
#[derive(Debug, Clone)]
struct Bucket {
    rate: f64,
    burst: f64,
    tokens: f64,
}

impl Bucket {
    fn full((rate, burst): (f64, f64)) -> Self {
        Self { rate, burst, tokens: burst }
    }

    fn fill(&mut self, seconds: f64) {
        self.tokens = (self.tokens + self.rate * seconds).min(self.burst);
    }

    fn is_in_debt(&self) -> bool {
        self.tokens < -ROUNDING
    }

    /// Time until a debt is paid, seconds.
    fn due(&self) -> f64 {
        if self.is_in_debt() { -self.tokens / self.rate } else { f64::INFINITY }
    }
}

/// A class: a leaf under a class that limits it, under the root. The two have a rate of their own.
#[derive(Debug, Clone)]
struct Class {
    prio: usize,
    /// `rate` of the leaf, and of the class above it.
    own: [Bucket; 2],
    /// `ceil` of the class above the leaf.
    ceil: Bucket,
    queue: VecDeque<(usize, f64)>,
    /// Deficit by lending level, and the end of the last turn there.
    deficit: [f64; 3],
    turn: [u64; 3],
}

impl Class {
    fn new(prio: usize, ceil: (f64, f64)) -> Self {
        let own = [Bucket::full(TINY), Bucket::full(TINY)];
        let deficit = [FRAME; 3];
        Self { prio, own, ceil: Bucket::full(ceil), queue: VecDeque::new(), deficit, turn: [0; 3] }
    }

    fn buckets(&mut self) -> impl Iterator<Item = &mut Bucket> {
        self.own.iter_mut().chain([&mut self.ceil])
    }
}

/// HTB, and the wire that it sends to.
struct Shaper {
    classes: Vec<Class>,
    root: Bucket,
    turns: u64,
    now: f64,
    /// Instant at which the wire has sent everything.
    wire_free: f64,
    /// Departures of packets from the wire, by number.
    departures: Vec<f64>,
}

impl Shaper {
    fn new(classes: Vec<Class>, burst: f64, packets: usize) -> Self {
        let departures = vec![f64::NAN; packets];
        let root = Bucket::full((LINK, burst));
        Self { classes, root, turns: 0, now: 0.0, wire_free: 0.0, departures }
    }

    fn advance(&mut self, to: f64) {
        let seconds = to - self.now;
        self.root.fill(seconds);
        for bucket in self.classes.iter_mut().flat_map(Class::buckets) {
            bucket.fill(seconds);
        }
        self.now = to;
    }

    /// Returns the level whose class lends to a leaf: its own, the one above, or the root's.
    fn lender(&self, class: &Class) -> Option<usize> {
        if class.queue.is_empty() {
            return None;
        }
        if !class.own[0].is_in_debt() {
            return Some(0);
        }
        if class.ceil.is_in_debt() {
            return None;
        }
        if !class.own[1].is_in_debt() {
            return Some(1);
        }
        (!self.root.is_in_debt()).then_some(2)
    }

    /// Passes packets to the wire while a class may send.
    fn run(&mut self) {
        loop {
            let lenders = self.classes.iter().enumerate().filter_map(|(number, class)| {
                let level = self.lender(class)?;
                Some((level, class.prio, class.turn[level], number))
            });
            let Some((level, _, _, number)) = lenders.min() else { return };
            let class = &mut self.classes[number];
            let (packet, length) = class.queue.pop_front().expect("it has one");
            for own in &mut class.own[level.min(2)..] {
                own.tokens -= length;
            }
            class.ceil.tokens -= length;
            self.root.tokens -= length;
            class.deficit[level] -= length;
            if class.deficit[level] < 0.0 {
                class.deficit[level] += FRAME;
                self.turns += 1;
                class.turn[level] = self.turns;
            }
            self.wire_free = self.wire_free.max(self.now) + length / LINK;
            self.departures[packet] = self.wire_free;
        }
    }

    /// Returns the instant of the next timer; infinite if nothing waits.
    fn timer(&self) -> f64 {
        let mut due = f64::INFINITY;
        for class in self.classes.iter().filter(|class| !class.queue.is_empty()) {
            let buckets = class.own.iter().chain([&class.ceil, &self.root]);
            due = buckets.map(Bucket::due).fold(due, f64::min);
        }
        self.now + due
    }
}

/// A packet: its arrival in seconds, its class and its length in bytes.
type Packet = (f64, usize, f64);

/// Plays arrivals in their order; timers fire `late` seconds after they are due. Returns the delays until the wire has
/// sent each packet.
fn play(classes: Vec<Class>, burst: f64, packets: &[Packet], late: f64) -> Vec<f64> {
    let mut shaper = Shaper::new(classes, burst, packets.len());
    let mut next = 0;
    loop {
        let arrival = packets.get(next).map_or(f64::INFINITY, |packet| packet.0);
        let timer = shaper.timer() + late;
        if !arrival.min(timer).is_finite() {
            break;
        }
        shaper.advance(arrival.min(timer).max(shaper.now));
        if arrival <= timer {
            let (_, class, length) = packets[next];
            shaper.classes[class].queue.push_back((next, length));
            next += 1;
        }
        shaper.run();
    }
    shaper.departures.iter().zip(packets).map(|(departure, packet)| departure - packet.0).collect()
}

/// A workload: its priority, its bucket in bytes per second and bytes, and when and with what it comes.
#[derive(Debug, Clone)]
struct Workload {
    prio: usize,
    bucket: (f64, f64),
    /// Waits of microseconds before packets of these bytes.
    arrivals: Vec<(f64, f64)>,
}

/// Returns the packets of a workload, each delayed until the bucket holds it.
fn within_bucket(workload: &Workload, class: usize) -> Vec<Packet> {
    let mut bucket = Bucket::full(workload.bucket);
    let mut now = START;
    let mut packets = Vec::new();
    for &(wait, length) in &workload.arrivals {
        let lacking = (length - (bucket.tokens + bucket.rate * wait * 1e-6)).max(0.0);
        let waited = wait * 1e-6 + lacking / bucket.rate;
        bucket.fill(waited);
        bucket.tokens -= length;
        now += waited;
        packets.push((now, class, length));
    }
    packets
}

/// Numbers of the classes of best effort and of address resolution behind those of the workloads.
fn with_others(workloads: &[Workload], burst: f64) -> (Vec<Class>, usize, usize) {
    let mut classes: Vec<Class> = workloads.iter().map(|w| Class::new(w.prio, w.bucket)).collect();
    classes.push(Class::new(7, (LINK, burst.max(FRAME))));
    classes.push(Class::new(0, (LINK / 100.0, FRAME)));
    (classes, workloads.len(), workloads.len() + 1)
}

/// Bound of a workload by Eq. 5.5, all others of its level counted as if they were above, seconds.
fn bound(workloads: &[Workload], who: usize, begun: f64) -> f64 {
    let own = workloads[who].prio;
    let at_or_above = workloads.iter().filter(|w| w.prio <= own);
    let burst: f64 = at_or_above.clone().map(|w| w.bucket.1).sum();
    let rate: f64 = at_or_above.map(|w| w.bucket.0).sum::<f64>() - workloads[who].bucket.0;
    stage_delay(StageLoad { burst_at_or_above: burst / LINK, rate_above: rate / LINK, blocking: begun })
}

fn class_with(link_burst: f64) -> EnforcedClass {
    EnforcedClass {
        channels: 1,
        best_effort_request: 0.0,
        packet: FRAME / LINK,
        link_burst,
        proxy: 0.0,
        densest_answer: 0.0,
        levels_max: 7,
    }
}

/// Returns the longest delay of a workload's packets, with best effort and address resolution beside it.
fn longest(workloads: &[Workload], who: usize, burst: f64, best_effort: &[f64], late: f64) -> f64 {
    let (classes, default, control) = with_others(workloads, burst);
    let mut packets: Vec<Packet> = best_effort.iter().map(|&length| (START, default, length)).collect();
    packets.extend([(START, control, FRAME), (START, control, FRAME)]);
    for (class, workload) in workloads.iter().enumerate() {
        packets.extend(within_bucket(workload, class));
    }
    packets.sort_by(|a, b| a.0.total_cmp(&b.0));
    let delays = play(classes, burst, &packets, late);
    let own = delays.iter().zip(&packets).filter(|(_, packet)| packet.1 == who);
    own.map(|(delay, _)| *delay).fold(0.0, f64::max)
}

/// A request that comes right behind best effort finds the whole burst at the wire. A bound that counts packets alone
/// is exceeded: at 500 µs tenfold.
#[test]
fn the_burst_of_the_root_is_work_that_has_begun() {
    let small = [Workload { prio: 0, bucket: (1e6, FRAME), arrivals: vec![(1.0, FRAME)] }];
    for (burst_s, at_least) in [(0.5e-3, 0.5e-3), (0.1e-3, 0.1e-3)] {
        let found = longest(&small, 0, burst_s * LINK, &[FRAME; 100], 0.0);
        let packets_alone = bound(&small, 0, 4.0 * FRAME / LINK);
        let counted = bound(&small, 0, class_with(burst_s).begun_on_link(1));
        assert!(found > at_least && found > packets_alone * 2.0, "{found} {packets_alone}");
        assert!(found <= counted, "{burst_s}: {found} s, counted {counted}");
        assert!(found > 0.8 * counted, "{burst_s}: {found} s, counted {counted}");
    }
}

/// The timer's lateness and the queue at the wire are one burst, not two.
#[test]
fn a_late_timer_is_within_the_burst() {
    let workload = [Workload { prio: 0, bucket: (1e6, FRAME), arrivals: vec![(300.0, FRAME); 20] }];
    let burst_s = 1e-4;
    let best_effort = vec![FRAME; 2000];
    let counted = bound(&workload, 0, class_with(burst_s).begun_on_link(1));
    for late in [0.0, 0.2, 0.5, 0.9, 1.0] {
        let found = longest(&workload, 0, burst_s * LINK, &best_effort, late * burst_s);
        assert!(found <= counted, "late by {late}: {found} s, counted {counted}");
    }
}

fn any_workload() -> impl Strategy<Value = Workload> {
    let wait = prop_oneof![4 => Just(0.0), 2 => 0.0..30.0f64, 1 => 0.0..2000.0f64];
    let length = prop_oneof![3 => Just(FRAME), 1 => 60.0..FRAME];
    let arrivals = prop::collection::vec((wait, length), 1..25);
    (0usize..4, 1e5..2e7f64, FRAME..30_000.0f64, arrivals)
        .prop_map(|(prio, rate, burst, arrivals)| Workload { prio, bucket: (rate, burst), arrivals })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    /// No packet within its bucket is later than the bound, whatever arrives and however late the timer is. A full
    /// bucket loses tokens while its workload waits: a request waits for its own bucket no longer
    /// than for the others, which doubles the wait for them, if its burst lasts so long (`placement::links`).
    #[test]
    fn no_packet_is_later_than_what_is_counted(
        workloads in prop::collection::vec(any_workload(), 1..6),
        best_effort in prop::collection::vec(prop_oneof![2 => Just(FRAME), 1 => 60.0..FRAME], 0..300),
        burst_s in prop_oneof![Just(1.3e-5), Just(1e-4), 1.3e-5..5e-4f64],
        late in prop_oneof![Just(0.0), Just(1.0), 0.0..1.0f64],
    ) {
        let begun = class_with(burst_s).begun_on_link(workloads.len());
        for who in 0..workloads.len() {
            let counted = bound(&workloads, who, begun);
            let mut without_own = workloads.clone();
            without_own[who].bucket.1 = 0.0;
            let held_up = bound(&without_own, who, begun);
            let (rate, burst) = workloads[who].bucket;
            if burst < rate * held_up {
                continue;
            }
            let found = longest(&workloads, who, burst_s * LINK, &best_effort, late * burst_s);
            prop_assert!(found <= counted.max(2.0 * held_up) * (1.0 + 1e-9), "{found} s, counted {counted} s");
        }
    }
}

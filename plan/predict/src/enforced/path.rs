//! What the enforcers of a server let happen, and the worst case under it.
//!
//! **Servers.** Links send packet by packet, as HTB shapes them; a device that serves several requests at a time is fed by
//! a queue in strict priority and interrupts none ([`calculus::EnforcedClass`], [`calculus::DeviceQueue`]). Before every
//! stage limiters hold each workload, and nothing else holds others: a workload is delayed by what the limits of the others
//! admit, whatever they send.
//!
//! **Limits.** Those of a workload, ⟨r, b⟩ for several r, admit together what its trace brings to a stage, and a little more: α.
//! The workload keeps them by the arrivals of its requests at the server. The enforcer's bucket of a limit is ⟨r, b + r·J⟩, with
//! J for the longest time from the arrival of a request to its leaving of a link, or to its arrival at the proxy: r·J is an
//! allowance, which the workload may not spend. *A workload within its limits is then held back by no bucket*: a link's
//! takes tokens when it sends. What was sent from v to u arrived after v − J, in whatever order a device has answered, hence is
//! at most `α(u − v + J) ≤ r·(u − v) + b + r·J`, so that the bucket is never in debt but by a packet. (By induction over time: as
//! long as no bucket was in debt, no request took longer than J.) The proxy takes tokens when a request comes, and the same
//! holds with the delay before it. Others count `α(d + J)`.
//!
//! **Delay of a stage.** On a link, whose equals take turns: that of a queue behind all others of the same and higher
//! priorities, or with what equals send by turns, as much each as the workload itself and a packet, whichever is less. At
//! the device: that of the level behind the higher ones, first come, first served. What a stage has begun is more work of
//! the level. To be held by a greedy shaper at its own curve before a stage would add nothing to the worst case (Le Boudec
//! and Thiran, *Network Calculus*, §1.5.3), so the delays of the stages add up, each for traffic within α. At network-out the
//! answers that overtake one of the same workload are more work before it ([`EnforcedClass::overtaking`]).
//!
//! J depends on the delays of the others and they on J: it is raised until nothing changes; where that has no end, there
//! is no bound.

use crate::{WorstCase, WorstCaseSketch};
use calculus::{ArrivalCurve, DeviceQueue, EnforcedClass, PriorityQueue, enforceable_limiters, round_up};
use model::{CircularTrace, Job, LatencyModel as _, PerStage, ServerMember, Stage};

/// How much more than a curve limits may admit, so that there are few of them, as a fraction.
const TOLERANCE: f64 = 0.05;
/// The most buckets that a class of traffic may have on a link: so many classes HTB chains between root and leaf.
const BUCKETS_MAX: usize = 6;
/// How often delays are raised before they are taken for endless.
const ROUNDS_MAX: usize = 32;
/// How far beyond what is needed a delay is raised, so that the search ends.
const BEYOND: f64 = 1.0 + 1e-6;

/// A server as its enforcers use it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnforcedPath {
    /// What its links and its device do not interrupt.
    pub class: EnforcedClass,
    /// What may be at its device at once.
    pub queue: DeviceQueue,
    /// The latency of the idle storage stack for any request, seconds; it is no part of the latencies here, but bunches
    /// answers.
    pub base_latency: f64,
    /// Whether requests pass a device at all, or links alone.
    pub has_storage: bool,
}

/// What the analysis of enforced servers keeps of a workload.
#[derive(Debug, Clone, PartialEq)]
pub struct EnforcedSketch<S> {
    /// What a model keeps of the same traffic.
    pub(super) model: S,
    /// The curves of the trace.
    curves: PerStage<ArrivalCurve>,
    /// The buckets `(rate, burst)` that hold the workload to them at each stage, where nothing is bunched.
    limits: PerStage<Vec<(f64, f64)>>,
    /// What these admit together.
    admitted: PerStage<ArrivalCurve>,
    /// The device time of the largest request, seconds.
    pub(super) largest: f64,
    /// The most work at network-out that a request brings per device time.
    densest_answer: f64,
}

/// The worst case of a member on an enforced server.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EnforcedLatency {
    /// The delay at each stage, seconds; infinite where there is no bound.
    pub delays: PerStage<f64>,
    /// How much longer the largest request takes on one channel than on the whole device, seconds.
    pub own_service: f64,
    /// What the proxy itself takes, seconds.
    pub proxy: f64,
    /// The sum of all of these, rounded up, seconds.
    pub total: f64,
    /// By how much the arrivals that each stage charges may be bunched, seconds.
    pub bunched: PerStage<f64>,
}

impl<S> EnforcedSketch<S> {
    /// What is kept of this traffic beside what a model keeps.
    pub(super) fn new(model: S, traffic: &CircularTrace<Job>) -> Self {
        let worst: WorstCaseSketch = WorstCase::default().sketch(traffic);
        let curves = PerStage::from_fn(|stage| worst.curve(stage).clone());
        let mut largest = 0.0f64;
        let mut densest_answer = 0.0f64;
        for job in traffic.items() {
            let work = job.work.map(|work| work.as_secs());
            largest = largest.max(work[Stage::Storage]);
            if work[Stage::Storage] > 0.0 {
                densest_answer = densest_answer.max(work[Stage::NetworkOut] / work[Stage::Storage]);
            }
        }
        Self::of_curves(model, curves, largest, densest_answer)
    }

    /// The sketch of traffic with these curves, whose largest request takes `largest` seconds of device time, and none of
    /// whose requests brings more work to network-out per device time than `densest_answer`.
    pub fn of_curves(model: S, curves: PerStage<ArrivalCurve>, largest: f64, densest_answer: f64) -> Self {
        let limits = PerStage::from_fn(|stage| buckets(&curves[stage], stage));
        let admitted = PerStage::from_fn(|stage| ArrivalCurve::from_limits(&limits[stage]));
        Self { model, curves, limits, admitted, largest, densest_answer }
    }

    /// The most work that the trace brings to a stage within a duration, in seconds of its capacity.
    pub fn curve(&self, stage: Stage) -> &ArrivalCurve {
        &self.curves[stage]
    }

    /// The limits `(rate, burst)` of the workload at a stage, of its requests in the order in which they arrive at the server.
    pub fn limits(&self, stage: Stage) -> &[(f64, f64)] {
        &self.limits[stage]
    }

    /// The curve of all of those together, where nothing is bunched.
    pub fn admitted_curve(&self, stage: Stage) -> &ArrivalCurve {
        &self.admitted[stage]
    }

    /// What those admit together.
    fn admitted(&self, stage: Stage, bunched: f64) -> ArrivalCurve {
        self.admitted[stage].delayed(bunched)
    }
}

/// What the enforcer's bucket of a limit holds beyond its burst where arrivals may be bunched by up to `bunched` seconds.
pub fn bunching_allowance(rate: f64, bunched: f64) -> f64 {
    round_up(rate * bunched)
}

/// The fewest buckets that are close to a curve, or as many as a link has room for.
fn buckets(curve: &ArrivalCurve, stage: Stage) -> Vec<(f64, f64)> {
    let most = if stage == Stage::Storage { usize::MAX } else { BUCKETS_MAX };
    let mut tolerance = TOLERANCE;
    loop {
        let limits = enforceable_limiters(curve, tolerance);
        if limits.is_empty() {
            // No bucket holds what asks for more than there is: it overloads the stage.
            return vec![(curve.sustained_rate(), curve.burst(curve.sustained_rate()))];
        }
        if limits.len() <= most {
            return limits;
        }
        tolerance *= 1.5;
    }
}

impl EnforcedPath {
    /// The worst case of every member, in their order.
    pub fn worst_case<S>(&self, members: &[ServerMember<'_, EnforcedSketch<S>>]) -> Vec<EnforcedLatency> {
        let company = EnforcedCompany { path: self, members };
        let into = company.link_delays(Stage::NetworkIn, &vec![0.0; members.len()]);
        let storage = company.device_delays(&into);
        let mut before_out = Vec::with_capacity(members.len());
        for (member, other) in members.iter().enumerate() {
            let own = self.own_service(other.sketch) + self.proxy() + self.base_latency;
            before_out.push(round_up(into[member] + storage[member] + own));
        }
        let out = company.link_delays(Stage::NetworkOut, &before_out);
        let mut latencies = Vec::with_capacity(members.len());
        for (member, other) in members.iter().enumerate() {
            let own_service = self.own_service(other.sketch);
            let proxy = self.proxy();
            let delays = PerStage::from_fn(|stage| match stage {
                Stage::NetworkIn => into[member],
                Stage::Storage => storage[member],
                Stage::NetworkOut => out[member],
            });
            let bunched = PerStage::from_fn(|stage| match stage {
                Stage::NetworkIn | Stage::Storage => into[member],
                Stage::NetworkOut => round_up(before_out[member] + out[member]),
            });
            let total = round_up(delays.iter().map(|(_, delay)| delay).sum::<f64>() + own_service + proxy);
            latencies.push(EnforcedLatency { delays, own_service, proxy, total, bunched });
        }
        latencies
    }

    /// How much longer the largest request of a workload takes on one channel than on the whole device, seconds.
    pub(super) fn own_service<S>(&self, sketch: &EnforcedSketch<S>) -> f64 {
        if self.has_storage { self.queue.own_service(sketch.largest) } else { 0.0 }
    }

    /// What the proxy itself takes, seconds.
    pub(super) fn proxy(&self) -> f64 {
        if self.has_storage { self.class.proxy } else { 0.0 }
    }

    /// The work that each stage may have begun when a request of one of these workloads comes, seconds.
    pub fn begun<'s, S: 's>(
        &self,
        sketches: impl ExactSizeIterator<Item = &'s EnforcedSketch<S>>,
    ) -> PerStage<f64> {
        let link = self.class.begun_on_link(sketches.len());
        let largest = sketches.map(|sketch| sketch.largest).fold(0.0, f64::max);
        PerStage::from_fn(|stage| match stage {
            Stage::NetworkIn | Stage::NetworkOut => link,
            Stage::Storage if self.has_storage => {
                self.queue.blocking(self.class.best_effort_request, largest)
            }
            Stage::Storage => 0.0,
        })
    }

    /// The work at network-out of what may overtake a request of a workload on other channels, seconds.
    pub(super) fn overtaking<S>(&self, sketch: &EnforcedSketch<S>) -> f64 {
        if self.has_storage { self.class.overtaking(sketch.largest, sketch.densest_answer) } else { 0.0 }
    }
}

/// The members of a server, as its stages meet them.
struct EnforcedCompany<'a, 'm, S> {
    path: &'a EnforcedPath,
    members: &'a [ServerMember<'m, EnforcedSketch<S>>],
}

impl<S> EnforcedCompany<'_, '_, S> {
    /// The members by level at a stage, the highest level first.
    fn levels(&self, stage: Stage) -> Vec<Vec<usize>> {
        let mut order: Vec<usize> = (0..self.members.len()).collect();
        order.sort_by_key(|&member| self.members[member].priority[stage]);
        let levels =
            order.chunk_by(|&a, &b| self.members[a].priority[stage] == self.members[b].priority[stage]);
        levels.map(<[usize]>::to_vec).collect()
    }

    /// The delay of each member on a link that its requests reach up to `before` seconds after they arrived at the server.
    fn link_delays(&self, link: Stage, before: &[f64]) -> Vec<f64> {
        let levels = self.levels(link);
        let mut delays = vec![0.0; self.members.len()];
        for _ in 0..ROUNDS_MAX {
            if !self.raise_link_delays(link, &levels, before, &mut delays) {
                return delays;
            }
        }
        vec![f64::INFINITY; self.members.len()]
    }

    /// Raises the delays on a link to what they are if others are bunched by them; whether one rose.
    fn raise_link_delays(
        &self,
        link: Stage,
        levels: &[Vec<usize>],
        before: &[f64],
        delays: &mut [f64],
    ) -> bool {
        let mut above = PriorityQueue::new();
        let mut is_raised = false;
        for level in levels {
            for &member in level {
                let bunched = |other: usize| before[other] + delays[other];
                let delay = if level.iter().any(|&other| !bunched(other).is_finite()) {
                    f64::INFINITY
                } else {
                    self.link_delay(link, &above, (member, level), &bunched)
                };
                if delay > delays[member] {
                    (delays[member], is_raised) = (delay * BEYOND, true);
                }
            }
            if level.iter().any(|&member| !delays[member].is_finite()) {
                return self.without_bound_from(link, level[0], delays) || is_raised;
            }
            for &member in level {
                above.add(&self.members[member].sketch.admitted(link, before[member] + delays[member]), 0.0);
            }
        }
        is_raised
    }

    /// Says that a level and those after it have no bound; whether that is new for one of them.
    fn without_bound_from(&self, link: Stage, member: usize, delays: &mut [f64]) -> bool {
        let level = self.members[member].priority[link];
        let mut is_new = false;
        for (other, delay) in delays.iter_mut().enumerate() {
            if self.members[other].priority[link] >= level && delay.is_finite() {
                (*delay, is_new) = (f64::INFINITY, true);
            }
        }
        is_new
    }

    /// The delay of a member of a level on a link behind higher levels, and others of its level that are bunched.
    fn link_delay(
        &self,
        link: Stage,
        above: &PriorityQueue,
        (member, level): (usize, &[usize]),
        bunched: &dyn Fn(usize) -> f64,
    ) -> f64 {
        let EnforcedPath { class, .. } = self.path;
        let sketch = self.members[member].sketch;
        let overtaking = if link == Stage::NetworkOut { self.path.overtaking(sketch) } else { 0.0 };
        let begun = class.begun_on_link(self.members.len()) + overtaking;
        if level.len() == 1 {
            return above.delay(&sketch.admitted[link], begun);
        }
        let mut others = above.clone();
        for &other in level.iter().filter(|&&other| other != member) {
            others.add(&self.members[other].sketch.admitted(link, bunched(other)), 0.0);
        }
        let equals = (level.len() - 1) as f64;
        let by_turns = sketch.admitted[link].scaled(equals + 1.0);
        let begun_by_turns = begun + equals * (class.packet + overtaking);
        others.delay(&sketch.admitted[link], begun).min(above.delay(&by_turns, begun_by_turns))
    }

    /// The delay of each member at the device, which its requests reach up to `before` seconds after they arrived.
    fn device_delays(&self, before: &[f64]) -> Vec<f64> {
        let mut delays = vec![0.0; self.members.len()];
        if !self.path.has_storage {
            return delays;
        }
        let begun = self.path.begun(self.members.iter().map(|member| member.sketch))[Stage::Storage];
        let mut above = PriorityQueue::new();
        let mut has_bound = true;
        for level in self.levels(Stage::Storage) {
            has_bound &= level.iter().all(|&member| before[member].is_finite());
            let mut delay = f64::INFINITY;
            if has_bound {
                let curves: Vec<ArrivalCurve> = level
                    .iter()
                    .map(|&member| self.members[member].sketch.admitted(Stage::Storage, before[member]))
                    .collect();
                let curve = ArrivalCurve::sum(&curves);
                delay = above.delay(&curve, begun);
                above.add(&curve, 0.0);
            }
            level.iter().for_each(|&member| delays[member] = delay);
        }
        delays
    }
}

//! One server of a plan: its workloads, in which priority order, and what its limits guarantee.
//!
//! Guarantees are computed from the limits alone, never from what a search believed while it chose them.

use crate::levels::{PriorityLevel, WorkloadLimits, level_bounds, priority_levels};
use crate::limits::FitRefusal;
use crate::links::{LinkLoad, link_loads, raise_bursts};
use crate::problem::PlanningProblem;
use calculus::{DeviceQueue, EnforcedClass, PathBound, StageLoad, path_bound, round_up, shaping_delay};
use model::{PerStage, RateLimit, Stage};

/// The latency that a workload is promised, with its derivation.
#[derive(Debug, Clone, PartialEq)]
pub struct Guarantee {
    /// The index of the workload in the problem.
    pub workload: usize,
    /// The workload's priority on its server; 0 is served first.
    pub priority: usize,
    /// The bound on waiting behind the same and higher priorities (Eq. 5.5).
    pub queueing: PathBound,
    /// Longest delay by the workload's own limiters, where they are below its r-b curve, seconds.
    pub shaping: PerStage<f64>,
    /// The latency of the idle storage stack, seconds.
    pub base: f64,
    /// Additional service time of the largest request on one channel compared with the whole device, seconds.
    pub own_service: f64,
    /// Processing time of the proxy, seconds.
    pub proxy: f64,
    /// Delay on the links of the workload's client host, seconds; 0 if bounds count none.
    pub client: f64,
    /// The sum of all of these, rounded up, seconds.
    pub total: f64,
}

/// A workload's contribution to the load that bounds a delay, another's or its own, at a stage.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LoadShare {
    /// The index of the workload in the problem.
    pub workload: usize,
    /// Contribution to the sum of bursts, seconds of capacity.
    pub burst: f64,
    /// Contribution to the sum of rates, fraction of capacity.
    pub rate: f64,
}

/// A server that has workloads, with their limits.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedServer {
    /// The index of the server's class in the problem.
    pub class: usize,
    /// The indices of its workloads, in the order in which they were placed.
    pub members: Vec<usize>,
    /// The limits of each member, in the same order.
    pub limits: Vec<WorkloadLimits>,
    /// Queue at the device; unused if the class does not count it.
    pub queue: DeviceQueue,
}

impl PlannedServer {
    /// Creates a server with these limits, bursts on links raised until no tokens are lost if that is
    /// possible, and the queue at the device that minimises the wait of requests.
    pub(crate) fn with_limits(
        problem: &PlanningProblem,
        class: usize,
        members: Vec<usize>,
        limits: Vec<WorkloadLimits>,
    ) -> Self {
        let mut limits = limits;
        for (&workload, own) in members.iter().zip(&mut limits) {
            let out = &mut own[Stage::NetworkOut];
            out.burst = out.burst.max(problem.overtaking(workload, class));
        }
        let queue = problem.shortest_queue(class);
        Self { class, members, limits, queue }.with_lasting_bursts(problem)
    }

    /// The members grouped by priority, as [`priority_levels`] does.
    pub(crate) fn priority_levels(&self, problem: &PlanningProblem) -> Vec<PriorityLevel> {
        priority_levels(problem, self.class, &self.members)
    }

    /// The limits of a member.
    ///
    /// # Panics
    /// When the workload is not on this server.
    pub fn limits_of(&self, workload: usize) -> &WorkloadLimits {
        let position = self.members.iter().position(|&m| m == workload);
        &self.limits[position.expect("asked for a workload that is on this server")]
    }

    /// Returns the excess of a member's enforcer bucket over its limit at a stage, seconds: at network-out
    /// the work that may overtake one of its requests at the device. Contained in the burst of
    /// [`Self::limits_of`].
    pub fn allowance(&self, problem: &PlanningProblem, workload: usize, stage: Stage) -> f64 {
        if stage == Stage::NetworkOut { problem.overtaking(workload, self.class) } else { 0.0 }
    }

    /// The queueing bound of every member with its priority, recomputed from the limits, in order of priority.
    fn bounds(&self, problem: &PlanningProblem) -> Vec<(usize, usize, PathBound)> {
        let levels = self.priority_levels(problem);
        let blocking = problem.blocking(self.class, &self.members, self.queue);
        let by_level = level_bounds(&levels, &blocking, |w| self.limits_of(w));
        let mut bounds = Vec::with_capacity(self.members.len());
        for (priority, (level, bound)) in levels.iter().zip(by_level).enumerate() {
            bounds.extend(level.members.iter().map(|&workload| (priority, workload, bound.clone())));
        }
        for (stage, loads) in self.link_loads(problem, &levels) {
            for ((_, _, bound), member) in bounds.iter_mut().zip(loads) {
                let mut loads: Vec<StageLoad> = bound.terms.iter().map(|term| term.load).collect();
                loads[stage as usize] = member.load;
                *bound = path_bound(loads);
            }
        }
        bounds
    }

    /// Returns the load of each member at the links, in order of priority; empty if the class does not count
    /// it.
    fn link_loads(&self, problem: &PlanningProblem, levels: &[PriorityLevel]) -> Vec<(Stage, Vec<LinkLoad>)> {
        let Some(class) = problem.classes[self.class].enforced else { return Vec::new() };
        let blocking = problem.blocking(self.class, &self.members, self.queue);
        let mut loads = Vec::new();
        for &stage in problem.shaped_stages() {
            let begun = (blocking[stage], class.packet);
            loads.push((stage, link_loads(levels, stage, begun, &|w| self.limits_of(w))));
        }
        loads
    }

    /// Returns each member with the longest time for which others keep a shaped link from it, seconds; empty if the class
    /// does not count it.
    pub(crate) fn held_up(&self, problem: &PlanningProblem, stage: Stage) -> Vec<(usize, f64)> {
        let loads = self.link_loads(problem, &self.priority_levels(problem)).into_iter();
        let of_stage = loads.filter(|(shaped, _)| *shaped == stage).flat_map(|(_, loads)| loads);
        of_stage.map(|load| (load.workload, load.held_up)).collect()
    }

    /// Returns each workload's contribution to the load that bounds a member's delay at a stage, in order of
    /// priority, without lower priorities. Their sum is the load of the member's term in
    /// [`Self::guarantees`]: on a link its own share is its burst or more, as in that term.
    ///
    /// # Panics
    /// When the workload is not on this server.
    pub fn load_shares(&self, problem: &PlanningProblem, workload: usize, stage: Stage) -> Vec<LoadShare> {
        let levels = self.priority_levels(problem);
        let own_level = levels.iter().position(|level| level.members.contains(&workload));
        let own_level = own_level.expect("asked for a workload that is on this server");
        let own = self.limits_of(workload)[stage];
        let on_links = self.link_loads(problem, &levels);
        let on_link = on_links.into_iter().find(|(link, _)| *link == stage);
        let on_link = on_link.and_then(|(_, loads)| loads.into_iter().find(|load| load.workload == workload));
        let packet = problem.classes[self.class].enforced.map_or(0.0, |class| class.packet);
        let mut shares = Vec::new();
        for (priority, level) in levels[..=own_level].iter().enumerate() {
            for &other in &level.members {
                let RateLimit { rate, burst } = self.limits_of(other)[stage];
                let (burst, rate) = match on_link {
                    _ if priority < own_level => (burst, rate),
                    _ if other == workload => (burst, 0.0),
                    Some(LinkLoad { takes_turns: true, .. }) => (own.burst + packet, 0.0),
                    Some(_) => (burst, rate),
                    None => (burst, 0.0),
                };
                shares.push(LoadShare { workload: other, burst, rate });
            }
        }
        if let Some(LinkLoad { load, .. }) = on_link {
            let all: f64 = shares.iter().map(|share| share.burst).sum();
            let own_share = shares.iter_mut().find(|share| share.workload == workload);
            own_share.expect("it is in its level").burst += load.burst_at_or_above - all;
        }
        shares
    }

    /// Returns the work that each stage of this server may have begun if its class were so, seconds.
    pub fn begun(&self, problem: &PlanningProblem, enforced: EnforcedClass) -> PerStage<f64> {
        let largest =
            self.members.iter().map(|&w| problem.largest_request(w, self.class)).fold(0.0, f64::max);
        PerStage::from_fn(|stage| match stage {
            Stage::Storage => self.queue.blocking(enforced.best_effort_request, largest),
            Stage::NetworkIn | Stage::NetworkOut => enforced.begun_on_link(self.members.len()),
        })
    }

    /// Raises bursts on links until no tokens are lost, if that is possible.
    #[must_use]
    fn with_lasting_bursts(mut self, problem: &PlanningProblem) -> Self {
        if let Some(stage) = problem.stage_shaped_elsewhere() {
            for (&workload, limits) in self.members.iter().zip(&mut self.limits) {
                let least = limits[stage].rate * problem.held_up_elsewhere(workload);
                limits[stage].burst = limits[stage].burst.max(round_up(least));
            }
        }
        if let Some(class) = problem.classes[self.class].enforced {
            let blocking = problem.blocking(self.class, &self.members, self.queue);
            let begun = (blocking[Stage::NetworkIn], class.packet);
            let levels = self.priority_levels(problem);
            raise_bursts(problem.shaped_stages(), &levels, &self.members, begun, &mut self.limits);
        }
        self
    }

    /// Returns the guarantees of all members, in order of priority.
    pub fn guarantees(&self, problem: &PlanningProblem) -> Vec<Guarantee> {
        let class = &problem.classes[self.class];
        let proxy = class.enforced.map_or(0.0, |enforced| enforced.proxy);
        let mut guarantees = Vec::with_capacity(self.members.len());
        for (priority, workload, queueing) in self.bounds(problem) {
            let shaping = shaping(problem, self.class, workload, self.limits_of(workload));
            let own_service = self.queue.own_service(problem.largest_request(workload, self.class));
            let own_service = class.enforced.map_or(0.0, |_| own_service);
            let base = problem.base_latency(workload, self.class);
            let shaped = shaping.iter().map(|(_, d)| d).sum::<f64>();
            let client = problem.client_delay(workload);
            let total = round_up(queueing.total + base + own_service + proxy + shaped + client);
            guarantees.push(Guarantee {
                workload,
                priority,
                queueing,
                shaping,
                base,
                own_service,
                proxy,
                client,
                total,
            });
        }
        guarantees
    }

    /// The server with as many requests at the device as its promises allow, of the queues that suit the class.
    #[must_use]
    pub(crate) fn with_longest_queue(mut self, problem: &PlanningProblem) -> Self {
        let Some(class) = problem.classes[self.class].enforced else { return self };
        for queue in class.queues() {
            let longer = Self { queue, ..self };
            if longer.verify(problem).is_ok() {
                return longer;
            }
            self = longer;
        }
        self
    }

    /// The sum of the members' rates at each stage, fraction of capacity.
    pub fn reserved_rate(&self) -> PerStage<f64> {
        PerStage::from_fn(|stage| self.limits.iter().map(|l| l[stage].rate).sum())
    }

    /// Checks everything that is promised, from scratch: every workload's traffic passes its limiters in
    /// the time counted for it, no stage is overloaded (Eq. 5.4), no bucket of a link loses tokens while its workload
    /// waits, every bound is within its SLO or SLOs (Eq. 5.5).
    ///
    /// # Errors
    /// When something fails: an overloaded stage, or the SLO that is exceeded by the largest factor.
    pub fn verify(&self, problem: &PlanningProblem) -> Result<(), FitRefusal> {
        self.verify_promises(problem, |_| true)
    }

    /// Checks what is promised to some members, as [`Self::verify`] does for all; the others count as load. A limit of
    /// rate 0 stands for traffic that a stage serves after all others.
    ///
    /// # Errors
    /// As [`Self::verify`].
    pub fn verify_promises(
        &self,
        problem: &PlanningProblem,
        is_promised: impl Fn(usize) -> bool,
    ) -> Result<(), FitRefusal> {
        for (stage, rate) in self.reserved_rate().iter() {
            let ratio = rate / problem.max_rate;
            if is_above(ratio, ROUNDING) {
                return Err(FitRefusal::Capacity { stage, ratio });
            }
        }
        for (stage, loads) in self.link_loads(problem, &self.priority_levels(problem)) {
            let loses_tokens =
                |it: &LinkLoad| it.loses_tokens || it.held_up > problem.hold_up_max(it.workload);
            if let Some(member) = loads.iter().find(|it| loses_tokens(it) && is_promised(it.workload)) {
                let slo = problem.tightest_slo(member.workload, self.class).latency;
                return Err(FitRefusal::Latency { slo, ratio: f64::INFINITY, stage });
            }
        }
        if let Some(stage) = problem.stage_shaped_elsewhere() {
            for (&workload, limits) in self.members.iter().zip(&self.limits).filter(|(w, _)| is_promised(**w))
            {
                if limits[stage].burst < limits[stage].rate * problem.held_up_elsewhere(workload) {
                    let slo = problem.tightest_slo(workload, self.class).latency;
                    return Err(FitRefusal::Latency { slo, ratio: f64::INFINITY, stage });
                }
            }
        }
        let mut worst_ratio = ROUNDING;
        let mut worst = None;
        for guarantee in self.guarantees(problem).into_iter().filter(|it| is_promised(it.workload)) {
            let tightest = problem.tightest_slo(guarantee.workload, self.class);
            let ratio = guarantee.total / (tightest.asked * problem.slo_factor);
            if is_above(ratio, worst_ratio) {
                worst_ratio = ratio;
                let slo = tightest.latency;
                // The share of the SLO itself: only equal to that of what it asks of all requests if it is about all.
                let ratio = (guarantee.total - tightest.shorter_by) / (slo * problem.slo_factor);
                worst = Some(FitRefusal::Latency { slo, ratio, stage: guarantee.slowest_stage() });
            }
        }
        worst.map_or(Ok(()), Err)
    }
}

impl Guarantee {
    /// The stage that contributes most to the bound; ties go to the earlier stage on the path.
    fn slowest_stage(&self) -> Stage {
        let delays =
            PerStage::from_fn(|stage| self.queueing.terms[stage as usize].delay + self.shaping[stage]);
        let slowest = Stage::ALL.into_iter().rev().max_by(|&a, &b| delays[a].total_cmp(&delays[b]));
        slowest.expect("there are stages")
    }
}

/// Returns true if a ratio exceeds the allowed one, or is NaN.
fn is_above(ratio: f64, allowed: f64) -> bool {
    ratio > allowed || ratio.is_nan()
}

/// A ratio may exceed 1 by this factor before it counts as a failure: sums are rounded.
const ROUNDING: f64 = 1.0 + 1e-12;

/// Returns the longest delay of the workload by each of its own limiters.
fn shaping(
    problem: &PlanningProblem,
    class: usize,
    workload: usize,
    limits: &WorkloadLimits,
) -> PerStage<f64> {
    let curves = &problem.workloads[workload].on_class[class].curves;
    PerStage::from_fn(|stage| shaping_delay(&curves[stage], limits[stage].rate, limits[stage].burst))
}

//! One server of a plan: its workloads, in which priority order, and what its limits guarantee.
//!
//! Guarantees are computed from the limits alone, never from what a search believed while it chose them.

use crate::limits::FitRefusal;
use crate::problem::PlanningProblem;
use calculus::{PathBound, path_bound, round_up, shaping_delay};
use model::{PerStage, RateLimit, Stage};

/// The limits of one workload at each stage.
pub type WorkloadLimits = PerStage<RateLimit>;

/// Workloads that share a priority because they share an SLO.
#[derive(Debug, Clone, PartialEq)]
pub struct PriorityLevel {
    /// What queueing may take of the members' SLO, seconds.
    pub budget: f64,
    /// The indices of the level's workloads in the problem.
    pub members: Vec<usize>,
}

/// The latency that a workload is promised, with its derivation.
#[derive(Debug, Clone, PartialEq)]
pub struct Guarantee {
    /// The index of the workload in the problem.
    pub workload: usize,
    /// The workload's priority on its server; 0 is served first.
    pub priority: usize,
    /// The bound on waiting behind the same and higher priorities (Eq. 5.5).
    pub queueing: PathBound,
    /// How long the workload's own limiters may delay it, where they are below its r-b curve, seconds.
    pub shaping: PerStage<f64>,
    /// The latency of the idle storage stack, seconds.
    pub base: f64,
    /// The sum of queueing, shaping and base latency, rounded up, seconds.
    pub total: f64,
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
}

/// Groups workloads into priorities: the tighter the SLO, the higher (thesis §5.2.1). Level 0 is served
/// first; workloads with equal SLOs share a level.
pub fn priority_levels(problem: &PlanningProblem, class: usize, members: &[usize]) -> Vec<PriorityLevel> {
    let mut sorted: Vec<(f64, usize)> = members.iter().map(|&w| (problem.budget(w, class), w)).collect();
    // Stable, so equal SLOs keep the order of placement.
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut levels: Vec<PriorityLevel> = Vec::new();
    for (budget, workload) in sorted {
        match levels.last_mut() {
            Some(level) if level.budget == budget => level.members.push(workload),
            _ => levels.push(PriorityLevel { budget, members: vec![workload] }),
        }
    }
    levels
}

/// The bound of Eq. 5.5 for every level, from the limits alone; `limits` maps a workload's index to its limits.
pub fn level_bounds<'a>(
    levels: &[PriorityLevel],
    limits: impl Fn(usize) -> &'a WorkloadLimits,
) -> Vec<PathBound> {
    let mut rates_above = PerStage::from_fn(|_| 0.0);
    let mut bursts = PerStage::from_fn(|_| 0.0);
    let mut bounds = Vec::with_capacity(levels.len());
    for level in levels {
        let mut rates = rates_above;
        for &member in &level.members {
            for stage in Stage::ALL {
                bursts[stage] += limits(member)[stage].burst;
                rates[stage] += limits(member)[stage].rate;
            }
        }
        bounds.push(path_bound(Stage::ALL.map(|stage| (bursts[stage], rates_above[stage]))));
        rates_above = rates;
    }
    bounds
}

impl PlannedServer {
    /// The members grouped by priority, as [`priority_levels`] does.
    pub fn priority_levels(&self, problem: &PlanningProblem) -> Vec<PriorityLevel> {
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

    /// The priority levels with their queueing bounds, recomputed from the limits.
    pub fn bounds(&self, problem: &PlanningProblem) -> Vec<(PriorityLevel, PathBound)> {
        let levels = self.priority_levels(problem);
        let bounds = level_bounds(&levels, |w| self.limits_of(w));
        levels.into_iter().zip(bounds).collect()
    }

    /// What every member is guaranteed, in order of priority.
    pub fn guarantees(&self, problem: &PlanningProblem) -> Vec<Guarantee> {
        let base = problem.classes[self.class].base_latency;
        let mut guarantees = Vec::with_capacity(self.members.len());
        for (priority, (level, queueing)) in self.bounds(problem).into_iter().enumerate() {
            for &workload in &level.members {
                let shaping = shaping(problem, self.class, workload, self.limits_of(workload));
                let total = round_up(queueing.total + base + shaping.iter().map(|(_, d)| d).sum::<f64>());
                guarantees.push(Guarantee {
                    workload,
                    priority,
                    queueing: queueing.clone(),
                    shaping,
                    base,
                    total,
                });
            }
        }
        guarantees
    }

    /// The sum of the members' rates at each stage, fraction of capacity.
    pub fn reserved_rate(&self) -> PerStage<f64> {
        PerStage::from_fn(|stage| self.limits.iter().map(|l| l[stage].rate).sum())
    }

    /// Checks everything that is promised, from scratch: every workload's traffic passes its limiters in
    /// the time counted for it, no stage is overloaded (Eq. 5.4), every bound is within its SLO (Eq. 5.5).
    ///
    /// # Errors
    /// When something fails: an overloaded stage, or the SLO that is exceeded by the largest factor.
    pub fn verify(&self, problem: &PlanningProblem) -> Result<(), FitRefusal> {
        for (stage, rate) in self.reserved_rate().iter() {
            let ratio = rate / problem.max_rate;
            if ratio > ROUNDING {
                return Err(FitRefusal::Capacity { stage, ratio });
            }
        }
        let (mut worst_ratio, mut worst) = (ROUNDING, None);
        for guarantee in self.guarantees(problem) {
            let slo = problem.workloads[guarantee.workload].slo.latency.0;
            let ratio = guarantee.total / (slo * problem.slo_factor);
            if ratio > worst_ratio {
                worst_ratio = ratio;
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

/// A ratio may exceed 1 by this factor before it counts as a failure: sums are rounded.
const ROUNDING: f64 = 1.0 + 1e-12;

/// How long each limiter may hold the workload's own traffic.
fn shaping(
    problem: &PlanningProblem,
    class: usize,
    workload: usize,
    limits: &WorkloadLimits,
) -> PerStage<f64> {
    let curves = &problem.workloads[workload].on_class[class].curves;
    PerStage::from_fn(|stage| shaping_delay(&curves[stage], limits[stage].rate, limits[stage].burst))
}

//! One server: who is on it, in which priority order, and what that guarantees.

use crate::instance::Instance;
use crate::limits::Blocked;
use calculus::{PathBound, path_bound, round_up, shaping_delay};
use model::{PerStage, RateLimit, Stage};

/// The limits of one workload.
pub type Limits = PerStage<RateLimit>;

/// Workloads that share a priority because they share an SLO.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// What queueing may take, seconds.
    pub budget: f64,
    /// Workload indices into the instance.
    pub members: Vec<usize>,
}

/// The latency that a workload is promised, with its derivation.
#[derive(Debug, Clone, PartialEq)]
pub struct Guarantee {
    /// Index into the instance.
    pub workload: usize,
    /// 0 is served first.
    pub priority: usize,
    /// Waiting behind the same and higher priorities (Eq. 5.5).
    pub queueing: PathBound,
    /// Waiting in its own limiters, where they are below its r-b curve, seconds.
    pub shaping: PerStage<f64>,
    /// The idle storage stack, seconds.
    pub base: f64,
    /// Everything together, seconds.
    pub total: f64,
}

/// A server in use.
#[derive(Debug, Clone, PartialEq)]
pub struct Server {
    /// Index into the instance's classes.
    pub class: usize,
    /// Workload indices, in the order in which they were placed.
    pub members: Vec<usize>,
    /// Limits of each member, in the same order.
    pub limits: Vec<Limits>,
}

/// Groups workloads into priorities: the tighter the SLO, the higher (thesis §5.2.1). Level 0 is served
/// first; workloads with equal SLOs share a level.
pub fn levels(instance: &Instance, class: usize, members: &[usize]) -> Vec<Level> {
    let mut sorted: Vec<(f64, usize)> = members.iter().map(|&w| (instance.budget(w, class), w)).collect();
    // Stable, so equal SLOs keep the order of placement.
    sorted.sort_by(|a, b| a.0.total_cmp(&b.0));
    let mut levels: Vec<Level> = Vec::new();
    for (budget, workload) in sorted {
        match levels.last_mut() {
            Some(level) if level.budget == budget => level.members.push(workload),
            _ => levels.push(Level { budget, members: vec![workload] }),
        }
    }
    levels
}

/// Eq. 5.5 for every level, from the limits alone; `limits` maps a workload index to its limits.
pub fn level_bounds<'a>(levels: &[Level], limits: impl Fn(usize) -> &'a Limits) -> Vec<PathBound> {
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

impl Server {
    /// The members by priority.
    pub fn levels(&self, instance: &Instance) -> Vec<Level> {
        levels(instance, self.class, &self.members)
    }

    /// The limits of a member.
    pub fn limits_of(&self, workload: usize) -> &Limits {
        let position = self.members.iter().position(|&m| m == workload);
        &self.limits[position.expect("asked for a workload that is on this server")]
    }

    /// Levels with their queueing bounds, recomputed from the limits.
    pub fn bounds(&self, instance: &Instance) -> Vec<(Level, PathBound)> {
        let levels = self.levels(instance);
        let bounds = level_bounds(&levels, |w| self.limits_of(w));
        levels.into_iter().zip(bounds).collect()
    }

    /// What every member is promised, by priority.
    pub fn guarantees(&self, instance: &Instance) -> Vec<Guarantee> {
        let base = instance.classes[self.class].base_latency;
        let mut guarantees = Vec::with_capacity(self.members.len());
        for (priority, (level, queueing)) in self.bounds(instance).into_iter().enumerate() {
            for &workload in &level.members {
                let shaping = shaping(instance, self.class, workload, self.limits_of(workload));
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

    /// Σ r at each stage, fraction of capacity.
    pub fn reserved_rate(&self) -> PerStage<f64> {
        PerStage::from_fn(|stage| self.limits.iter().map(|l| l[stage].rate).sum())
    }

    /// Checks everything that is promised, from scratch: every workload's traffic passes its limiters in
    /// the time counted for it, no stage is overloaded (Eq. 5.4), every bound is within its SLO (Eq. 5.5).
    /// Says what fails, the worst first.
    pub fn verify(&self, instance: &Instance) -> Result<(), Blocked> {
        for (stage, rate) in self.reserved_rate().iter() {
            let ratio = rate / instance.max_rate;
            if ratio > ROUNDING {
                return Err(Blocked::Capacity { stage, ratio });
            }
        }
        let mut worst = (ROUNDING, None);
        for guarantee in self.guarantees(instance) {
            let slo = instance.workloads[guarantee.workload].slo.latency.0;
            let ratio = guarantee.total / (slo * instance.slo_factor);
            if ratio > worst.0 {
                worst = (ratio, Some(Blocked::Latency { slo, ratio, stage: guarantee.slowest_stage() }));
            }
        }
        worst.1.map_or(Ok(()), Err)
    }
}

impl Guarantee {
    /// The stage that contributes most to the bound; ties go to the earlier stage on the path.
    fn slowest_stage(&self) -> Stage {
        let delay = |stage: &Stage| self.queueing.terms[*stage as usize].delay + self.shaping[*stage];
        let slowest = Stage::ALL.into_iter().rev().max_by(|a, b| delay(a).total_cmp(&delay(b)));
        slowest.expect("there are stages")
    }
}

/// Comparisons of sums allow for their rounding.
const ROUNDING: f64 = 1.0 + 1e-12;

/// How long each limiter may hold the workload's own traffic.
fn shaping(instance: &Instance, class: usize, workload: usize, limits: &Limits) -> PerStage<f64> {
    let curves = &instance.workloads[workload].on[class].curves;
    PerStage::from_fn(|stage| shaping_delay(&curves[stage], limits[stage].rate, limits[stage].burst))
}

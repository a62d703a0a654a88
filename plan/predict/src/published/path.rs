//! SNC-Meister: one latency over the whole path (thesis A.4).
//!
//! All workloads of a server pass the same queues, so that of Eq. A.5 only what shares the whole path remains:
//! `Latency(A, (S₁ ⊗ … ⊗ S_n) ⊖ A_X, p)`. The set X has all others of the same or a higher priority, merged first.
//! Traffic that leaves or joins on the way ([`calculus::snc::TwoColumnNetwork`]) there is not on such a path.
//!
//! **One unit of work.** The thesis convolves links, on which a request has the same bytes. On a path with a device it has
//! other work at each stage; here it counts as its largest, in seconds of the stage. *Then every stage serves at least a
//! second of work per second*: between the start of its busy period and any instant it has served as many seconds of its own
//! work as have passed, and counted by the largest that is no less.
//!
//! **A fluid.** As in the thesis, a stage passes on what it has served before a request is complete. Stages that
//! wait for whole requests add at most a request's work for each stage after the first; the tests compare with such stages.
//!
//! **Priorities that differ by stage**: the order is that of sets which are before all others at every stage.

use super::queue::{QueueMember, SharedQueue};
use super::{convolved, fitted, queues, table, time_step};
use calculus::snc::{QueueLatency, RateTable, ThetaGrid};
use model::{CircularTrace, Job, LatencyModel, PerStage, Prediction, ServerMember, Stage, UndefinedLatency};
use units::Nanos;
use workload::mmpp::{FitOptions, FittedProcess};

/// SNC-Meister's procedure.
#[derive(Debug, Clone)]
pub struct PublishedSnc {
    /// True if a network stage is two links in sequence, the client's and the server's, of equal rate; else
    /// it is the server's alone.
    pub client_link: bool,
    /// Convolution of queues of constant rate.
    pub convolution: Convolution,
    /// The options of the fit of the Markov-modulated process.
    pub fit: FitOptions,
    /// The grid on which ρ(θ) is tabulated.
    pub grid: ThetaGrid,
}

/// Convolution of queues of constant rate to one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Convolution {
    /// By Theorem 5, which bounds moments and does not cover equal rates: one counts as a hundredth slower, as the thesis
    /// advises. The bound pays for every step of discrete time at which work may pass from one queue to the next.
    Theorem,
    /// By the definition of the operator: the slower of two constant rates, which costs nothing.
    Exact,
}

impl Default for PublishedSnc {
    fn default() -> Self {
        Self {
            client_link: false,
            convolution: Convolution::Theorem,
            fit: FitOptions::PUBLISHED,
            grid: ThetaGrid::LATENCIES,
        }
    }
}

/// SNC-Meister's table of a workload.
#[derive(Debug, Clone)]
pub struct PathSketch {
    /// The table of ρ(θ) on the path; `None` where the workload has no work at all.
    rates: Option<RateTable>,
    utilisation: PerStage<f64>,
}

impl PathSketch {
    /// The memory that the sketch occupies beside its own fields, bytes.
    pub fn heap_bytes(&self) -> usize {
        self.rates.as_ref().map_or(0, RateTable::heap_bytes)
    }

    /// The stages at which the workload has work.
    fn stages(&self) -> impl Iterator<Item = Stage> {
        Stage::ALL.into_iter().filter(|stage| self.utilisation[*stage] > 0.0)
    }
}

/// A bound with its derivation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PathLatency {
    /// The number of queues on the path.
    pub queues: usize,
    /// The number of other workloads that go first.
    pub ahead: usize,
    /// The probability that the latency is exceeded.
    pub exceeded: f64,
    /// The latency and its addends.
    pub latency: QueueLatency,
}

impl PublishedSnc {
    /// The sketch of a workload with windows counted from `silence` before its first request, because it matters where
    /// they are cut.
    pub fn sketch_after(&self, traffic: &CircularTrace<Job>, silence: Nanos) -> PathSketch {
        let utilisation = traffic.utilisation();
        let has_work = utilisation.iter().any(|(_, share)| *share > 0.0);
        let rates = has_work.then(|| table(self.grid, self.fitted(traffic, silence)));
        PathSketch { rates, utilisation }
    }

    /// The published fit of a workload's arrivals, the largest work of each request in seconds.
    pub fn fitted(&self, traffic: &CircularTrace<Job>, silence: Nanos) -> Option<FittedProcess> {
        let largest = |job: &Job| job.work.iter().map(|(_, work)| *work).max().map_or(0.0, Nanos::as_secs);
        fitted(self.fit, traffic, silence, largest)
    }

    /// The derivation of a member's bound; `None` if it has no work.
    ///
    /// # Errors
    /// When the member has no bound.
    pub fn latency(
        &self,
        members: &[ServerMember<'_, PathSketch>],
        member: usize,
    ) -> Result<Option<PathLatency>, UndefinedLatency> {
        self.latency_at(&shared_path(members), members, member)
    }

    fn latency_at(
        &self,
        path: &SharedQueue<'_>,
        members: &[ServerMember<'_, PathSketch>],
        member: usize,
    ) -> Result<Option<PathLatency>, UndefinedLatency> {
        let own = &members[member];
        let queues: Vec<_> = own.sketch.stages().flat_map(|stage| queues(stage, self.client_link)).collect();
        let count = queues.len();
        let service = match self.convolution {
            Convolution::Theorem => convolved(queues),
            Convolution::Exact => queues.into_iter().next(),
        };
        let Some(service) = service else { return Ok(None) };
        for stage in own.sketch.stages() {
            let utilisation: f64 =
                path.ahead(member).map(|ahead| members[ahead].sketch.utilisation[stage]).sum();
            if utilisation >= 1.0 {
                return Err(UndefinedLatency::Overload { stage, utilisation });
            }
        }
        let exceeded = 1.0 - own.percentile.fraction();
        let latency = path.latency(member, &service, exceeded, time_step(&self.fit));
        let latency = latency.ok_or(UndefinedLatency::NoBound)?;
        let ahead = path.ahead(member).count() - 1;
        Ok(Some(PathLatency { queues: count, ahead, exceeded, latency }))
    }
}

/// All members on the path.
fn shared_path<'a>(members: &[ServerMember<'a, PathSketch>]) -> SharedQueue<'a> {
    let member = |(member, priority): (&ServerMember<'a, PathSketch>, u32)| QueueMember {
        table: member.sketch.rates.as_ref(),
        priority,
        group: member.group,
    };
    let priorities: Vec<PerStage<u32>> = members.iter().map(|member| member.priority).collect();
    SharedQueue::new(members.iter().zip(path_priorities(&priorities)).map(member).collect())
}

/// One priority per member that holds at every stage: of two, the smaller goes first at all of them.
fn path_priorities(members: &[PerStage<u32>]) -> Vec<u32> {
    let mut order: Vec<usize> = (0..members.len()).collect();
    order.sort_by_key(|&member| members[member].into_array());
    // Members from each position on have at least these priorities.
    let mut least = vec![PerStage::from_fn(|_| u32::MAX); members.len() + 1];
    for (position, &member) in order.iter().enumerate().rev() {
        let after = least[position + 1];
        least[position] = PerStage::from_fn(|stage| members[member][stage].min(after[stage]));
    }
    let mut priorities = vec![0; members.len()];
    let mut priority = 0;
    let mut largest = PerStage::from_fn(|_| 0);
    for (position, &member) in order.iter().enumerate() {
        let is_before = |stage: Stage| largest[stage] < least[position][stage];
        priority += u32::from(position > 0 && Stage::ALL.into_iter().all(is_before));
        priorities[member] = priority;
        largest = PerStage::from_fn(|stage| members[member][stage].max(largest[stage]));
    }
    priorities
}

impl LatencyModel for PublishedSnc {
    type Sketch = PathSketch;

    fn name(&self) -> &'static str {
        "published-snc"
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> PathSketch {
        self.sketch_after(traffic, Nanos::ZERO)
    }

    fn predict(&self, members: &[ServerMember<'_, PathSketch>]) -> Vec<Result<Prediction, UndefinedLatency>> {
        let path = shared_path(members);
        let mut predictions = Vec::with_capacity(members.len());
        for member in 0..members.len() {
            let latency = self.latency_at(&path, members, member);
            predictions.push(latency.map(|found| {
                let bound = found.map_or(0.0, |found| found.latency.seconds);
                Prediction { bound, estimate: None }
            }));
        }
        predictions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_priority_holds_at_every_stage() {
        let of =
            |at: [[u32; 3]; 4]| path_priorities(&at.map(|at| PerStage::from_fn(|stage| at[stage as usize])));
        assert_eq!(of([[2; 3], [0; 3], [5; 3], [2; 3]]), [1, 0, 2, 1]);
        // The first two change places at the device: neither goes before the other.
        assert_eq!(of([[0, 1, 0], [1, 0, 1], [2; 3], [7; 3]]), [0, 0, 1, 2]);
        // The last is first on the way out, so that nothing goes before anything.
        assert_eq!(of([[0, 0, 1], [1, 1, 2], [2, 2, 3], [3, 3, 0]]), [0; 4]);
        assert_eq!(path_priorities(&[]), [] as [u32; 0]);
    }
}

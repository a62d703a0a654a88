//! One bound per stage, added by a union bound: what SNC-Meister avoids.
//!
//! Each stage on the path is a queue with a share of what may be exceeded. Arrivals at later stages are taken as they
//! were at the first, which no theorem allows: the thesis has the output operator there, at the price of dependence.

use super::queue::{QueueMember, SharedQueue};
use super::{convolved, fitted, queues, table, time_step};
use calculus::snc::{QueueLatency, RateTable, ServiceProcess, ThetaGrid};
use model::{CircularTrace, Job, LatencyModel, PerStage, Prediction, ServerMember, Stage, UndefinedLatency};
use units::Nanos;
use workload::mmpp::{FitOptions, FittedProcess};

/// The procedure and where it is in doubt.
#[derive(Debug, Clone)]
pub struct SncByStage {
    /// Division of the probability ε that may be exceeded among the stages.
    pub split: EpsilonSplit,
    /// True if a network stage is two links in sequence, the client's and the server's, of equal rate; else
    /// it is the server's alone.
    pub client_link: bool,
    /// The options of the fit of the Markov-modulated process.
    pub fit: FitOptions,
    /// The grid on which ρ(θ) is tabulated.
    pub grid: ThetaGrid,
}

/// Division of ε among the stages that have work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpsilonSplit {
    /// Every stage gets the same part, as the union bound asks.
    Equal,
    /// Every stage gets ε over the number of stages counted so far: ε, ε/2, …, more than ε in all.
    Published,
}

impl Default for SncByStage {
    fn default() -> Self {
        Self {
            split: EpsilonSplit::Equal,
            client_link: false,
            fit: FitOptions::PUBLISHED,
            grid: ThetaGrid::LATENCIES,
        }
    }
}

/// The tables of a workload, by stage.
#[derive(Debug, Clone)]
pub struct StageSketch {
    /// The table of ρ(θ) at each stage; `None` where the workload has no work.
    rates: PerStage<Option<RateTable>>,
    utilisation: PerStage<f64>,
}

impl StageSketch {
    /// The memory that the sketch occupies beside its own fields, bytes.
    pub fn heap_bytes(&self) -> usize {
        self.rates.iter().filter_map(|(_, table)| table.as_ref()).map(RateTable::heap_bytes).sum()
    }
}

/// One stage of a bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SncStage {
    /// The stage that the term is of.
    pub stage: Stage,
    /// The share of ε that it may use.
    pub exceeded: f64,
    /// The latency at the stage.
    pub latency: QueueLatency,
}

impl SncByStage {
    /// The sketch of a workload with windows counted from `silence` before its first request, because it matters where
    /// they are cut.
    pub fn sketch_after(&self, traffic: &CircularTrace<Job>, silence: Nanos) -> StageSketch {
        let utilisation = traffic.utilisation();
        let rates = PerStage::from_fn(|stage| {
            (utilisation[stage] > 0.0).then(|| table(self.grid, self.fitted(traffic, stage, silence)))
        });
        StageSketch { rates, utilisation }
    }

    /// The published fit of one stage's arrivals, work in seconds.
    pub fn fitted(
        &self,
        traffic: &CircularTrace<Job>,
        stage: Stage,
        silence: Nanos,
    ) -> Option<FittedProcess> {
        fitted(self.fit, traffic, silence, |job| job.work[stage].as_secs())
    }

    /// The service of a stage before any traffic is taken from it.
    fn service(&self, stage: Stage) -> ServiceProcess {
        convolved(queues(stage, self.client_link)).expect("a stage has a queue")
    }

    /// The probability that a member's requests may exceed the bound of each stage.
    fn epsilon_by_stage(&self, member: &ServerMember<'_, StageSketch>) -> PerStage<f64> {
        let epsilon = 1.0 - member.percentile.fraction();
        let stages = member.sketch.rates.iter().filter(|(_, table)| table.is_some()).count();
        let mut counted = 0;
        PerStage::from_fn(|stage| {
            counted += usize::from(member.sketch.rates[stage].is_some());
            match self.split {
                EpsilonSplit::Equal => epsilon / stages as f64,
                EpsilonSplit::Published => epsilon / counted.max(1) as f64,
            }
        })
    }

    /// The stages of a member's bound; their latencies add up to it.
    ///
    /// # Errors
    /// When the member has no bound.
    pub fn stages(
        &self,
        members: &[ServerMember<'_, StageSketch>],
        member: usize,
    ) -> Result<Vec<SncStage>, UndefinedLatency> {
        let mut stages = Vec::new();
        for stage in Stage::ALL {
            stages.extend(self.stage_of(&queue(members, stage), members, (member, stage))?);
        }
        Ok(stages)
    }

    /// The term of a member at the queue of a stage; `None` where it has no work.
    fn stage_of(
        &self,
        queue: &SharedQueue<'_>,
        members: &[ServerMember<'_, StageSketch>],
        (member, stage): (usize, Stage),
    ) -> Result<Option<SncStage>, UndefinedLatency> {
        if members[member].sketch.rates[stage].is_none() {
            return Ok(None);
        }
        let utilisation: f64 =
            queue.ahead(member).map(|ahead| members[ahead].sketch.utilisation[stage]).sum();
        if utilisation >= 1.0 {
            return Err(UndefinedLatency::Overload { stage, utilisation });
        }
        let exceeded = self.epsilon_by_stage(&members[member])[stage];
        let latency = queue.latency(member, &self.service(stage), exceeded, time_step(&self.fit));
        let latency = latency.ok_or(UndefinedLatency::NoBound)?;
        Ok(Some(SncStage { stage, exceeded, latency }))
    }
}

/// All members at one stage.
fn queue<'a>(members: &[ServerMember<'a, StageSketch>], stage: Stage) -> SharedQueue<'a> {
    let member = |member: &ServerMember<'a, StageSketch>| QueueMember {
        table: member.sketch.rates[stage].as_ref(),
        priority: member.priority[stage],
        group: member.group,
    };
    SharedQueue::new(members.iter().map(member).collect())
}

impl LatencyModel for SncByStage {
    type Sketch = StageSketch;

    fn name(&self) -> &'static str {
        "snc-by-stage"
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> StageSketch {
        self.sketch_after(traffic, Nanos::ZERO)
    }

    fn predict(
        &self,
        members: &[ServerMember<'_, StageSketch>],
    ) -> Vec<Result<Prediction, UndefinedLatency>> {
        let mut totals = vec![Ok(0.0); members.len()];
        for stage in Stage::ALL {
            let queue = queue(members, stage);
            for (member, total) in totals.iter_mut().enumerate() {
                let Ok(sum) = *total else { continue };
                let term = self.stage_of(&queue, members, (member, stage));
                *total = term.map(|term| sum + term.map_or(0.0, |term| term.latency.seconds));
            }
        }
        totals.into_iter().map(|total| Ok(Prediction { bound: total?, estimate: None })).collect()
    }
}

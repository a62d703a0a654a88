//! The stochastic predictor as published (thesis chapter 4 and Appendix A), for figures to be comparable.
//!
//! Each stage on the path is a queue with a share of what may be exceeded; a workload's arrivals at a stage
//! are the published fit of a Markov-modulated process ([`workload::mmpp`]) with σ = 0; all others of the
//! same or higher priority go first, also within a priority; dependent groups are merged by the
//! aggregation algorithm of A.4, with Hölder's weights optimised.
//!
//! **Its bounds are exceeded by real traffic**: windows of a second hide shorter bursts, exponential sizes
//! hide batches, σ = 0 forgets the state that an interval starts in, and arrivals at later stages are taken
//! as they were at the first. The fit also depends on where windows are cut, by tens of percent. It is
//! here to be compared with; nothing should be promised by it.

use calculus::snc::{
    DependentSum, MarkovArrivals, MarkovState, Prefactor, RateTable, ServiceProcess, SquareMatrix,
    TabulatedQueue, ThetaGrid, TimeStep, independent_sum,
};
use model::{CircularTrace, Job, LatencyModel, PerStage, Prediction, ServerMember, Stage, UndefinedLatency};
use units::Nanos;
use workload::mmpp::{FitOptions, FittedProcess, Fitter};

/// The published procedure and where it is in doubt.
#[derive(Debug, Clone)]
pub struct PublishedSnc {
    /// How the probability ε that may be exceeded is divided among the stages.
    pub split: EpsilonSplit,
    /// Whether a network stage is two links in sequence, the client's and the server's, of equal rate; else
    /// the server's alone.
    pub client_link: bool,
    /// The options of the fit of the Markov-modulated process.
    pub fit: FitOptions,
    /// The grid on which ρ(θ) is tabulated.
    pub grid: ThetaGrid,
}

/// How ε is divided among the stages that have work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EpsilonSplit {
    /// Every stage gets the same part, as the union bound asks.
    Equal,
    /// Every stage gets ε over the number of stages counted so far: ε, ε/2, …, more than ε in all.
    Published,
}

impl Default for PublishedSnc {
    fn default() -> Self {
        Self {
            split: EpsilonSplit::Equal,
            client_link: false,
            fit: FitOptions::PUBLISHED,
            grid: ThetaGrid::LATENCIES,
        }
    }
}

/// What the published procedure keeps of a workload.
#[derive(Debug, Clone)]
pub struct PublishedSketch {
    /// The table of ρ(θ) at each stage; `None` where the workload has no work.
    rates: PerStage<Option<RateTable>>,
    utilisation: PerStage<f64>,
}

impl PublishedSketch {
    /// The memory that the sketch occupies beside its own fields, bytes.
    pub fn heap_bytes(&self) -> usize {
        let tables = self.rates.iter().filter_map(|(_, table)| table.as_ref());
        tables.map(|table| table.grid().points * size_of::<f64>()).sum()
    }
}

impl PublishedSnc {
    /// The sketch of a workload with windows counted from `silence` before its first request, because it matters where
    /// they are cut.
    pub fn sketch_after(&self, traffic: &CircularTrace<Job>, silence: Nanos) -> PublishedSketch {
        let utilisation = traffic.utilisation();
        let rates = PerStage::from_fn(|stage| {
            (utilisation[stage] > 0.0).then(|| {
                let fitted = self.fitted(traffic, stage, silence);
                let arrivals = fitted.and_then(|process| markov_arrivals(&process));
                match arrivals {
                    Some(arrivals) => RateTable::new(self.grid, &arrivals),
                    None => RateTable::unbounded(self.grid),
                }
            })
        });
        PublishedSketch { rates, utilisation }
    }

    /// The published fit of one stage's arrivals, work in seconds.
    pub fn fitted(
        &self,
        traffic: &CircularTrace<Job>,
        stage: Stage,
        silence: Nanos,
    ) -> Option<FittedProcess> {
        let mut fitter = Fitter::new(self.fit).from_origin(Nanos::ZERO);
        for job in traffic.items() {
            fitter.push(job.arrival + silence, job.work[stage].as_secs());
        }
        fitter.finish()
    }

    /// The step of discrete time, which is that of the fit.
    fn step(&self) -> TimeStep {
        TimeStep::new(self.fit.step.as_secs()).expect("checked by the fitter")
    }

    /// The service of a stage before any traffic is taken from it.
    fn service(&self, stage: Stage) -> ServiceProcess {
        let server = ServiceProcess::constant(stage.name(), 1.0);
        match stage {
            Stage::NetworkIn | Stage::NetworkOut if self.client_link => {
                ServiceProcess::constant("client", 1.0).convolve(&server)
            }
            _ => server,
        }
    }

    /// The probability that a member's requests may exceed the bound of each stage.
    fn epsilon_by_stage(&self, member: &ServerMember<'_, PublishedSketch>) -> PerStage<f64> {
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
}

/// One stage of a published bound.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PublishedStage {
    /// The stage that the term is of.
    pub stage: Stage,
    /// The share of ε that it may use.
    pub exceeded: f64,
    /// The exponent that gives the least latency, per second of work.
    pub theta: f64,
    /// The latency at the stage, seconds.
    pub latency: f64,
}

impl PublishedSnc {
    /// The stages of a member's bound; their latencies add up to it.
    ///
    /// # Errors
    /// When the member has no bound.
    pub fn stages(
        &self,
        members: &[ServerMember<'_, PublishedSketch>],
        member: usize,
    ) -> Result<Vec<PublishedStage>, UndefinedLatency> {
        let exceeded = self.epsilon_by_stage(&members[member]);
        let mut stages = Vec::new();
        for stage in Stage::ALL {
            if members[member].sketch.rates[stage].is_none() {
                continue;
            }
            let queue = StageQueue::new(members, stage);
            let (latency, theta) =
                queue.latency(member, &self.service(stage), exceeded[stage], self.step())?;
            stages.push(PublishedStage { stage, exceeded: exceeded[stage], theta, latency });
        }
        Ok(stages)
    }
}

/// The arrivals of a fit as the published procedure reads it, with σ = 0. `None` if a state sends more than a request per
/// step.
pub fn markov_arrivals(fitted: &FittedProcess) -> Option<MarkovArrivals> {
    let step = fitted.step.as_secs();
    let transitions = SquareMatrix::from_fn(fitted.states.len(), |i, j| fitted.states[i].next[j]);
    let states = fitted
        .states
        .iter()
        .map(|state| MarkovState { per_step: state.rate * step, mean_work: state.mean_work });
    MarkovArrivals::new(states.collect(), transitions, step, Prefactor::Dropped).ok()
}

impl LatencyModel for PublishedSnc {
    type Sketch = PublishedSketch;

    fn name(&self) -> &'static str {
        "published-snc"
    }

    fn sketch(&self, traffic: &CircularTrace<Job>) -> PublishedSketch {
        self.sketch_after(traffic, Nanos::ZERO)
    }

    fn predict(
        &self,
        members: &[ServerMember<'_, PublishedSketch>],
    ) -> Vec<Result<Prediction, UndefinedLatency>> {
        let mut totals = vec![Ok(0.0); members.len()];
        for stage in Stage::ALL {
            let service = self.service(stage);
            let queue = StageQueue::new(members, stage);
            for (position, total) in totals.iter_mut().enumerate() {
                let Ok(sum) = *total else { continue };
                let exceeded = self.epsilon_by_stage(&members[position])[stage];
                let latency = queue.latency(position, &service, exceeded, self.step());
                *total = latency.map(|(delay, _)| sum + delay);
            }
        }
        totals.into_iter().map(|total| Ok(Prediction { bound: total?, estimate: None })).collect()
    }
}

/// All members at one stage.
struct StageQueue<'a> {
    members: &'a [ServerMember<'a, PublishedSketch>],
    stage: Stage,
    /// The members with work here, by priority.
    order: Vec<usize>,
    /// The index of the sum over all members up to the end of each member's priority, itself included.
    sum_index: Vec<usize>,
    /// One running sum per priority.
    sums: Vec<RateTable>,
}

impl<'a> StageQueue<'a> {
    fn new(members: &'a [ServerMember<'a, PublishedSketch>], stage: Stage) -> Self {
        let mut order: Vec<usize> =
            (0..members.len()).filter(|&m| members[m].sketch.rates[stage].is_some()).collect();
        order.sort_by_key(|&m| (members[m].priority[stage], m));
        let mut queue = Self { members, stage, order, sum_index: vec![0; members.len()], sums: Vec::new() };
        queue.add_up();
        queue
    }

    /// Computes the running sums.
    fn add_up(&mut self) {
        let mut total: Option<RateTable> = None;
        for (k, &m) in self.order.iter().enumerate() {
            let table = self.table(m);
            match &mut total {
                Some(sum) => sum.add(table),
                None => total = Some(table.clone()),
            }
            self.sum_index[m] = self.sums.len();
            let next = self.order.get(k + 1).map(|&n| self.members[n].priority[self.stage]);
            if next != Some(self.members[m].priority[self.stage]) {
                self.sums.extend(total.clone());
            }
        }
    }

    /// The table of a member that has work here.
    fn table(&self, member: usize) -> &'a RateTable {
        self.members[member].sketch.rates[self.stage].as_ref().expect("ordered members have work here")
    }

    /// The delay in seconds and the exponent that gives it.
    fn latency(
        &self,
        member: usize,
        service: &ServiceProcess,
        exceeded: f64,
        step: TimeStep,
    ) -> Result<(f64, f64), UndefinedLatency> {
        let Some(own) = self.members[member].sketch.rates[self.stage].as_ref() else { return Ok((0.0, 0.0)) };
        let priority = self.members[member].priority[self.stage];
        let members = self.order.iter().copied();
        let ahead: Vec<usize> =
            members.take_while(|&m| self.members[m].priority[self.stage] <= priority).collect();
        let utilisation: f64 = ahead.iter().map(|&m| self.members[m].sketch.utilisation[self.stage]).sum();
        if utilisation >= 1.0 {
            return Err(UndefinedLatency::Overload { stage: self.stage, utilisation });
        }
        let others: Vec<usize> = ahead.into_iter().filter(|&m| m != member).collect();
        let table = self.merged(member, &others);
        let group = self.members[member].group;
        let dependent = others.iter().any(|&m| self.members[m].group == group);
        let queue = TabulatedQueue { own, others: table.as_ref(), dependent, service, step };
        queue.latency(exceeded).ok_or(UndefinedLatency::NoBound)
    }

    /// The table of all the others together, by the aggregation algorithm of A.4.
    fn merged(&self, member: usize, others: &[usize]) -> Option<RateTable> {
        let groups = self.independent_groups(others);
        match groups.as_slice() {
            [] => None,
            [_] => Some(self.sums[self.sum_index[member]].without(self.table(member))),
            many => {
                let groups = many.iter().map(|group| group.iter().map(|&m| self.table(m)));
                let sums: Vec<RateTable> = groups.filter_map(independent_sum).collect();
                DependentSum(&sums.iter().collect::<Vec<_>>()).table()
            }
        }
    }

    /// The members, each in the first set that has no member of its dependency group.
    fn independent_groups(&self, others: &[usize]) -> Vec<Vec<usize>> {
        // The k-th member of a dependency group that is met goes into the k-th set.
        let mut met = std::collections::BTreeMap::<usize, usize>::new();
        let mut groups: Vec<Vec<usize>> = Vec::new();
        for &m in others {
            let next = met.entry(self.members[m].group).or_default();
            match groups.get_mut(*next) {
                Some(group) => group.push(m),
                None => groups.push(vec![m]),
            }
            *next += 1;
        }
        groups
    }
}

//! A workload on a storage server: what it asks for, and its requests as time at each stage.

use super::playback::{at_rate, instants_from, random_beginning, work_from};
use ::model::{CircularTrace, Job, PerStage, Slo, Stage};
use arrivals::TimeDistribution;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::engine::{EntryArrivals, RequestDraft, RequestEntry, SKIP};
use std::sync::Arc;
use units::Nanos;

/// A workload with its requests.
#[derive(Clone)]
pub struct Tenant {
    /// Unique; its position among the tenants is its class.
    pub name: String,
    /// What it asks for, if anything.
    pub slo: Option<Slo>,
    /// Served below everybody who is promised something.
    pub best_effort: bool,
    /// Its share where shares are in proportion, at least 1.
    pub weight: u32,
    /// What it sends.
    pub demand: Demand,
}

/// What a workload sends.
#[derive(Clone)]
pub enum Demand {
    /// A trace that repeats for ever.
    Recorded {
        /// Its requests.
        trace: Arc<CircularTrace<Job>>,
        /// Where in it every replication begins; none: anywhere, at random.
        begin: Option<Nanos>,
    },
    /// Clients that wait for each answer: a copy that goes as fast as it may.
    Clients {
        /// How many.
        clients: u32,
        /// Between an answer and the next request.
        think: TimeDistribution,
        /// What each request needs.
        work: PerStage<Nanos>,
    },
}

impl Tenant {
    /// Mean work per second of a stage, seconds; none where clients wait for answers.
    pub fn utilisation(&self, stage: Stage) -> Option<f64> {
        match &self.demand {
            Demand::Recorded { trace, .. } => Some(trace.utilisation()[stage]),
            Demand::Clients { .. } => None,
        }
    }

    /// Multiplies the rate of arrivals.
    pub(crate) fn scale(&mut self, factor: f64) -> Result<(), String> {
        match &mut self.demand {
            Demand::Recorded { trace, .. } => {
                *trace = Arc::new(at_rate(trace, factor)?);
                Ok(())
            }
            Demand::Clients { .. } => Err("a load cannot be set where clients wait".into()),
        }
    }

    /// Its requests as an entry of the engine, the device divided into `channels`; a trace ends at `until`.
    pub(crate) fn entry(&self, class: u32, channels: u32, until: Nanos, seeds: &mut StdRng) -> RequestEntry {
        let seed = seeds.random();
        match &self.demand {
            Demand::Recorded { trace, begin } => {
                let begin = begin.unwrap_or_else(|| random_beginning(trace, seed));
                let mut work = work_from(trace.clone(), begin);
                let draw = move |draft: &mut RequestDraft<'_>| fill(draft, class, channels, work.next());
                let instants = instants_from(trace.clone(), begin).take_while(move |at| *at < until);
                RequestEntry::open(instants, draw)
            }
            Demand::Clients { clients, think, work } => {
                let (sampler, mut random) = (think.sampler(), StdRng::seed_from_u64(seed));
                let think = std::iter::repeat_with(move || sampler.draw(&mut random));
                let work = *work;
                let draw = move |draft: &mut RequestDraft<'_>| fill(draft, class, channels, Some(work));
                RequestEntry {
                    arrivals: closed(*clients, think),
                    ..RequestEntry::open(std::iter::empty(), draw)
                }
            }
        }
    }
}

fn closed(clients: u32, think: impl Iterator<Item = Nanos> + 'static) -> EntryArrivals {
    EntryArrivals::Closed { clients, think: Box::new(think) }
}

/// A stage without work is left out: nobody queues there for nothing.
fn fill(draft: &mut RequestDraft<'_>, class: u32, channels: u32, work: Option<PerStage<Nanos>>) {
    let work = work.expect("a circular trace has no end");
    draft.class = class;
    for (demand, stage) in draft.demands.iter_mut().zip(Stage::ALL) {
        let times = if stage == Stage::Storage { u64::from(channels) } else { 1 };
        *demand = if work[stage].0 == 0 { SKIP } else { Nanos(work[stage].0.saturating_mul(times)) };
    }
}

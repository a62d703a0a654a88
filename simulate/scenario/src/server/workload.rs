//! A workload on a storage server: its SLO, and its requests as time at each stage.

use super::playback::{accesses_from, at_rate, instants_from, random_beginning, work_from};
use super::storage_server::{IdleDevice, StorageServer};
use ::model::{CircularTrace, Job, PerStage, Slo, Stage};
use arrivals::TimeDistribution;
use discipline::enforce::DeviceAccess;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::engine::{RequestDraft, RequestEntry, SKIP};
use std::sync::Arc;
use units::Nanos;

/// A workload with its requests.
#[derive(Clone)]
pub struct SimulatedWorkload {
    /// The name, which is unique; its position among the workloads is its class.
    pub name: String,
    /// The SLO that it asks for, if any.
    pub slo: Option<Slo>,
    /// True if it is served below all workloads with a promise.
    pub best_effort: bool,
    /// Its share where shares are in proportion, at least 1.
    pub weight: u32,
    /// The requests that it sends.
    pub requests: WorkloadRequests,
}

/// The requests that a workload sends.
#[derive(Clone)]
pub enum WorkloadRequests {
    /// A trace that repeats for ever.
    Recorded {
        /// The requests as work at each stage.
        trace: Arc<CircularTrace<Job>>,
        /// Device access of each request, in the order of the trace; empty if not known.
        accesses: Arc<[DeviceAccess]>,
        /// Beginning of every replication in the trace; `None` for a random one.
        begin: Option<Nanos>,
    },
    /// Clients that wait for each answer, such as a copy that goes as fast as it may.
    Clients {
        /// The number of clients.
        clients: u32,
        /// The time between an answer and the next request of a client.
        think: TimeDistribution,
        /// The work of each request.
        work: PerStage<Nanos>,
        /// Device access of each request.
        access: DeviceAccess,
    },
}

impl SimulatedWorkload {
    /// Mean work per second of a stage, seconds; none where clients wait for answers.
    pub fn utilisation(&self, stage: Stage) -> Option<f64> {
        match &self.requests {
            WorkloadRequests::Recorded { trace, .. } => Some(trace.utilisation()[stage]),
            WorkloadRequests::Clients { .. } => None,
        }
    }

    /// Returns the longest device time among its best-effort requests. These are all its requests, or, if
    /// the policy places it (`planned`), those larger than the largest with a level. `None` if there are
    /// none.
    pub(crate) fn longest_best_effort(&self, planned: Option<Option<f64>>) -> Option<Nanos> {
        let with_level = match planned {
            None => None,
            Some(None) => return None,
            Some(Some(largest)) => Some(largest),
        };
        let longest = match &self.requests {
            WorkloadRequests::Recorded { trace, .. } => {
                trace.items().iter().map(|job| job.work[Stage::Storage]).max()?
            }
            WorkloadRequests::Clients { work, .. } => work[Stage::Storage],
        };
        let has_level = |largest: f64| longest.0.saturating_sub(1) as f64 / 1e9 <= largest * (1.0 + 1e-6);
        (!with_level.is_some_and(has_level) && longest.0 > 0).then_some(longest)
    }

    /// The period of its trace; none where clients wait for answers.
    pub(crate) fn period(&self) -> Option<Nanos> {
        match &self.requests {
            WorkloadRequests::Recorded { trace, .. } => Some(trace.period()),
            WorkloadRequests::Clients { .. } => None,
        }
    }

    /// Multiplies the rate of arrivals.
    pub(crate) fn scale(&mut self, factor: f64) -> Result<(), String> {
        match &mut self.requests {
            WorkloadRequests::Recorded { trace, .. } => {
                *trace = Arc::new(at_rate(trace, factor)?);
                Ok(())
            }
            WorkloadRequests::Clients { .. } => Err("a load cannot be set where clients wait".into()),
        }
    }

    /// Its requests as an entry of the engine on a server; a trace ends at `until`.
    pub(crate) fn entry(
        &self,
        class: u32,
        server: &StorageServer,
        until: Nanos,
        seeds: &mut StdRng,
    ) -> RequestEntry {
        let seed = seeds.random();
        let channels = server.channels();
        let idle = IdleDevice::of(server);
        match &self.requests {
            WorkloadRequests::Recorded { trace, accesses, begin } => {
                let begin = begin.unwrap_or_else(|| random_beginning(trace, seed));
                let mut accesses = accesses_from(trace, accesses.clone(), begin);
                let instants = instants_from(trace.clone(), begin).take_while(move |at| *at < until);
                let mut works = work_from(trace.clone(), begin);
                RequestEntry::open(instants, move |draft: &mut RequestDraft<'_>| {
                    let work = works.next().expect("a circular trace has no end");
                    fill_draft(draft, class, channels, &work);
                    set_access(draft, accesses.next(), &idle);
                })
            }
            WorkloadRequests::Clients { clients, think, work, access } => {
                let sampler = think.sampler();
                let mut random = StdRng::seed_from_u64(seed);
                let think = std::iter::repeat_with(move || sampler.draw(&mut random));
                let work = *work;
                let access = *access;
                RequestEntry::closed(*clients, think, move |draft: &mut RequestDraft<'_>| {
                    fill_draft(draft, class, channels, &work);
                    set_access(draft, Some(access), &idle);
                })
            }
        }
    }
}

/// Notes what a request does at the device, which decides how long its answer takes from the idle one.
fn set_access(draft: &mut RequestDraft<'_>, access: Option<DeviceAccess>, idle: &IdleDevice) {
    draft.access = access;
    if let Some(access) = &draft.access {
        draft.delays[Stage::NetworkOut as usize] = idle.latency(access);
    }
}

/// Fills in a request of this work. A stage without work is left out, so that no request queues there for nothing.
fn fill_draft(draft: &mut RequestDraft<'_>, class: u32, channels: u32, work: &PerStage<Nanos>) {
    draft.class = class;
    for (demand, stage) in draft.demands.iter_mut().zip(Stage::ALL) {
        let times = if stage == Stage::Storage { u64::from(channels) } else { 1 };
        *demand = if work[stage].0 == 0 { SKIP } else { Nanos(work[stage].0.saturating_mul(times)) };
    }
}

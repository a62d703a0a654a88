//! What the tail is made of: the shares of causes near percentiles, and what these would be without each.

use super::attribution::{AttributedRequest, CauseAttribution};
use super::cause::Cause;
use super::occupancy::InterferingProcess;
use super::profile::{CauseProfile, IntendedWaits, PercentileCauses};
use super::replay::{
    Counterfactual, OvertakenRequests, TakenOut, counterfactual, interfering_processes, overtaken,
    without_client,
};
use crate::event::KernelEvent;
use crate::request::{HeldUpTime, ObservedRequest};
use std::collections::VecDeque;
use std::net::IpAddr;

/// The most requests that are kept for replays: the last ones, some 600 bytes each.
pub const REPLAYED_MAX: usize = 1 << 16;

/// Takes events and finished requests, and says at the end what the requests spent their time on.
#[derive(Debug)]
pub struct CauseObserver {
    attribution: CauseAttribution,
    intended_waits: IntendedWaits,
    profile: CauseProfile,
    /// The requests since the last part, where parts are wanted.
    part: Option<CauseProfile>,
    last: VecDeque<AttributedRequest>,
}

/// What the tail is made of.
#[derive(Debug, Clone)]
pub struct CauseReport {
    /// What was done with intended waits.
    pub intended_waits: IntendedWaits,
    /// The time of intended waits that was left out, in all requests, in nanoseconds.
    pub left_out: u128,
    /// The number of requests whose time was divided among causes.
    pub requests: u64,
    /// Causes near each percentile; empty without requests.
    pub percentiles: Vec<PercentileCauses>,
    /// Causes by latency.
    pub profile: CauseProfile,
    /// How many requests, the last ones, were kept for replays.
    pub replayed: usize,
    /// First nothing taken out, then each cause that any of the kept requests has, each
    /// process of `interfering`, the
    /// client whose requests lengthen p99 of the others most if there are several, then the queues of workers.
    pub counterfactuals: Vec<Counterfactual>,
    /// The processes that had CPUs of workers for the longest time while the kept requests waited, the first one longest.
    pub interfering: Vec<InterferingProcess>,
    /// Those of the kept requests that were overtaken.
    pub overtaken: OvertakenRequests,
    /// What the hypervisor took from all CPUs meanwhile, in nanoseconds with a resolution of 10 ms; `None` where the
    /// kernel does not say, or nobody looked.
    pub stolen: Option<u64>,
}

impl CauseObserver {
    /// An observer that has seen nothing.
    pub fn new(intended_waits: IntendedWaits) -> Self {
        Self {
            attribution: CauseAttribution::new(),
            intended_waits,
            profile: CauseProfile::new(intended_waits),
            part: None,
            last: VecDeque::with_capacity(REPLAYED_MAX),
        }
    }

    /// Takes the next event.
    pub fn handle(&mut self, event: &KernelEvent) {
        self.attribution.handle(event);
    }

    /// Nothing was seen for a while: what threads and CPUs do is not known any more.
    pub(crate) fn forget_threads(&mut self) {
        self.attribution = CauseAttribution::new();
    }

    /// Takes a request that is complete. Returns how long its worker was held up, and the cause that has most of the
    /// request's time.
    pub fn add(&mut self, request: &ObservedRequest) -> (HeldUpTime, Cause) {
        let divided = self.attribution.divide(request);
        let held_up = divided.held_up;
        let dominant = divided.dominant();
        self.profile.add(&divided, request.answer_bytes);
        if let Some(part) = &mut self.part {
            part.add(&divided, request.answer_bytes);
        }
        if self.last.len() >= REPLAYED_MAX {
            self.last.pop_front();
        }
        self.last.push_back(divided);
        (held_up, dominant)
    }

    /// Begins a part. Returns the report of the part before without replays, if there was one.
    pub(crate) fn next_part(&mut self) -> Option<CauseReport> {
        let profile = self.part.replace(CauseProfile::new(self.intended_waits))?;
        Some(CauseReport {
            intended_waits: self.intended_waits,
            left_out: profile.left_out(),
            requests: profile.requests(),
            percentiles: profile.percentiles(),
            profile,
            replayed: 0,
            counterfactuals: Vec::new(),
            interfering: Vec::new(),
            overtaken: OvertakenRequests::default(),
            stolen: None,
        })
    }

    /// What came of it.
    pub fn report(mut self) -> CauseReport {
        let kept: &[AttributedRequest] = self.last.make_contiguous();
        let has = |cause: &Cause| kept.iter().any(|request| request.time(*cause) > 0);
        let causes = Cause::ALL.into_iter().filter(has).map(TakenOut::Cause);
        let interfering = interfering_processes(kept);
        let processes = interfering.iter().map(|process| TakenOut::Process(process.process));
        let play = |taken_out| counterfactual(kept, taken_out, self.intended_waits);
        let first = [TakenOut::Nothing].into_iter().chain(causes).chain(processes).filter_map(play);
        let client = without_client(kept, self.intended_waits);
        let counterfactuals = first.chain(client).chain(play(TakenOut::QueuesOfWorkers)).collect();
        CauseReport {
            intended_waits: self.intended_waits,
            left_out: self.profile.left_out(),
            requests: self.profile.requests(),
            percentiles: self.profile.percentiles(),
            profile: self.profile,
            replayed: kept.len(),
            counterfactuals,
            interfering,
            overtaken: overtaken(kept),
            stolen: None,
        }
    }
}

impl CauseReport {
    /// What percentiles would be without something, if that was replayed.
    pub fn without(&self, taken_out: TakenOut) -> Option<&Counterfactual> {
        self.counterfactuals.iter().find(|counterfactual| counterfactual.taken_out == taken_out)
    }

    /// The client whose requests lengthen p99 of the others most, and what percentiles of the others would be without its requests;
    /// nothing with one client.
    pub fn without_client(&self) -> Option<(IpAddr, &Counterfactual)> {
        self.counterfactuals.iter().find_map(|counterfactual| match counterfactual.taken_out {
            TakenOut::Client(client) => Some((client, counterfactual)),
            _ => None,
        })
    }
}

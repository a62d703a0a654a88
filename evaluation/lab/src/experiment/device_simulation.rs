//! Simulates a case on the device: predicts the latencies, and from them the length of a decisive run.
//!
//! The queueing logic is the proxy's own code, and the device uses the arithmetic of the emulated SSD. The
//! path through kernel, proxy and load generator takes no time here, and no request is sent late.

use super::case_plan::CasePlan;
use super::definition::{BackgroundCopy, LabExperiment, PolicyName};
use super::disciplines::discipline_of;
use super::plan::ExperimentPlan;
use crate::device::{EmulatedSsd, SsdModel};
use discipline::enforce::{DeviceAccess, DeviceOperation};
use discipline::serve::{
    AnyDiscipline, Assignment, BuiltDiscipline, Discipline as _, DisciplineSpec, QueueItem,
};
use model::{Op, Request};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use units::{Bytes, Nanos};
use workload::device::{StorageProfile, StorageWork};

/// A request that is on its way through the simulated server.
#[derive(Debug, Clone, Copy)]
struct SimulatedRequest {
    class: u32,
    op: Op,
    size: Bytes,
    arrival: Nanos,
}

/// A proxy and a device behind it in simulated time.
struct SimulatedDevice {
    discipline: AnyDiscipline,
    device: EmulatedSsd,
    work: StorageWork,
    requests: Vec<SimulatedRequest>,
    /// Completions to come: the instant, the worker and the request.
    completions: BinaryHeap<Reverse<(Nanos, u32, u32)>>,
    begun: Vec<Assignment>,
}

impl SimulatedDevice {
    fn arrive(&mut self, now: Nanos, class: u32, op: Op, size: Bytes) {
        let id = u32::try_from(self.requests.len()).expect("fewer than 2^32 requests");
        self.requests.push(SimulatedRequest { class, op, size, arrival: now });
        let request = Request { arrival: now, size, op, offset: None, response: None };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the cast saturates")]
        let cost = self.work.work(&request).base_units().ceil() as u64;
        let operation = match op {
            Op::Read => DeviceOperation::Read,
            Op::Write => DeviceOperation::Write,
        };
        let access = Some(DeviceAccess { operation, bytes: size.0, offset: None });
        let item = QueueItem { id, class, age: now.0, size: cost, access };
        self.discipline.arrive(now.0, item, &mut self.begun);
        self.send(now);
    }

    /// Sends the requests that the discipline has released to the device.
    fn send(&mut self, now: Nanos) {
        for assignment in self.begun.drain(..) {
            let request = self.requests[assignment.item as usize];
            let end = self.device.submit(now, request.op, request.size);
            self.completions.push(Reverse((end, assignment.worker, assignment.item)));
        }
    }

    /// The next instant at which something happens without an arrival.
    fn next_event(&self) -> Option<Nanos> {
        let ends = self.completions.peek().map(|Reverse((end, _, _))| *end);
        [ends, self.discipline.wake_at().map(Nanos)].into_iter().flatten().min()
    }

    /// Lets happen what happens at `now`; returns the request that is complete, if one is.
    fn happen(&mut self, now: Nanos) -> Option<SimulatedRequest> {
        if let Some(Reverse((end, worker, item))) = self.completions.peek().copied()
            && end <= now
        {
            self.completions.pop();
            self.discipline.depart(now.0, worker, &mut self.begun);
            self.send(now);
            return Some(self.requests[item as usize]);
        }
        self.discipline.wake(now.0, &mut self.begun);
        self.send(now);
        None
    }
}

/// Latencies of a simulated run by tenant, in order of arrival.
pub(crate) type SimulatedLatencies = Vec<Vec<Option<Nanos>>>;

/// A run in simulated time on one device.
pub(crate) struct SimulatedRun<'a> {
    /// Queueing discipline. Classes are the indices of tenants, and one more for the copy.
    pub(crate) discipline: DisciplineSpec,
    /// Maximum number of requests at the device.
    pub(crate) outstanding: u32,
    /// The parameters of the device.
    pub(crate) model: SsdModel,
    /// The profile of the device, by which requests are charged.
    pub(crate) profile: &'a StorageProfile,
    /// Number of tenants.
    pub(crate) tenants: usize,
    /// The requests with their tenants, in order of arrival.
    pub(crate) arrivals: Vec<(u32, Request)>,
    /// The workload without an SLO beside them.
    pub(crate) copy: Option<BackgroundCopy>,
    /// Latencies of requests that arrive before are not counted.
    pub(crate) warm_up: Nanos,
}

impl SimulatedRun<'_> {
    /// Plays it, and returns the latencies by tenant of all requests that arrive after the warm-up.
    pub(crate) fn latencies(self) -> SimulatedLatencies {
        let BuiltDiscipline::Workers(discipline) = self.discipline.build(self.outstanding, 0) else {
            unreachable!("a proxy serves requests whole")
        };
        let mut simulated = SimulatedDevice {
            discipline,
            device: EmulatedSsd::new(self.model),
            work: self.profile.work_model(),
            requests: Vec::new(),
            completions: BinaryHeap::new(),
            begun: Vec::new(),
        };
        let copy_class = u32::try_from(self.tenants).expect("few tenants");
        if let Some(BackgroundCopy { in_flight, size }) = self.copy {
            (0..in_flight).for_each(|_| simulated.arrive(Nanos::ZERO, copy_class, Op::Read, size));
        }
        let mut latencies: Vec<Vec<(Nanos, Nanos)>> = vec![Vec::new(); self.tenants];
        let mut waiting = self.arrivals.iter().peekable();
        let mut left = self.arrivals.iter().filter(|(_, request)| request.arrival >= self.warm_up).count();
        while left > 0 {
            let event = simulated.next_event();
            if let Some((class, request)) =
                waiting.next_if(|(_, request)| event.is_none_or(|event| request.arrival <= event))
            {
                simulated.arrive(request.arrival, *class, request.op, request.size);
                continue;
            }
            let now = event.expect("what has arrived is served");
            let Some(done) = simulated.happen(now) else { continue };
            if done.class == copy_class {
                simulated.arrive(now, copy_class, done.op, done.size);
            } else if done.arrival >= self.warm_up {
                latencies[done.class as usize].push((done.arrival, now - done.arrival));
                left -= 1;
            }
        }
        latencies.into_iter().map(by_arrival).collect()
    }
}

/// Plays a case under a policy in simulated time, and returns the latencies of all requests that arrive between the end
/// of the warm-up and `end`.
pub(super) fn simulate_on_device(
    plan: &ExperimentPlan,
    case: &CasePlan,
    policy: PolicyName,
    warm_up: Nanos,
    end: Nanos,
) -> SimulatedLatencies {
    let (discipline, outstanding) = discipline_of(plan, case, policy);
    let run = SimulatedRun {
        discipline,
        outstanding,
        model: LabExperiment::DEVICE,
        profile: &plan.profile,
        tenants: case.sent.len(),
        arrivals: arrivals(case, end),
        copy: plan.experiment.copy,
        warm_up,
    };
    run.latencies()
}

/// The requests of all tenants until `end`, in order of arrival.
fn arrivals(case: &CasePlan, end: Nanos) -> Vec<(u32, Request)> {
    let mut arrivals = Vec::new();
    for (class, sent) in (0u32..).zip(&case.sent) {
        arrivals.extend(sent.trace.until(end).into_iter().map(|request| (class, request)));
    }
    arrivals.sort_by_key(|(_, request)| request.arrival);
    arrivals
}

fn by_arrival(mut latencies: Vec<(Nanos, Nanos)>) -> Vec<Option<Nanos>> {
    latencies.sort_by_key(|(arrival, _)| *arrival);
    latencies.into_iter().map(|(_, latency)| Some(latency)).collect()
}

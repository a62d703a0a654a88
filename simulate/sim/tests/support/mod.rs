//! A slow simulator that steps from nanosecond to nanosecond, and small random systems.
#![allow(dead_code, reason = "each test uses a part")]

use arrivals::TimedRequest;
use model::{CircularTrace, Job, PerStage, Stage};
use proptest::prelude::*;
use sim::{Observer, PreemptionMode, ReplayStream, ReplayTrace};
use std::ops::ControlFlow;
use units::Nanos;

/// A stream in plain numbers.
#[derive(Debug, Clone)]
pub(crate) struct Plain {
    /// Arrival and work by stage, in order of arrival.
    pub(crate) jobs: Vec<(u64, [u64; 3])>,
    pub(crate) period: u64,
    pub(crate) priority: [u32; 3],
    pub(crate) shift: u64,
}

impl Plain {
    pub(crate) fn trace(&self) -> ReplayTrace {
        let job = |&(arrival, work): &(u64, [u64; 3])| Job {
            arrival: Nanos(arrival),
            work: PerStage::from_fn(|stage| Nanos(work[stage as usize])),
        };
        let jobs = self.jobs.iter().map(job).collect();
        ReplayTrace::new(CircularTrace::new(jobs, Nanos(self.period)).unwrap()).unwrap()
    }
}

/// Streams over these traces; each a group of its own.
pub(crate) fn streams<'a>(plain: &[Plain], traces: &'a [ReplayTrace]) -> Vec<ReplayStream<'a>> {
    let stream = |(group, (plain, trace)): (usize, (&Plain, &'a ReplayTrace))| ReplayStream {
        trace,
        priority: PerStage::from_fn(|stage: Stage| plain.priority[stage as usize]),
        group,
    };
    plain.iter().zip(traces).enumerate().map(stream).collect()
}

/// Streams and latencies in order of departure.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Departures(pub(crate) Vec<(usize, u64)>);

impl Observer for Departures {
    fn latency(&mut self, stream: usize, latency: Nanos) -> ControlFlow<()> {
        self.0.push((stream, latency.0));
        ControlFlow::Continue(())
    }
}

#[derive(Clone)]
struct Request {
    stream: usize,
    arrived: i64,
    work: [u64; 3],
    left: u64,
}

/// Every nanosecond from `start` on: departures and arrivals of each stage in turn, then a nanosecond of work
/// in each. Observes arrivals in [0, horizon).
pub(crate) fn step_by_step(plain: &[Plain], service: PreemptionMode, start: i64, horizon: i64) -> Departures {
    let mut queues: [Vec<Request>; 3] = Default::default();
    let mut serving: [Option<Request>; 3] = Default::default();
    let mut departures = Departures::default();
    for now in start.. {
        let mut moving = arrivals(plain, now);
        for stage in 0..3 {
            moving = pass(plain, service, stage, &mut queues[stage], &mut serving[stage], moving);
        }
        let observed = moving.iter().filter(|r| (0..horizon).contains(&r.arrived));
        departures.0.extend(observed.map(|r| (r.stream, u64::try_from(now - r.arrived).unwrap())));
        let inside = queues.iter().flatten().chain(serving.iter().flatten());
        if now >= horizon && !inside.into_iter().any(|r| (0..horizon).contains(&r.arrived)) {
            break;
        }
        serving.iter_mut().flatten().for_each(|request| request.left -= 1);
    }
    departures
}

fn arrivals(plain: &[Plain], now: i64) -> Vec<Request> {
    let mut arriving = Vec::new();
    for (stream, p) in plain.iter().enumerate() {
        let period = i64::try_from(p.period).unwrap();
        let phase = (now - i64::try_from(p.shift).unwrap()).rem_euclid(period);
        let at = |arrival: u64| i64::try_from(arrival).unwrap();
        // A job at the very end of a period comes just before the first of the next.
        let late = p.jobs.iter().filter(|job| at(job.0) == period && phase == 0);
        let usual = p.jobs.iter().filter(|job| at(job.0) == phase);
        arriving.extend(late.chain(usual).map(|job| Request { stream, arrived: now, work: job.1, left: 0 }));
    }
    arriving
}

/// One instant at one stage: gives those that go on to the next.
fn pass(
    plain: &[Plain],
    service: PreemptionMode,
    stage: usize,
    queue: &mut Vec<Request>,
    serving: &mut Option<Request>,
    arriving: Vec<Request>,
) -> Vec<Request> {
    let mut leaving = Vec::new();
    if serving.as_ref().is_some_and(|request| request.left == 0) {
        leaving.extend(serving.take());
        *serving = choose(plain, stage, queue);
    }
    for request in arriving {
        if request.work[stage] == 0 {
            leaving.push(request);
            continue;
        }
        queue.push(Request { left: request.work[stage], ..request });
        if serving.is_none() {
            *serving = choose(plain, stage, queue);
        }
    }
    if service == PreemptionMode::Preemptive {
        // Back in front of its equals.
        queue.splice(0..0, serving.take());
        *serving = choose(plain, stage, queue);
    }
    leaving
}

/// Takes the first of the highest priority.
fn choose(plain: &[Plain], stage: usize, queue: &mut Vec<Request>) -> Option<Request> {
    let best = queue.iter().map(|r| plain[r.stream].priority[stage]).min()?;
    let at = queue.iter().position(|r| plain[r.stream].priority[stage] == best)?;
    Some(queue.remove(at))
}

/// A stream with few short jobs.
pub(crate) fn plain() -> impl Strategy<Value = Plain> {
    let job = (0u64..40, prop_oneof![3 => Just([0u64; 3]), 7 => [0u64..8, 0u64..8, 0u64..8]]);
    let priority = prop_oneof![[0u32..3, 0u32..3, 0u32..3], (0u32..3).prop_map(|p| [p; 3])];
    (proptest::collection::vec(job, 1..6), 1u64..20, priority, 0u64..60).prop_map(
        |(mut jobs, tail, priority, shift)| {
            jobs.sort_by_key(|job| job.0);
            let period = (jobs.last().unwrap().0 + tail - 1).max(1);
            Plain { jobs, period, priority, shift: shift % period }
        },
    )
}

/// A stream for one station: bursts, short and long gaps, some requests that need nothing.
pub(crate) fn demands(count: std::ops::Range<usize>) -> impl Strategy<Value = Vec<TimedRequest>> {
    let one = (prop_oneof![Just(0u64), 0u64..4, 0u64..40], 0u64..30);
    proptest::collection::vec(one, count).prop_map(|gaps| {
        let mut now = 0;
        let demand = |(gap, service)| {
            now += gap;
            TimedRequest { arrival: Nanos(now), service: Nanos(service) }
        };
        gaps.into_iter().map(demand).collect()
    })
}

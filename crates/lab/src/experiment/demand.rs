//! From traces to requests on this device, SLOs and a policy: everything that is decided before anything is played.

use super::analysis::{Analysis, blocking};
use super::data::{Bottleneck, Case, Experiment, Slos, Source, Tenant};
use super::link;
use crate::device::Model;
use arrivals::TimeDistribution;
use model::{
    CircularTrace, Job, LatencyModel as _, Op, OperationError, PerStage, Policy, Request, Slo, Stage,
};
use predict::{Reshaping, WorstCase};
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use std::path::Path;
use units::{Bytes, Nanos, Percentile, Seconds};
use workload::device::StorageProfile;

/// Of synthetic traces.
const SYNTHETIC_REQUESTS: usize = 20_000;
/// Requests of one channel's queue: enough to keep it busy while an answer is on its way.
const PER_CHANNEL: u32 = 2;
/// Above the bound.
const HEADROOM: f64 = 1.1;

/// The requests of a workload, repeated after a period.
#[derive(Debug, Clone, PartialEq)]
pub struct Demand {
    /// The first at 0.
    pub requests: Vec<Request>,
    /// Until the first comes again.
    pub period: Nanos,
    /// By which the trace's times were multiplied.
    pub time_scale: f64,
}

impl Demand {
    /// The trace in as much time as makes its work this share of the device.
    fn scaled(requests: Vec<Request>, profile: &StorageProfile, load: f64) -> Result<Self, OperationError> {
        let mut works = profile.work_model();
        let work = requests.iter().map(|request| works.work(request).base_units() * 1e-9).sum();
        Self::of_work(requests, work, load)
    }

    /// The trace in as much time as makes this work, seconds, this share of it.
    pub(super) fn of_work(mut requests: Vec<Request>, work: f64, load: f64) -> Result<Self, OperationError> {
        let (Some(first), Some(last)) = (requests.first(), requests.last()) else {
            return Err(OperationError::input("a trace is empty").hint("it is one of the public traces"));
        };
        let (origin, span) = (first.arrival, last.arrival.saturating_sub(first.arrival).as_secs());
        // After the last request the first comes again, one mean gap later.
        let period = span * requests.len() as f64 / (requests.len() as f64 - 1.0).max(1.0);
        let time_scale = work / load / period;
        if !(time_scale.is_finite() && time_scale > 0.0) {
            return Err(
                OperationError::input("a trace has no duration").hint("it is one of the public traces")
            );
        }
        let scale = |time: Nanos| Nanos::from_secs(time.as_secs() * time_scale).unwrap_or(Nanos(u64::MAX));
        requests.iter_mut().for_each(|request| request.arrival = scale(request.arrival - origin));
        let period = Nanos::from_secs(work / load).unwrap_or(Nanos(u64::MAX));
        Ok(Self { requests, period, time_scale })
    }

    /// The same circle, begun at another request.
    #[must_use]
    pub(super) fn begun_at(mut self, first: usize) -> Self {
        let start = self.requests[first].arrival;
        self.requests.rotate_left(first);
        for request in &mut self.requests {
            let turned = if request.arrival < start { self.period } else { Nanos::ZERO };
            request.arrival = turned + request.arrival - start;
        }
        self
    }

    /// What arrives until this instant, the trace being repeated.
    pub fn until(&self, end: Nanos) -> Vec<Request> {
        let round = |number: u64| {
            let begin = number.saturating_mul(self.period.0);
            self.requests.iter().map(move |request| Request {
                arrival: Nanos(begin.saturating_add(request.arrival.0)),
                ..*request
            })
        };
        (0..).flat_map(round).take_while(|request| request.arrival < end).collect()
    }

    /// Its requests as work of the device.
    fn jobs(&self, profile: &StorageProfile) -> Vec<Job> {
        let mut works = profile.work_model();
        let mut job = |request: &Request| {
            let work = nanos_up(works.work(request).base_units());
            let at = |stage| if stage == Stage::Storage { work } else { Nanos::ZERO };
            Job { arrival: request.arrival, work: PerStage::from_fn(at) }
        };
        self.requests.iter().map(&mut job).collect()
    }
}

pub(super) fn nanos_up(ns: f64) -> Nanos {
    // Work of one request.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    Nanos(ns.ceil() as u64)
}

/// A case, ready to be played.
#[derive(Debug, Clone)]
pub struct PlannedCase {
    /// What it is.
    pub case: Case,
    /// What is promised, by tenant.
    pub slos: Vec<Slo>,
    /// What is sent, by tenant.
    pub sent: Vec<Demand>,
    /// The protected policy, and whether its analysis admits all.
    pub policy: (Policy, bool),
    /// Strict priority by SLO.
    pub by_slo: Policy,
}

impl PlannedCase {
    /// Whether a tenant's SLO counts: it is admitted, and sends what was planned with.
    pub fn counts(&self, tenant: usize) -> bool {
        let behaves = self.case.misbehaves.is_none_or(|(who, _)| who != tenant);
        behaves && self.policy.0.workloads[tenant].admitted
    }
}

/// An experiment, ready to be played.
#[derive(Debug, Clone)]
pub struct Planned {
    /// What it is.
    pub experiment: Experiment,
    /// Of the device.
    pub profile: StorageProfile,
    /// Most requests at the device.
    pub outstanding: u32,
    /// Largest request of anybody.
    pub largest: Bytes,
    /// In the order of the experiment.
    pub cases: Vec<PlannedCase>,
}

impl Planned {
    /// What is shared, in words.
    pub fn setting(&self) -> String {
        match self.experiment.bottleneck {
            Bottleneck::Device => {
                format!("emulated SSD: {}; at most {} requests at it", Experiment::DEVICE, self.outstanding)
            }
            Bottleneck::Link => format!(
                "the link on which answers leave: {} Mbit/s; a bound counts 1 ms beside queues",
                Experiment::LINK_BITS_PER_S / 1e6
            ),
        }
    }

    /// Reads the traces in this folder, scales them, and decides.
    ///
    /// # Errors
    /// When a trace cannot be read.
    pub fn of(experiment: &Experiment, traces: &Path) -> Result<Self, OperationError> {
        let model = Experiment::DEVICE;
        let read = |case: &Case| {
            let each = case.tenants.iter().enumerate();
            each.map(|(at, tenant)| requests(&tenant.source, traces, at)).collect::<Result<Vec<_>, _>>()
        };
        let all: Vec<Vec<Vec<Request>>> = experiment.cases.iter().map(read).collect::<Result<_, _>>()?;
        let sizes = sizes(experiment, &all);
        let profile = model.profile(&sizes);
        let outstanding = PER_CHANNEL * model.channels;
        let base = base(&model, &profile, &sizes, outstanding);
        let mut cases: Vec<PlannedCase> = Vec::new();
        for (case, traces) in experiment.cases.iter().zip(all) {
            if experiment.bottleneck == Bottleneck::Link {
                cases.push(link::planned(case, traces)?);
                continue;
            }
            let analysis = analysis(case, &traces, &profile, base)?;
            let slos = match case.slos {
                Slos::LastTightest => last_tightest(case.tenants, |at, above| analysis.bound(at, above)),
                Slos::OwnBound => own_bound(case.tenants, |at, above| analysis.bound(at, above)),
                Slos::InOrder => in_order(case.tenants, |at, above| analysis.bound(at, above)),
                Slos::OfFirst => cases[0].slos.clone(),
                Slos::Asked(seconds) => asked(case.tenants, seconds),
            };
            cases.push(PlannedCase {
                case: *case,
                policy: analysis.policy(&slos),
                by_slo: analysis.by_slo(&slos),
                sent: sent(case, traces, &profile)?,
                slos,
            });
        }
        let largest = *sizes.last().expect("there are requests");
        Ok(Self { experiment: *experiment, profile, outstanding, largest, cases })
    }
}

/// Synthetic ones of several tenants differ.
fn requests(source: &Source, traces: &Path, tenant: usize) -> Result<Vec<Request>, OperationError> {
    match source {
        Source::Trace(file) => {
            let path = traces.join(file);
            let wrong = |error: trace::TraceError| {
                OperationError::input(error)
                    .hint("--data names the folder that has the public traces in a folder `traces`")
            };
            let reader = trace::open(&path, &trace::OpenOptions::default()).map_err(wrong)?;
            reader.collect::<Result<_, _>>().map_err(wrong)
        }
        Source::Synthetic { c2, size } => Ok(synthetic(*c2, *size, tenant as u64 + 1)),
    }
}

/// Reads with hyperexponential gaps; the mean does not matter, because time is scaled.
fn synthetic(c2: f64, size: Bytes, seed: u64) -> Vec<Request> {
    let law = if c2 > 1.0 { format!("hyperexp(mean=1ms, c2={c2})") } else { "exp(1ms)".to_owned() };
    let law: TimeDistribution = law.parse().expect("a law");
    let (sampler, mut random) = (law.sampler(), StdRng::seed_from_u64(seed));
    let mut arrival = Nanos::ZERO;
    let mut next = || {
        arrival = arrival + sampler.draw(&mut random);
        Request { arrival, size, op: Op::Read, offset: None, response: None }
    };
    (0..SYNTHETIC_REQUESTS).map(|_| next()).collect()
}

/// All sizes that anybody uses, ascending.
fn sizes(experiment: &Experiment, all: &[Vec<Vec<Request>>]) -> Vec<Bytes> {
    let used = all.iter().flatten().flatten().map(|request| request.size);
    let mut sizes: Vec<Bytes> = used.chain(experiment.copy.map(|copy| copy.size)).collect();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.retain(|size| size.0 > 0);
    sizes
}

/// What every request takes beyond queueing, seconds: the longest request of anybody, as often as the device may hold
/// them, and its own service in one channel.
fn base(model: &Model, profile: &StorageProfile, sizes: &[Bytes], outstanding: u32) -> f64 {
    let largest = *sizes.last().expect("there are requests");
    let both = [Op::Read, Op::Write];
    let mut works = profile.work_model();
    let mut work =
        |op| works.work(&Request { arrival: Nanos::ZERO, size: largest, op, offset: None, response: None });
    let longest = both.map(&mut work).into_iter().max().expect("two operations");
    let alone = both.map(|op| model.alone(op, largest)).into_iter().max().expect("two operations");
    blocking(outstanding, nanos_up(longest.base_units())) + alone.as_secs()
}

fn analysis(
    case: &Case,
    traces: &[Vec<Request>],
    profile: &StorageProfile,
    base: f64,
) -> Result<Analysis, OperationError> {
    let mut curves = Vec::new();
    for (tenant, requests) in case.tenants.iter().zip(traces) {
        let demand = Demand::scaled(requests.clone(), profile, tenant.load)?;
        let traffic = CircularTrace::from_first_arrival(demand.jobs(profile), demand.period)
            .expect("a circle is traffic");
        let sketch = WorstCase { reshaping: Reshaping::EveryStage }.sketch(&traffic);
        curves.push(sketch.curve(Stage::Storage).clone());
    }
    let names = case.tenants.iter().map(|tenant| tenant.name.to_owned()).collect();
    Ok(Analysis::new(names, curves, base))
}

fn sent(
    case: &Case,
    traces: Vec<Vec<Request>>,
    profile: &StorageProfile,
) -> Result<Vec<Demand>, OperationError> {
    let load = |at: usize| match case.misbehaves {
        Some((who, load)) if who == at => load,
        _ => case.tenants[at].load,
    };
    let demands = traces.into_iter().enumerate();
    demands.map(|(at, requests)| Demand::scaled(requests, profile, load(at))).collect()
}

fn slo(tenant: &Tenant, seconds: f64) -> Slo {
    let percentile = Percentile::new(tenant.percentile).expect("a percentile");
    // In whole milliseconds, up.
    Slo::new(percentile, Seconds((seconds * 1e3).ceil() / 1e3)).expect("a positive latency")
}

/// By bounds of a tenant below others.
pub(super) fn last_tightest(tenants: &[Tenant], bound: impl Fn(usize, &[usize]) -> f64) -> Vec<Slo> {
    let last = tenants.len() - 1;
    let above: Vec<usize> = (0..last).collect();
    let tightest = HEADROOM * bound(last, &above);
    let seconds = |at| match at == last {
        true => tightest,
        false => HEADROOM * tightest.max(bound(at, &above[..at])),
    };
    tenants.iter().enumerate().map(|(at, tenant)| slo(tenant, seconds(at))).collect()
}

/// By bounds of a tenant below others.
fn in_order(tenants: &[Tenant], bound: impl Fn(usize, &[usize]) -> f64) -> Vec<Slo> {
    let above: Vec<usize> = (0..tenants.len()).collect();
    let of = |(at, tenant)| slo(tenant, HEADROOM * bound(at, &above[..at]));
    tenants.iter().enumerate().map(of).collect()
}

pub(super) fn asked(tenants: &[Tenant], seconds: &[f64]) -> Vec<Slo> {
    assert_eq!(tenants.len(), seconds.len(), "an SLO for each");
    tenants.iter().zip(seconds).map(|(tenant, seconds)| slo(tenant, *seconds)).collect()
}

/// By bounds of a tenant below others.
pub(super) fn own_bound(tenants: &[Tenant], bound: impl Fn(usize, &[usize]) -> f64) -> Vec<Slo> {
    let mut order: Vec<usize> = (0..tenants.len()).collect();
    // Ties go to the tenant that comes first.
    order.sort_by(|&one, &other| bound(one, &[]).total_cmp(&bound(other, &[])));
    let above = |at: usize| order.iter().copied().take_while(|&other| other != at).collect::<Vec<_>>();
    let of = |(at, tenant)| slo(tenant, HEADROOM * bound(at, &above(at)));
    tenants.iter().enumerate().map(of).collect()
}

#[cfg(test)]
mod tests;

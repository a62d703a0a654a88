//! What an observation says beyond what was seen, for machines: the ideal, the worth of variance, the trace.

use crate::observe::ideal::{COLUMNS, cpus, factor, seconds_at};
use measure::observation::{
    ClientBehaviour, ClientLoop, IdealComparison, ServerObservation, ServiceEstimate, StagesNear,
    TrafficMoments, VarianceCut, VarianceView,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// What an observation says beyond what was seen, as fields of its document.
#[derive(Serialize, JsonSchema)]
pub(super) struct DerivedFields {
    ideal: Option<IdealFields>,
    variance: Option<VarianceFields>,
    stages_near: Vec<StagesNear>,
    recorded_requests: Option<u64>,
    recorded_late: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct IdealFields {
    requests: usize,
    of_requests: u64,
    workers: usize,
    answering_threads: usize,
    cpus: usize,
    utilisation: f64,
    service: UsedService,
    clients: ClientVerdict,
    measured: LatencyFields,
    one_queue_constant_service: ServerFields,
    one_queue: ServerFields,
    queue_per_worker: ServerFields,
    /// One queue with constant service, if service takes the least and the most that fits what was seen.
    constant_service_least: LatencyFields,
    constant_service_most: LatencyFields,
}

#[derive(Serialize, JsonSchema)]
struct ServerFields {
    latency: LatencyFields,
    /// What was measured beyond it.
    gap: LatencyFields,
    /// Measured ÷ ideal, by percentile.
    factor: BTreeMap<&'static str, f64>,
}

/// Latencies, or times of a stage.
#[derive(Serialize, JsonSchema)]
struct LatencyFields {
    mean_s: f64,
    p50_s: f64,
    p90_s: f64,
    p99_s: f64,
    p99_9_s: f64,
    max_s: f64,
}

/// The service time in use, and what was seen of it.
#[derive(Serialize, JsonSchema)]
struct UsedService {
    used_mean_s: f64,
    #[serde(flatten)]
    estimate: ServiceEstimate,
}

/// The kind of loop in which clients send, and what was seen of it.
#[derive(Serialize, JsonSchema)]
struct ClientVerdict {
    closed_loop: bool,
    /// `closed`, `open`, or `cannot tell`.
    verdict: &'static str,
    #[serde(flatten)]
    behaviour: ClientBehaviour,
}

#[derive(Serialize, JsonSchema)]
struct VarianceFields {
    gaps_scv: f64,
    worker_gaps_scv: f64,
    service_scv: f64,
    service_mean_s: f64,
    service_variance_s2: f64,
    arrivals_per_s: f64,
    measured_wait_s: f64,
    /// By Eq. 3 of Gandhi and Suresh, and the rest for as long as the workers can do the work.
    mean_latency_s: Option<f64>,
    mean_wait_s: Option<f64>,
    kingman_wait_s: Option<f64>,
    cuts: Vec<VarianceCut>,
}

/// The fields of an observation.
pub(super) fn fields(observation: &ServerObservation) -> DerivedFields {
    let ideal = observation.ideal.as_ref();
    DerivedFields {
        ideal: ideal.map(ideal_fields),
        variance: ideal.map(|ideal| variance_fields(&ideal.moments, observation.variance.as_ref())),
        stages_near: observation.near.clone(),
        recorded_requests: observation.recorded.map(|recorded| recorded.requests),
        recorded_late: observation.recorded.map(|recorded| recorded.late),
    }
}

fn ideal_fields(ideal: &IdealComparison) -> IdealFields {
    let [constant, one_queue, per_worker] = [0, 1, 2].map(|server| server_fields(ideal, server));
    IdealFields {
        requests: ideal.measured.count(),
        of_requests: ideal.requests_seen,
        workers: ideal.workers.get(),
        answering_threads: ideal.threads,
        cpus: cpus(),
        utilisation: ideal.utilisation,
        service: UsedService { used_mean_s: ideal.service.mean() / 1e9, estimate: ideal.service },
        clients: ClientVerdict {
            closed_loop: ideal.clients.is_closed_loop(),
            verdict: match ideal.clients.verdict() {
                ClientLoop::Closed => "closed",
                ClientLoop::Open => "open",
                ClientLoop::Unknown => "cannot tell",
            },
            behaviour: ideal.clients,
        },
        measured: percentiles(|at| seconds_at(&ideal.measured, at)),
        one_queue_constant_service: constant,
        one_queue,
        queue_per_worker: per_worker,
        constant_service_least: percentiles(|at| seconds_at(&ideal.ideal_range[0], at)),
        constant_service_most: percentiles(|at| seconds_at(&ideal.ideal_range[1], at)),
    }
}

fn server_fields(ideal: &IdealComparison, server: usize) -> ServerFields {
    let factor = |(name, percent)| (name, factor(ideal, server, percent));
    ServerFields {
        latency: percentiles(|at| seconds_at(&ideal.ideal[server], at)),
        gap: percentiles(|at| seconds_at(&ideal.measured, at) - seconds_at(&ideal.ideal[server], at)),
        factor: COLUMNS.into_iter().map(factor).collect(),
    }
}

/// The fields from a function of a percentile, `None` being the mean.
fn percentiles(seconds: impl Fn(Option<f64>) -> f64) -> LatencyFields {
    let [p50_s, p90_s, p99_s, p99_9_s, max_s] = COLUMNS.map(|(_, percent)| seconds(Some(percent)));
    LatencyFields { mean_s: seconds(None), p50_s, p90_s, p99_s, p99_9_s, max_s }
}

fn variance_fields(moments: &TrafficMoments, view: Option<&VarianceView>) -> VarianceFields {
    VarianceFields {
        gaps_scv: moments.gaps_scv,
        worker_gaps_scv: moments.worker_gaps_scv,
        service_scv: moments.service_scv(),
        service_mean_s: moments.service_mean / 1e9,
        service_variance_s2: moments.service_variance / 1e18,
        arrivals_per_s: moments.arrival_rate * 1e9,
        measured_wait_s: moments.measured_wait / 1e9,
        mean_latency_s: view.map(|view| view.latency / 1e9),
        mean_wait_s: view.map(|view| view.wait / 1e9),
        kingman_wait_s: view.map(|view| view.wait_with_gaps / 1e9),
        cuts: view.map_or_else(Vec::new, |view| view.cuts.clone()),
    }
}

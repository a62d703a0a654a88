//! What an observation says beyond what was seen, for machines: the ideal, the worth of variance, the trace.

use crate::observe::ideal::{COLUMNS, cpus, factor, seconds_at};
use measure::observation::{
    ClientLoop, IdealComparison, ServerObservation, StagesNear, TrafficMoments, VarianceView,
};
use observe::STAGE_NAMES;
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use units::Nanos;

/// What an observation says beyond what was seen, as fields of its document.
#[derive(Serialize, JsonSchema)]
pub(super) struct DerivedFields {
    ideal: Option<IdealFields>,
    variance: Option<VarianceFields>,
    stages_near: Vec<NearFields>,
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
    service: ServiceFields,
    clients: ClientFields,
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
pub(super) struct LatencyFields {
    pub(super) mean_s: f64,
    pub(super) p50_s: f64,
    pub(super) p90_s: f64,
    pub(super) p99_s: f64,
    pub(super) p99_9_s: f64,
    pub(super) max_s: f64,
}

#[derive(Serialize, JsonSchema)]
struct ServiceFields {
    used_mean_s: f64,
    busy_mean_s: f64,
    busy_median_s: f64,
    between_answers_s: Option<f64>,
    waiting_requests: usize,
    network_stack_s: f64,
    given_s: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
struct ClientFields {
    closed_loop: bool,
    /// `closed`, `open`, or `cannot tell`.
    verdict: &'static str,
    /// Shares of the requests, by the verdict on their client.
    closed_share: f64,
    open_loop_share: f64,
    clients: usize,
    connections: usize,
    overlapping: u64,
    overlapping_expected: f64,
    open_share: f64,
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
    cuts: Vec<CutFields>,
}

#[derive(Serialize, JsonSchema)]
struct CutFields {
    variance_cut: f64,
    mean_latency_s: f64,
    mean_may_rise: f64,
}

#[derive(Serialize, JsonSchema)]
struct NearFields {
    percentile: &'static str,
    latency_s: f64,
    requests: usize,
    stage_means_s: BTreeMap<&'static str, f64>,
}

/// The fields of an observation.
pub(super) fn fields(observation: &ServerObservation) -> DerivedFields {
    let ideal = observation.ideal.as_ref();
    DerivedFields {
        ideal: ideal.map(ideal_fields),
        variance: ideal.map(|ideal| variance_fields(&ideal.moments, observation.variance.as_ref())),
        stages_near: observation.near.iter().map(near_fields).collect(),
        recorded_requests: observation.recorded.map(|recorded| recorded.requests),
        recorded_late: observation.recorded.map(|recorded| recorded.late),
    }
}

fn ideal_fields(ideal: &IdealComparison) -> IdealFields {
    let service = &ideal.service;
    let [constant, one_queue, per_worker] = [0, 1, 2].map(|server| server_fields(ideal, server));
    IdealFields {
        requests: ideal.measured.count(),
        of_requests: ideal.requests_seen,
        workers: ideal.workers.get(),
        answering_threads: ideal.threads,
        cpus: cpus(),
        utilisation: ideal.utilisation,
        service: ServiceFields {
            used_mean_s: service.mean() / 1e9,
            busy_mean_s: service.busy_mean / 1e9,
            busy_median_s: service.busy_median / 1e9,
            between_answers_s: service.between_answers.map(|between| between / 1e9),
            waiting_requests: service.waiting,
            network_stack_s: Nanos(service.stack).as_secs(),
            given_s: service.given.map(Nanos::as_secs),
        },
        clients: ClientFields {
            closed_loop: ideal.clients.is_closed_loop(),
            verdict: match ideal.clients.verdict() {
                ClientLoop::Closed => "closed",
                ClientLoop::Open => "open",
                ClientLoop::Unknown => "cannot tell",
            },
            closed_share: ideal.clients.closed_share,
            open_loop_share: ideal.clients.open_loop_share,
            clients: ideal.clients.clients,
            connections: ideal.clients.connections,
            overlapping: ideal.clients.overlapping,
            overlapping_expected: ideal.clients.overlapping_expected,
            open_share: ideal.clients.open_share,
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
    let cuts = view.into_iter().flat_map(|view| &view.cuts).map(|cut| CutFields {
        variance_cut: cut.cut,
        mean_latency_s: cut.latency / 1e9,
        mean_may_rise: cut.mean_rise,
    });
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
        cuts: cuts.collect(),
    }
}

fn near_fields(near: &StagesNear) -> NearFields {
    NearFields {
        percentile: near.percentile,
        latency_s: near.latency.as_secs(),
        requests: near.requests,
        stage_means_s: STAGE_NAMES.into_iter().zip(near.means.map(|mean| mean / 1e9)).collect(),
    }
}

//! The derivation of one bound as plain data: the numbers of Eq. 5.5 for one workload.

use super::Planned;
use model::Stage;
use plan::Guarantee;
use serde::Serialize;

/// Why a workload is promised what it is promised.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Explanation {
    pub(crate) workload: String,
    pub(crate) server: String,
    pub(crate) slo: model::Slo,
    pub(crate) slo_s: f64,
    /// 0 is served first.
    pub(crate) priority: usize,
    /// The workload's company, itself included, by priority.
    pub(crate) company: Vec<Neighbour>,
    /// In path order.
    pub(crate) stages: Vec<StageStep>,
    /// Latency of the idle storage stack.
    pub(crate) base_s: f64,
    /// Everything together, rounded outward.
    pub(crate) bound_s: f64,
    pub(crate) slack_s: f64,
    /// What the plan was allowed to use of the SLO, a fraction.
    pub(crate) slo_factor: f64,
}

/// A workload on the same server.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Neighbour {
    pub(crate) name: String,
    pub(crate) priority: usize,
    pub(crate) slo: model::Slo,
    /// Rates by stage; they count when its priority is higher.
    pub(crate) rates: [f64; 3],
    /// Bursts by stage, seconds of capacity; they count when its priority is the same or higher.
    pub(crate) bursts: [f64; 3],
}

/// One stage's term of Eq. 5.5 and the workload's own limit there.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct StageStep {
    pub(crate) stage: Stage,
    /// Σ burst of the same and higher priorities, seconds of capacity.
    pub(crate) burst_at_or_above: f64,
    /// Σ rate of higher priorities, fraction of capacity.
    pub(crate) rate_above: f64,
    /// burst / (1 − rate).
    pub(crate) delay_s: f64,
    /// Waiting in the workload's own limiter.
    pub(crate) shaping_s: f64,
    /// The workload's limit.
    pub(crate) rate: f64,
    pub(crate) burst: f64,
    /// Mean rate of its trace.
    pub(crate) mean_rate: f64,
    /// Its r-b curve around the limit: (rate, least burst that delays nothing).
    pub(crate) curve: Vec<(f64, f64)>,
}

/// Factors of the chosen rate at which the r-b curve is shown.
const AROUND: [f64; 5] = [0.5, 0.8, 1.0, 1.25, 2.0];

/// Explains an admitted workload; `None` for one that was refused.
pub(crate) fn explain(planned: &Planned, workload: usize) -> Option<Explanation> {
    let places = planned.places();
    let place = places[workload].as_ref()?;
    let guarantee = &place.guarantee;
    let mut company: Vec<Neighbour> = planned.placement.servers[place.server]
        .members
        .iter()
        .filter_map(|&w| Some(neighbour(planned, w, places[w].as_ref()?.guarantee.priority, place.server)))
        .collect();
    company.sort_by_key(|n| n.priority);
    let spec = &planned.instance.workloads[workload];
    let stages = Stage::ALL.map(|stage| step(planned, place.server, guarantee, stage));
    Some(Explanation {
        workload: spec.name.clone(),
        server: planned.names[place.server].clone(),
        slo: spec.slo,
        slo_s: spec.slo.latency.0,
        priority: guarantee.priority,
        company,
        stages: stages.to_vec(),
        base_s: guarantee.base,
        bound_s: guarantee.total,
        slack_s: spec.slo.latency.0 - guarantee.total,
        slo_factor: planned.instance.slo_factor,
    })
}

fn neighbour(planned: &Planned, workload: usize, priority: usize, server: usize) -> Neighbour {
    let limits = planned.placement.servers[server].limits_of(workload);
    let spec = &planned.instance.workloads[workload];
    Neighbour {
        name: spec.name.clone(),
        priority,
        slo: spec.slo,
        rates: Stage::ALL.map(|stage| limits[stage].rate),
        bursts: Stage::ALL.map(|stage| limits[stage].burst),
    }
}

fn step(planned: &Planned, server: usize, guarantee: &Guarantee, stage: Stage) -> StageStep {
    let server = &planned.placement.servers[server];
    let limit = server.limits_of(guarantee.workload)[stage];
    let on = &planned.instance.workloads[guarantee.workload].on_class[server.class];
    let term = guarantee.queueing.terms[stage as usize];
    let at = |rate: f64| (rate, on.curves[stage].burst(rate));
    StageStep {
        stage,
        burst_at_or_above: term.burst_at_or_above,
        rate_above: term.rate_above,
        delay_s: term.delay,
        shaping_s: guarantee.shaping[stage],
        rate: limit.rate,
        burst: limit.burst,
        mean_rate: on.mean_rate[stage],
        curve: AROUND.map(|factor| at(factor * limit.rate)).into_iter().filter(|p| p.1.is_finite()).collect(),
    }
}

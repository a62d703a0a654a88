//! The derivation of one bound as plain data: the numbers of Eq. 5.5 for one workload.

use crate::planning::objectives::{ObjectiveBound, objectives};
use crate::planning::solution::PlannedCluster;
use model::{RateLimit, Stage};
use placement::{
    ClientLinks, ClientPlace, Guarantee, LoadShare, PlannedServer, PlanningProblem, PlanningWorkload,
};
use schemars::JsonSchema;
use serde::Serialize;

/// Derivation of a workload's guarantee.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct GuaranteeDerivation {
    /// The workload whose bound is derived.
    pub workload: String,
    /// The server that the workload is on.
    pub server: String,
    /// Requested SLO.
    pub slo: model::Slo,
    /// Latency of the SLO, seconds.
    pub slo_s: f64,
    /// Priority of the workload; 0 is served first.
    pub priority: usize,
    /// All workloads of the server, this one included, by priority.
    #[serde(rename = "company")]
    pub neighbours: Vec<ServerNeighbour>,
    /// The terms of the stages, in path order.
    pub stages: Vec<StageDelay>,
    /// Latency of the idle storage stack, seconds.
    pub base_s: f64,
    /// Additional service time of the largest request on one channel compared with the whole device, seconds.
    pub own_service_s: f64,
    /// Processing time of the proxy, seconds.
    pub proxy_s: f64,
    /// Delay on the links of the host from which its requests come, if the bound includes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<ClientDerivation>,
    /// Queue at the device, if the bound includes it.
    pub device: Option<DeviceUse>,
    /// The sum of all terms, rounded outward, seconds.
    pub bound_s: f64,
    /// SLO less the bound, seconds.
    pub slack_s: f64,
    /// All SLOs of the workload, that of `slo` first, if it has several.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub objectives: Vec<ObjectiveBound>,
    /// Fraction of the SLO that the plan was allowed to use.
    pub slo_factor: f64,
}

/// Delay on the links of the host from which a workload's requests come.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ClientDerivation {
    /// The name of the host.
    pub host: String,
    /// Priority of the workload on both links; 0 is served first.
    pub priority: usize,
    /// The link out of the host (`network-in` of requests), then the link into it (`network-out` of answers).
    pub links: Vec<LinkDelay>,
    /// The sum of the delays, seconds.
    pub delay_s: f64,
}

/// The term of one link of a client host, and the workload's limit there.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct LinkDelay {
    /// `network-in` for requests, `network-out` for answers.
    pub stage: Stage,
    /// The sum of the bursts of the same and higher priorities on the host, seconds of the link.
    pub burst_at_or_above: f64,
    /// The sum of the rates of higher priorities on the host, fraction of the link.
    pub rate_above: f64,
    /// Packets and shaper's burst that the link may have begun, seconds.
    pub blocking: f64,
    /// The delay at the link, (burst + blocking) / (1 − rate), seconds.
    pub delay_s: f64,
    /// Rate of the workload's limit for the host, fraction of the link.
    pub rate: f64,
    /// Burst of the workload's limit for the host, seconds of the link.
    pub burst: f64,
}

/// Queue at the device of a server.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct DeviceUse {
    /// Requests that it serves at a time.
    pub channels: u32,
    /// Maximum number of requests at the device.
    pub outstanding: u32,
    /// Slots of the queue that best-effort requests may not use.
    pub reserve: u32,
    /// The device time of the largest best-effort request, seconds.
    pub best_effort_request_s: f64,
    /// The device time of the largest request of a workload on the server, seconds.
    pub largest_request_s: f64,
}

/// A workload on the same server.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct ServerNeighbour {
    /// The name of the workload.
    pub name: String,
    /// Its priority; 0 is served first.
    pub priority: usize,
    /// Requested SLO.
    pub slo: model::Slo,
    /// Contribution to the rates of the term by stage, fraction of capacity.
    pub rates: [f64; 3],
    /// Contribution to the bursts of the term by stage, seconds of capacity.
    pub bursts: [f64; 3],
}

/// One stage's term of Eq. 5.5 and the workload's own limit there.
#[derive(Debug, Clone, Serialize, JsonSchema)]
pub struct StageDelay {
    /// The stage that the term is about.
    pub stage: Stage,
    /// The sum of the bursts of the same and higher priorities, seconds of capacity.
    pub burst_at_or_above: f64,
    /// The sum of the rates of higher priorities, fraction of capacity.
    pub rate_above: f64,
    /// Work of any priority that the stage may have begun, seconds of capacity.
    pub blocking: f64,
    /// The delay at the stage, (burst + blocking) / (1 − rate), seconds.
    pub delay_s: f64,
    /// The longest wait in the workload's own limiter, seconds.
    pub shaping_s: f64,
    /// Rate of the workload's limit, fraction of capacity.
    pub rate: f64,
    /// Burst of the workload's limit, seconds of capacity.
    pub burst: f64,
    /// Excess of the enforcer's bucket over the burst, seconds of capacity. It covers answers of the workload
    /// that overtake one of its requests on other channels of the device. Contained in `burst_at_or_above`.
    pub allowance: f64,
    /// Mean rate of the workload's trace, fraction of capacity.
    pub mean_rate: f64,
    /// The trace's r-b curve around the limit: pairs of a rate and the least burst that delays nothing.
    pub curve: Vec<(f64, f64)>,
}

/// Factors of the chosen rate at which the r-b curve is shown.
const AROUND: [f64; 5] = [0.5, 0.8, 1.0, 1.25, 2.0];

/// Derives the bound of an admitted workload; `None` for one that was refused.
pub fn derive(planned: &PlannedCluster, workload: usize) -> Option<GuaranteeDerivation> {
    let (number, server) = planned
        .placement
        .servers
        .iter()
        .enumerate()
        .find(|(_, server)| server.members.contains(&workload))?;
    derive_on(&planned.instance, server, planned.names[number].clone(), workload)
}

/// Derives the least bound that any server could give a refused workload; `None` if none could give it one.
pub(crate) fn derive_refused(planned: &PlannedCluster, workload: usize) -> Option<GuaranteeDerivation> {
    let PlannedCluster { instance, placement, names, recipe, .. } = planned;
    let place = placement::place_refused(instance, recipe.method, placement, workload)?;
    let name = place.number.map_or_else(
        || format!("an empty server of class '{}'", instance.classes[place.server.class].name),
        |number| names[number].clone(),
    );
    let mut derivation = derive_on(&place.problem, &place.server, name, workload)?;
    derivation.slo = instance.workloads[workload].slo;
    derivation.slo_s = derivation.slo.latency.0;
    derivation.slack_s = derivation.slo_s - derivation.bound_s;
    derivation.objectives = objectives(instance, place.server.class, workload, derivation.bound_s);
    for neighbour in derivation.neighbours.iter_mut().filter(|other| other.name == derivation.workload) {
        neighbour.slo = derivation.slo;
    }
    Some(derivation)
}

/// Derives the bound of a workload of a server with this name.
fn derive_on(
    instance: &PlanningProblem,
    server: &PlannedServer,
    name: String,
    workload: usize,
) -> Option<GuaranteeDerivation> {
    let guarantees = server.guarantees(instance);
    let guarantee = guarantees.iter().find(|guarantee| guarantee.workload == workload)?;
    let shares = Stage::ALL.map(|stage| server.load_shares(instance, workload, stage));
    let mut neighbours = Vec::new();
    for member in &guarantees {
        let spec = &instance.workloads[member.workload];
        neighbours.push(neighbour(spec, member.workload, member.priority, &shares));
    }
    neighbours.sort_by_key(|neighbour| neighbour.priority);
    let spec = &instance.workloads[workload];
    let stages = Stage::ALL.map(|stage| stage_delay(instance, server, guarantee, stage));
    Some(GuaranteeDerivation {
        workload: spec.name.clone(),
        server: name,
        slo: spec.slo,
        slo_s: spec.slo.latency.0,
        priority: guarantee.priority,
        neighbours,
        stages: stages.to_vec(),
        base_s: guarantee.base,
        own_service_s: guarantee.own_service,
        proxy_s: guarantee.proxy,
        client: instance.clients.get(workload).and_then(ClientPlace::served).map(client_derivation),
        device: device_use(instance, server),
        bound_s: guarantee.total,
        slack_s: spec.slo.latency.0 - guarantee.total,
        objectives: objectives(instance, server.class, workload, guarantee.total),
        slo_factor: instance.slo_factor,
    })
}

fn client_derivation(links: &ClientLinks) -> ClientDerivation {
    let of_link = |stage: Stage, limit: RateLimit, allowance: f64| {
        let term = links.queueing.terms[stage as usize];
        LinkDelay {
            stage,
            burst_at_or_above: term.load.burst_at_or_above,
            rate_above: term.load.rate_above,
            blocking: term.load.blocking,
            delay_s: term.delay,
            rate: limit.rate,
            burst: (limit.burst - allowance).max(0.0),
        }
    };
    ClientDerivation {
        host: links.host.clone(),
        priority: links.priority,
        links: vec![
            of_link(Stage::NetworkIn, links.requests, 0.0),
            of_link(Stage::NetworkOut, links.answers, links.overtaking),
        ],
        delay_s: links.delay(),
    }
}

fn device_use(instance: &PlanningProblem, server: &PlannedServer) -> Option<DeviceUse> {
    let enforced = instance.classes[server.class].enforced?;
    let workloads = server.members.iter().map(|&workload| &instance.workloads[workload]);
    let largest = workloads.map(|workload| workload.on_class[server.class].largest_request);
    Some(DeviceUse {
        channels: server.queue.channels,
        outstanding: server.queue.outstanding,
        reserve: server.queue.reserve,
        best_effort_request_s: enforced.best_effort_request,
        largest_request_s: largest.fold(0.0, f64::max),
    })
}

fn neighbour(
    spec: &PlanningWorkload,
    workload: usize,
    priority: usize,
    shares: &[Vec<LoadShare>; 3],
) -> ServerNeighbour {
    let share = |stage: Stage| shares[stage as usize].iter().find(|share| share.workload == workload);
    ServerNeighbour {
        name: spec.name.clone(),
        priority,
        slo: spec.slo,
        rates: Stage::ALL.map(|stage| share(stage).map_or(0.0, |share| share.rate)),
        bursts: Stage::ALL.map(|stage| share(stage).map_or(0.0, |share| share.burst)),
    }
}

fn stage_delay(
    instance: &PlanningProblem,
    server: &PlannedServer,
    guarantee: &Guarantee,
    stage: Stage,
) -> StageDelay {
    let limit = server.limits_of(guarantee.workload)[stage];
    let on = &instance.workloads[guarantee.workload].on_class[server.class];
    let term = guarantee.queueing.terms[stage as usize];
    let allowance = server.allowance(instance, guarantee.workload, stage);
    let rates = AROUND.map(|factor| factor * limit.rate).into_iter();
    let curve = rates.map(|rate| (rate, (on.curves[stage].burst(rate) - allowance).max(0.0)));
    StageDelay {
        stage,
        burst_at_or_above: term.load.burst_at_or_above,
        rate_above: term.load.rate_above,
        blocking: term.load.blocking,
        delay_s: term.delay,
        shaping_s: guarantee.shaping[stage],
        rate: limit.rate,
        burst: (limit.burst - allowance).max(0.0),
        allowance,
        mean_rate: on.mean_rate[stage],
        curve: curve.filter(|(_, burst)| burst.is_finite()).collect(),
    }
}

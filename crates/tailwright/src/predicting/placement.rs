//! Few servers for everybody, under a model.

use super::admission::{applicants, host};
use super::by_name::{ModelName, ProcedureVisitor};
use super::{Bound, bounds};
use crate::input::{Scene, Tenant};
use crate::terminal;
use ::plan::SearchEffort;
use ::plan::admission::{AdmissionProcedure, ByModel};
use ::plan::packing::{Packing, PackingProblem, pack};
use model::LatencyModel as _;
use predict::{CorrelatedLatency, Replayed};
use std::time::{Duration, Instant};

/// A placement, what each server's workloads will see, and what a correlated day would do to it.
#[derive(Debug)]
pub(crate) struct Placed {
    pub(crate) model: ModelName,
    pub(crate) packing: Packing,
    /// By server, one per member in the order of the packing.
    pub(crate) servers: Vec<Vec<Forecast>>,
    /// Wall time of the search, without forecasts.
    pub(crate) elapsed: Duration,
}

/// What a placed workload will see.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Forecast {
    /// By the model that decided.
    pub(crate) bound: Bound,
    /// Without any assumption on how bursts meet.
    pub(crate) worst_case: Bound,
    /// When everybody's worst burst comes at the same time, base latency included, seconds.
    pub(crate) bursts_together: Option<f64>,
}

/// Places everybody that fits.
pub(crate) fn place(scene: &Scene, model: ModelName) -> Placed {
    let start = Instant::now();
    if model != ModelName::Replayed {
        let everybody = Everybody { scene, at_least: 1, effort: SearchEffort::Exhaustive };
        let packing = model.as_procedure().run(scene.network, everybody);
        return forecast(scene, model, packing, start);
    }
    let mut at_least = 1;
    loop {
        let placed = forecast(scene, model, search_by_replay(scene, at_least), start);
        let used = placed.packing.servers.len();
        if placed.is_kept(scene) || used < at_least || used >= scene.count {
            return placed;
        }
        at_least = used + 1;
    }
}

/// A search by replays uses few alignments, and does not squeeze; what it finds is judged by other alignments.
/// Whoever picks the placement that looks good in some alignments must not quote these.
fn search_by_replay(scene: &Scene, at_least: usize) -> Packing {
    let few = Replayed::new(SEARCHED_ALIGNMENTS, SEARCHED_COVERAGE, 0.95, SEARCH_SEED);
    let few = few.expect("enough alignments for this coverage");
    let everybody = Everybody { scene, at_least, effort: SearchEffort::FirstFound };
    everybody.visit(ByModel::by_slo(&few), |tenant| few.sketch(&tenant.traffic))
}

/// 14 alignments cover 80 % of all with 95 % confidence.
const SEARCHED_ALIGNMENTS: usize = 14;
const SEARCHED_COVERAGE: f64 = 0.8;
/// Other alignments than those of the default.
const SEARCH_SEED: u64 = 2;

fn forecast(scene: &Scene, model: ModelName, packing: Packing, start: Instant) -> Placed {
    let elapsed = start.elapsed();
    let servers = packing.servers.iter().map(|members| forecasts(scene, members, model)).collect();
    Placed { model, packing, servers, elapsed }
}

/// The forecasts of a server, whoever is served first before the others.
pub(crate) fn by_priority(forecasts: &[Forecast]) -> Vec<Forecast> {
    let mut sorted = forecasts.to_vec();
    sorted.sort_by_key(|forecast| (forecast.bound.priority, forecast.bound.tenant));
    sorted
}

impl Placed {
    /// Whether everybody who has a place keeps the SLO there.
    pub(crate) fn is_kept(&self, scene: &Scene) -> bool {
        let slo = |forecast: &Forecast| scene.tenants[forecast.bound.tenant].spec.slo.latency.0;
        self.servers.iter().flatten().all(|forecast| forecast.bound.seconds() <= slo(forecast))
    }
}

struct Everybody<'a> {
    scene: &'a Scene,
    at_least: usize,
    effort: SearchEffort,
}

impl ProcedureVisitor for Everybody<'_> {
    type Output = Packing;

    fn visit<P: AdmissionProcedure<Sketch: Send> + Clone>(
        self,
        procedure: P,
        sketch: impl Fn(&Tenant) -> P::Sketch + Sync,
    ) -> Packing {
        let applicants = applicants(self.scene, 0..self.scene.tenants.len(), sketch);
        let loads: Vec<_> = self.scene.tenants.iter().map(|tenant| tenant.traffic.utilisation()).collect();
        let bar = terminal::progress(self.scene.count as u64, "packing", "servers tried");
        let mut watch = |servers: usize| bar.set_position(servers as u64);
        let problem = PackingProblem {
            servers: host(self.scene),
            applicants: &applicants,
            loads: &loads,
            servers_min: self.at_least,
        };
        let packing = pack(&procedure, &problem, self.effort, &mut watch);
        bar.finish_and_clear();
        packing
    }
}

fn forecasts(scene: &Scene, members: &[usize], model: ModelName) -> Vec<Forecast> {
    let chosen = bounds(scene, members, &[model], None);
    let worst = match model {
        ModelName::WorstCase => chosen.clone(),
        _ => bounds(scene, members, &[ModelName::WorstCase], None),
    };
    let together = super::correlated(scene, members);
    let forecast = |((bound, worst_case), together): ((Bound, Bound), Option<CorrelatedLatency>)| Forecast {
        bound,
        worst_case,
        bursts_together: together.map(|c| c.bursts_together),
    };
    chosen.into_iter().zip(worst).zip(together).map(forecast).collect()
}

//! Few servers for everybody, under a model.

use super::admission::{applicants, host};
use super::by_name::{ModelName, ProcedureVisitor};
use super::{Bound, bounds};
use crate::input::{Scene, Tenant};
use crate::terminal;
use ::plan::admission::Procedure;
use ::plan::packing::{Packing, pack};
use predict::Correlated;
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
    let packing = model.as_procedure().run(scene.network, Everybody { scene });
    let elapsed = start.elapsed();
    let servers = packing.servers.iter().map(|members| forecasts(scene, members, model)).collect();
    Placed { model, packing, servers, elapsed }
}

struct Everybody<'a> {
    scene: &'a Scene,
}

impl ProcedureVisitor for Everybody<'_> {
    type Output = Packing;

    fn visit<P: Procedure + Clone>(self, procedure: P, sketch: impl Fn(&Tenant) -> P::Sketch) -> Packing {
        let applicants = applicants(self.scene, 0..self.scene.tenants.len(), sketch);
        let loads: Vec<_> = self.scene.tenants.iter().map(|tenant| tenant.traffic.utilisation()).collect();
        let bar = terminal::progress(self.scene.count as u64, "packing", "servers tried");
        let mut watch = |servers: usize| bar.set_position(servers as u64);
        let packing = pack(&procedure, host(self.scene), &applicants, &loads, &mut watch);
        bar.finish_and_clear();
        packing
    }
}

fn forecasts(scene: &Scene, members: &[usize], model: ModelName) -> Vec<Forecast> {
    let chosen = bounds(scene, members, &[model], None);
    let worst = bounds(scene, members, &[ModelName::WorstCase], None);
    let together = super::correlated(scene, members);
    let forecast = |((bound, worst_case), together): ((Bound, Bound), Option<Correlated>)| Forecast {
        bound,
        worst_case,
        bursts_together: together.map(|c| c.bursts_together),
    };
    chosen.into_iter().zip(worst).zip(together).map(forecast).collect()
}

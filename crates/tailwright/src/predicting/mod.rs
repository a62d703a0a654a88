//! From a [`Scene`] to what each workload's latency will be, by model, and who is admitted: the only place
//! that runs a model of `predict` or a procedure of `plan::admission` for a verb.

mod admission;
mod by_name;
mod explain;
mod placement;
mod policy;

pub(crate) use admission::{Admission, Decision, Outcome, admit};
pub(crate) use by_name::{ModelName, ProcedureName};
pub(crate) use explain::{Derivation, derive};
pub(crate) use placement::{Forecast, Placed, by_priority, place};
pub(crate) use policy::{Home, policy, server_name};

use crate::input::Scene;
use ::plan::admission::{Applicant, SharedServer, by_slo};
use by_name::ModelVisitor;
use model::{LatencyModel, Prediction, ServerMember, Stage, UndefinedLatency};
use predict::{CorrelatedLatency, Replayed};
use units::Percentile;

/// What one model says of one workload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bound {
    /// Index into the scene's tenants.
    pub(crate) tenant: usize,
    pub(crate) model: ModelName,
    pub(crate) percentile: Percentile,
    /// 0 is served first.
    pub(crate) priority: u32,
    /// Base latency included.
    pub(crate) latency: Result<Prediction, UndefinedLatency>,
}

impl Bound {
    /// What may be relied on, seconds; infinite where the model has no bound.
    pub(crate) fn seconds(&self) -> f64 {
        self.latency.map_or(f64::INFINITY, |prediction| prediction.bound)
    }
}

/// Workloads that share one server, priorities by SLO.
struct OneServer<'a> {
    scene: &'a Scene,
    members: &'a [usize],
    /// Of everybody, instead of that of each SLO.
    percentile: Option<Percentile>,
}

impl OneServer<'_> {
    /// Hands the members with the model's sketches to `ask`.
    fn with_members<M: LatencyModel, T>(
        &self,
        model: &M,
        ask: impl FnOnce(&[ServerMember<'_, M::Sketch>]) -> T,
    ) -> T {
        let members = self.members.iter().copied();
        let applicants = admission::applicants(self.scene, members, |tenant| model.sketch(&tenant.traffic));
        let applicants: Vec<&Applicant<M::Sketch>> = applicants.iter().collect();
        let view = SharedServer { members: &applicants, base_latency: 0.0, slo_factor: 1.0 };
        let (priorities, groups) = (by_slo(&view), view.groups());
        let member = |i: usize| ServerMember {
            sketch: applicants[i].sketch.as_ref(),
            priority: priorities[i],
            group: groups[i],
            percentile: self.percentile.unwrap_or(applicants[i].slo.percentile),
        };
        let members: Vec<ServerMember<M::Sketch>> = (0..applicants.len()).map(member).collect();
        ask(&members)
    }
}

/// The latency of every member when these share one server; at `percentile` or each at that of its SLO.
pub(crate) fn bounds(
    scene: &Scene,
    members: &[usize],
    models: &[ModelName],
    percentile: Option<Percentile>,
) -> Vec<Bound> {
    let server = || OneServer { scene, members, percentile };
    models.iter().flat_map(|&name| name.run(Predict { server: server(), name })).collect()
}

struct Predict<'a> {
    server: OneServer<'a>,
    name: ModelName,
}

impl ModelVisitor for Predict<'_> {
    type Output = Vec<Bound>;

    fn visit<M: LatencyModel>(self, model: &M) -> Vec<Bound> {
        let base = self.server.scene.base_latency();
        self.server.with_members(model, |members| {
            let results = model.predict(members);
            let of = |((&tenant, member), latency): (
                (&usize, &ServerMember<M::Sketch>),
                Result<Prediction, _>,
            )| Bound {
                tenant,
                model: self.name,
                percentile: member.percentile,
                priority: member.priority[Stage::NetworkIn],
                latency: latency.map(|prediction| prediction.later_by(base)),
            };
            self.server.members.iter().zip(members).zip(results).map(of).collect()
        })
    }
}

/// What members see, base latency included, when they are not independent: as recorded, and all worst bursts
/// at once.
pub(crate) fn correlated(scene: &Scene, members: &[usize]) -> Vec<Option<CorrelatedLatency>> {
    let base = scene.base_latency();
    let later = |c: CorrelatedLatency| CorrelatedLatency {
        recorded: c.recorded + base,
        bursts_together: c.bursts_together + base,
    };
    let model = Replayed::default();
    let server = OneServer { scene, members, percentile: None };
    server.with_members(&model, |members| {
        model.correlated(members).into_iter().map(|c| c.ok().map(later)).collect()
    })
}

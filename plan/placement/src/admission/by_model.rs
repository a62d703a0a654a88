//! Admission by predicted latency: SNC-Meister and PriorityMeister with any model.

use super::applicant::{Priority, SharedServer};
use super::procedure::AdmissionProcedure;
use model::{LatencyModel, PerStage, ServerMember, UndefinedLatency};

/// A search for priorities: those of the members, in their order, under which a model predicts that all
/// SLOs hold; the best that it finds otherwise.
pub type SearchPriorities<'m, M> =
    dyn Fn(&M, &SharedServer<'_, <M as LatencyModel>::Sketch>) -> Vec<Priority> + Sync + 'm;

/// Admits workloads while the model predicts that every member's latency is within its SLO.
pub struct ByModel<'m, M: LatencyModel> {
    model: &'m M,
    /// Without a search, priorities follow from the SLOs.
    search: Option<&'m SearchPriorities<'m, M>>,
}

// Derived implementations would ask for models that can be copied, which are borrowed instead.
impl<M: LatencyModel> Clone for ByModel<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: LatencyModel> Copy for ByModel<'_, M> {}

impl<'m, M: LatencyModel> ByModel<'m, M> {
    /// A procedure with priorities by SLO: the tighter, the higher; equal SLOs share one (thesis §5.2.1).
    pub fn by_slo(model: &'m M) -> Self {
        Self { model, search: None }
    }

    /// A procedure with priorities as the search finds them (thesis §3.2.2).
    pub fn searched(model: &'m M, search: &'m SearchPriorities<'m, M>) -> Self {
        Self { model, search: Some(search) }
    }
}

impl<M: LatencyModel> AdmissionProcedure for ByModel<'_, M> {
    type Sketch = M::Sketch;

    fn name(&self) -> &'static str {
        self.model.name()
    }

    fn priorities(&self, server: &SharedServer<'_, M::Sketch>) -> Vec<Priority> {
        self.search.map_or_else(|| by_slo(server), |search| search(self.model, server))
    }

    fn latencies(
        &self,
        server: &SharedServer<'_, M::Sketch>,
        priorities: &[Priority],
    ) -> Vec<Result<f64, UndefinedLatency>> {
        let predictions = self.model.predict(&members(server, priorities));
        let predictions = predictions.into_iter().zip(server.members);
        predictions.map(|(p, member)| p.map(|p| p.bound + member.base_latency)).collect()
    }

    fn fits(&self, server: &SharedServer<'_, M::Sketch>, priorities: &[Priority]) -> bool {
        self.model.all_within(&members(server, priorities), &budgets(server))
    }

    fn likely_fits(&self, server: &SharedServer<'_, M::Sketch>, priorities: &[Priority]) -> Option<bool> {
        self.model.likely_within(&members(server, priorities), &budgets(server))
    }

    fn forget(&self) {
        self.model.forget();
    }
}

/// Ranks by SLO, tightest first, the same at every stage; equal SLOs share a priority. If the server has
/// fewer levels than SLOs, those closest by ratio are merged.
pub fn by_slo<S>(server: &SharedServer<'_, S>) -> Vec<Priority> {
    let latencies: Vec<f64> = server.members.iter().map(|member| member.slo.latency.0).collect();
    let mut order: Vec<usize> = (0..latencies.len()).collect();
    order.sort_by(|&a, &b| latencies[a].total_cmp(&latencies[b]));
    let mut levels: Vec<(f64, Vec<usize>)> = Vec::new();
    for member in order {
        match levels.last_mut() {
            Some((slo, level)) if *slo == latencies[member] => level.push(member),
            _ => levels.push((latencies[member], vec![member])),
        }
    }
    while levels.len() > server.levels_max {
        let ratio = |pair: usize| levels[pair + 1].0 / levels[pair].0;
        let closest = (0..levels.len() - 1).min_by(|&a, &b| ratio(a).total_cmp(&ratio(b)));
        let closest = closest.expect("there are two levels at least");
        let (_, merged) = levels.remove(closest + 1);
        levels[closest].1.extend(merged);
    }
    let mut priorities = vec![PerStage::from_fn(|_| 0); latencies.len()];
    for (priority, (_, level)) in (0..).zip(levels) {
        level.into_iter().for_each(|member| priorities[member] = PerStage::from_fn(|_| priority));
    }
    priorities
}

/// Returns the part of each member's SLO left for queueing, seconds.
fn budgets<S>(server: &SharedServer<'_, S>) -> Vec<f64> {
    (0..server.members.len()).map(|member| server.budget(member)).collect()
}

/// The members as a model sees them.
fn members<'a, S>(server: &SharedServer<'a, S>, priorities: &[Priority]) -> Vec<ServerMember<'a, S>> {
    let mut members = Vec::with_capacity(server.members.len());
    for (i, group) in server.groups().into_iter().enumerate() {
        members.push(ServerMember {
            sketch: server.members[i].sketch.as_ref(),
            priority: priorities[i],
            group,
            percentile: server.members[i].slo.percentile,
        });
    }
    members
}

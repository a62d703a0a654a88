//! Admission by predicted latency: SNC-Meister and PriorityMeister with any model.

use super::applicant::{Priority, ServerView};
use super::procedure::Procedure;
use model::{LatencyModel, PerStage, ServerMember, UndefinedLatency};

/// A search for priorities: those of the members, in their order, under which a model predicts that all
/// SLOs hold; the best that it finds otherwise.
pub type SearchPriorities<'m, M> =
    dyn Fn(&M, &ServerView<'_, <M as LatencyModel>::Sketch>) -> Vec<Priority> + Sync + 'm;

/// Everybody's latency as a model predicts it.
pub struct ByModel<'m, M: LatencyModel> {
    model: &'m M,
    search: Option<&'m SearchPriorities<'m, M>>,
}

impl<M: LatencyModel> Clone for ByModel<'_, M> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<M: LatencyModel> Copy for ByModel<'_, M> {}

impl<'m, M: LatencyModel> ByModel<'m, M> {
    /// The tighter the SLO, the higher the priority; equal SLOs share one (thesis §5.2.1).
    pub fn by_slo(model: &'m M) -> Self {
        Self { model, search: None }
    }

    /// Priorities as the search finds them (thesis §3.2.2).
    pub fn searched(model: &'m M, search: &'m SearchPriorities<'m, M>) -> Self {
        Self { model, search: Some(search) }
    }
}

impl<M: LatencyModel> Procedure for ByModel<'_, M> {
    type Sketch = M::Sketch;

    fn name(&self) -> &'static str {
        self.model.name()
    }

    fn priorities(&self, server: &ServerView<'_, M::Sketch>) -> Vec<Priority> {
        self.search.map_or_else(|| by_slo(server), |search| search(self.model, server))
    }

    fn latencies(
        &self,
        server: &ServerView<'_, M::Sketch>,
        priorities: &[Priority],
    ) -> Vec<Result<f64, UndefinedLatency>> {
        let predictions = self.model.predict(&members(server, priorities));
        predictions.into_iter().map(|p| p.map(|p| p.bound + server.base_latency)).collect()
    }

    fn fits(&self, server: &ServerView<'_, M::Sketch>, priorities: &[Priority]) -> bool {
        let limits: Vec<f64> = (0..server.members.len()).map(|i| server.budget(i)).collect();
        self.model.all_within(&members(server, priorities), &limits)
    }
}

/// The tighter the SLO, the higher the priority, the same at every stage; equal SLOs share one.
pub fn by_slo<S>(server: &ServerView<'_, S>) -> Vec<Priority> {
    let latency = |i: usize| server.members[i].slo.latency.0;
    let mut order: Vec<usize> = (0..server.members.len()).collect();
    order.sort_by(|&a, &b| latency(a).total_cmp(&latency(b)));
    let mut priorities = vec![PerStage::from_fn(|_| 0); order.len()];
    let mut level = 0;
    for (position, &member) in order.iter().enumerate() {
        if position > 0 && latency(order[position - 1]) < latency(member) {
            level += 1;
        }
        priorities[member] = PerStage::from_fn(|_| level);
    }
    priorities
}

fn members<'a, S>(server: &ServerView<'a, S>, priorities: &[Priority]) -> Vec<ServerMember<'a, S>> {
    let groups = server.groups();
    let member = |i: usize| ServerMember {
        sketch: server.members[i].sketch.as_ref(),
        priority: priorities[i],
        group: groups[i],
        percentile: server.members[i].slo.percentile,
    };
    (0..groups.len()).map(member).collect()
}

//! PriorityMeister as admission (thesis §3.2.2 with the latencies of limiters at every stage): the search of
//! [`crate::prioritise`] asks for the delay behind others at each stage.

use super::applicant::{Priority, ServerView};
use crate::prioritise;
use calculus::PriorityQueue;
use model::PerStage;
use predict::{WorstCase, WorstCaseSketch};

/// Priorities under which every worst case is within its SLO when limiters hold workloads to their curves before
/// every stage (`Passage::Reshaped`); where there are none, those that miss by least. For
/// [`super::ByModel::searched`].
pub fn priority_meister(_: &WorstCase, server: &ServerView<'_, WorstCaseSketch>) -> Vec<Priority> {
    let budgets: Vec<f64> = (0..server.members.len()).map(|i| server.budget(i)).collect();
    let mut behind = |workload: usize, above: &PerStage<Vec<usize>>| {
        PerStage::from_fn(|stage| {
            let curve = |member: usize| server.members[member].sketch.curve(stage);
            let mut queue = PriorityQueue::new();
            above[stage].iter().for_each(|&other| queue.add(curve(other), 0.0));
            queue.delay(curve(workload), 0.0)
        })
    };
    prioritise(&budgets, &mut behind).priorities
}

#[cfg(test)]
mod tests {
    use super::super::{Applicant, ByModel, Desk, Host};
    use super::*;
    use model::{Job, Slo, Stage};
    use predict::{Model as _, Passage, Traffic};
    use std::sync::Arc;
    use units::{Nanos, Percentile, Seconds};

    #[test]
    fn each_may_be_first_at_one_stage() {
        // 50 ms of work on each link. Whoever comes second on both takes 200 ms, one that is first once 150 ms.
        let model = WorstCase { passage: Passage::Reshaped };
        let work = |stage| Nanos(if stage == Stage::Storage { 0 } else { 50_000_000 });
        let job = Job { arrival: Nanos::ZERO, work: PerStage::from_fn(work) };
        let sketch = Arc::new(model.sketch(&Traffic::new(vec![job], Nanos(100_000_000_000)).unwrap()));
        let slo = |latency| Slo::new(Percentile::new(99.9).unwrap(), Seconds(latency)).unwrap();
        let applicant = |name: &str, latency| Applicant {
            name: name.into(),
            slo: slo(latency),
            group: None,
            sketch: Arc::clone(&sketch),
        };
        let both = vec![applicant("a", 0.16), applicant("b", 0.17)];
        let refusal = Desk::new(ByModel::by_slo(&model), Host::LINK).arrive(both.clone()).unwrap_err();
        assert_eq!(refusal.closest().unwrap().1.workload, "b");
        let mut desk = Desk::new(ByModel::searched(&model, &priority_meister), Host::LINK);
        assert_eq!(desk.arrive(both), Ok(0));
        for given in desk.guarantees() {
            assert!((given.latency.unwrap() - 0.15).abs() < 0.001, "{given:?}");
            assert_eq!(given.priority[Stage::NetworkIn] + given.priority[Stage::NetworkOut], 1);
        }
        assert!(desk.arrive(vec![applicant("c", 0.16)]).is_err());
    }
}

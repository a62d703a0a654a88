//! PriorityMeister as admission (thesis §3.2.2 with the latencies of limiters at every stage): the search of
//! [`crate::prioritise()`] asks for the delay behind others at each stage.

use super::applicant::{Priority, SharedServer};
use crate::prioritise;
use calculus::{ArrivalCurve, PriorityQueue};
use model::{PerStage, Stage};
use std::collections::BTreeMap;

/// Returns priorities with which every worst case is within its SLO, if limiters hold workloads to their
/// curves before every stage. If there are none, returns those that miss by least. For
/// [`super::ByModel::searched`]: `curve` gives the arrival curve of a sketch's workload at a stage, and
/// `begun` the work that a stage may have begun, seconds of its capacity.
pub fn priority_meister<S>(
    server: &SharedServer<'_, S>,
    curve: impl Fn(&S, Stage) -> &ArrivalCurve,
    begun: &PerStage<f64>,
) -> Vec<Priority> {
    let budgets: Vec<f64> = (0..server.members.len()).map(|i| server.budget(i)).collect();
    // The search repeats questions about stages at which nothing has changed.
    let mut known: BTreeMap<(Stage, usize, Vec<usize>), f64> = BTreeMap::new();
    let mut delay_behind = |workload: usize, above: &PerStage<Vec<usize>>| {
        PerStage::from_fn(|stage| {
            *known.entry((stage, workload, above[stage].clone())).or_insert_with(|| {
                let mut queue = PriorityQueue::new();
                for &other in &above[stage] {
                    queue.add(curve(&server.members[other].sketch, stage), 0.0);
                }
                queue.delay(curve(&server.members[workload].sketch, stage), begun[stage])
            })
        })
    };
    let found = prioritise(&budgets, &mut delay_behind).priorities;
    found.into_iter().map(|priority| shared_priority(server, priority)).collect()
}

/// A priority where every member has its own, as one of those that the server can have: neighbours share one.
fn shared_priority<S>(server: &SharedServer<'_, S>, priority: Priority) -> Priority {
    let members = server.members.len();
    let most = server.levels_max;
    if members <= most {
        return priority;
    }
    priority.map(|priority| {
        let shared = *priority as usize * most / members;
        u32::try_from(shared).expect("not above the priority")
    })
}

#[cfg(test)]
mod tests {
    use super::super::{AdmissionController, Applicant, ByModel, IdenticalServers};
    use super::*;
    use model::{CircularTrace, Job, LatencyModel as _, Slo};
    use predict::{Reshaping, WorstCase, WorstCaseSketch};
    use std::sync::Arc;
    use units::{Nanos, Percentile, Seconds};

    #[test]
    fn each_may_be_first_at_one_stage() {
        // 50 ms of work on each link. A workload second on both links takes 200 ms, one that is first once
        // 150 ms.
        let model = WorstCase { reshaping: Reshaping::EveryStage };
        let work = |stage| Nanos(if stage == Stage::Storage { 0 } else { 50_000_000 });
        let job = Job { arrival: Nanos::ZERO, work: PerStage::from_fn(work) };
        let sketch = Arc::new(
            model.sketch(&CircularTrace::from_first_arrival(vec![job], Nanos(100_000_000_000)).unwrap()),
        );
        let slo = |latency| Slo::new(Percentile::new(99.9).unwrap(), Seconds(latency)).unwrap();
        let applicant = |name: &str, latency| Applicant {
            name: name.into(),
            slo: slo(latency),
            base_latency: 0.0,
            group: None,
            sketch: Arc::clone(&sketch),
        };
        let both = vec![applicant("a", 0.16), applicant("b", 0.17)];
        let refusal = AdmissionController::new(ByModel::by_slo(&model), IdenticalServers::LINK)
            .arrive(both.clone())
            .unwrap_err();
        assert_eq!(refusal.closest().unwrap().1.workload, "b");
        let mut controller = AdmissionController::new(
            ByModel::searched(&model, &|_, server| {
                priority_meister(server, WorstCaseSketch::curve, &PerStage::default())
            }),
            IdenticalServers::LINK,
        );
        assert_eq!(controller.arrive(both), Ok(0));
        for given in controller.guarantees() {
            assert!((given.latency.unwrap() - 0.15).abs() < 0.001, "{given:?}");
            assert_eq!(given.priority[Stage::NetworkIn] + given.priority[Stage::NetworkOut], 1);
        }
        assert!(controller.arrive(vec![applicant("c", 0.16)]).is_err());
    }
}

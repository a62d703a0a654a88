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

//! Work that the stages of a server may have begun when a request arrives.

use crate::problem::PlanningProblem;
use calculus::DeviceQueue;
use model::{PerStage, Stage};

impl PlanningProblem {
    /// The work that each stage of a server with these members may have begun when a request comes, seconds.
    pub(crate) fn blocking(&self, class: usize, members: &[usize], queue: DeviceQueue) -> PerStage<f64> {
        let largest = members.iter().map(|&w| self.largest_request(w, class)).fold(0.0, f64::max);
        let enforced = self.classes[class].enforced;
        let Some(enforced) = enforced else { return PerStage::default() };
        PerStage::from_fn(|stage| match stage {
            Stage::Storage => queue.blocking(enforced.best_effort_request, largest),
            Stage::NetworkIn | Stage::NetworkOut => enforced.begun_on_link(members.len()),
        })
    }

    /// As [`Self::blocking`], with the queue at the device that makes requests wait least.
    pub(crate) fn least_blocking(&self, class: usize, members: &[usize]) -> PerStage<f64> {
        self.blocking(class, members, self.shortest_queue(class))
    }

    /// Returns each member's contribution to the work begun at stages, seconds: packets on links.
    pub(crate) fn begun_by_member(&self, class: usize) -> PerStage<f64> {
        let Some(enforced) = self.classes[class].enforced else { return PerStage::default() };
        let on_link = enforced.begun_on_link(1) - enforced.begun_on_link(0);
        PerStage::from_fn(|stage| if stage == Stage::Storage { 0.0 } else { on_link })
    }

    /// The queues at the device of a class, the best for its throughput first; a single one where it is not counted.
    pub(crate) fn queues(&self, class: usize) -> Vec<DeviceQueue> {
        let enforced = self.classes[class].enforced;
        enforced.map_or_else(|| vec![self.shortest_queue(class)], |class| class.queues().to_vec())
    }

    /// The queue at the device of a class that makes requests wait least.
    pub fn shortest_queue(&self, class: usize) -> DeviceQueue {
        let enforced = self.classes[class].enforced;
        enforced.map_or(DeviceQueue::shortest(1), |class| class.shortest_queue())
    }
}

//! First fit, the published rule of placement.

use super::fleet::Fleet;
use super::result::Placement;
use crate::limits::LimitMethod;
use crate::problem::PlanningProblem;

/// First fit over `order`, as in thesis §5.2.3. With `fast`, servers where the workload's own rates would
/// exceed a stage's capacity beside the rates in force are skipped (fast-first-fit).
pub fn place_first_fit(
    problem: &PlanningProblem,
    method: LimitMethod,
    order: &[usize],
    fast: bool,
) -> Placement {
    let mut fleet = Fleet::new(problem, method).skipping_full(fast);
    let refused = order.iter().filter_map(|&w| fleet.arrive(w).err()).collect();
    fleet.into_placement(refused)
}

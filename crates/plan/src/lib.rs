//! Deciding: which workload goes where, with which priority and which rate limits, and what latency each
//! is then guaranteed.
//!
//! Reading order: [`Instance`] is the question, [`Method`] chooses limits for the workloads of one server
//! (thesis §5.2.2 and the baselines of §5.3.1), placement decides who shares a server (§5.2.3),
//! [`lower_bound`] says how few servers any placement could need, [`advise`] what would admit a refused
//! workload. Everything is pure: no clock, no files; randomness is seeded.

mod chain;
mod instance;
mod limits;
mod normalise;

mod placement;
mod server;

pub use instance::{Class, Instance, InstanceError, OnClass, Workload};
pub use limits::{Blocked, Method};
pub use normalise::Normalisation;
pub use placement::{Fleet, Placement, Refusal, place_first_fit};
pub use server::{Guarantee, Level, Limits, Server, level_bounds, levels};

/// Scratch.
pub fn lower_bounds(instance: &Instance) -> Vec<f64> {
    let members: Vec<usize> = (0..instance.workloads.len()).collect();
    let levels = levels(instance, 0, &members);
    [chain::LatencyModel::Outer, chain::LatencyModel::Relaxed]
        .into_iter()
        .map(|m| {
            match chain::minimise(&limits::chain_of(instance, 0, &levels, m), chain::Precision::Within(1e-7))
            {
                chain::Outcome::Solved { point, gap, prices } => {
                    let sum: f64 = members
                        .iter()
                        .map(|&w| prices.cost(instance.budget(w, 0), instance.relevant(w, 0)))
                        .sum();
                    println!("{m:?} {} gap {gap} dual {sum}", point.t);
                    sum
                }
                chain::Outcome::Overloaded(_) => f64::INFINITY,
            }
        })
        .collect()
}

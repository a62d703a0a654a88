//! Experiments whose bottleneck is the link on which the servers' host sends answers (thesis §3.4.4 and chapter 4).
//!
//! Every request is a read, because its answer is what the link carries. Under every policy all hosts have the same tree
//! of queues with the same rate, so that policies differ only in classes and limits: without a policy everything is in
//! one class, first come, first served.

mod analysis;
mod plan;
mod simulation;
mod testbed;
mod work;

pub(super) use plan::plan_case;
pub(super) use simulation::simulate_on_link;
pub(super) use testbed::LinkTestbed;

#[cfg(test)]
mod tests;

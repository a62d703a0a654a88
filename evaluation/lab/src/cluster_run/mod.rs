//! A cluster on this machine: planned from the first half of each trace, played with the other half, and judged.
//!
//! [`ClusterHalves`] cuts the traces and puts emulated devices in the place of those of the cluster; its folder has what
//! a planner needs. [`play_cluster`] enforces the policy that came of it, at links and at proxies, and sends the other
//! halves; [`judge_cluster`] compares with SLOs, bounds and limits. What plans is the caller's choice.
//!
//! **Devices.** An emulated SSD takes the time that the cluster's profile says at the smallest and the largest size of all
//! requests, and in between what lies on a line. The plan is made for the emulated device, so that it is not the emulation
//! that is judged.
//!
//! **Links.** Each host sends at the rate of the cluster's links. Traffic of several hosts to one server is not
//! limited again where it arrives.
//!
//! **Best effort.** Beside the workloads, a copy reads from each server as fast as it may, if the cluster allows best effort.
//!
//! Not covered: a device whose speed depends on offsets, several clients of a workload.

mod default_cluster;
mod halves;
mod play;
mod testbed;

pub use default_cluster::write_default_cluster;
pub use halves::{CLUSTER_FILE, ClusterHalves};
pub use play::{PlayedCluster, forecast_cluster, judge_cluster, play_cluster};

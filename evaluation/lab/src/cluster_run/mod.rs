//! A cluster on this machine: planned from the first half of each trace, played with the other half, and judged.
//!
//! [`ClusterHalves`] cuts the traces and replaces the devices of the cluster by emulated ones; its folder
//! has the input of a planner. [`play_cluster`] enforces the resulting policy, at links and at proxies,
//! and sends the other halves; [`judge_cluster`] compares the results with SLOs, bounds and limits. The
//! caller chooses the planner.
//!
//! **Devices.** An emulated SSD takes the service time of the cluster's profile at the smallest and the
//! largest size of all requests, and is linear in between. The plan is made for the emulated device, so
//! that differences between it and the profile do not affect the verdicts.
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

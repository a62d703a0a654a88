//! A bursty cluster to start from. Everything written is decided by the seed and the number of workloads.

mod cluster;
mod folder;

pub use cluster::{CLUSTER_FILE, PLAN_FILE, REPORT_FILE};
pub use folder::StagedDemo;

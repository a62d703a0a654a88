//! The cluster that a user describes: classes of servers, and the workloads that want to be placed on them.

use crate::Slo;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use units::ByteRate;

/// Curves are taken as they are unless the user asks for headroom.
pub const DEFAULT_SAFETY_MARGIN: f64 = 1.0;

/// What a user describes: the servers that there are and the workloads that want to live on them
/// (`cluster.toml`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Factor on every workload's burst curve for behaviour beyond its trace; 1.1 is a 10 % margin.
    #[serde(default = "default_margin")]
    pub safety_margin: f64,
    /// Kinds of server, tried in this order.
    #[serde(rename = "server", default)]
    pub servers: Vec<ServerClass>,
    /// Workloads, in order of arrival.
    #[serde(rename = "workload", default)]
    pub workloads: Vec<WorkloadSpec>,
}

fn default_margin() -> f64 {
    DEFAULT_SAFETY_MARGIN
}

/// Servers that do not differ but by their number.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerClass {
    /// Servers are named `<class>-<number>`.
    pub class: String,
    /// How many there are.
    pub count: usize,
    /// Device profile file, relative to the cluster file.
    pub storage: PathBuf,
    /// Link bandwidth in each direction.
    pub network: ByteRate,
}

/// A workload that asks for a guarantee.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// The name, which no other workload has.
    pub name: String,
    /// Representative request trace, relative to the cluster file.
    pub trace: PathBuf,
    /// What is promised to it.
    pub slo: Slo,
}

//! The cluster that a user describes: classes of servers, and the workloads that want to be placed on them.

use crate::Slo;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use units::{ByteRate, Bytes, Nanos};

/// Curves are taken as they are unless the user asks for headroom.
pub const DEFAULT_SAFETY_MARGIN: f64 = 1.0;

/// A cluster as its user describes it: the servers and the workloads to place on them (`cluster.toml`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    /// Factor on every workload's burst curve for behaviour beyond its trace; 1.1 is a 10 % margin.
    #[serde(default = "default_margin")]
    pub safety_margin: f64,
    /// Label of servers that may fail together: workloads that are apart share no value of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure_domain: Option<String>,
    /// Kinds of server, tried in this order.
    #[serde(rename = "server", default)]
    pub servers: Vec<ServerClass>,
    /// Hosts of clients, whose links bounds count; empty if they count none.
    #[serde(rename = "host", default, skip_serializing_if = "Vec::is_empty")]
    pub hosts: Vec<ClientHost>,
    /// Workloads, in order of arrival.
    #[serde(rename = "workload", default)]
    pub workloads: Vec<WorkloadSpec>,
}

fn default_margin() -> f64 {
    DEFAULT_SAFETY_MARGIN
}

/// Identical servers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerClass {
    /// Servers are named `<class>-<number>`.
    pub class: String,
    /// Number of servers of this class.
    pub count: usize,
    /// Device profile file, relative to the cluster file.
    pub storage: PathBuf,
    /// Link bandwidth in each direction.
    #[schemars(with = "String")]
    pub network: ByteRate,
    /// Number of requests that the device serves at a time; defaults to its profile's, then to 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channels: Option<u32>,
    /// Size of the largest request of best-effort workloads; 0 if there are none.
    #[serde(default = "default_best_effort_request")]
    #[schemars(with = "String")]
    pub best_effort_request: Bytes,
    /// The most bytes that a link sends without looking for others.
    #[serde(default = "default_packet")]
    #[schemars(with = "String")]
    pub packet: Bytes,
    /// Time of a request in the proxy beyond waiting for its turn.
    #[serde(default = "default_proxy")]
    #[schemars(with = "String")]
    pub proxy: Nanos,
    /// Bytes that each server can store for workloads; unlimited without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub capacity: Option<Bytes>,
    /// Price of a server, in any unit that all classes share; a plan then looks for cheap servers instead of few.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    /// Properties of all servers of the class by name, such as a zone or a rack.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
}

impl ServerClass {
    /// Creates a class of `count` servers with default values for the other fields.
    pub fn new(class: impl Into<String>, count: usize, storage: PathBuf, network: ByteRate) -> Self {
        Self {
            class: class.into(),
            count,
            storage,
            network,
            channels: None,
            best_effort_request: default_best_effort_request(),
            packet: default_packet(),
            proxy: default_proxy(),
            capacity: None,
            price: None,
            labels: BTreeMap::new(),
        }
    }
}

/// A host from which requests of workloads come, with a link in each direction.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClientHost {
    /// The name, which no other host has.
    pub name: String,
    /// Link bandwidth in each direction.
    pub network: ByteRate,
    /// The most bytes that a link sends without looking for others.
    #[serde(default = "default_packet")]
    pub packet: Bytes,
}

/// Default maximum request size of NFS clients.
fn default_best_effort_request() -> Bytes {
    Bytes(1 << 20)
}

fn default_packet() -> Bytes {
    FRAME
}

/// An allowance for one more hop.
fn default_proxy() -> Nanos {
    Nanos(200_000)
}

/// Frame of an Ethernet with its header: `apply` makes shaped devices send nothing larger.
pub const FRAME: Bytes = Bytes(1514);

/// A workload that asks for a guarantee.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WorkloadSpec {
    /// The name, which no other workload has.
    pub name: String,
    /// Representative request trace, relative to the cluster file.
    pub trace: PathBuf,
    /// Promised latency.
    pub slo: Slo,
    /// Bytes that it stores on its server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Bytes>,
    /// Servers that it may be on, each by its name, its class or a `label=value`; any server if empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<String>,
    /// Group of workloads no two of which share a server or a failure domain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart: Option<String>,
    /// Group of workloads that are all on the same server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub together: Option<String>,
    /// Name of the host from which its requests come.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
}

impl WorkloadSpec {
    /// Creates a workload that may be placed anywhere.
    pub fn new(name: impl Into<String>, trace: PathBuf, slo: Slo) -> Self {
        Self {
            name: name.into(),
            trace,
            slo,
            size: None,
            on: Vec::new(),
            apart: None,
            together: None,
            host: None,
        }
    }
}

//! The cluster that a user describes: classes of servers, and the workloads that want to be placed on them.

use crate::Slo;
use crate::slo::{Objective, SloList};
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

/// A workload that asks for a guarantee. In the file, `slo` is one SLO or a list of them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(from = "WorkloadDocument", into = "WorkloadDocument")]
pub struct WorkloadSpec {
    /// The name, which no other workload has.
    pub name: String,
    /// Representative request trace, relative to the cluster file.
    pub trace: PathBuf,
    /// Promised latency of all requests.
    pub slo: Slo,
    /// Other SLOs that it asks for.
    pub further_slos: Vec<Objective>,
    /// Bytes that it stores on its server.
    pub size: Option<Bytes>,
    /// Servers that it may be on, each by its name, its class or a `label=value`; any server if empty.
    pub on: Vec<String>,
    /// Group of workloads no two of which share a server or a failure domain.
    pub apart: Option<String>,
    /// Group of workloads that are all on the same server.
    pub together: Option<String>,
    /// Name of the host from which its requests come.
    pub host: Option<String>,
}

/// A workload as the file has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename = "WorkloadSpec")]
struct WorkloadDocument {
    name: String,
    trace: PathBuf,
    slo: SloList,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    size: Option<Bytes>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    on: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    apart: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    together: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    host: Option<String>,
}

impl From<WorkloadDocument> for WorkloadSpec {
    fn from(document: WorkloadDocument) -> Self {
        let WorkloadDocument { name, trace, slo, size, on, apart, together, host } = document;
        let SloList { first, further } = slo;
        Self { name, trace, slo: first, further_slos: further, size, on, apart, together, host }
    }
}

impl From<WorkloadSpec> for WorkloadDocument {
    fn from(spec: WorkloadSpec) -> Self {
        let WorkloadSpec { name, trace, slo, further_slos, size, on, apart, together, host } = spec;
        Self {
            name,
            trace,
            slo: SloList { first: slo, further: further_slos },
            size,
            on,
            apart,
            together,
            host,
        }
    }
}

impl WorkloadSpec {
    /// Creates a workload that may be placed anywhere.
    pub fn new(name: impl Into<String>, trace: PathBuf, slo: Slo) -> Self {
        Self {
            name: name.into(),
            trace,
            slo,
            further_slos: Vec::new(),
            size: None,
            on: Vec::new(),
            apart: None,
            together: None,
            host: None,
        }
    }
}

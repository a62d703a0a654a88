//! The history of a cluster: events that are appended and never changed. The state is a fold of them.
//!
//! An event holds what was decided, not only what was asked, so that reading a history decides nothing again and a
//! later version of the planner does not change the past.

use crate::alert::{AlertKind, AlertState};
use crate::observed::{BurnAlert, ObservedVerdict};
use agent::{Abilities, AgentMode, ClientPlace};
use model::{Policy, ServerClass, Slo};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use workload::Footprint;

/// Version of [`Event`] that is written. Readers know this one and all before.
pub const EVENT_VERSION: u32 = 4;

/// An event as stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedEvent {
    /// Position in the history; the first event has 1.
    pub seq: u64,
    /// Wall clock of the controller, nanoseconds since 1970; no decision depends on it.
    pub at_ns: u64,
    pub version: u32,
    pub event: Event,
}

/// A change of the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Event {
    /// The cluster began.
    Founded {
        cluster: String,
    },
    /// The classes of servers were described, in place of those before.
    ClassesDescribed(ClassesDescription),
    /// The hosts file was replaced.
    HostsDescribed(HostsDescription),
    TokenIssued(TokenRecord),
    TokenRevoked {
        name: String,
    },
    /// An agent reported for the first time, or reported another use or other abilities.
    AgentSeen {
        host: String,
        mode: AgentMode,
        abilities: Abilities,
    },
    /// An agent said what an assignment would change.
    AgentAdvised {
        host: String,
        epoch: u64,
        text: String,
    },
    /// The warnings of an agent changed; without any, what they were about is over.
    AgentWarned {
        host: String,
        warnings: Vec<String>,
    },
    WorkloadAdmitted(Box<Admission>),
    WorkloadRefused {
        request: RequestRecord,
        reason: String,
    },
    /// A workload gave up its place.
    WorkloadRemoved {
        tenant: String,
        name: String,
        change: ServerChange,
    },
    /// The promise of a workload was decided again, by what it sends.
    WorkloadRenewed(Box<Renewal>),
    /// A renewal was refused: the promise stays as it was.
    RenewalRefused {
        request: RequestRecord,
        reason: String,
    },
    /// A host enforces the assignment of this epoch.
    Applied {
        host: String,
        epoch: u64,
    },
    /// A host could not apply an assignment. Changes of servers that rest on it are taken back.
    Refused {
        host: String,
        epoch: u64,
        reason: String,
        changes: Vec<Withdrawal>,
    },
    /// A host enforces less than it had confirmed: its state was lost, or others changed it.
    Regressed {
        host: String,
        epoch: u64,
    },
    /// The requests of a workload changed the verdict on its promise.
    VerdictChanged {
        /// Identity of the workload: the position of its admission.
        workload: u64,
        tenant: String,
        name: String,
        verdict: ObservedVerdict,
        /// Reason in a sentence, with figures.
        reason: String,
    },
    /// An alert on the burn rate of a workload's error budget began or ended.
    BurnChanged {
        /// Identity of the workload: the position of its admission.
        workload: u64,
        tenant: String,
        name: String,
        burn: BurnAlert,
        state: AlertState,
        /// Reason in a sentence, with figures.
        reason: String,
    },
    /// The agent of a host fell silent or was heard again, or the certificate of the controller will end or was renewed.
    AlertChanged {
        alert: AlertKind,
        state: AlertState,
        /// Host that it is about, if it is about one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        host: Option<String>,
        reason: String,
    },
    /// The history was restored from a backup: hosts may have gone on since, so nothing that they confirmed counts.
    Restored {
        epoch_offset: u64,
    },
}

/// Classes of servers with their devices.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassesDescription {
    /// Factor on all work, at least 1.
    pub safety_margin: f64,
    pub classes: Vec<ClassDescription>,
}

/// A class of servers with its device profile.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ClassDescription {
    /// The class; the number of servers comes from the hosts file.
    pub class: ServerClass,
    /// Text of the device profile.
    pub profile: String,
}

/// Hosts and servers of the cluster.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HostsDescription {
    /// Text of the hosts file.
    pub text: String,
    pub hosts: Vec<String>,
    /// Servers with storage, and their hosts.
    pub servers: Vec<ServerPlace>,
    pub network: NetworkEnforcement,
}

/// A server and its host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerPlace {
    /// `<class>-<n>`.
    pub server: String,
    pub class: String,
    pub host: String,
}

/// Keeper of the limits of network stages, on which bounds rest as on those of storage.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NetworkEnforcement {
    /// Agents: of the server's host, and of the hosts of its clients.
    #[default]
    Agents,
    /// The operator, by other means; decisions say that they assume it.
    Assumed,
}

/// A token, of which only a hash is stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRecord {
    /// Name by which it is revoked.
    pub name: String,
    pub role: Role,
    /// Hash of the token, hexadecimal.
    pub hash: String,
}

/// Rights of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "role", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Role {
    /// Everything.
    Operator,
    /// Workloads of one tenant.
    Tenant { tenant: String },
    /// Reports of one host.
    Agent { host: String },
    /// Metrics of the cluster.
    Metrics,
}

/// A request for a guarantee, without the traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RequestRecord {
    pub tenant: String,
    /// Name within the tenant.
    pub name: String,
    /// Requested SLO, as text.
    pub slo: String,
    pub clients: Vec<ClientPlace>,
    /// Key of the tenant by which a repeated request is told from a new one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

/// A request for a guarantee.
#[derive(Debug, Clone, PartialEq)]
pub struct WorkloadRequest {
    pub tenant: String,
    pub name: String,
    pub slo: Slo,
    pub clients: Vec<ClientPlace>,
    pub key: Option<String>,
    /// Footprint of the trace by class of server.
    pub footprints: BTreeMap<String, Footprint>,
}

/// An admitted workload and the change of its server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Admission {
    pub request: RequestRecord,
    /// Footprint of its trace on the class of its server.
    #[schemars(with = "serde_json::Value")]
    pub footprint: Footprint,
    /// Bound on its latency, seconds, once `change` is enforced.
    pub bound_s: f64,
    /// Derivation of the bound.
    pub derivation: serde_json::Value,
    /// Statements that the bound rests on and that the cluster does not enforce.
    pub assumptions: Vec<String>,
    pub change: ServerChange,
}

/// A promise that was decided again, and the change of its server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Renewal {
    /// Identity of the workload: the position of its admission.
    pub workload: u64,
    pub request: RequestRecord,
    /// True if the promise is for `footprint` alone from now on; otherwise for what it was before, too, once `change` is
    /// enforced.
    pub gives_back: bool,
    /// Footprint of what its clients sent, on the class of its server.
    #[schemars(with = "serde_json::Value")]
    pub footprint: Footprint,
    /// Traffic that was seen, and how its limits change.
    pub reason: String,
    /// Bound on its latency, seconds, once `change` is enforced.
    pub bound_s: f64,
    /// Derivation of the bound.
    pub derivation: serde_json::Value,
    pub change: ServerChange,
}

/// A new policy for a server, and the order in which hosts take it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ServerChange {
    pub server: String,
    pub policy: Policy,
    /// Hosts, each of which gets the policy when those before have confirmed it.
    pub order: Vec<String>,
}

/// A change of a server that is taken back.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Withdrawal {
    pub server: String,
    /// Workloads, `tenant/name`, that had been admitted with changes that are taken back.
    pub workloads: Vec<String>,
    /// The server's policy instead; absent if it stays as confirmed.
    pub instead: Option<ServerChange>,
}

impl RequestRecord {
    /// Returns the name of the workload in policies.
    pub fn full_name(&self) -> String {
        full_name(&self.tenant, &self.name)
    }
}

impl WorkloadRequest {
    /// Returns the request without the traffic.
    pub fn record(&self) -> RequestRecord {
        RequestRecord {
            tenant: self.tenant.clone(),
            name: self.name.clone(),
            slo: self.slo.to_string(),
            clients: self.clients.clone(),
            key: self.key.clone(),
        }
    }
}

/// Returns the name of a tenant's workload in policies.
pub fn full_name(tenant: &str, name: &str) -> String {
    format!("{tenant}/{name}")
}

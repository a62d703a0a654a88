//! Questions about the state of a cluster.

use crate::event::{ClassesDescription, HostsDescription, TokenRecord, full_name};
use crate::state::{ClusterState, Decision, HostState, WorkloadState};
use agent::AgentMode;
use model::{Policy, Stage, StageLimit};
use plan::standing::ServerKind;
use std::collections::BTreeMap;
use std::ops::Bound;

/// Standing of an admitted workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// All hosts that its bound rests on enforce it.
    Enforced,
    /// Hosts have not confirmed yet.
    Pending,
    /// An agent that it rests on only advises.
    Advised,
    /// It has no place any more.
    Gone,
}

impl WorkloadState {
    /// Returns the least burst with which a limiter of this rate never delays its trace at a stage of its server, seconds
    /// of capacity; infinite below the mean rate.
    pub fn least_burst(&self, stage: Stage, rate: f64) -> f64 {
        self.planning.on_class[0].curves[stage].burst(rate)
    }

    /// Returns true while hosts have not confirmed its latest renewal.
    pub fn is_renewing(&self) -> bool {
        self.renewal.is_some()
    }

    /// Returns the mean rate of its trace at a stage of its server, fraction of capacity.
    pub fn mean_rate(&self, stage: Stage) -> f64 {
        self.planning.on_class[0].mean_rate[stage]
    }
}

/// A server as others see it.
#[derive(Debug, Clone, Copy)]
pub struct ServerView<'a> {
    pub name: &'a str,
    pub class: &'a str,
    pub host: &'a str,
    /// The policy that its hosts are known to enforce.
    pub confirmed: &'a Policy,
    /// The latest policy.
    pub decided: &'a Policy,
    /// True if the latest policy is enforced.
    pub is_settled: bool,
}

impl ClusterState {
    /// Returns the workload with this identity.
    pub fn workload(&self, id: u64) -> Option<&WorkloadState> {
        self.workloads.get(&id)
    }

    /// Returns identity and state of a tenant's workload that has a place.
    pub fn find(&self, tenant: &str, name: &str) -> Option<(u64, &WorkloadState)> {
        let id = *self.present.get(&full_name(tenant, name))?;
        Some((id, &self.workloads[&id]))
    }

    /// Returns identities and states of all workloads with a place, by name.
    pub fn workloads(&self) -> impl Iterator<Item = (u64, &WorkloadState)> {
        self.present.values().map(|id| (*id, &self.workloads[id]))
    }

    /// Returns identities and states of a tenant's workloads with a place, by name.
    pub fn workloads_of(&self, tenant: &str) -> impl Iterator<Item = (u64, &WorkloadState)> {
        self.workloads_after(Some(tenant), "").map(|(_, id, workload)| (id, workload))
    }

    /// Returns full names, identities and states of workloads with a place after a full name, by name: a tenant's, or all.
    pub fn workloads_after(
        &self,
        tenant: Option<&str>,
        after: &str,
    ) -> impl Iterator<Item = (&str, u64, &WorkloadState)> + use<'_> {
        let prefix = tenant.map_or_else(String::new, |tenant| full_name(tenant, ""));
        let begin = if after >= prefix.as_str() && !after.is_empty() {
            Bound::Excluded(after)
        } else {
            Bound::Included(prefix.as_str())
        };
        let from = self.present.range::<str, _>((begin, Bound::Unbounded));
        let own = from.map_while(move |(name, id)| name.starts_with(&prefix).then_some((name, id)));
        own.map(|(name, id)| (name.as_str(), *id, &self.workloads[id]))
    }

    /// Returns the number of decisions in the history by their answer, of those that were given.
    pub fn decision_counts(&self) -> &BTreeMap<&'static str, u64> {
        &self.decision_counts
    }

    pub fn standing(&self, id: u64) -> Standing {
        let Some(workload) = self.workloads.get(&id).filter(|workload| workload.gone.is_none()) else {
            return Standing::Gone;
        };
        let Some(server) = self.servers.get(&workload.server) else { return Standing::Gone };
        if server.chain.keeps(id) {
            return Standing::Enforced;
        }
        let advises = |host: &str| {
            let agent = self.hosts.get(host).and_then(|host| host.agent.as_ref());
            agent.is_some_and(|(mode, _)| *mode == AgentMode::Advising)
        };
        if server.chain.changing_hosts().any(advises) { Standing::Advised } else { Standing::Pending }
    }

    /// Returns the decisions after a position, in order.
    pub fn decisions_after(&self, seq: u64) -> &[Decision] {
        let start = self.decisions.partition_point(|decision| decision.seq <= seq);
        &self.decisions[start..]
    }

    /// Returns the decision on the request of a tenant with this key.
    pub fn decision_of_key(&self, tenant: &str, key: &str) -> Option<&Decision> {
        let index = self.keys.get(&(tenant.to_owned(), key.to_owned()))?;
        Some(&self.decisions[*index])
    }

    pub fn tokens(&self) -> impl Iterator<Item = &TokenRecord> {
        self.tokens.values()
    }

    /// Returns the hosts and what their agents report.
    pub fn hosts(&self) -> impl Iterator<Item = (&str, &HostState)> {
        self.hosts.iter().map(|(name, host)| (name.as_str(), host))
    }

    /// Returns each server with its class, its host, and the policies that are confirmed and decided.
    pub fn servers(&self) -> impl Iterator<Item = ServerView<'_>> {
        self.placing.iter().filter_map(|name| self.server(name))
    }

    /// Returns a server.
    pub fn server(&self, name: &str) -> Option<ServerView<'_>> {
        let (name, server) = self.servers.get_key_value(name)?;
        Some(ServerView {
            name,
            class: &server.class,
            host: &server.host,
            confirmed: &server.chain.confirmed().policy,
            decided: &server.chain.latest().policy,
            is_settled: server.chain.is_settled(),
        })
    }

    /// Returns the limits of a workload by the latest policy of its server.
    pub fn limits(&self, workload: &WorkloadState) -> Option<&[StageLimit]> {
        let policy = &self.servers.get(&workload.server)?.chain.latest().policy;
        let name = workload.request.full_name();
        let found = policy.workloads.iter().find(|known| known.name == name)?;
        Some(&found.limits)
    }

    pub fn hosts_description(&self) -> Option<&HostsDescription> {
        self.described.as_ref()
    }

    pub fn classes_description(&self) -> Option<&ClassesDescription> {
        self.classes.as_ref()
    }

    /// Returns the classes of servers, by name.
    pub fn kinds(&self) -> impl Iterator<Item = (&str, &ServerKind)> {
        self.kinds.iter().map(|(name, kind)| (name.as_str(), kind))
    }
}

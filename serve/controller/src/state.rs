//! The state of a cluster: a fold of its history, and nothing else.

use crate::alert::{AlertKind, AlertLog, AlertState};
use crate::chain::{Chain, ChainPlan};
use crate::event::{
    Admission, ClassesDescription, Event, HostsDescription, NetworkEnforcement, RecordedEvent, Renewal,
    RequestRecord, ServerChange, TokenRecord, Withdrawal, full_name,
};
use crate::observed::{BurnAlert, ObservedVerdict};
use crate::room::Room;
use agent::{Abilities, Advice, AgentMode, Assignment, ServerAssignment, WorkloadClients};
use model::Slo;
use plan::standing::{PlanningWorkload, ServerKind};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use workload::device::StorageProfile;

/// Assignments of a host that it has not confirmed and that are remembered. One that confirms a forgotten one is only
/// asked again.
const GRANTS_MAX: usize = 64;

/// A cluster after some history.
#[derive(Debug, Clone, Default)]
pub struct ClusterState {
    /// Identity of the cluster; empty before it is founded.
    pub cluster: String,
    /// Number of events.
    pub seq: u64,
    /// Excess of epochs over `seq`, so that no epoch is below one that a host has reported.
    epoch_offset: u64,
    pub(crate) classes: Option<ClassesDescription>,
    pub(crate) kinds: BTreeMap<String, ServerKind>,
    pub(crate) described: Option<HostsDescription>,
    pub(crate) hosts: BTreeMap<String, HostState>,
    pub(crate) servers: BTreeMap<String, ServerState>,
    /// Servers in the order in which workloads are placed on them.
    pub(crate) placing: Vec<String>,
    /// Loads of the servers and addresses of clients, which follow from the rest.
    pub(crate) room: Room,
    pub(crate) workloads: BTreeMap<u64, WorkloadState>,
    /// Workloads that have not been removed or withdrawn, by their name in policies.
    pub(crate) present: BTreeMap<String, u64>,
    /// The latest workload of each name that has none any more.
    pub(crate) departed: BTreeMap<String, u64>,
    pub(crate) decisions: Vec<Decision>,
    /// Numbers of decisions by the word of their answer.
    pub(crate) decision_counts: BTreeMap<&'static str, u64>,
    /// Indices of decisions by tenant and key.
    pub(crate) keys: BTreeMap<(String, String), usize>,
    pub(crate) tokens: BTreeMap<String, TokenRecord>,
    pub(crate) alerts: AlertLog,
    /// True while the certificate of the controller ends soon.
    pub(crate) certificate_ends: bool,
}

/// A host as its agent reports it.
#[derive(Debug, Clone, Default)]
pub struct HostState {
    /// Use and abilities of the agent; `None` before the first report.
    pub agent: Option<(AgentMode, Abilities)>,
    /// Epoch of the assignment that it enforces; 0 for none.
    pub applied: u64,
    /// The latest advice of an agent that only advises.
    pub advice: Option<Advice>,
    /// Warnings of the agent.
    pub warnings: Vec<String>,
    /// True while it does not report.
    pub is_silent: bool,
    /// True from when it fell back or refused an assignment until it enforces what is wanted.
    pub(crate) differs: bool,
    /// The latest assignments, the last of which is wanted.
    grants: VecDeque<Grant>,
}

/// Numbers of policies by server that a host is to enforce.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Grant {
    epoch: u64,
    parts: BTreeMap<String, u64>,
}

#[derive(Debug, Clone)]
pub(crate) struct ServerState {
    pub(crate) class: String,
    pub(crate) host: String,
    pub(crate) chain: Chain,
    /// Hosts whose assignments have a part of the server.
    granted: BTreeSet<String>,
}

/// A workload that was admitted.
#[derive(Debug, Clone)]
pub struct WorkloadState {
    pub request: RequestRecord,
    pub slo: Slo,
    pub server: String,
    /// Bound by the latest policy of the server, seconds.
    pub bound_s: f64,
    pub derivation: serde_json::Value,
    pub assumptions: Vec<String>,
    /// The latest verdict in the history.
    pub verdict: Option<ObservedVerdict>,
    /// Alerts on its burn rate that fire.
    pub burns: BTreeSet<BurnAlert>,
    /// Reason why it has no place any more.
    pub gone: Option<String>,
    pub covered: CoveredTraffic,
    pub(crate) planning: PlanningWorkload,
    /// The renewal that hosts have not confirmed.
    pub(crate) renewal: Option<PendingRenewal>,
}

/// Traffic for which a workload has its promise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CoveredTraffic {
    /// True if its trace is covered.
    pub has_trace: bool,
    /// Position of the latest renewal, whose live traffic is covered.
    pub renewed_by: Option<u64>,
}

/// A renewal on its way to the hosts.
#[derive(Debug, Clone)]
pub(crate) struct PendingRenewal {
    /// Number of its policy among those of the server.
    number: u64,
    /// Promise until then, and for ever if a host refuses; `None` where the renewal gave back.
    before: Option<Box<(PlanningWorkload, serde_json::Value, CoveredTraffic)>>,
}

/// The answer to a request, as told to the tenant.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Position in the history.
    pub seq: u64,
    pub at_ns: u64,
    pub tenant: String,
    pub name: String,
    pub answer: DecisionAnswer,
}

#[derive(Debug, Clone, PartialEq)]
pub enum DecisionAnswer {
    /// Admitted as the workload with this identity.
    Admitted {
        workload: u64,
    },
    Refused {
        reason: String,
    },
    Removed,
    /// Admitted before, and taken back.
    Withdrawn {
        reason: String,
    },
    /// The promise of the workload with this identity was decided again.
    Renewed {
        workload: u64,
        reason: String,
    },
    /// A renewal was refused: the promise stays as it was.
    Kept {
        reason: String,
    },
    /// Renewed before, and taken back: the promise is again what it was, or what was not given back.
    RenewalWithdrawn {
        reason: String,
    },
}

impl DecisionAnswer {
    /// Words for all answers.
    pub const WORDS: [&str; 7] =
        ["admitted", "refused", "removed", "withdrawn", "renewed", "kept", "renewal-withdrawn"];

    /// Returns the word for it in documents.
    pub fn word(&self) -> &'static str {
        Self::WORDS[match self {
            Self::Admitted { .. } => 0,
            Self::Refused { .. } => 1,
            Self::Removed => 2,
            Self::Withdrawn { .. } => 3,
            Self::Renewed { .. } => 4,
            Self::Kept { .. } => 5,
            Self::RenewalWithdrawn { .. } => 6,
        }]
    }

    /// Returns true for answers to a request for a renewal.
    pub fn is_on_renewal(&self) -> bool {
        matches!(self, Self::Renewed { .. } | Self::Kept { .. } | Self::RenewalWithdrawn { .. })
    }
}

impl ClusterState {
    /// Applies the next event of the history.
    ///
    /// # Errors
    /// If the event does not follow from the history: the store was changed, or written by a later version.
    pub fn apply(&mut self, recorded: &RecordedEvent) -> Result<(), String> {
        let RecordedEvent { seq, at_ns, event, .. } = recorded;
        if *seq != self.seq + 1 {
            return Err(format!("event {seq} follows event {}", self.seq));
        }
        self.seq = *seq;
        match event {
            Event::Founded { cluster } => self.cluster.clone_from(cluster),
            Event::ClassesDescribed(described) => self.describe_classes(described)?,
            Event::HostsDescribed(described) => {
                self.forget_hosts(*at_ns, described);
                self.describe_hosts(described);
            }
            Event::TokenIssued(token) => {
                self.tokens.insert(token.name.clone(), token.clone());
            }
            Event::TokenRevoked { name } => {
                self.tokens.remove(name);
            }
            Event::AgentSeen { host, mode, abilities } => {
                self.host(host)?.agent = Some((*mode, abilities.clone()));
            }
            Event::AgentAdvised { host, epoch, text } => {
                self.host(host)?.advice = Some(Advice { epoch: *epoch, text: text.clone() });
            }
            Event::AgentWarned { host, warnings } => self.host(host)?.warnings.clone_from(warnings),
            Event::WorkloadAdmitted(admission) => self.admit(*at_ns, admission)?,
            Event::WorkloadRefused { request, reason } => {
                self.decided(*at_ns, request, DecisionAnswer::Refused { reason: reason.clone() });
            }
            Event::WorkloadRenewed(renewal) => self.renew(*at_ns, renewal)?,
            Event::RenewalRefused { request, reason } => {
                self.decided(*at_ns, request, DecisionAnswer::Kept { reason: reason.clone() });
            }
            Event::WorkloadRemoved { tenant, name, change } => self.remove(*at_ns, tenant, name, change)?,
            Event::Applied { host, epoch } => {
                self.confirm(host, *epoch)?;
                if self.host(host)?.differs && *epoch == self.wanted_epoch(host) {
                    self.host(host)?.differs = false;
                    let reason = format!("host {host} enforces assignment {epoch}, which is wanted");
                    let about = (Some(host.as_str()), reason.as_str());
                    self.alert_on(*at_ns, AlertKind::EnforcementDiffers, AlertState::Resolved, about);
                }
            }
            Event::Refused { host, epoch, reason, changes } => {
                self.differ(*at_ns, host, &format!("host {host} refused assignment {epoch}: {reason}"))?;
                let next = self.epoch();
                self.host(host)?.grant_again(next, *epoch);
                self.withdraw(*at_ns, &format!("host {host}: {reason}"), changes)?;
            }
            Event::Regressed { host, epoch } => {
                let reason =
                    format!("host {host} fell back to assignment {epoch}, or lost what it had confirmed");
                self.differ(*at_ns, host, &reason)?;
                self.epoch_offset = self.epoch_offset.max((epoch + 1).saturating_sub(self.seq));
                self.lose(host, *epoch)?;
            }
            Event::VerdictChanged { workload, tenant, name, verdict, reason } => {
                let workload = self.workloads.get_mut(workload).ok_or("its workload was never admitted")?;
                let before = workload.verdict.replace(*verdict);
                self.alert_on_verdict(*at_ns, (tenant, name), (before, Some(*verdict)), reason);
            }
            Event::BurnChanged { workload, tenant, name, burn, state, reason } => {
                let workload = self.workloads.get_mut(workload).ok_or("its workload was never admitted")?;
                match state {
                    AlertState::Firing => workload.burns.insert(*burn),
                    AlertState::Resolved => workload.burns.remove(burn),
                };
                self.alert_on_burn(*at_ns, (tenant, name), (*burn, *state), reason);
            }
            Event::AlertChanged { alert, state, host, reason } => {
                let is_firing = *state == AlertState::Firing;
                match host {
                    Some(host) => self.host(host)?.is_silent = is_firing,
                    None => self.certificate_ends = is_firing,
                }
                self.alert_on(*at_ns, *alert, *state, (host.as_deref(), reason));
            }
            Event::Restored { epoch_offset } => {
                self.epoch_offset += epoch_offset;
                for host in self.hosts.keys().cloned().collect::<Vec<_>>() {
                    self.lose(&host, 0)?;
                }
            }
        }
        Ok(())
    }

    /// Returns what a host is to enforce; `None` if it takes part in nothing.
    pub fn assignment(&self, host: &str) -> Option<Assignment> {
        let grant = self.hosts.get(host)?.grants.back()?;
        let mut servers = Vec::new();
        for (server, &number) in &grant.parts {
            let chain = &self.servers.get(server)?.chain;
            // A host is never granted what was forgotten.
            let plan = chain.plan(number)?;
            servers.push(self.server_assignment(server, plan));
        }
        let hosts = self.described.as_ref().map_or_else(String::new, |described| described.text.clone());
        Some(Assignment {
            cluster: self.cluster.clone(),
            host: host.to_owned(),
            epoch: grant.epoch,
            hosts,
            network: self.network() == NetworkEnforcement::Agents,
            servers,
        })
    }

    /// Returns the epoch of the latest assignment of a host; 0 for none.
    pub fn wanted_epoch(&self, host: &str) -> u64 {
        self.hosts.get(host).and_then(|host| host.grants.back()).map_or(0, |grant| grant.epoch)
    }

    /// Returns hosts that the limits of some workloads of a server rest on: the server's, and where agents keep the limits
    /// of networks, those of the clients.
    pub(crate) fn hosts_of(&self, server: &str, members: impl Iterator<Item = u64>) -> BTreeSet<String> {
        let mut hosts = BTreeSet::from([self.servers[server].host.clone()]);
        if self.network() == NetworkEnforcement::Agents {
            hosts.extend(members.filter_map(|id| self.client_host(id)));
        }
        hosts
    }

    /// Returns the host that sends the requests of a workload.
    pub(crate) fn client_host(&self, id: u64) -> Option<String> {
        self.workloads[&id].request.clients.iter().find_map(|client| client.host.clone())
    }

    pub(crate) fn network(&self) -> NetworkEnforcement {
        self.described.as_ref().map_or(NetworkEnforcement::Agents, |described| described.network)
    }

    /// Returns true if a host was given an assignment of this epoch that is remembered.
    pub(crate) fn is_granted(&self, host: &str, epoch: u64) -> bool {
        self.hosts.get(host).is_some_and(|host| host.grants.iter().any(|grant| grant.epoch == epoch))
    }

    /// Epoch of assignments that the present event changes.
    fn epoch(&self) -> u64 {
        self.seq + self.epoch_offset
    }

    /// Notes that a host enforces other than is wanted.
    fn differ(&mut self, at_ns: u64, host: &str, reason: &str) -> Result<(), String> {
        if !std::mem::replace(&mut self.host(host)?.differs, true) {
            let about = (Some(host), reason);
            self.alert_on(at_ns, AlertKind::EnforcementDiffers, AlertState::Firing, about);
        }
        Ok(())
    }

    /// Ends the alerts on hosts that a hosts file has no more.
    fn forget_hosts(&mut self, at_ns: u64, described: &HostsDescription) {
        let gone: Vec<(String, bool, bool)> = self
            .hosts
            .iter()
            .filter(|(name, _)| !described.hosts.contains(name))
            .map(|(name, host)| (name.clone(), host.is_silent, host.differs))
            .collect();
        for (name, is_silent, differs) in gone {
            for (alert, is_firing) in
                [(AlertKind::AgentSilent, is_silent), (AlertKind::EnforcementDiffers, differs)]
            {
                if is_firing {
                    let about = (Some(name.as_str()), "the host is not in the hosts file any more");
                    self.alert_on(at_ns, alert, AlertState::Resolved, about);
                }
            }
        }
    }

    fn host(&mut self, name: &str) -> Result<&mut HostState, String> {
        self.hosts.get_mut(name).ok_or_else(|| format!("there is no host '{name}'"))
    }

    fn server_assignment(&self, server: &str, plan: &ChainPlan) -> ServerAssignment {
        let clients = |id: &u64| {
            let request = &self.workloads[id].request;
            WorkloadClients { workload: request.full_name(), clients: request.clients.clone() }
        };
        let clients = plan.members.iter().map(clients).collect();
        ServerAssignment { server: server.to_owned(), policy: plan.policy.clone(), clients }
    }

    fn describe_classes(&mut self, described: &ClassesDescription) -> Result<(), String> {
        self.kinds.clear();
        for known in &described.classes {
            let name = known.class.class.clone();
            let profile = StorageProfile::from_json(&known.profile)
                .map_err(|error| format!("class '{name}': device profile: {error}"))?;
            self.kinds.insert(name, ServerKind::new(known.class.clone(), profile, described.safety_margin));
        }
        self.classes = Some(described.clone());
        Ok(())
    }

    fn describe_hosts(&mut self, described: &HostsDescription) {
        let known = std::mem::take(&mut self.hosts);
        let kept = |name: &String| (name.clone(), known.get(name).cloned().unwrap_or_default());
        self.hosts = described.hosts.iter().map(kept).collect();
        let mut known = std::mem::take(&mut self.servers);
        self.placing.clear();
        for place in &described.servers {
            let chain = known.remove(&place.server).map_or_else(Chain::new, |server| server.chain);
            let class = place.class.clone();
            let server = ServerState { class, host: place.host.clone(), chain, granted: BTreeSet::new() };
            self.servers.insert(place.server.clone(), server);
            self.placing.push(place.server.clone());
        }
        self.room.place(&self.placing);
        for name in self.placing.clone() {
            self.weigh(&name);
        }
        self.described = Some(described.clone());
        // Servers that are gone have no workloads, and hosts no part in them.
        let epoch = self.epoch();
        for (name, server) in known {
            for host in server.granted {
                if let Some(host) = self.hosts.get_mut(&host) {
                    host.grant(epoch, &name, None);
                }
            }
        }
        // The text is a part of every assignment.
        for host in self.hosts.values_mut().filter(|host| !host.grants.is_empty()) {
            host.grant_again(epoch, epoch);
        }
        self.grant(self.placing.clone());
    }

    fn admit(&mut self, at_ns: u64, admission: &Admission) -> Result<(), String> {
        let Admission { request, footprint, bound_s, derivation, assumptions, change } = admission;
        let server = self.servers.get(&change.server).ok_or("it is on an unknown server")?;
        let kind = self.kinds.get(&server.class).ok_or("its server has an unknown class")?;
        let slo: Slo = request.slo.parse().map_err(|error| format!("{error}"))?;
        let name = request.full_name();
        let id = self.seq;
        let workload = WorkloadState {
            request: request.clone(),
            slo,
            server: change.server.clone(),
            bound_s: *bound_s,
            derivation: derivation.clone(),
            assumptions: assumptions.clone(),
            verdict: None,
            burns: BTreeSet::new(),
            gone: None,
            covered: CoveredTraffic { has_trace: true, renewed_by: None },
            planning: kind.workload(&name, slo, footprint),
            renewal: None,
        };
        self.workloads.insert(id, workload);
        self.room.add_clients(id, &request.clients);
        self.present.insert(name, id);
        self.decided(at_ns, request, DecisionAnswer::Admitted { workload: id });
        self.change(change)
    }

    fn renew(&mut self, at_ns: u64, renewal: &Renewal) -> Result<(), String> {
        let Renewal { workload: id, request, gives_back, footprint, reason, derivation, change, .. } =
            renewal;
        let server = self.servers.get(&change.server).ok_or("it is on an unknown server")?;
        let kind = self.kinds.get(&server.class).ok_or("its server has an unknown class")?;
        let seq = self.seq;
        let workload = self.workloads.get_mut(id).ok_or("an unknown workload is renewed")?;
        let seen = kind.workload(&request.full_name(), workload.slo, footprint);
        let planning = if *gives_back { seen } else { workload.planning.join(&seen) };
        let before = (
            std::mem::replace(&mut workload.planning, planning),
            std::mem::replace(&mut workload.derivation, derivation.clone()),
            workload.covered,
        );
        workload.covered =
            CoveredTraffic { has_trace: before.2.has_trace && !gives_back, renewed_by: Some(seq) };
        self.decided(at_ns, request, DecisionAnswer::Renewed { workload: *id, reason: reason.clone() });
        self.change(change)?;
        let number = self.servers[&change.server].chain.latest().number;
        let before = (!gives_back).then(|| Box::new(before));
        self.workloads.get_mut(id).expect("it was found").renewal = Some(PendingRenewal { number, before });
        Ok(())
    }

    /// Forgets the renewals of a server that all its hosts have confirmed.
    fn settle_renewals(&mut self, server: &str) {
        let confirmed = self.servers[server].chain.confirmed();
        for id in &confirmed.members {
            let renewal = &mut self.workloads.get_mut(id).expect("members are known").renewal;
            if renewal.as_ref().is_some_and(|renewal| renewal.number <= confirmed.number) {
                *renewal = None;
            }
        }
    }

    /// Takes back the renewals of a server that its hosts have not confirmed. What was given back stays so.
    fn withdraw_renewals(&mut self, at_ns: u64, server: &str, reason: &str) {
        for id in self.servers[server].chain.latest().members.clone() {
            let workload = self.workloads.get_mut(&id).expect("members are known");
            let Some(renewal) = workload.renewal.take() else { continue };
            if let Some(before) = renewal.before {
                (workload.planning, workload.derivation, workload.covered) = *before;
            }
            let request = RequestRecord { key: None, ..workload.request.clone() };
            let reason = reason.to_owned();
            self.decided(at_ns, &request, DecisionAnswer::RenewalWithdrawn { reason });
        }
    }

    fn remove(&mut self, at_ns: u64, tenant: &str, name: &str, change: &ServerChange) -> Result<(), String> {
        let full = full_name(tenant, name);
        let id = self.present.remove(&full).ok_or("an unknown workload is removed")?;
        self.departed.insert(full, id);
        let workload = self.workloads.get_mut(&id).expect("present ones are known");
        self.room.remove_clients(id, &workload.request.clients);
        let gone = "it was removed";
        workload.gone = Some(gone.to_owned());
        let request = RequestRecord { key: None, ..workload.request.clone() };
        self.end_alerts_on(at_ns, id, gone);
        self.decided(at_ns, &request, DecisionAnswer::Removed);
        self.change(change)
    }

    /// Adds a policy of a server; its workloads get its bounds.
    fn change(&mut self, change: &ServerChange) -> Result<(), String> {
        let mut members = Vec::new();
        for workload in &change.policy.workloads {
            let id = self.present.get(&workload.name);
            let id = *id.ok_or_else(|| format!("policy with unknown workload '{}'", workload.name))?;
            let state = self.workloads.get_mut(&id).expect("present ones are known");
            state.bound_s = workload.bound_s.unwrap_or(state.bound_s);
            members.push(id);
        }
        let is_by_agents = self.network() == NetworkEnforcement::Agents;
        let server = self.servers.get_mut(&change.server).ok_or("a policy for an unknown server")?;
        let in_two = is_by_agents.then(|| server.host.clone());
        server.chain.push(change.policy.clone(), members, change.order.clone(), in_two);
        self.weigh(&change.server);
        self.grant([change.server.clone()]);
        Ok(())
    }

    fn withdraw(&mut self, at_ns: u64, reason: &str, changes: &[Withdrawal]) -> Result<(), String> {
        for Withdrawal { server, workloads, instead } in changes {
            if !self.servers.contains_key(server) {
                return Err("an unknown server is changed".to_owned());
            }
            self.withdraw_renewals(at_ns, server, reason);
            self.servers.get_mut(server).expect("it is known").chain.withdraw();
            for name in workloads {
                let id = self.present.remove(name).ok_or("an unknown workload is withdrawn")?;
                self.departed.insert(name.clone(), id);
                let workload = self.workloads.get_mut(&id).expect("present ones are known");
                self.room.remove_clients(id, &workload.request.clients);
                workload.gone = Some(reason.to_owned());
                let request = RequestRecord { key: None, ..workload.request.clone() };
                self.end_alerts_on(at_ns, id, reason);
                self.decided(at_ns, &request, DecisionAnswer::Withdrawn { reason: reason.to_owned() });
            }
            if let Some(change) = instead {
                self.change(change)?;
            }
            let latest = self.servers[server].chain.latest();
            for (id, limited) in latest.members.iter().zip(&latest.policy.workloads) {
                let workload = self.workloads.get_mut(id).expect("members are known");
                workload.bound_s = limited.bound_s.unwrap_or(workload.bound_s);
            }
            self.weigh(server);
            self.grant([server.clone()]);
        }
        Ok(())
    }

    /// Notes the load of a server by its latest policy.
    fn weigh(&mut self, server: &str) {
        let members = self.servers[server].chain.latest().members.iter();
        self.room.weigh(server, members.map(|id| &self.workloads[id].planning));
    }

    fn decided(&mut self, at_ns: u64, request: &RequestRecord, answer: DecisionAnswer) {
        if let Some(key) = &request.key {
            self.keys.insert((request.tenant.clone(), key.clone()), self.decisions.len());
        }
        *self.decision_counts.entry(answer.word()).or_default() += 1;
        let tenant = request.tenant.clone();
        self.decisions.push(Decision { seq: self.seq, at_ns, tenant, name: request.name.clone(), answer });
    }

    fn confirm(&mut self, name: &str, epoch: u64) -> Result<(), String> {
        let host = self.host(name)?;
        host.applied = epoch;
        let Some(at) = host.grants.iter().position(|grant| grant.epoch == epoch) else { return Ok(()) };
        host.grants.drain(..at);
        let parts = host.grants[0].parts.clone();
        for (server, number) in &parts {
            if let Some(state) = self.servers.get_mut(server) {
                state.chain.confirm(name, *number);
                self.settle_renewals(server);
            }
        }
        self.grant(parts.into_keys());
        Ok(())
    }

    /// Trusts nothing that a host has confirmed, and wants the same of it again.
    fn lose(&mut self, name: &str, epoch: u64) -> Result<(), String> {
        let next = self.epoch();
        let host = self.host(name)?;
        host.applied = epoch;
        if host.grants.is_empty() {
            return Ok(());
        }
        host.grant_again(next, 0);
        let servers: Vec<String> = host.parts().into_keys().collect();
        for server in &servers {
            if let Some(server) = self.servers.get_mut(server) {
                server.chain.lose(name);
            }
        }
        // Steps that were granted are granted again after the host has confirmed where it stands.
        self.grant(servers);
        Ok(())
    }

    /// Gives the hosts of these servers new assignments where their parts have changed.
    fn grant(&mut self, servers: impl IntoIterator<Item = String>) {
        for name in servers {
            let Some(server) = self.servers.get(&name) else { continue };
            let mut hosts = self.involved(server);
            hosts.extend(server.granted.iter().cloned());
            let mut granted = BTreeSet::new();
            for host in hosts {
                let part = self.part(&name, &host);
                if part.is_some() {
                    granted.insert(host.clone());
                }
                let epoch = self.epoch();
                if let Some(host) = self.hosts.get_mut(&host) {
                    host.grant(epoch, &name, part);
                }
            }
            self.servers.get_mut(&name).expect("it was found").granted = granted;
        }
    }

    /// Returns the number of the policy that a host is to enforce of a server; `None` if it takes no part in it.
    fn part(&self, server: &str, host: &str) -> Option<u64> {
        let server = &self.servers[server];
        let is_used = server.chain.latest().number > 0 && self.involved(server).contains(host);
        is_used.then(|| server.chain.granted_to(host))
    }

    /// Hosts that enforce, or will, a part of the policies of a server.
    fn involved(&self, server: &ServerState) -> BTreeSet<String> {
        let mut hosts: BTreeSet<String> = server.chain.changing_hosts().map(str::to_owned).collect();
        hosts.insert(server.host.clone());
        hosts.extend(server.chain.lost_hosts().cloned());
        if self.network() == NetworkEnforcement::Agents {
            let members = server.chain.confirmed().members.iter();
            hosts.extend(members.filter_map(|id| self.client_host(*id)));
        }
        hosts
    }
}

impl HostState {
    /// Servers of which the host is to enforce a part.
    fn parts(&self) -> BTreeMap<String, u64> {
        self.grants.back().map_or_else(BTreeMap::new, |grant| grant.parts.clone())
    }

    /// Wants another part of a server. Changes of one event make one assignment.
    fn grant(&mut self, epoch: u64, server: &str, part: Option<u64>) {
        let mut parts = self.parts();
        let before = match part {
            Some(number) => parts.insert(server.to_owned(), number),
            None => parts.remove(server),
        };
        if before == part {
            return;
        }
        match self.grants.back_mut() {
            Some(latest) if latest.epoch == epoch => latest.parts = parts,
            _ => self.grants.push_back(Grant { epoch, parts }),
        }
        if self.grants.len() > GRANTS_MAX {
            self.grants.remove(1);
        }
    }

    /// Wants the same again under a new epoch, and forgets what was wanted from epoch `from` on.
    fn grant_again(&mut self, epoch: u64, from: u64) {
        let parts = self.parts();
        self.grants.retain(|grant| grant.epoch < from);
        self.grants.push_back(Grant { epoch, parts });
    }
}

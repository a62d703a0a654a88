//! Decisions on workloads: which server takes one, and what that changes.
//!
//! Servers in use are tried from the least loaded, and then an empty one of each class, each by the planner alone: a
//! decision takes the time of the few servers that are tried, however many there are. Workloads are never moved. A workload that leaves
//! takes its limits with it, and the others keep theirs until a newcomer changes them.

use crate::command::CommandError;
use crate::event::{
    Admission, Event, NetworkEnforcement, ServerChange, Withdrawal, WorkloadRequest, full_name,
};
use crate::order::PolicyChange;
use crate::state::{ClusterState, ServerState};
use agent::{AgentMode, ClientPlace};
use model::{Policy, is_usable_name};
use plan::standing::{PlanningWorkload, ServerKind, ServerPlan};
use std::collections::{BTreeMap, BTreeSet};

/// Servers in use whose limits are computed for one decision. A refusal says how many were left out.
const TRIALS_MAX: usize = 16;

/// A server that could take a workload, and its present workloads.
struct Candidate<'a> {
    name: &'a str,
    server: &'a ServerState,
    kind: &'a ServerKind,
    members: &'a [u64],
}

/// Course of a decision.
#[derive(Default)]
struct Trials<'a> {
    /// Servers that could take the workload if they had room.
    suited: usize,
    /// The server with the fewest workloads.
    emptiest: Option<Candidate<'a>>,
    /// Reasons other than a lack of room, by server.
    others: Vec<String>,
    /// Number of further servers with such reasons.
    more: usize,
}

impl Trials<'_> {
    fn refuse(&mut self, server: &str, reason: &str) {
        if self.others.len() < REASONS_MAX {
            self.others.push(format!("{server}: {reason}"));
        } else {
            self.more += 1;
        }
    }
}

impl ClusterState {
    /// Decides on a request: an admission or a refusal.
    ///
    /// # Errors
    /// If the request makes no sense, whatever room there is.
    pub(crate) fn decide_request(&self, request: &WorkloadRequest) -> Result<Event, CommandError> {
        self.check_request(request)?;
        let newcomers = self.newcomers(request);
        let others = self.room.with_address_of(&request.clients);
        let mut trials = Trials::default();
        let mut left = TRIALS_MAX;
        let mut left_out = 0;
        let mut classes_tried = BTreeSet::new();
        for position in self.room.in_use().chain(self.room.empty()) {
            let name = &self.placing[position];
            let candidate = match self.candidate(name, request, &others) {
                Ok(candidate) => candidate,
                Err(reason) => {
                    trials.refuse(name, &reason);
                    continue;
                }
            };
            trials.suited += 1;
            let newcomer = &newcomers[candidate.server.class.as_str()];
            let mut all: Vec<&PlanningWorkload> = self.planning(candidate.members).collect();
            all.push(newcomer);
            if candidate.members.is_empty() {
                if !classes_tried.insert(candidate.server.class.as_str()) {
                    continue;
                }
            } else if !candidate.kind.carries(all.iter().copied()) {
                continue;
            } else if left == 0 {
                left_out += 1;
                continue;
            } else {
                left -= 1;
            }
            if let Ok(plan) = candidate.kind.fit(candidate.name, &all) {
                match self.admission(&candidate, request, newcomer, &plan) {
                    Ok(admission) => return Ok(Event::WorkloadAdmitted(Box::new(admission))),
                    Err(reason) => trials.refuse(name, &reason),
                }
            }
            let fewest = trials.emptiest.as_ref().map_or(usize::MAX, |emptiest| emptiest.members.len());
            if candidate.members.len() < fewest {
                trials.emptiest = Some(candidate);
            }
        }
        if left_out > 0 {
            trials.others.push(format!("{left_out} servers with more load were not tried"));
        }
        let reason = self.refusal(&newcomers, &trials);
        Ok(Event::WorkloadRefused { request: request.record(), reason })
    }

    /// Decides on the removal of a workload.
    ///
    /// # Errors
    /// If it does not exist.
    pub(crate) fn decide_removal(&self, tenant: &str, name: &str) -> Result<Event, CommandError> {
        let (id, workload) = self
            .find(tenant, name)
            .ok_or_else(|| CommandError::Unknown(format!("tenant '{tenant}' has no workload '{name}'")))?;
        let change = self.without(&workload.server, &BTreeSet::from([id]));
        Ok(Event::WorkloadRemoved { tenant: tenant.to_owned(), name: name.to_owned(), change })
    }

    /// Returns what is taken back when a host cannot take the steps that it was granted.
    pub(crate) fn withdrawals(&self, host: &str) -> Vec<Withdrawal> {
        let mut changes = Vec::new();
        for (name, server) in &self.servers {
            if !server.chain.awaits(host) {
                continue;
            }
            let unconfirmed = server.chain.unconfirmed();
            let is_present = |id: &u64| self.workloads[id].gone.is_none();
            let workloads = unconfirmed.iter().filter(|id| is_present(id));
            let workloads = workloads.map(|id| self.workloads[id].request.full_name()).collect();
            let confirmed = server.chain.confirmed();
            let is_as_confirmed = confirmed.members.iter().all(is_present);
            let instead = (!is_as_confirmed).then(|| {
                let hosts = self.hosts_of(name, confirmed.members.iter().copied());
                ServerChange {
                    server: name.clone(),
                    policy: self.present_part(&confirmed.policy, &confirmed.members, &BTreeSet::new()),
                    order: hosts.into_iter().collect(),
                }
            });
            changes.push(Withdrawal { server: name.clone(), workloads, instead });
        }
        changes
    }

    /// Returns the change of a server when workloads leave.
    fn without(&self, server: &str, leaving: &BTreeSet<u64>) -> ServerChange {
        let latest = self.servers[server].chain.latest();
        ServerChange {
            server: server.to_owned(),
            policy: self.present_part(&latest.policy, &latest.members, leaving),
            order: self.hosts_of(server, latest.members.iter().copied()).into_iter().collect(),
        }
    }

    /// Returns a policy without workloads that leave or have left. The limits of the others stay, so their bounds do
    /// not grow.
    fn present_part(&self, policy: &Policy, members: &[u64], leaving: &BTreeSet<u64>) -> Policy {
        let mut part = policy.clone();
        part.workloads.clear();
        for (id, workload) in members.iter().zip(&policy.workloads) {
            if self.workloads[id].gone.is_none() && !leaving.contains(id) {
                part.workloads.push(workload.clone());
            }
        }
        part
    }

    fn check_request(&self, request: &WorkloadRequest) -> Result<(), CommandError> {
        let WorkloadRequest { tenant, name, clients, .. } = request;
        for (what, word) in [("tenant", tenant), ("name", name)] {
            if !is_usable_name(word) || word.contains('/') || word.len() > 100 {
                return Err(CommandError::Invalid(format!(
                    "{what} '{}': expected up to 100 characters of one line, without '/'",
                    word.escape_debug()
                )));
            }
        }
        if self.servers.is_empty() || self.kinds.is_empty() {
            return Err(CommandError::Conflict(
                "the cluster has no servers yet: an operator describes classes and hosts first".to_owned(),
            ));
        }
        if clients.is_empty() || clients.iter().any(|client| client.address.is_empty()) {
            return Err(CommandError::Invalid(
                "clients: expected at least one, each with an address".to_owned(),
            ));
        }
        let full = full_name(tenant, name);
        if self.present.contains_key(&full) {
            return Err(CommandError::Conflict(format!("workload '{full}' exists; remove it first")));
        }
        let is_leaving = self.departed.get(&full).is_some_and(|id| {
            let server = self.servers.get(&self.workloads[id].server);
            server.is_some_and(|server| server.chain.mentions(*id))
        });
        if is_leaving && self.network() == NetworkEnforcement::Agents {
            return Err(CommandError::Conflict(format!(
                "workload '{full}' is leaving still; ask again later"
            )));
        }
        let known: BTreeSet<&str> = self.hosts.keys().map(String::as_str).collect();
        match clients.iter().filter_map(|client| client.host.as_deref()).find(|host| !known.contains(host)) {
            Some(host) => Err(CommandError::Invalid(format!("clients: the hosts file has no host '{host}'"))),
            None => Ok(()),
        }
    }

    /// A server that could take the request if it has room.
    ///
    /// # Errors
    /// The reason why it cannot, whatever room it has.
    fn candidate<'a>(
        &'a self,
        name: &'a str,
        request: &WorkloadRequest,
        with_its_addresses: &BTreeSet<u64>,
    ) -> Result<Candidate<'a>, String> {
        let server = &self.servers[name];
        let class = &server.class;
        let kind = self.kinds.get(class).ok_or_else(|| format!("class '{class}' is not described"))?;
        if !request.footprints.contains_key(class) {
            return Err(format!("the trace was not read for class '{class}'; send it again"));
        }
        self.check_agent(&server.host, Some(name))?;
        if self.network() == NetworkEnforcement::Agents {
            let hosts: BTreeSet<&str> = request.clients.iter().filter_map(|it| it.host.as_deref()).collect();
            let [host] = hosts.iter().copied().collect::<Vec<_>>()[..] else {
                return Err(
                    "agents keep the limits of networks, for which clients are on one host".to_owned()
                );
            };
            self.check_agent(host, None)?;
        }
        let on_server = with_its_addresses.iter().map(|id| &self.workloads[id]);
        let mut on_server = on_server.filter(|workload| workload.server == name);
        match on_server.find(|other| share_a_client(&other.request.clients, &request.clients)) {
            Some(_) => Err("a client has the address and the export of another workload's".to_owned()),
            None => Ok(Candidate { name, server, kind, members: &server.chain.latest().members }),
        }
    }

    /// Refuses a host whose agent cannot keep what would rest on it: storage of `server`, or else the network.
    pub(crate) fn check_agent(&self, host: &str, server: Option<&str>) -> Result<(), String> {
        let Some((mode, abilities)) = self.hosts.get(host).and_then(|host| host.agent.as_ref()) else {
            return Err(format!("no agent has reported from host '{host}'"));
        };
        if *mode == AgentMode::Advising {
            return Ok(());
        }
        if let Some(server) = server.filter(|server| !abilities.storage.contains(*server)) {
            return Err(format!("the agent of host '{host}' finds no proxy before '{server}'"));
        }
        if self.network() == NetworkEnforcement::Agents && !abilities.network {
            return Err(format!("the agent of host '{host}' cannot limit its network"));
        }
        Ok(())
    }

    /// Returns the workload that asks, on the classes that its trace was read for.
    fn newcomers<'a>(&self, request: &'a WorkloadRequest) -> BTreeMap<&'a str, PlanningWorkload> {
        let name = full_name(&request.tenant, &request.name);
        let mut newcomers = BTreeMap::new();
        for (class, footprint) in &request.footprints {
            if let Some(kind) = self.kinds.get(class) {
                newcomers.insert(class.as_str(), kind.workload(&name, request.slo, footprint));
            }
        }
        newcomers
    }

    fn planning(&self, workloads: &[u64]) -> impl Iterator<Item = &PlanningWorkload> {
        workloads.iter().map(|id| &self.workloads[id].planning)
    }

    /// The admission to a server with this plan.
    ///
    /// # Errors
    /// If the hosts cannot change to it without breaking a promise.
    fn admission(
        &self,
        candidate: &Candidate<'_>,
        request: &WorkloadRequest,
        newcomer: &PlanningWorkload,
        plan: &ServerPlan,
    ) -> Result<Admission, String> {
        let is_by_agents = self.network() == NetworkEnforcement::Agents;
        let mut workloads = BTreeMap::new();
        for id in candidate.members {
            let planning = &self.workloads[id].planning;
            let client = self.client_host(*id).filter(|_| is_by_agents);
            workloads.insert(planning.name.as_str(), (planning, client));
        }
        let client = request.clients.iter().find_map(|client| client.host.clone()).filter(|_| is_by_agents);
        let mut hosts = self.hosts_of(candidate.name, candidate.members.iter().copied());
        hosts.extend(client.clone());
        workloads.insert(newcomer.name.as_str(), (newcomer, client));
        let change = PolicyChange {
            kind: candidate.kind,
            old: &candidate.server.chain.latest().policy,
            new: &plan.policy,
            server_host: &candidate.server.host,
            has_links: is_by_agents,
            workloads,
        };
        let order = change.order(&hosts)?;
        let derivation = plan.derivation(&newcomer.name).expect("it is a member of the plan");
        Ok(Admission {
            request: request.record(),
            footprint: request.footprints[&candidate.server.class].clone(),
            bound_s: derivation.bound_s,
            derivation: serde_json::to_value(&derivation).expect("a derivation is plain data"),
            assumptions: self.assumptions(),
            change: ServerChange { server: candidate.name.to_owned(), policy: plan.policy.clone(), order },
        })
    }

    /// Statements that bounds rest on and that no agent enforces.
    fn assumptions(&self) -> Vec<String> {
        match self.network() {
            NetworkEnforcement::Agents => Vec::new(),
            NetworkEnforcement::Assumed => {
                vec!["limits and priorities of the network stages are kept by other means".to_owned()]
            }
        }
    }

    fn refusal(&self, newcomers: &BTreeMap<&str, PlanningWorkload>, trials: &Trials<'_>) -> String {
        let mut reasons = Vec::new();
        if trials.suited > 0 && trials.emptiest.is_none() {
            reasons.push(format!("its mean load is more than any of {} servers has left", trials.suited));
        }
        if let Some(emptiest) = &trials.emptiest {
            let members: Vec<&PlanningWorkload> = self.planning(emptiest.members).collect();
            let newcomer = &newcomers[emptiest.server.class.as_str()];
            reasons.push(emptiest.kind.refusal(trials.suited, (emptiest.name, &members), newcomer));
        }
        reasons.extend(trials.others.iter().cloned());
        if trials.more > 0 {
            reasons.push(format!("and {} more", trials.more));
        }
        reasons.join("; ")
    }
}

/// Reasons of servers that a refusal names.
const REASONS_MAX: usize = 4;

/// Returns true if some client of both cannot be told apart.
fn share_a_client(one: &[ClientPlace], other: &[ClientPlace]) -> bool {
    let is_same = |a: &ClientPlace, b: &ClientPlace| {
        let exports = [&a.export, &b.export];
        let is_same_export = exports[0] == exports[1] || exports.iter().any(|export| export.is_none());
        is_same_export && a.address.iter().any(|address| b.address.contains(address))
    };
    one.iter().any(|a| other.iter().any(|b| is_same(a, b)))
}

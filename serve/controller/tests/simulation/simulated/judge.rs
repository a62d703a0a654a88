//! An observer outside of the machines: what hosts enforce against what tenants were told.
//!
//! A promise begins when a tenant reads that it is enforced, and ends when the tenant asks for the workload's removal. At
//! every instant, the buckets that hosts really have are checked by the planner, and the waiting time of storage and of
//! higher priorities is added up by hand, with the priorities that hosts really have.

use super::traffic::KIND;
use agent::Assignment;
use model::{PerStage, Policy, PolicyWorkload, RateLimit, Slo, Stage};
use plan::standing::{EnforcedMember, PlanningWorkload, enforced_bucket};
use std::collections::{BTreeMap, BTreeSet};

/// A promise as a tenant understands it.
#[derive(Debug, Clone)]
pub struct Promise {
    pub name: String,
    pub server: String,
    pub slo: Slo,
}

/// The assignments that hosts have, by name.
#[derive(Debug)]
pub struct InForce {
    pub storage: BTreeMap<String, Assignment>,
    pub links: BTreeMap<String, Assignment>,
}

impl InForce {
    /// Returns the policy of a server that a host has at a stage.
    fn policy(&self, host: &str, server: &str, stage: Stage) -> Option<&Policy> {
        let assignments = if stage == Stage::Storage { &self.storage } else { &self.links };
        let part = assignments.get(host)?.servers.iter().find(|part| part.server == server)?;
        Some(&part.policy)
    }
}

/// Enforcement of one workload at a stage.
#[derive(Debug, Clone, Copy)]
struct StageInForce {
    bucket: RateLimit,
    priority: u32,
}

#[derive(Debug, Default)]
pub struct Judge {
    /// Promises by identity of the workload.
    pub promises: BTreeMap<u64, Promise>,
    /// Traffic of all workloads that ever asked, by name.
    pub traffic: BTreeMap<String, PlanningWorkload>,
    /// Host of each workload's clients.
    pub client_host: BTreeMap<String, String>,
    pub server_host: BTreeMap<String, String>,
    /// True if hosts of clients limit what goes into the servers.
    pub is_network_enforced: bool,
    pub checks: u64,
}

impl Judge {
    /// Checks all promises against what hosts enforce.
    ///
    /// # Errors
    /// The first that is broken.
    pub fn check(&mut self, enforced: &InForce) -> Result<(), String> {
        let servers: BTreeSet<String> =
            self.promises.values().map(|promise| promise.server.clone()).collect();
        servers.iter().try_for_each(|server| self.check_server(server, enforced))
    }

    fn check_server(&mut self, server: &str, enforced: &InForce) -> Result<(), String> {
        self.checks += 1;
        let own_host = &self.server_host[server];
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for host in enforced.storage.keys().chain(enforced.links.keys()) {
            for stage in [Stage::Storage, Stage::NetworkIn] {
                let policy = enforced.policy(host, server, stage);
                names.extend(policy.iter().flat_map(|policy| &policy.workloads).map(|it| it.name.as_str()));
            }
        }
        let mut in_force: BTreeMap<&str, PerStage<Option<StageInForce>>> = BTreeMap::new();
        for name in names {
            let at = |stage: Stage| {
                let is_at_client = stage == Stage::NetworkIn && self.is_network_enforced;
                let host = if is_at_client { self.client_host.get(name)? } else { own_host };
                let policy = enforced.policy(host, server, stage)?;
                let found = policy.workloads.iter().find(|workload| workload.name == name)?;
                in_force_of(found, stage)
            };
            let stages = PerStage::from_fn(at);
            // A host may have a policy with workloads of other hosts, which have left: it enforces nothing of them.
            if stages.iter().any(|(_, stage)| stage.is_some()) {
                in_force.insert(name, stages);
            }
        }
        let promised: BTreeMap<&str, &Promise> = self
            .promises
            .values()
            .filter(|promise| promise.server == *server)
            .map(|promise| (promise.name.as_str(), promise))
            .collect();
        for (name, promise) in &promised {
            let own = in_force.get(name).ok_or_else(|| format!("{name} on {server} is enforced nowhere"))?;
            if let Some((stage, _)) = own.iter().find(|(_, own)| own.is_none()) {
                return Err(format!("{name} on {server} is not enforced at {stage}"));
            }
            let waits = waiting_by_hand(own, &in_force);
            if waits > promise.slo.latency.0 {
                return Err(format!(
                    "{name} on {server} may wait {waits} s, and was promised {}",
                    promise.slo
                ));
            }
        }
        let policy = enforced
            .policy(own_host, server, Stage::Storage)
            .ok_or_else(|| format!("{server} has no policy"))?;
        let enforcement = policy.servers.first().and_then(|server| server.enforcement);
        let enforcement = enforcement.ok_or_else(|| format!("{server} has no terms of use"))?;
        let mut members = Vec::new();
        for (name, at) in &in_force {
            let limits = at.map(|at| at.map_or(RateLimit::default(), |at| at.bucket));
            let is_promised = promised.contains_key(name);
            members.push(EnforcedMember { workload: &self.traffic[*name], limits, is_promised });
        }
        KIND.check(&enforcement, &members)
            .map_err(|refusal| format!("{server} breaks a promise: {refusal:?}"))
    }
}

fn in_force_of(workload: &PolicyWorkload, stage: Stage) -> Option<StageInForce> {
    let priority =
        workload.priority_by_stage.map(|priorities| priorities[stage as usize]).or(workload.priority)?;
    Some(StageInForce { bucket: enforced_bucket(workload, stage)?, priority })
}

/// Time that a workload waits for bursts of the same and higher priorities at storage, and for itself and higher ones on
/// links, seconds (thesis Eq. 5.1); the least of what any analysis counts.
fn waiting_by_hand(
    own: &PerStage<Option<StageInForce>>,
    all: &BTreeMap<&str, PerStage<Option<StageInForce>>>,
) -> f64 {
    let mut waits = 0.0;
    for (stage, own) in own.iter() {
        let Some(own) = own else { continue };
        let mut burst = if stage == Stage::Storage { 0.0 } else { own.bucket.burst };
        let mut rate_above = 0.0;
        for other in all.values().filter_map(|other| other[stage]) {
            if other.priority < own.priority {
                rate_above += other.bucket.rate;
                burst += other.bucket.burst;
            } else if other.priority == own.priority && stage == Stage::Storage {
                burst += other.bucket.burst;
            }
        }
        waits += if rate_above < 1.0 { burst / (1.0 - rate_above) } else { f64::INFINITY };
    }
    waits
}

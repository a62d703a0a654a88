//! The placement of a policy as the start of another plan, and what that plan changes.

use crate::cluster::{ClusterProblem, PlacedWorkload, broken_rule};
use model::{
    OperationError, PerStage, Policy, PolicyWorkload, RateLimit, ServerEnforcement, Stage, WorkloadSpec,
};
use placement::{ClientPlace, DeviceQueue, PlannedServer, PlanningProblem};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;

/// Differences between a plan and the policy that it keeps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeptChanges {
    /// Names of the servers whose members, limits or device queues differ from the policy, and of its servers
    /// that are empty now.
    pub servers: Vec<String>,
    /// Workloads that had a place and cannot stay there, in the order of the policy.
    pub moved: Vec<MovedWorkload>,
}

/// A workload whose server can no longer give the policy's guarantee.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct MovedWorkload {
    /// The name of the workload.
    pub name: String,
    /// Server in the policy.
    pub from: String,
    /// Server in the plan; `None` without a place.
    pub to: Option<String>,
}

/// A server of a policy with its remaining workloads.
pub(super) struct KeptServer {
    /// Name in the policy.
    pub(super) name: String,
    /// The server with the limits of the policy.
    pub(super) server: PlannedServer,
    /// True if all its workloads are still present, and its device is the one that their limits were chosen
    /// for.
    pub(super) is_whole: bool,
    /// True if limits were chosen for the device that the cluster describes.
    pub(super) is_same_device: bool,
}

/// The servers of a policy, as servers of the cluster that is planned.
pub(super) fn kept_servers(
    policy: &Policy,
    instance: &PlanningProblem,
) -> Result<Vec<KeptServer>, OperationError> {
    let mut servers = Vec::new();
    for server in &policy.servers {
        let class = instance.classes.iter().position(|class| class.name == server.class);
        let class = class.ok_or_else(|| {
            OperationError::input(format_args!(
                "the policy has server '{}' of class '{}', which the cluster does not have",
                server.name, server.class
            ))
            .hint("plan without the old policy, or add the class to the cluster")
        })?;
        let shortest = instance.shortest_queue(class);
        let kept_queue = server.enforcement.as_ref().map(device_queue);
        // Limits chosen for another device are recomputed.
        let is_same_device = instance.classes[class].enforced.is_none()
            || kept_queue.is_some_and(|queue| queue.channels == shortest.channels);
        let is_same_device = is_same_device && !policy.has_outdated_bounds(&server.name);
        let queue = kept_queue.filter(|_| is_same_device).unwrap_or(shortest);
        let mut kept = PlannedServer { class, members: Vec::new(), limits: Vec::new(), queue };
        let mut is_whole = is_same_device;
        for workload in members(policy, &server.name) {
            if let Some(index) = instance.workloads.iter().position(|known| known.name == workload.name) {
                let allowances = workload.limits.iter().filter(|limit| limit.stage == Stage::NetworkOut);
                let overtaking = instance.workloads[index].on_class[class].overtaking;
                is_whole &= allowances.map(|limit| limit.allowance).all(|known| is_same(known, overtaking));
                kept.members.push(index);
                kept.limits.push(limits_of(workload)?);
                // A plan has one limit per stage: servers with several limiters get new limits.
                is_whole &= workload.limits.len() == Stage::ALL.len();
            } else {
                is_whole = false;
            }
        }
        servers.push(KeptServer { name: server.name.clone(), server: kept, is_whole, is_same_device });
    }
    Ok(servers)
}

/// Refuses a policy that breaks a rule of the cluster file.
pub(super) fn check_kept_rules(policy: &Policy, problem: &ClusterProblem) -> Result<(), OperationError> {
    if !problem.has_rules() {
        return Ok(());
    }
    let specs: BTreeMap<&str, &WorkloadSpec> =
        problem.workloads.iter().map(|spec| (spec.name.as_str(), spec)).collect();
    let mut placed = Vec::new();
    for kept in &policy.workloads {
        let Some(server) = kept.server.as_deref() else { continue };
        let class = policy.servers.iter().find(|known| known.name == server).map(|known| &known.class);
        let class = problem.servers.iter().find(|known| Some(&known.class) == class);
        if let (Some(workload), Some(class)) = (specs.get(kept.name.as_str()), class) {
            placed.push(PlacedWorkload { workload, server, class });
        }
    }
    let Some(broken) = broken_rule(problem.failure_domain.as_deref(), &placed) else { return Ok(()) };
    Err(OperationError::input(format_args!(
        "the kept policy breaks a rule of {}: {broken}",
        problem.origin.display()
    ))
    .hint("change the rule in the cluster file, or plan without the policy"))
}

/// Returns true if two numbers are equal up to rounding.
fn is_same(one: f64, other: f64) -> bool {
    (one - other).abs() <= 1e-9 * one.max(other)
}

/// The queue at the device that a policy asks for.
pub(crate) fn device_queue(used: &ServerEnforcement) -> DeviceQueue {
    DeviceQueue { channels: used.channels, outstanding: used.outstanding, reserve: used.reserve }
}

/// The workloads that a policy has on a server.
fn members<'a>(policy: &'a Policy, server: &'a str) -> impl Iterator<Item = &'a PolicyWorkload> {
    policy.workloads.iter().filter(move |workload| workload.server.as_deref() == Some(server))
}

fn limits_of(workload: &PolicyWorkload) -> Result<PerStage<RateLimit>, OperationError> {
    let mut limits = PerStage::default();
    for stage in Stage::ALL {
        let limit = workload.limits.iter().find(|limit| limit.stage == stage).ok_or_else(|| {
            OperationError::input(format_args!(
                "the policy has no {stage} limit for workload '{}'",
                workload.name
            ))
        })?;
        // A plan counts the buckets as they are enforced.
        limits[stage] = RateLimit { burst: limit.limit.burst + limit.allowance, ..limit.limit };
    }
    Ok(limits)
}

/// Returns the differences between a plan's servers, with these names, and a policy.
pub(super) fn kept_changes(
    policy: &Policy,
    instance: &PlanningProblem,
    servers: &[PlannedServer],
    names: &[String],
) -> KeptChanges {
    let mut changed: Vec<String> = Vec::new();
    for (server, name) in servers.iter().zip(names) {
        if !is_unchanged(policy, instance, server, name) {
            changed.push(name.clone());
        }
    }
    let empty = policy.servers.iter().map(|server| &server.name).filter(|name| !names.contains(name));
    changed.extend(empty.cloned());
    KeptChanges { servers: changed, moved: moved_workloads(policy, instance, servers, names) }
}

fn moved_workloads(
    policy: &Policy,
    instance: &PlanningProblem,
    servers: &[PlannedServer],
    names: &[String],
) -> Vec<MovedWorkload> {
    let mut moved = Vec::new();
    for old in &policy.workloads {
        let index = instance.workloads.iter().position(|known| known.name == old.name);
        let (Some(index), Some(from)) = (index, &old.server) else { continue };
        let place = servers.iter().position(|server| server.members.contains(&index));
        let to = place.map(|server| names[server].clone());
        if to.as_ref() != Some(from) {
            moved.push(MovedWorkload { name: old.name.clone(), from: from.clone(), to });
        }
    }
    moved
}

/// Returns true if a server has the members, limits and device queue of the policy's server with its name.
fn is_unchanged(policy: &Policy, instance: &PlanningProblem, server: &PlannedServer, name: &str) -> bool {
    let used = policy.enforcement_of(name).map(device_queue);
    let is_used_alike = used == instance.classes[server.class].enforced.map(|_| server.queue);
    let mut before = members(policy, name);
    is_used_alike
        && members(policy, name).count() == server.members.len()
        && before.all(|old| {
            let index = server.members.iter().position(|&w| instance.workloads[w].name == old.name);
            let has_limits = |at: usize| {
                limits_of(old).is_ok_and(|limits| limits == server.limits[at])
                    && has_links(old, instance.clients.get(server.members[at]))
            };
            old.limits.len() == Stage::ALL.len() && index.is_some_and(has_limits)
        })
}

/// Returns true if a workload of a policy has this place on the links of its clients' host. The server's own link enforces
/// the bucket of its answers.
fn has_links(old: &PolicyWorkload, place: Option<&ClientPlace>) -> bool {
    let (old, links) = match (&old.client, place.and_then(ClientPlace::served)) {
        (None, None) => return true,
        (Some(old), Some(links)) => (old, links),
        _ => return false,
    };
    let has = |stage: Stage, bucket: RateLimit| {
        let mut limits = old.limits.iter().filter(|limit| limit.stage == stage);
        limits.all(|limit| {
            is_same(limit.limit.rate, bucket.rate)
                && is_same(limit.limit.burst + limit.allowance, bucket.burst)
        })
    };
    old.host == links.host
        && u32::try_from(links.priority) == Ok(old.priority)
        && has(Stage::NetworkIn, links.requests)
        && has(Stage::NetworkOut, links.answers)
}

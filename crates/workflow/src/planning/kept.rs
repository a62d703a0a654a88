//! The placement of a policy as the start of another plan, and what that plan changes.

use model::{OperationError, PerStage, Policy, PolicyWorkload, RateLimit, ServerEnforcement, Stage};
use plan::{DeviceQueue, PlannedServer, PlanningProblem};

/// A server of a policy with those of its workloads that are still there.
pub(super) struct KeptServer {
    /// The name that it has in the policy.
    pub(super) name: String,
    /// The server with limits as they are in the policy.
    pub(super) server: PlannedServer,
    /// Whether all its workloads are still there.
    pub(super) is_whole: bool,
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
        let queue = match server.enforcement {
            Some(ServerEnforcement { channels, outstanding, reserve, .. }) => {
                DeviceQueue { channels, outstanding, reserve }
            }
            None => instance.shortest_queue(class),
        };
        let mut kept = PlannedServer { class, members: Vec::new(), limits: Vec::new(), queue };
        let mut is_whole = true;
        for workload in members(policy, &server.name) {
            if let Some(index) = instance.workloads.iter().position(|known| known.name == workload.name) {
                kept.members.push(index);
                kept.limits.push(limits_of(workload)?);
            } else {
                is_whole = false;
            }
        }
        servers.push(KeptServer { name: server.name.clone(), server: kept, is_whole });
    }
    Ok(servers)
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
        limits[stage] = limit.limit;
    }
    Ok(limits)
}

/// Names of the servers whose members or limits are not those of the policy, and of those that it had and
/// that are empty now.
pub(super) fn changed_servers(
    policy: &Policy,
    instance: &PlanningProblem,
    servers: &[PlannedServer],
    names: &[String],
) -> Vec<String> {
    let mut changed: Vec<String> = Vec::new();
    for (server, name) in servers.iter().zip(names) {
        if !is_unchanged(policy, instance, server, name) {
            changed.push(name.clone());
        }
    }
    let empty = policy.servers.iter().map(|server| &server.name).filter(|name| !names.contains(name));
    changed.extend(empty.cloned());
    changed
}

/// Whether a server has the members and limits that the policy has for its name.
fn is_unchanged(policy: &Policy, instance: &PlanningProblem, server: &PlannedServer, name: &str) -> bool {
    let mut before = members(policy, name);
    members(policy, name).count() == server.members.len()
        && before.all(|old| {
            let index = server.members.iter().position(|&w| instance.workloads[w].name == old.name);
            index.is_some_and(|at| limits_of(old).is_ok_and(|limits| limits == server.limits[at]))
        })
}

//! The servers of two policies, matched by name.

use crate::cluster::{ClusterProblem, PlacedWorkload, broken_rule, server_name, server_number};
use crate::planning::kept::{KeptServer, kept_servers};
use crate::planning::migration::document::RenamedServer;
use model::{OperationError, Policy};
use placement::migration::{ServerChange, names_with_fewest_moves};
use placement::{PlannedServer, PlanningProblem};
use std::collections::BTreeSet;

/// Servers without workloads of each class by which moves may go.
const SPARES_MAX: usize = 2;

/// All servers that may have workloads at any step, by position.
pub(super) struct Fleet {
    pub(super) names: Vec<String>,
    pub(super) changes: Vec<ServerChange>,
    pub(super) renamed: Vec<RenamedServer>,
}

impl Fleet {
    /// Matches the servers of two policies.
    ///
    /// # Errors
    ///
    /// If a policy does not belong to the cluster.
    pub(super) fn new(
        problem: &ClusterProblem,
        instance: &PlanningProblem,
        [old, new]: [&Policy; 2],
    ) -> Result<Self, OperationError> {
        let before = servers_of(old, instance, "old")?;
        let after = servers_of(new, instance, "new")?;
        for KeptServer { name, server, .. } in &after {
            server.verify(instance).map_err(|_| {
                OperationError::input(format_args!(
                    "the limits of the new policy do not hold on server '{name}' for these inputs"
                ))
                .hint("plan anew with these inputs: `tailwright plan --keep OLD.json -o NEW.json`")
            })?;
        }
        let (after_names, renamed) = renamed(problem, &before, &after);
        let mut names: Vec<String> = before.iter().map(|kept| kept.name.clone()).collect();
        names.extend(
            after_names.iter().filter(|name| !before.iter().any(|kept| kept.name == **name)).cloned(),
        );
        for (class, described) in problem.servers.iter().enumerate() {
            let numbers =
                (1..=described.count).map(|number| server_name(&instance.classes[class].name, number));
            let free: Vec<String> = numbers.filter(|name| !names.contains(name)).take(SPARES_MAX).collect();
            names.extend(free);
        }
        let mut changes = Vec::new();
        for name in &names {
            let old = before.iter().find(|kept| kept.name == *name).map(|kept| &kept.server);
            let new = after_names.iter().position(|known| known == name).map(|at| &after[at].server);
            let class = old.or(new).map_or_else(|| class_of(instance, name), |server| server.class);
            let empty = PlannedServer {
                class,
                members: Vec::new(),
                limits: Vec::new(),
                queue: instance.shortest_queue(class),
            };
            let [before, after] = [old, new].map(|server| server.unwrap_or(&empty).clone());
            let capacity = problem.servers[class].capacity.map(|capacity| capacity.0);
            changes.push(ServerChange { before, after, capacity });
        }
        Ok(Self { names, changes, renamed })
    }

    /// The position of a workload's server in one of the policies.
    pub(super) fn home(&self, workload: usize, is_before: bool) -> Option<usize> {
        self.changes.iter().position(|change| {
            let server = if is_before { &change.before } else { &change.after };
            server.members.contains(&workload)
        })
    }

    /// Workloads with their old and new servers, by position.
    pub(super) fn moves(&self, workloads: usize) -> Vec<(usize, usize, usize)> {
        let all = 0..workloads;
        let moved = all.filter_map(|w| Some((w, self.home(w, true)?, self.home(w, false)?)));
        moved.filter(|(_, from, to)| from != to).collect()
    }

    /// Workloads that move and have no size.
    pub(super) fn moved_without_size(&self, problem: &ClusterProblem) -> Vec<String> {
        let moves = self.moves(problem.workloads.len()).into_iter();
        let specs = moves.map(|(workload, ..)| &problem.workloads[workload]);
        specs.filter(|spec| spec.size.is_none()).map(|spec| spec.name.clone()).collect()
    }

    /// Says which rule of the cluster file is broken with these workloads on the servers.
    pub(super) fn broken_rule(&self, problem: &ClusterProblem, members: &[Vec<usize>]) -> Option<String> {
        let mut placed = Vec::new();
        for (position, members) in members.iter().enumerate() {
            let class = &problem.servers[self.changes[position].before.class];
            let server = self.names[position].as_str();
            placed.extend(members.iter().map(|&workload| PlacedWorkload {
                workload: &problem.workloads[workload],
                server,
                class,
            }));
        }
        broken_rule(problem.failure_domain.as_deref(), &placed)
    }
}

/// The servers of a policy, with limits that can be compared.
fn servers_of(
    policy: &Policy,
    instance: &PlanningProblem,
    which: &str,
) -> Result<Vec<KeptServer>, OperationError> {
    let several = policy.workloads.iter().find(|workload| workload.admitted && workload.limits.len() > 3);
    if let Some(workload) = several {
        return Err(OperationError::input(format_args!(
            "the {which} policy has several limits at a stage for workload '{}', of which a migration counts one",
            workload.name
        ))
        .hint("policies of `tailwright plan` without --model have one at each stage"));
    }
    if !policy.hosts.is_empty() {
        return Err(OperationError::input(format_args!(
            "the {which} policy has limits for links of client hosts, which a migration does not count"
        ))
        .hint("plan without [[host]] if no link of a client's host is a bottleneck"));
    }
    let servers = kept_servers(policy, instance)?;
    if let Some(other) = servers.iter().find(|kept| !kept.is_same_device) {
        return Err(OperationError::input(format_args!(
            "the {which} policy was made for another device on server '{}'",
            other.name
        ))
        .hint("a migration is between policies for the same devices: give the cluster file that both were planned for"));
    }
    Ok(servers)
}

/// Workloads that a policy promises something, and the cluster file does not have.
pub(super) fn forgotten(problem: &ClusterProblem, policy: &Policy) -> Vec<String> {
    let known: BTreeSet<&str> = problem.workloads.iter().map(|spec| spec.name.as_str()).collect();
    let promised = policy.workloads.iter().filter(|workload| workload.admitted);
    let forgotten = promised.filter(|workload| !known.contains(workload.name.as_str()));
    forgotten.map(|workload| workload.name.clone()).collect()
}

fn class_of(instance: &PlanningProblem, server: &str) -> usize {
    let is_of = |class: usize| server_number(&instance.classes[class].name, server).is_some();
    (0..instance.classes.len()).find(|&class| is_of(class)).expect("a free server has the name of a class")
}

/// Names for the servers of the new policy such that the fewest bytes move. Servers of a class are alike, unless a
/// workload has to be on one of a certain name.
fn renamed(
    problem: &ClusterProblem,
    before: &[KeptServer],
    after: &[KeptServer],
) -> (Vec<String>, Vec<RenamedServer>) {
    let weight = |workload: usize| {
        // Of workloads without a size, the fewest move.
        let bytes = problem.workloads[workload].size.map_or(0, |size| size.0);
        i64::try_from(bytes >> 10).unwrap_or(i64::MAX >> 20).saturating_add(1)
    };
    let is_named = |kept: &KeptServer| {
        let asks = |workload: usize| problem.workloads[workload].on.contains(&kept.name);
        kept.server.members.iter().any(|&workload| asks(workload))
    };
    let named: BTreeSet<&str> =
        after.iter().filter(|kept| is_named(kept)).map(|kept| kept.name.as_str()).collect();
    let kept = |new: usize, old: usize| {
        let [new, old] = [&after[new], &before[old]];
        let is_fixed = named.contains(new.name.as_str()) || named.contains(old.name.as_str());
        if new.server.class != old.server.class || (is_fixed && new.name != old.name) {
            return 0;
        }
        let both = new.server.members.iter().filter(|member| old.server.members.contains(member));
        both.map(|&workload| weight(workload)).sum()
    };
    let taken = names_with_fewest_moves(after.len(), before.len(), kept);
    let mut names: Vec<Option<String>> =
        taken.iter().map(|old| old.map(|at| before[at].name.clone())).collect();
    for (at, kept) in after.iter().enumerate() {
        let is_free = !names.iter().flatten().any(|name| *name == kept.name);
        if names[at].is_none() && (is_free || named.contains(kept.name.as_str())) {
            names[at] = Some(kept.name.clone());
        }
    }
    for at in 0..names.len() {
        if names[at].is_none() {
            let class = &problem.servers[after[at].server.class].class;
            let mut numbered = (1..).map(|number| server_name(class, number));
            let is_free = |name: &String| {
                !names.iter().flatten().any(|taken| taken == name) && !named.contains(name.as_str())
            };
            names[at] = numbered.find(is_free);
        }
    }
    let names: Vec<String> = names.into_iter().flatten().collect();
    let changed = names.iter().zip(after).filter(|(name, kept)| **name != kept.name);
    let changed = changed.map(|(name, kept)| RenamedServer { was: kept.name.clone(), name: name.clone() });
    let changed = changed.collect();
    (names, changed)
}

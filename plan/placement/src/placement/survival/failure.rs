//! Failures of servers: where their workloads go, and by which rules.

use crate::placement::server::PlacementServer;
use crate::rules::{ExcludedServers, PlacementRules, RuleKind};
use crate::server::PlannedServer;

/// A server by its class and its number within it, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerId {
    pub class: usize,
    pub number: usize,
}

/// A server that changes when others fail.
#[derive(Debug, Clone, PartialEq)]
pub struct FailOverServer {
    pub id: ServerId,
    /// Its position in the placement; `None` if it is idle there.
    pub position: Option<usize>,
    /// All workloads that it has then, with their limits.
    pub server: PlannedServer,
}

/// A workload that has no place after a failure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnplacedWorkload {
    pub workload: usize,
    /// The remaining servers by the rule that excludes each.
    pub excluded: ExcludedServers,
    /// A rule without which it would have a place.
    pub without_rule: Option<RuleKind>,
}

/// Servers that fail together, and where their workloads go.
#[derive(Debug, Clone, PartialEq)]
pub struct FailOver {
    /// Positions in the placement.
    pub failed: Vec<usize>,
    /// The other servers that change, idle ones last.
    pub servers: Vec<FailOverServer>,
    /// Empty if the failure is survived.
    pub unplaced: Vec<UnplacedWorkload>,
}

/// The rules while a failure lasts.
pub(super) fn rules_after(
    rules: &PlacementRules,
    domains: &[Option<usize>],
    servers: &[PlacementServer],
    failed: &[usize],
) -> PlacementRules {
    let domain = failed.first().and_then(|&server| domains[servers[server].class]);
    let is_gone = |class: usize, number: Option<usize>| match domain {
        Some(_) => domains[class] == domain,
        None => failed.iter().any(|&server| {
            servers[server].class == class && number.is_some() && servers[server].number == number
        }),
    };
    rules.without_servers(is_gone)
}

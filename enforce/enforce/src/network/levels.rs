//! Mapping of the policy's priorities to the kernel's levels.
//!
//! A packet has two levels. The shaper of the host that sends it serves it by that of the link there; its mark has that of
//! the next link, behind a switch. Where a policy states priorities of client hosts, requests thus leave by the priority of
//! their host and are marked with that of the server, and answers the other way round.
//!
//! A level is the rank of the priority among all in the policy. If there are more priorities than the
//! kernel has levels, the last ones share a level. One table serves all hosts, so that hosts and switches
//! agree.

use model::PRIORITY_LEVELS;
use model::{Policy, PolicyWorkload, Stage};

/// Priorities at the network stages of a policy, ascending and without duplicates.
pub(super) struct PriorityLevels(Vec<u32>);

impl PriorityLevels {
    pub(super) fn new(policy: &Policy) -> Self {
        let mut priorities = Vec::new();
        for workload in policy.workloads.iter().filter(|workload| workload.admitted) {
            priorities.extend([Stage::NetworkIn, Stage::NetworkOut].map(|stage| priority(workload, stage)));
            priorities.extend(workload.client.as_ref().map(|client| client.priority));
        }
        priorities.sort_unstable();
        priorities.dedup();
        Self(priorities)
    }

    /// Returns the level of an admitted workload at a stage of its server; 0 is served first.
    pub(super) fn level(&self, workload: &PolicyWorkload, stage: Stage) -> usize {
        self.rank(priority(workload, stage))
    }

    /// Returns the level of an admitted workload on the links of its clients' host; that of its server if the policy does
    /// not state one.
    pub(super) fn client_level(&self, workload: &PolicyWorkload, stage: Stage) -> usize {
        let client = workload.client.as_ref();
        client.map_or_else(|| self.level(workload, stage), |client| self.rank(client.priority))
    }

    fn rank(&self, priority: u32) -> usize {
        let rank = self.0.binary_search(&priority).expect("the table has every priority of the policy");
        rank.min(PRIORITY_LEVELS - 1)
    }

    /// Returns one warning for each server and stage at which workloads of different priorities share the
    /// last level.
    pub(super) fn warnings(&self, policy: &Policy) -> Vec<String> {
        let mut warnings = Vec::new();
        for server in &policy.servers {
            for stage in [Stage::NetworkIn, Stage::NetworkOut] {
                warnings.extend(self.shared_last_level(policy, &server.name, stage));
            }
        }
        warnings
    }

    fn shared_last_level(&self, policy: &Policy, server: &str, stage: Stage) -> Option<String> {
        let last = self.0.get(PRIORITY_LEVELS - 1..).unwrap_or_default();
        let here = policy.workloads.iter().filter(|w| w.admitted && w.server.as_deref() == Some(server));
        let here: Vec<(u32, &str)> = here.map(|w| (priority(w, stage), w.name.as_str())).collect();
        let here: Vec<_> = here.into_iter().filter(|(priority, _)| last.contains(priority)).collect();
        if here.iter().all(|(priority, _)| *priority == here[0].0) {
            return None;
        }
        let names: Vec<String> = here.iter().map(|(priority, name)| format!("{name} ({priority})")).collect();
        Some(format!(
            "{server} {stage}: there are {PRIORITY_LEVELS} levels of priority; these share the last: {}",
            names.join(", ")
        ))
    }
}

/// Returns the policy's priority of a workload at a stage; 0 is served first.
fn priority(workload: &PolicyWorkload, stage: Stage) -> u32 {
    match workload.priority_by_stage {
        Some(by_stage) => by_stage[stage as usize],
        None => workload.priority.unwrap_or(u32::MAX),
    }
}

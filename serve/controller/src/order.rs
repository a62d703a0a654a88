//! The order in which hosts take a new policy of a server, so that every promise holds at every step.
//!
//! Between two policies some hosts enforce the old limits and some the new ones. The order is found by search: a
//! state, which is the set of hosts that have the new policy, may be passed if the planner's own check finds every
//! promise kept in it. Workloads that come or go are load in these states, at the stages where they have priority, and
//! are promised nothing.
//!
//! A host that limits its links and its storage changes them one after the other, and back in either order. What it has
//! in between is checked, too.

use model::{PerStage, Policy, PolicyWorkload, RateLimit, Stage};
use plan::standing::{EnforcedMember, PlanningWorkload, ServerKind, enforced_bucket};
use std::collections::{BTreeMap, BTreeSet};

/// States that a search may check. It is reached with seven hosts that suit each other badly.
const CHECKS_MAX: usize = 128;

/// A change of the policy of a server.
#[derive(Debug)]
pub(crate) struct PolicyChange<'a> {
    pub(crate) kind: &'a ServerKind,
    pub(crate) old: &'a Policy,
    pub(crate) new: &'a Policy,
    /// Host of the server, which limits storage and answers.
    pub(crate) server_host: &'a str,
    /// True if the server's host limits its links, too.
    pub(crate) has_links: bool,
    /// Workloads of both policies by name, with the host that limits their requests where agents do.
    pub(crate) workloads: BTreeMap<&'a str, (&'a PlanningWorkload, Option<String>)>,
}

impl PolicyChange<'_> {
    /// Finds an order in which these hosts may take the new policy.
    ///
    /// # Errors
    /// If there is none, or none was found; the reason.
    pub(crate) fn order(&self, hosts: &BTreeSet<String>) -> Result<Vec<String>, String> {
        if hosts.len() == 1 && !self.has_links {
            return Ok(hosts.iter().cloned().collect());
        }
        if self.changes_a_priority() {
            // Tenants read this, and the workload may be of another one: it has no name here.
            return Err("its SLO would move a workload of the server to another priority, which hosts cannot change at \
                        one instant"
                .to_owned());
        }
        let mut search = OrderSearch { change: self, hosts, dead: BTreeSet::new(), checks: 0 };
        let mut order = Vec::new();
        if search.extend(&mut order, &mut BTreeSet::new()) {
            return Ok(order);
        }
        let found = if search.checks < CHECKS_MAX { "there is no order" } else { "no order was found" };
        Err(format!("{found} in which the hosts {} could change one after the other", words(hosts)))
    }

    /// Returns true if the priority of a workload of both policies differs.
    fn changes_a_priority(&self) -> bool {
        let mut kept = self.old.workloads.iter().filter_map(|old| Some((old, of(self.new, &old.name)?)));
        kept.any(|(old, new)| old.priority != new.priority)
    }

    /// Returns true if every promise holds while exactly these hosts have the new policy.
    fn holds(&self, taken: &BTreeSet<&str>) -> bool {
        self.holds_with(taken, [taken.contains(self.server_host); 2])
    }

    /// Returns true if every promise holds while the latest of these hosts takes its step.
    fn holds_within_step(&self, taken: &BTreeSet<&str>, latest: &str) -> bool {
        let is_in_two = self.has_links && latest == self.server_host;
        !is_in_two || [[true, false], [false, true]].iter().all(|&new| self.holds_with(taken, new))
    }

    /// Returns true if every promise holds while exactly these hosts have the new policy, the server's host only on its
    /// links and at its storage as `new` says.
    fn holds_with(&self, taken: &BTreeSet<&str>, new: [bool; 2]) -> bool {
        let [has_new_links, has_new_storage] = new;
        let enforcement = |policy: &Policy| policy.servers.first().and_then(|server| server.enforcement);
        let used = if has_new_storage { self.new } else { self.old };
        let Some(enforcement) = enforcement(used).or(enforcement(self.new)) else { return false };
        let mut members = Vec::new();
        for (name, (workload, client)) in &self.workloads {
            let old = of(self.old, name);
            let new = of(self.new, name);
            let limits = PerStage::from_fn(|stage| {
                let is_new = match (stage, client.as_deref()) {
                    (Stage::NetworkIn, Some(client)) if client != self.server_host => taken.contains(client),
                    (Stage::Storage, _) => has_new_storage,
                    (Stage::NetworkIn | Stage::NetworkOut, _) => has_new_links,
                };
                let policy = if is_new { new } else { old };
                policy.and_then(|policy| enforced_bucket(policy, stage)).unwrap_or(NO_PRIORITY)
            });
            members.push(EnforcedMember { workload, limits, is_promised: old.is_some() && new.is_some() });
        }
        self.kind.check(&enforcement, &members).is_ok()
    }
}

/// A stage serves the workload after all others.
const NO_PRIORITY: RateLimit = RateLimit { rate: 0.0, burst: 0.0 };

fn of<'a>(policy: &'a Policy, name: &str) -> Option<&'a PolicyWorkload> {
    policy.workloads.iter().find(|workload| workload.name == name)
}

fn words(hosts: &BTreeSet<String>) -> String {
    hosts.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

struct OrderSearch<'a> {
    change: &'a PolicyChange<'a>,
    hosts: &'a BTreeSet<String>,
    /// States from which no order is left.
    dead: BTreeSet<Vec<&'a str>>,
    checks: usize,
}

impl<'a> OrderSearch<'a> {
    /// Appends the remaining hosts to an order whose states all hold; returns false if that cannot be done.
    fn extend(&mut self, order: &mut Vec<String>, taken: &mut BTreeSet<&'a str>) -> bool {
        if taken.len() == self.hosts.len() {
            return true;
        }
        for host in self.hosts {
            if !taken.insert(host) {
                continue;
            }
            let state: Vec<&str> = taken.iter().copied().collect();
            if !self.dead.contains(&state) && self.checks < CHECKS_MAX {
                self.checks += 1;
                let is_passed = self.change.holds_within_step(taken, host);
                order.push(host.clone());
                if is_passed && self.change.holds(taken) && self.extend(order, taken) {
                    return true;
                }
                order.pop();
                // Another host may reach the state by a step that holds.
                if is_passed {
                    self.dead.insert(state);
                }
            }
            taken.remove(host.as_str());
        }
        false
    }
}

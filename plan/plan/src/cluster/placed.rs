//! The last check of where workloads are, by the names in the cluster file and of the servers. It shares no code with the
//! search and its rules in numbers, and judges plans and policies alike.

use super::stored::stored;
use model::{ServerClass, WorkloadSpec};
use std::collections::BTreeMap;

/// A workload on a server.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PlacedWorkload<'a> {
    pub(crate) workload: &'a WorkloadSpec,
    pub(crate) server: &'a str,
    pub(crate) class: &'a ServerClass,
}

/// Says which rule of the cluster file a placement breaks, and where; `None` if it keeps all.
pub(crate) fn broken_rule(failure_domain: Option<&str>, placed: &[PlacedWorkload<'_>]) -> Option<String> {
    let mut bytes: BTreeMap<&str, u64> = BTreeMap::new();
    let mut together: BTreeMap<&str, PlacedWorkload<'_>> = BTreeMap::new();
    let mut servers: BTreeMap<(&str, &str), &str> = BTreeMap::new();
    let mut domains: BTreeMap<(&str, &str), PlacedWorkload<'_>> = BTreeMap::new();
    for placed in placed {
        let &PlacedWorkload { workload, server, class } = placed;
        let name = &workload.name;
        if !workload.on.is_empty() && !workload.on.iter().any(|entry| means(entry, server, class)) {
            return Some(format!("'{name}' is on '{server}', but may be on {} only", workload.on.join(", ")));
        }
        if let Some(group) = workload.apart.as_deref() {
            if let Some(other) = servers.insert((group, server), name) {
                return Some(format!(
                    "'{name}' and '{other}' are both on '{server}', but apart = \"{group}\""
                ));
            }
            let domain = failure_domain.and_then(|label| class.labels.get_key_value(label));
            if let Some((label, value)) = domain
                && let Some(other) = domains.insert((group, value), *placed)
            {
                return Some(format!(
                    "'{name}' is on '{server}' and '{}' on '{}', both with {label} = \"{value}\", but apart = \"{group}\"",
                    other.workload.name, other.server
                ));
            }
        }
        if let Some(group) = workload.together.as_deref() {
            let other = *together.entry(group).or_insert(*placed);
            if other.server != server {
                return Some(format!(
                    "'{name}' is on '{server}' and '{}' on '{}', but together = \"{group}\"",
                    other.workload.name, other.server
                ));
            }
        }
        let taken = bytes.entry(server).or_default();
        *taken = taken.saturating_add(workload.size.map_or(0, |size| size.0));
        if let Some(capacity) = class.capacity.filter(|capacity| *taken > capacity.0) {
            return Some(format!(
                "the workloads up to '{name}' take {} of '{server}', which has a capacity of {}",
                stored(*taken),
                stored(capacity.0)
            ));
        }
    }
    None
}

/// Returns true if an entry of `on` names a server, its class or one of its labels.
fn means(entry: &str, server: &str, class: &ServerClass) -> bool {
    entry == server
        || entry == class.class
        || class.labels.iter().any(|(label, value)| entry == format!("{label}={value}"))
}

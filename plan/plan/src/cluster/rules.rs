//! Rules of a cluster file on where workloads may go: what is contradictory in them, and the same in numbers for the
//! search.

use super::stored;
use model::{Cluster, ServerClass, WorkloadSpec, is_usable_name};
use operation::text::meant_word;
use placement::{ClassRule, PlacementRules, ServerNumbers, WorkloadRule};
use std::collections::{BTreeMap, BTreeSet};
use units::{Bytes, plural};

/// The part of a cluster file that an error is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RuleSite {
    Cluster,
    /// The server class at this position.
    Server(usize),
    /// The client host at this position.
    Host(usize),
    /// The workload at this position.
    Workload(usize),
}

/// The place of an error, and what is wrong there.
pub(super) type SitedError = (RuleSite, String);

/// Returns true if the file says where workloads may go.
pub(crate) fn has_rules<'a>(workloads: impl IntoIterator<Item = &'a WorkloadSpec>) -> bool {
    let mut workloads = workloads.into_iter();
    workloads.any(|it| it.size.is_some() || !it.on.is_empty() || it.apart.is_some() || it.together.is_some())
}

/// Checks that each rule means something, and that no two contradict each other.
pub(super) fn check_rules(cluster: &Cluster) -> Result<(), SitedError> {
    check_labels(cluster)?;
    for (index, workload) in cluster.workloads.iter().enumerate() {
        check_workload(cluster, workload)
            .map_err(|what| (RuleSite::Workload(index), format!("workload '{}': {what}", workload.name)))?;
    }
    check_groups(cluster)
}

fn check_labels(cluster: &Cluster) -> Result<(), SitedError> {
    for (index, class) in cluster.servers.iter().enumerate() {
        for (label, value) in &class.labels {
            if !is_usable_name(label) || label.contains('=') || !is_usable_name(value) {
                let name = &class.class;
                let what = format!(
                    "server class '{name}': the label {label:?} is {value:?}, expected a name without '=' and a value, both \
                     in one line and not empty, such as zone = \"a\""
                );
                return Err((RuleSite::Server(index), what));
            }
        }
    }
    let Some(domain) = &cluster.failure_domain else { return Ok(()) };
    if cluster.servers.iter().any(|class| class.labels.contains_key(domain)) {
        return Ok(());
    }
    let known: BTreeSet<&str> =
        cluster.servers.iter().flat_map(|class| class.labels.keys()).map(String::as_str).collect();
    let meant = meant_word(domain, known);
    let what = format!(
        "failure_domain is '{domain}', expected a label that a server class has, such as labels = {{ {domain} = \"a\" \
         }}{meant}"
    );
    Err((RuleSite::Cluster, what))
}

fn check_workload(cluster: &Cluster, workload: &WorkloadSpec) -> Result<(), String> {
    for (field, group) in [("apart", &workload.apart), ("together", &workload.together)] {
        if group.as_ref().is_some_and(|group| !is_usable_name(group)) {
            return Err(format!("{field} is not the name of a group: expected one line that is not empty"));
        }
    }
    for entry in &workload.on {
        let meanings = meanings(entry, &cluster.servers);
        match meanings.as_slice() {
            [] => return Err(unknown_place(entry, &cluster.servers)),
            [one] if one.iter().all(|(class, _)| cluster.servers[*class].count == 0) => {
                return Err(format!(
                    "on has '{entry}', where there are no servers: expected a count above 0"
                ));
            }
            [_] => {}
            _ => {
                return Err(format!(
                    "on has '{entry}', which means more than one of a server, a class and a label: expected names that \
                     differ"
                ));
            }
        }
    }
    let Some(Bytes(size)) = workload.size else { return Ok(()) };
    let rule = rule_of(workload, &cluster.servers);
    let largest = largest_capacity(&cluster.servers, |class| allows(&rule, class));
    match largest {
        Some(largest) if size > largest => Err(format!(
            "its size is {}, and no server that it may be on has more than {}: expected a smaller size, or a larger \
             `capacity` of a server class",
            stored(size),
            stored(largest)
        )),
        _ => Ok(()),
    }
}

/// The most bytes of a server of these classes; `None` if one is unlimited.
fn largest_capacity(servers: &[ServerClass], is_allowed: impl Fn(usize) -> bool) -> Option<u64> {
    let classes = servers.iter().enumerate().filter(|(class, server)| server.count > 0 && is_allowed(*class));
    let capacities = classes.map(|(_, class)| class.capacity.map(|capacity| capacity.0));
    capacities.max_by_key(|capacity| capacity.unwrap_or(u64::MAX)).flatten()
}

fn allows(rule: &WorkloadRule, class: usize) -> bool {
    rule.on.as_ref().is_none_or(|on| on.contains_key(&class))
}

/// Checks groups that are together: they must have a server to be on.
fn check_groups(cluster: &Cluster) -> Result<(), SitedError> {
    let mut groups: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, workload) in cluster.workloads.iter().enumerate() {
        if let Some(group) = &workload.together {
            groups.entry(group).or_default().push(index);
        }
    }
    for (group, members) in groups {
        let mut apart: BTreeMap<&str, &str> = BTreeMap::new();
        let mut common: Option<BTreeMap<usize, ServerNumbers>> = None;
        let mut bytes = 0_u64;
        for index in members {
            let workload = &cluster.workloads[index];
            let name = workload.name.as_str();
            let error = |what: String| Err((RuleSite::Workload(index), format!("workload '{name}': {what}")));
            if let Some(other) =
                workload.apart.as_ref().and_then(|apart_group| apart.insert(apart_group, name))
            {
                return error(format!(
                    "it is together with '{other}' (together = \"{group}\") and apart from it (apart = \"{}\"): expected \
                     one of the two",
                    workload.apart.as_deref().unwrap_or_default()
                ));
            }
            let rule = rule_of(workload, &cluster.servers);
            common = match (common, rule.on) {
                (None, on) => on,
                (common, None) => common,
                (Some(common), Some(on)) => Some(intersection(&common, &on)),
            };
            if common.as_ref().is_some_and(BTreeMap::is_empty) {
                return error(format!(
                    "it is together with the others of '{group}', but no server is one that all of them may be on: \
                     expected a common server in their `on`"
                ));
            }
            bytes = bytes.saturating_add(rule.bytes);
            let is_common = |class| common.as_ref().is_none_or(|common| common.contains_key(&class));
            let largest = largest_capacity(&cluster.servers, is_common);
            if let Some(largest) = largest.filter(|&largest| bytes > largest) {
                return error(format!(
                    "the workloads of together = \"{group}\" have {} up to this one, and no server that they may be on has \
                     more than {}: expected smaller sizes, or a larger `capacity` of a server class",
                    stored(bytes),
                    stored(largest)
                ));
            }
        }
    }
    Ok(())
}

fn intersection(
    one: &BTreeMap<usize, ServerNumbers>,
    other: &BTreeMap<usize, ServerNumbers>,
) -> BTreeMap<usize, ServerNumbers> {
    let mut common = BTreeMap::new();
    for (class, numbers) in one {
        let both = match (numbers, other.get(class)) {
            (_, None) => continue,
            (one, Some(None)) => one.clone(),
            (None, Some(other)) => other.clone(),
            (Some(one), Some(Some(other))) => Some(one.intersection(other).copied().collect::<BTreeSet<_>>()),
        };
        if both.as_ref().is_none_or(|numbers| !numbers.is_empty()) {
            common.insert(*class, both);
        }
    }
    common
}

/// Servers of a class, one by its number or all.
type NamedServers = (usize, Option<usize>);

/// The meanings of an entry of `on`: a class, a server, a label with its value.
fn meanings(entry: &str, servers: &[ServerClass]) -> Vec<Vec<NamedServers>> {
    let classes = || servers.iter().enumerate();
    let class = classes().filter(|(_, class)| class.class == entry).map(|(index, _)| (index, None));
    let server = classes().filter_map(|(index, class)| {
        let number = server_number(&class.class, entry)?;
        (number <= class.count).then_some((index, Some(number)))
    });
    let labelled = classes().filter(|(_, class)| has_label(class, entry)).map(|(index, _)| (index, None));
    let mut meanings = vec![class.collect::<Vec<_>>(), server.collect(), labelled.collect()];
    meanings.retain(|meaning| !meaning.is_empty());
    meanings
}

fn has_label(class: &ServerClass, entry: &str) -> bool {
    entry
        .split_once('=')
        .is_some_and(|(label, value)| class.labels.get(label).is_some_and(|own| own == value))
}

/// Returns the number of a server of a class by its name, `<class>-<n>`.
pub(crate) fn server_number(class: &str, name: &str) -> Option<usize> {
    let digits = name.strip_prefix(class)?.strip_prefix('-')?;
    let number = digits.parse().ok().filter(|&number| number > 0)?;
    (super::server_name(class, number) == name).then_some(number)
}

fn unknown_place(entry: &str, servers: &[ServerClass]) -> String {
    let classes = servers.iter().map(|class| match class.count {
        0 | 1 => super::server_name(&class.class, 1),
        count => {
            format!("{} to {}", super::server_name(&class.class, 1), super::server_name(&class.class, count))
        }
    });
    let labels: BTreeSet<String> = servers
        .iter()
        .flat_map(|class| class.labels.iter().map(|(label, value)| format!("{label}={value}")))
        .collect();
    let names: Vec<&str> = servers.iter().map(|class| class.class.as_str()).collect();
    let meant = meant_word(entry, names.iter().copied().chain(labels.iter().map(String::as_str)));
    let places =
        format!("a server ({}), a class ({})", classes.collect::<Vec<_>>().join(", "), names.join(", "));
    let labels: Vec<String> = labels.into_iter().collect();
    match labels.as_slice() {
        [] => format!("on has '{entry}', expected {places}; no class has labels{meant}"),
        labels => format!("on has '{entry}', expected {places} or a label ({}){meant}", labels.join(", ")),
    }
}

/// The rule of a workload but for its groups. Places that these servers do not have are left out.
fn rule_of(workload: &WorkloadSpec, servers: &[ServerClass]) -> WorkloadRule {
    let mut on: BTreeMap<usize, ServerNumbers> = BTreeMap::new();
    for (class, number) in workload.on.iter().flat_map(|entry| meanings(entry, servers)).flatten() {
        if servers[class].count == 0 {
            continue;
        }
        let numbers = on.entry(class).or_insert_with(|| Some(BTreeSet::new()));
        match (numbers.as_mut(), number) {
            (Some(numbers), Some(number)) => drop(numbers.insert(number)),
            (Some(_), None) => *numbers = None,
            (None, _) => {}
        }
    }
    let bytes = workload.size.map_or(0, |size| size.0);
    WorkloadRule { bytes, on: (!workload.on.is_empty()).then_some(on), apart: None, together: None }
}

/// Returns the rules in numbers.
pub(crate) fn placement_rules<'a>(
    servers: &[ServerClass],
    failure_domain: Option<&str>,
    workloads: impl Iterator<Item = &'a WorkloadSpec>,
) -> PlacementRules {
    let mut domains = GroupNumbers::default();
    let classes = servers.iter().map(|class| ClassRule {
        count: class.count,
        bytes: class.capacity.map(|capacity| capacity.0),
        domain: domains.number(failure_domain.and_then(|label| class.labels.get(label))),
    });
    let classes = classes.collect();
    let mut apart = GroupNumbers::default();
    let mut together = GroupNumbers::default();
    let workloads = workloads.map(|workload| WorkloadRule {
        apart: apart.number(workload.apart.as_ref()),
        together: together.number(workload.together.as_ref()),
        ..rule_of(workload, servers)
    });
    PlacementRules::new(classes, workloads.collect())
}

/// Numbers for names, in the order in which they are first seen.
#[derive(Default)]
struct GroupNumbers<'a>(BTreeMap<&'a str, usize>);

impl<'a> GroupNumbers<'a> {
    fn number(&mut self, name: Option<&'a String>) -> Option<usize> {
        let next = self.0.len();
        name.map(|name| *self.0.entry(name).or_insert(next))
    }
}

/// Says which sizes and capacities count for nothing.
pub(super) fn uncounted_bytes(servers: &[ServerClass], workloads: &[WorkloadSpec]) -> Option<String> {
    let has_capacity = servers.iter().any(|class| class.capacity.is_some());
    let without_size: Vec<&str> =
        workloads.iter().filter(|it| it.size.is_none()).map(|it| it.name.as_str()).collect();
    if !has_capacity {
        let is_sized = without_size.len() < workloads.len();
        return is_sized
            .then(|| "sizes of workloads count for nothing: no server class has a `capacity`".to_owned());
    }
    let first = without_size.first()?;
    let others = match without_size.len() {
        1 => String::new(),
        count => format!(" and {}", plural(count - 1, "other workload")),
    };
    Some(format!("servers have a capacity, and '{first}'{others} counts as 0 bytes there: say its `size`"))
}

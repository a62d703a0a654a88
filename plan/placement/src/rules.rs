//! Rules on where workloads may go, beside what their SLOs allow: on named servers, apart, together, and within the bytes
//! of a server.
//!
//! Every search asks [`PlacementRules::exclusion`] before it changes a server, so that no rule is decided elsewhere. The
//! servers of a class are alike until a workload asks for one by its number (`ssd-2`). A search then keeps the numbers
//! open, and a change is excluded when the servers of the class could no longer be numbered as their workloads ask,
//! which a bipartite matching decides. Workloads that are together join and leave as one.
//!
//! Not covered: limits. Whether SLOs hold is decided by [`LimitMethod`](crate::LimitMethod) alone.

use std::collections::{BTreeMap, BTreeSet};

#[cfg(test)]
pub(crate) mod tests;

/// Numbers of the servers of a class that a workload may be on, from 1; `None` for all of them.
pub type ServerNumbers = Option<BTreeSet<usize>>;

/// Rules for one workload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct WorkloadRule {
    /// Bytes that it takes of its server.
    pub bytes: u64,
    /// Servers that it may be on, by class; `None` for any server.
    pub on: Option<BTreeMap<usize, ServerNumbers>>,
    /// Group no two of whose workloads share a server or a failure domain.
    pub apart: Option<usize>,
    /// Group whose workloads are on one server.
    pub together: Option<usize>,
}

/// Properties of a class of servers that rules are about.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ClassRule {
    /// Number of servers.
    pub count: usize,
    /// Bytes of each server; `None` if they do not count.
    pub bytes: Option<u64>,
    /// Failure domain of all servers of the class; `None` if each is one of its own.
    pub domain: Option<usize>,
}

/// Rules of all workloads. Without rules, every workload may go anywhere.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PlacementRules {
    /// By workload; empty if there are no rules.
    workloads: Vec<WorkloadRule>,
    classes: Vec<ClassRule>,
    /// Workloads of each group that is together, ascending.
    together: BTreeMap<usize, Vec<usize>>,
}

/// A rule of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleKind {
    Size,
    On,
    Apart,
    Together,
}

/// Why a rule keeps workloads from a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exclusion {
    /// It is none of the servers that they may be on.
    Elsewhere,
    /// It has fewer bytes left than they need.
    Bytes { left: u64 },
    /// This workload, from which one of them is apart, is on it or in its failure domain.
    Apart { other: usize },
    /// This workload, with which one of them is together, is on another server.
    Together { other: usize },
}

/// Servers of a placement by the rules that exclude them for a workload. Each is counted once, for the first rule.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ExcludedServers {
    pub total: usize,
    pub elsewhere: usize,
    pub bytes: usize,
    /// The most bytes that one of `bytes` has left.
    pub bytes_left: u64,
    pub apart: usize,
    /// The workloads that exclude `apart`.
    pub apart_from: BTreeSet<usize>,
    pub together: usize,
    /// A workload that excludes `together`.
    pub together_with: Option<usize>,
}

impl RuleKind {
    /// All kinds, in the order in which giving one up is suggested.
    pub(crate) const ALL: [Self; 4] = [Self::Size, Self::On, Self::Apart, Self::Together];

    /// Returns its name in the cluster file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Size => "size",
            Self::On => "on",
            Self::Apart => "apart",
            Self::Together => "together",
        }
    }
}

impl ExcludedServers {
    /// Returns the number of servers that no rule excludes.
    pub fn others(&self) -> usize {
        self.total - self.elsewhere - self.bytes - self.apart - self.together
    }

    pub(crate) fn count(&mut self, exclusion: Option<Exclusion>, servers: usize) {
        self.total += servers;
        match exclusion {
            None => {}
            Some(Exclusion::Elsewhere) => self.elsewhere += servers,
            Some(Exclusion::Bytes { left }) => {
                self.bytes += servers;
                self.bytes_left = self.bytes_left.max(left);
            }
            Some(Exclusion::Apart { other }) => {
                self.apart += servers;
                self.apart_from.insert(other);
            }
            Some(Exclusion::Together { other }) => {
                self.together += servers;
                self.together_with = Some(other);
            }
        }
    }
}

/// A server that workloads are to join.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// The server at this position.
    On(usize),
    /// An empty server of a class, of any number that is free.
    Empty { class: usize },
    /// The empty server of a class that has this number.
    Numbered { class: usize, number: usize },
}

/// A server as rules see it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct RuledServer<'a> {
    pub(crate) class: usize,
    pub(crate) members: &'a [usize],
    /// The number that it has, where it was given one.
    pub(crate) number: Option<usize>,
}

/// Servers in use, and perhaps vacated ones without members, by position.
pub(crate) trait RuledServers {
    fn count(&self) -> usize;

    fn at(&self, position: usize) -> RuledServer<'_>;
}

impl RuledServers for [(usize, Vec<usize>)] {
    fn count(&self) -> usize {
        self.len()
    }

    fn at(&self, position: usize) -> RuledServer<'_> {
        let (class, members) = &self[position];
        RuledServer { class: *class, members, number: None }
    }
}

impl PlacementRules {
    /// Creates rules for all workloads on all classes of a problem.
    pub fn new(classes: Vec<ClassRule>, workloads: Vec<WorkloadRule>) -> Self {
        if workloads.iter().all(|rule| *rule == WorkloadRule::default()) {
            return Self::default();
        }
        let mut rules = Self { workloads, classes, together: BTreeMap::new() };
        rules.gather();
        rules
    }

    fn gather(&mut self) {
        self.together.clear();
        for (workload, rule) in self.workloads.iter().enumerate() {
            if let Some(group) = rule.together {
                self.together.entry(group).or_default().push(workload);
            }
        }
    }

    /// Returns the rules with other numbers of servers, by class.
    pub(crate) fn with_counts(mut self, counts: &[usize]) -> Self {
        self.classes.iter_mut().zip(counts).for_each(|(class, count)| class.count = *count);
        self
    }

    /// Returns the rules for a cluster that has `count` servers of one of the classes only.
    pub(crate) fn on_one_class(mut self, class: usize, count: usize) -> Self {
        if self.is_empty() {
            return self;
        }
        self.classes = vec![ClassRule { count, ..self.classes[class].clone() }];
        for on in self.workloads.iter_mut().filter_map(|rule| rule.on.as_mut()) {
            *on = on.remove(&class).map(|numbers| (0, numbers)).into_iter().collect();
        }
        self
    }

    /// Returns true if every workload may go anywhere.
    pub fn is_empty(&self) -> bool {
        self.workloads.is_empty()
    }

    /// Returns the rules without one of a workload; `None` if it does not have that one.
    pub(crate) fn without(&self, workload: usize, kind: RuleKind) -> Option<Self> {
        let none = WorkloadRule::default();
        let own = self.workloads.get(workload)?;
        let changed = match kind {
            RuleKind::Size => WorkloadRule { bytes: none.bytes, ..own.clone() },
            RuleKind::On => WorkloadRule { on: none.on, ..own.clone() },
            RuleKind::Apart => WorkloadRule { apart: none.apart, ..own.clone() },
            RuleKind::Together => WorkloadRule { together: none.together, ..own.clone() },
        };
        if changed == *own {
            return None;
        }
        let mut rules = self.clone();
        rules.workloads[workload] = changed;
        rules.gather();
        Some(rules)
    }

    /// Returns the rules while servers are gone, single ones by their number or whole classes (`None`).
    pub(crate) fn without_servers(&self, is_gone: impl Fn(usize, Option<usize>) -> bool) -> Self {
        let mut rules = self.clone();
        for on in rules.workloads.iter_mut().filter_map(|rule| rule.on.as_mut()) {
            on.retain(|&class, numbers| {
                if let Some(numbers) = numbers {
                    numbers.retain(|&number| !is_gone(class, Some(number)));
                }
                !is_gone(class, None) && numbers.as_ref().is_none_or(|numbers| !numbers.is_empty())
            });
        }
        rules
    }

    /// Returns the numbers of servers of a class that workloads ask for.
    pub(crate) fn named_numbers(&self, class: usize) -> BTreeSet<usize> {
        let asked = self.workloads.iter().filter_map(|rule| rule.on.as_ref()?.get(&class)?.as_ref());
        asked.flatten().copied().collect()
    }

    /// Returns the workloads that are together with one, itself included, ascending.
    pub fn unit<'a>(&'a self, workload: &'a usize) -> &'a [usize] {
        let group = self.workloads.get(*workload).and_then(|rule| rule.together);
        group.map_or(std::slice::from_ref(workload), |group| &self.together[&group])
    }

    /// Returns true for the workload that stands for its unit: the first.
    pub(crate) fn leads(&self, workload: usize) -> bool {
        self.unit(&workload)[0] == workload
    }

    /// Returns the bytes that these workloads take.
    pub fn bytes(&self, workloads: &[usize]) -> u64 {
        if self.is_empty() {
            return 0;
        }
        workloads.iter().fold(0, |sum: u64, &workload| sum.saturating_add(self.workloads[workload].bytes))
    }

    /// Returns true if some server of a class is one that a workload may be on, in use or not.
    pub fn allows_class(&self, workload: usize, class: usize) -> bool {
        let Some(rule) = self.workloads.get(workload) else { return true };
        let fits = self.classes[class].bytes.is_none_or(|bytes| rule.bytes <= bytes);
        fits && rule.on.as_ref().is_none_or(|on| on.contains_key(&class))
    }

    /// Returns the number of servers that a workload may be on, in use or not.
    pub(crate) fn freedom(&self, workload: usize) -> usize {
        let Some(on) = self.workloads.get(workload).and_then(|rule| rule.on.as_ref()) else {
            return usize::MAX;
        };
        let numbers = on.iter().map(|(class, numbers)| match numbers {
            Some(numbers) => numbers.len(),
            None => self.classes[*class].count,
        });
        numbers.sum()
    }

    /// Says why workloads may not join a server from which others leave; `None` if they may.
    pub(crate) fn exclusion<S: RuledServers + ?Sized>(
        &self,
        servers: &S,
        place: Place,
        joins: &[usize],
        leave: &[usize],
    ) -> Option<Exclusion> {
        if self.is_empty() {
            return None;
        }
        let own = match place {
            Place::On(position) => servers.at(position),
            Place::Empty { class } => RuledServer { class, members: &[], number: None },
            Place::Numbered { class, number } => RuledServer { class, members: &[], number: Some(number) },
        };
        let stay: Vec<usize> = own.members.iter().copied().filter(|member| !leave.contains(member)).collect();
        self.excluded_by_server(own, &stay, joins)
            .or_else(|| self.excluded_by_others(servers, place, own, &stay, joins))
    }

    /// The rules that a server decides alone.
    fn excluded_by_server(&self, own: RuledServer<'_>, stay: &[usize], joins: &[usize]) -> Option<Exclusion> {
        let may_be_on = |workload: usize| match &self.workloads[workload].on {
            None => true,
            Some(on) => match (on.get(&own.class), own.number) {
                (None, _) => false,
                (Some(Some(numbers)), Some(number)) => numbers.contains(&number),
                (Some(_), _) => true,
            },
        };
        if !joins.iter().all(|&workload| may_be_on(workload)) {
            return Some(Exclusion::Elsewhere);
        }
        for (position, &workload) in joins.iter().enumerate() {
            let mut others = stay.iter().chain(&joins[..position]);
            if let Some(&other) = others.find(|&&other| self.are_apart(workload, other)) {
                return Some(Exclusion::Apart { other });
            }
        }
        let left = self.classes[own.class].bytes?.saturating_sub(self.bytes(stay));
        (self.bytes(joins) > left).then_some(Exclusion::Bytes { left })
    }

    /// The rules for which the other servers matter.
    fn excluded_by_others<S: RuledServers + ?Sized>(
        &self,
        servers: &S,
        place: Place,
        own: RuledServer<'_>,
        stay: &[usize],
        joins: &[usize],
    ) -> Option<Exclusion> {
        let others = || {
            let positions = (0..servers.count()).filter(|&position| place != Place::On(position));
            positions.map(|position| servers.at(position))
        };
        let domain = self.classes[own.class].domain;
        for &workload in joins {
            let rule = &self.workloads[workload];
            let asks_domain = rule.apart.is_some() && domain.is_some();
            if !asks_domain && rule.together.is_none() {
                continue;
            }
            for server in others() {
                let is_near = asks_domain && self.classes[server.class].domain == domain;
                for &other in server.members {
                    if is_near && self.are_apart(workload, other) {
                        return Some(Exclusion::Apart { other });
                    }
                    if rule.together.is_some() && rule.together == self.workloads[other].together {
                        return Some(Exclusion::Together { other });
                    }
                }
            }
        }
        let members: Vec<usize> = stay.iter().chain(joins).copied().collect();
        let changed = RuledServer { members: &members, ..own };
        let asks = |server: &RuledServer<'_>| self.numbers_for(server).is_some();
        if !asks(&changed) {
            return None;
        }
        let asking: Vec<RuledServer<'_>> =
            others().filter(|server| server.class == own.class).chain([changed]).filter(asks).collect();
        self.numbered(&asking).is_none().then_some(Exclusion::Elsewhere)
    }

    fn are_apart(&self, one: usize, other: usize) -> bool {
        let group = self.workloads[one].apart;
        group.is_some() && one != other && group == self.workloads[other].apart
    }

    /// The numbers that a server may have; `None` for any.
    fn numbers_for(&self, server: &RuledServer<'_>) -> ServerNumbers {
        if let Some(number) = server.number.filter(|_| !server.members.is_empty()) {
            return Some(BTreeSet::from([number]));
        }
        let mut allowed = None::<BTreeSet<usize>>;
        for &member in server.members {
            let on = self.workloads.get(member).and_then(|rule| rule.on.as_ref());
            if let Some(Some(numbers)) = on.and_then(|on| on.get(&server.class)) {
                allowed = Some(match allowed {
                    Some(before) => before.intersection(numbers).copied().collect(),
                    None => numbers.clone(),
                });
            }
        }
        allowed
    }

    /// Gives each of these servers of one class, all of which ask for some numbers, another of its numbers, if that is
    /// possible: augmenting paths of a bipartite matching.
    fn numbered(&self, servers: &[RuledServer<'_>]) -> Option<Vec<usize>> {
        let asked: Vec<BTreeSet<usize>> =
            servers.iter().filter_map(|server| self.numbers_for(server)).collect();
        let mut owner: BTreeMap<usize, usize> = BTreeMap::new();
        for server in 0..asked.len() {
            if !augment(&asked, server, &mut owner, &mut BTreeSet::new()) {
                return None;
            }
        }
        let mut numbers = vec![0; asked.len()];
        owner.into_iter().for_each(|(number, server)| numbers[server] = number);
        Some(numbers)
    }

    /// Returns the number of each server that asks for one.
    ///
    /// # Panics
    /// When the servers cannot be numbered as their workloads ask.
    pub(crate) fn numbers<S: RuledServers + ?Sized>(&self, servers: &S) -> Vec<Option<usize>> {
        let all: Vec<RuledServer<'_>> = (0..servers.count()).map(|position| servers.at(position)).collect();
        let mut numbers: Vec<Option<usize>> = vec![None; all.len()];
        for class in 0..self.classes.len() {
            let is_asking =
                |server: &RuledServer<'_>| server.class == class && self.numbers_for(server).is_some();
            let positions: Vec<usize> =
                (0..all.len()).filter(|&position| is_asking(&all[position])).collect();
            let asking: Vec<RuledServer<'_>> = positions.iter().map(|&position| all[position]).collect();
            let given = self.numbered(&asking).expect("no change was made that excludes a numbering");
            for (position, number) in positions.into_iter().zip(given) {
                numbers[position] = Some(number);
            }
        }
        numbers
    }

    /// Counts servers, those in use and the empty ones, by the rule that keeps a workload and those together with it from
    /// each. All servers in use have numbers.
    pub(crate) fn excluded<S: RuledServers + ?Sized>(&self, servers: &S, workload: usize) -> ExcludedServers {
        let mut excluded = ExcludedServers::default();
        if self.is_empty() {
            return excluded;
        }
        let used: Vec<RuledServer<'_>> = (0..servers.count()).map(|position| servers.at(position)).collect();
        let placed = |member: usize| used.iter().any(|server| server.members.contains(&member));
        let joins: Vec<usize> =
            self.unit(&workload).iter().copied().filter(|&member| !placed(member)).collect();
        for position in 0..used.len() {
            excluded.count(self.exclusion(servers, Place::On(position), &joins, &[]), 1);
        }
        for class in 0..self.classes.len() {
            let of_class = used.iter().filter(|server| server.class == class);
            let taken: BTreeSet<usize> = of_class.filter_map(|server| server.number).collect();
            let empty = self.classes[class].count.saturating_sub(taken.len());
            let on = self.workloads[workload].on.as_ref().and_then(|on| on.get(&class));
            if let Some(Some(_)) = on {
                for number in (1..).filter(|number| !taken.contains(number)).take(empty) {
                    let place = Place::Numbered { class, number };
                    excluded.count(self.exclusion(servers, place, &joins, &[]), 1);
                }
            } else {
                excluded.count(self.exclusion(servers, Place::Empty { class }, &joins, &[]), empty);
            }
        }
        excluded
    }

    /// Returns a number of servers that no placement of these workloads can do without: the failure domains or servers of
    /// the largest group that is apart, and the bytes of all.
    pub(crate) fn servers_at_least(&self, workloads: &[usize]) -> usize {
        if self.is_empty() {
            return 0;
        }
        let mut groups: BTreeMap<usize, usize> = BTreeMap::new();
        for group in workloads.iter().filter_map(|&workload| self.workloads[workload].apart) {
            *groups.entry(group).or_default() += 1;
        }
        let largest = groups.into_values().max().unwrap_or(0);
        let mut shares = Vec::new();
        for &workload in workloads {
            let classes = (0..self.classes.len()).filter(|&class| self.allows_class(workload, class));
            let bytes = classes.map(|class| self.classes[class].bytes.unwrap_or(u64::MAX)).max();
            let own = self.workloads[workload].bytes;
            if let Some(bytes) = bytes.filter(|&bytes| bytes != u64::MAX && own > 0) {
                shares.push(own as f64 / bytes as f64);
            }
        }
        largest.max(crate::dual_feasible::servers_at_least(&shares))
    }
}

/// Gives a server one of the numbers that it asks for, moving others to other numbers where needed.
fn augment(
    asked: &[BTreeSet<usize>],
    server: usize,
    owner: &mut BTreeMap<usize, usize>,
    tried: &mut BTreeSet<usize>,
) -> bool {
    for &number in &asked[server] {
        if !tried.insert(number) {
            continue;
        }
        let holder = owner.get(&number).copied();
        if holder.is_none_or(|holder| augment(asked, holder, owner, tried)) {
            owner.insert(number, server);
            return true;
        }
    }
    false
}

//! Attempts to find places for the workloads of servers that fail, while all others stay where they are.

use super::failure::{FailOver, FailOverServer, ServerId, UnplacedWorkload, rules_after};
use crate::limits::{FittingServer, LimitMethod};
use crate::placement::result::Placement;
use crate::placement::search::{BY_SIZE, orders};
use crate::placement::server::{HOPELESS, MembershipChange, PlacementServer};
use crate::problem::PlanningProblem;
use crate::rules::{ExcludedServers, Place, PlacementRules, RuleKind};
use crate::server::PlannedServer;
use std::collections::BTreeMap;

/// Unplaced workloads of a failure whose rules are given up one by one.
const ADVISED_MAX: usize = 3;
/// More workloads than this are divided in one order only.
const DIVIDED_MAX: usize = 64;
/// Changes that an attempt may try to make room by moving a workload on that has moved already.
const EJECTIONS_MAX: usize = 200;

/// Servers that take a workload first.
#[derive(Debug, Clone, Copy)]
enum Preferred {
    Fullest,
    Emptiest,
}

/// Servers that an attempt may use beyond those that are kept idle.
#[derive(Debug, Clone, Copy)]
enum Opening {
    None,
    /// Of this class first.
    Class(usize),
    /// Of the failure domain, or class, with the fewest idle ones first.
    Balanced,
}

#[derive(Debug, Clone, Copy)]
struct Strategy {
    /// Workloads of a server stay together on an idle one where one takes them.
    whole: bool,
    /// Position of the order in which workloads are divided among servers.
    order: usize,
    preferred: Preferred,
    opening: Opening,
    /// Go on when a workload has no place.
    thorough: bool,
}

/// Result of an attempt.
#[derive(Debug)]
pub(super) struct Attempt {
    servers: Vec<FailOverServer>,
    /// Servers that were neither in use nor kept idle.
    pub(super) opened: Vec<ServerId>,
    /// Workloads without a place, with the remaining servers by the rule that excludes each.
    left: Vec<(usize, ExcludedServers)>,
}

/// A placement whose servers fail one after the other.
pub(super) struct FailureAttempts<'a> {
    problem: &'a PlanningProblem,
    method: LimitMethod,
    domains: &'a [Option<usize>],
    placement: &'a Placement,
    rules: PlacementRules,
    /// By order, the position of each workload in it.
    ranks: Vec<Vec<usize>>,
    /// The servers of the placement.
    servers: Vec<PlacementServer>,
}

impl<'a> FailureAttempts<'a> {
    pub(super) fn new(
        problem: &'a PlanningProblem,
        method: LimitMethod,
        domains: &'a [Option<usize>],
        sizes: &[f64],
        placement: &'a Placement,
        numbers: &[usize],
    ) -> Self {
        let mut servers = Vec::new();
        for (planned, number) in placement.servers.iter().zip(numbers) {
            let server = PlacementServer::new(problem, method, planned.class, planned.members.clone());
            let mut server = server.unwrap_or_else(|_| PlacementServer::with_limits(planned.clone()));
            server.number = Some(*number);
            servers.push(server);
        }
        let rank = |order: Vec<usize>| {
            let mut ranks = vec![0; order.len()];
            order.into_iter().enumerate().for_each(|(rank, workload)| ranks[workload] = rank);
            ranks
        };
        let ranks = orders(problem, sizes).into_iter().map(rank).collect();
        let rules = problem.rules.clone();
        Self { problem, method, domains, placement, rules, ranks, servers }
    }

    /// Finds places on the other servers and on those that are kept idle; `None` if not for all workloads.
    pub(super) fn survives(&mut self, failed: &[usize], idle: &[ServerId]) -> Option<Attempt> {
        self.strategies(failed, Opening::None, false).into_iter().find_map(|strategy| {
            let is_useful = !strategy.whole || !idle.is_empty();
            let attempt = is_useful.then(|| self.attempt(failed, idle, strategy))?;
            attempt.left.is_empty().then_some(attempt)
        })
    }

    /// Finds places with as few more servers as possible.
    pub(super) fn with_more_servers(&mut self, failed: &[usize], idle: &[ServerId]) -> Attempt {
        self.best(failed, idle, &self.openings())
    }

    fn openings(&self) -> Vec<Opening> {
        let classes = 0..self.problem.classes.len();
        classes.map(Opening::Class).chain([Opening::Balanced]).collect()
    }

    /// Returns the places of all workloads of servers that fail, or of as many as are found.
    pub(super) fn fail_over(&mut self, failed: &[usize], idle: &[ServerId]) -> FailOver {
        let found = self.survives(failed, idle).unwrap_or_else(|| self.best(failed, idle, &[Opening::None]));
        let mut unplaced = Vec::new();
        for (workload, excluded) in found.left {
            let is_advised = unplaced.len() < ADVISED_MAX;
            let without_rule = is_advised.then(|| self.helpful_rule(failed, idle, workload)).flatten();
            unplaced.push(UnplacedWorkload { workload, excluded, without_rule });
        }
        FailOver { failed: failed.to_vec(), servers: found.servers, unplaced }
    }

    fn best(&mut self, failed: &[usize], idle: &[ServerId], openings: &[Opening]) -> Attempt {
        let mut best = None::<Attempt>;
        let strategies: Vec<Strategy> =
            openings.iter().flat_map(|opening| self.strategies(failed, *opening, true)).collect();
        for strategy in strategies {
            let attempt = self.attempt(failed, idle, strategy);
            let cost = |attempt: &Attempt| (attempt.left.len(), attempt.opened.len());
            if best.as_ref().is_none_or(|best| cost(&attempt) < cost(best)) {
                best = Some(attempt);
            }
            if best.as_ref().is_some_and(|best| best.left.is_empty() && best.opened.len() <= 1) {
                break;
            }
        }
        best.expect("there are strategies")
    }

    /// Returns a rule of a workload without which it has a place.
    fn helpful_rule(&mut self, failed: &[usize], idle: &[ServerId], workload: usize) -> Option<RuleKind> {
        let own = self.rules.clone();
        let found = RuleKind::ALL.into_iter().find(|kind| {
            let Some(fewer) = own.without(workload, *kind) else { return false };
            self.rules = fewer;
            let attempt = self.best(failed, idle, &self.openings());
            attempt.left.iter().all(|(left, _)| *left != workload)
        });
        self.rules = own;
        found
    }

    fn strategies(&self, failed: &[usize], opening: Opening, thorough: bool) -> Vec<Strategy> {
        let workloads: usize = failed.iter().map(|&server| self.servers[server].members.len()).sum();
        let preferred = Preferred::Fullest;
        let whole = Strategy { whole: true, order: BY_SIZE, preferred, opening, thorough };
        if workloads > DIVIDED_MAX {
            return vec![whole, Strategy { whole: false, ..whole }];
        }
        let mut strategies = vec![whole];
        for order in 0..self.ranks.len() {
            for preferred in [Preferred::Fullest, Preferred::Emptiest] {
                strategies.push(Strategy { whole: false, order, preferred, opening, thorough });
            }
        }
        strategies
    }

    fn attempt(&mut self, failed: &[usize], idle: &[ServerId], strategy: Strategy) -> Attempt {
        let rules = rules_after(&self.rules, self.domains, &self.servers, failed);
        let gone = failed.first().and_then(|&server| self.domains[self.servers[server].class]);
        let members: Vec<Vec<usize>> =
            failed.iter().map(|&server| std::mem::take(&mut self.servers[server].members)).collect();
        let is_there = |id: &&ServerId| gone.is_none() || self.domains[id.class] != gone;
        let free = idle.iter().filter(is_there).copied().collect();
        let before = self.servers.len();
        let mut run = Run {
            problem: self.problem,
            method: self.method,
            domains: self.domains,
            before,
            gone,
            rules: &rules,
            strategy,
            idle,
            free,
            opened: Vec::new(),
            servers: &mut self.servers,
            changed: BTreeMap::new(),
            unchanged_limits: BTreeMap::new(),
            moved: Vec::new(),
            ejections: 0,
        };
        let mut pool: Vec<Vec<usize>> = Vec::new();
        for (&server, members) in failed.iter().zip(&members) {
            let is_whole = strategy.whole && run.move_whole(&self.placement.servers[server], members);
            if !is_whole {
                pool.extend(units(&rules, members));
            }
        }
        let ranks = &self.ranks[strategy.order];
        pool.sort_by_key(|unit| ranks[unit[0]]);
        let mut left = Vec::new();
        for unit in pool {
            if run.insert(&unit) {
                continue;
            }
            left.push(unit);
            if !strategy.thorough {
                break;
            }
        }
        let attempt = run.finish(left);
        self.servers.truncate(before);
        for (&server, members) in failed.iter().zip(members) {
            self.servers[server].members = members;
        }
        attempt
    }
}

/// Divides workloads into those that are together.
fn units(rules: &PlacementRules, members: &[usize]) -> Vec<Vec<usize>> {
    let mut units: Vec<Vec<usize>> = Vec::new();
    for workload in members {
        let unit = rules.unit(workload);
        match units.iter_mut().find(|known| unit.contains(&known[0])) {
            Some(known) => known.push(*workload),
            None => units.push(vec![*workload]),
        }
    }
    units
}

/// An attempt in progress.
struct Run<'r> {
    problem: &'r PlanningProblem,
    method: LimitMethod,
    domains: &'r [Option<usize>],
    /// Number of servers of the placement; those behind them were idle.
    before: usize,
    /// Failure domain that is gone.
    gone: Option<usize>,
    rules: &'r PlacementRules,
    strategy: Strategy,
    /// All servers that are kept idle.
    idle: &'r [ServerId],
    /// Those of them that are still idle, and have not failed.
    free: Vec<ServerId>,
    opened: Vec<ServerId>,
    /// Servers that fail have no members.
    servers: &'r mut Vec<PlacementServer>,
    /// Servers of the placement that workloads have joined, as they were.
    changed: BTreeMap<usize, PlacementServer>,
    /// Limits of servers that have taken all workloads of another one of their class.
    unchanged_limits: BTreeMap<usize, PlannedServer>,
    /// Workloads that were moved and not as a whole server, and where to.
    moved: Vec<(Vec<usize>, usize)>,
    ejections: usize,
}

impl Run<'_> {
    /// Moves all workloads of a server to an idle one, of its class if possible. Says whether that was possible.
    fn move_whole(&mut self, from: &PlannedServer, members: &[usize]) -> bool {
        let mut free = self.free.clone();
        free.sort_by_key(|id| id.class != from.class);
        let fresh = self.classes_to_open().into_iter().filter_map(|class| self.fresh(class, members));
        let candidates: Vec<(ServerId, bool)> =
            free.into_iter().map(|id| (id, false)).chain(fresh.map(|id| (id, true))).collect();
        for (id, is_fresh) in candidates {
            if self.is_excluded(id.place(), members, &[]) {
                continue;
            }
            let is_same = id.class == from.class;
            let server = if is_same {
                PlacementServer::with_limits(from.clone())
            } else {
                let server = PlacementServer::new(self.problem, self.method, id.class, members.to_vec());
                let Ok(server) = server else { continue };
                server
            };
            let position = self.add(server, id, is_fresh);
            if is_same {
                self.unchanged_limits.insert(position, from.clone());
            }
            self.moved.extend(units(self.rules, members).into_iter().map(|unit| (unit, position)));
            return true;
        }
        false
    }

    /// Puts workloads that are together on a server. Says whether that was possible.
    fn insert(&mut self, unit: &[usize]) -> bool {
        self.join(unit) || self.start(unit) || self.eject(unit)
    }

    /// Puts them on a server that has workloads.
    fn join(&mut self, unit: &[usize]) -> bool {
        let change = MembershipChange { joins: unit, leave: &[] };
        let mut order: Vec<(f64, usize)> = Vec::new();
        for position in 0..self.servers.len() {
            let server = &self.servers[position];
            if server.members.is_empty() || self.is_excluded(Place::On(position), unit, &[]) {
                continue;
            }
            let predicted = server.predict(self.problem, change);
            if predicted <= HOPELESS {
                order.push((predicted, position));
            }
        }
        order.sort_by(|a, b| match self.strategy.preferred {
            Preferred::Fullest => b.0.total_cmp(&a.0),
            Preferred::Emptiest => a.0.total_cmp(&b.0),
        });
        let found = order.into_iter().find(|(_, position)| self.try_change(*position, change));
        found.inspect(|(_, position)| self.moved.push((unit.to_vec(), *position))).is_some()
    }

    /// Puts them on an idle server.
    fn start(&mut self, unit: &[usize]) -> bool {
        let kept = self.free.clone().into_iter().map(|id| (id, false));
        let fresh = self.classes_to_open().into_iter().filter_map(|class| self.fresh(class, unit));
        let candidates: Vec<(ServerId, bool)> = kept.chain(fresh.map(|id| (id, true))).collect();
        for (id, is_fresh) in candidates {
            if self.is_excluded(id.place(), unit, &[]) {
                continue;
            }
            if let Ok(server) = PlacementServer::new(self.problem, self.method, id.class, unit.to_vec()) {
                let position = self.add(server, id, is_fresh);
                self.moved.push((unit.to_vec(), position));
                return true;
            }
        }
        false
    }

    /// Puts them in the place of others that have moved and find another one.
    fn eject(&mut self, unit: &[usize]) -> bool {
        for at in 0..self.moved.len() {
            let (other, position) = self.moved[at].clone();
            let change = MembershipChange { joins: unit, leave: &other };
            let is_hopeless = self.servers[position].predict(self.problem, change) > HOPELESS;
            if is_hopeless || self.is_excluded(Place::On(position), unit, &other) {
                continue;
            }
            self.ejections += 1;
            if self.ejections > EJECTIONS_MAX {
                return false;
            }
            let before = self.servers[position].clone();
            if !self.try_change(position, change) {
                continue;
            }
            self.moved[at] = (unit.to_vec(), position);
            if self.join(&other) || self.start(&other) {
                return true;
            }
            self.moved[at] = (other, position);
            self.servers[position] = before;
        }
        false
    }

    fn try_change(&mut self, position: usize, change: MembershipChange<'_>) -> bool {
        let is_kept = position < self.before && !self.changed.contains_key(&position);
        let before = is_kept.then(|| self.servers[position].clone());
        let is_changed = self.servers[position].try_change(self.problem, self.method, change);
        if is_changed {
            self.unchanged_limits.remove(&position);
            self.changed.extend(before.map(|server| (position, server)));
        }
        is_changed
    }

    fn is_excluded(&self, place: Place, joins: &[usize], leave: &[usize]) -> bool {
        self.rules.exclusion(self.servers.as_slice(), place, joins, leave).is_some()
    }

    fn add(&mut self, mut server: PlacementServer, id: ServerId, is_fresh: bool) -> usize {
        server.number = Some(id.number);
        self.servers.push(server);
        if is_fresh {
            self.opened.push(id);
        } else {
            self.free.retain(|free| *free != id);
        }
        self.servers.len() - 1
    }

    /// Classes of which more servers may be used, the preferred first.
    fn classes_to_open(&self) -> Vec<usize> {
        let mut classes: Vec<usize> = (0..self.problem.classes.len()).collect();
        classes.retain(|&class| self.gone.is_none() || self.domains[class] != self.gone);
        match self.strategy.opening {
            Opening::None => classes.clear(),
            Opening::Class(first) => classes.sort_by_key(|&class| class != first),
            Opening::Balanced => {
                let group =
                    |class: usize| (self.domains[class], self.domains[class].is_none().then_some(class));
                let idle = |class: usize| {
                    let all = self.idle.iter().chain(&self.opened);
                    all.filter(|id| group(id.class) == group(class)).count()
                };
                classes.sort_by_key(|&class| idle(class));
            }
        }
        classes
    }

    /// Returns a server of a class that is neither in use nor kept idle and that rules allow for workloads.
    fn fresh(&self, class: usize, joins: &[usize]) -> Option<ServerId> {
        let free = self.unused(class);
        let mut ids = free.into_iter().map(|number| ServerId { class, number });
        ids.find(|id| !self.is_excluded(id.place(), joins, &[]))
    }

    /// Numbers of the servers of a class that are neither in use, nor kept idle, nor failed.
    fn unused(&self, class: usize) -> Vec<usize> {
        let in_use = self.servers.iter().filter(|server| server.class == class);
        let mut taken: Vec<usize> = in_use.filter_map(|server| server.number).collect();
        for id in self.idle.iter().filter(|id| id.class == class) {
            if !taken.contains(&id.number) {
                taken.push(id.number);
            }
        }
        let count = self.problem.classes[class].count;
        let left = count.saturating_sub(taken.len());
        let named = self.rules.named_numbers(class);
        let mut unused: Vec<usize> =
            (1..=count).filter(|number| !taken.contains(number)).take(left).collect();
        unused.sort_by_key(|number| named.contains(number));
        unused
    }

    /// Chooses limits, and restores the servers of the placement.
    fn finish(mut self, mut left: Vec<Vec<usize>>) -> Attempt {
        let mut servers = Vec::new();
        if left.is_empty() || self.strategy.thorough {
            let behind = self.before..self.servers.len();
            let positions: Vec<usize> = self.changed.keys().copied().chain(behind).collect();
            for position in positions {
                match self.limits(position) {
                    Some(server) => {
                        let number = self.servers[position].number.expect("every server has a number");
                        let id = ServerId { class: server.class, number };
                        let position = (position < self.before).then_some(position);
                        servers.push(FailOverServer { id, position, server });
                    }
                    // The search decides up to the precision of its solver.
                    None => {
                        let here = self.moved.iter().filter(|(_, to)| *to == position);
                        left.extend(here.map(|(unit, _)| unit.clone()));
                    }
                }
            }
        }
        let excluded: Vec<(usize, ExcludedServers)> = left
            .iter()
            .flat_map(|unit| unit.iter().map(|&workload| (workload, self.excluded(unit))).collect::<Vec<_>>())
            .collect();
        let before = std::mem::take(&mut self.changed);
        before.into_iter().for_each(|(position, server)| self.servers[position] = server);
        Attempt { servers, opened: self.opened, left: excluded }
    }

    fn limits(&self, position: usize) -> Option<PlannedServer> {
        if let Some(server) = self.unchanged_limits.get(&position) {
            return Some(server.clone());
        }
        let server = &self.servers[position];
        match &server.state {
            FittingServer::Fitted(server) => Some(server.clone()),
            FittingServer::Assessed(_) => {
                self.method.fit(self.problem, server.class, server.members.clone()).ok()
            }
        }
    }

    /// Counts the remaining servers by the rule that excludes workloads from each.
    fn excluded(&self, unit: &[usize]) -> ExcludedServers {
        let mut excluded = ExcludedServers::default();
        if !self.strategy.thorough {
            return excluded;
        }
        let servers = self.servers.as_slice();
        for position in (0..servers.len()).filter(|&position| !servers[position].members.is_empty()) {
            excluded.count(self.rules.exclusion(servers, Place::On(position), unit, &[]), 1);
        }
        let is_there = |class: usize| self.gone.is_none() || self.domains[class] != self.gone;
        for class in (0..self.problem.classes.len()).filter(|&class| is_there(class)) {
            let unused = self.unused(class).into_iter().map(|number| ServerId { class, number });
            let free = self.free.iter().copied().filter(|id| id.class == class);
            for id in unused.chain(free) {
                excluded.count(self.rules.exclusion(servers, id.place(), unit, &[]), 1);
            }
        }
        excluded
    }
}

impl ServerId {
    fn place(self) -> Place {
        Place::Numbered { class: self.class, number: self.number }
    }
}

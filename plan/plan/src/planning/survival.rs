//! Failures of a server, or of all servers of a failure domain: who goes where, with which limits.
//!
//! `placement` finds the places. This module names them, checks every state by names as a plan is checked, and makes each
//! a policy of its own.

use crate::cluster::{ClusterProblem, PlacedWorkload, broken_rule, server_name};
use crate::planning::names::names_of;
use crate::planning::policy::{admitted, policy_of_servers};
use crate::planning::search::{advice, cpu_time, verify};
use crate::planning::solution::PlannedCluster;
use crate::refusal::{Remedy, excluded_words, more_servers};
use model::{Policy, PolicyWorkload, ServerClass};
use placement::{
    FailOver, PlacementOrder, PlacementRefusal, PlannedServer, SurvivingPlacement, UnplacedWorkload,
    servers_to_survive, survive,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};
use units::plural;

/// Failures of servers of a plan, where their workloads go, and the cost.
#[derive(Debug, Serialize, JsonSchema)]
pub struct PlanSurvival {
    /// Servers that fail at once: one, or all with one value of this label.
    pub fails: String,
    /// Servers that are needed: those with workloads and those that are kept idle.
    pub servers_needed: usize,
    /// Servers of the plan that survives no failure.
    pub servers_without: usize,
    /// No plan that survives every failure needs fewer; null if none can with these servers, absent if workloads are refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub servers_lower_bound: Option<Option<usize>>,
    /// Servers without workloads that have to be kept for failures.
    pub idle: Vec<String>,
    /// A failure for each server, or failure domain, with workloads.
    pub failures: Vec<ServerFailure>,
    /// If a failure is not survived: changes each of which was tried and makes all survived.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub remedies: Vec<Remedy>,
}

/// A server, or a failure domain, that is gone, and where its workloads are then.
#[derive(Debug, Serialize, JsonSchema)]
pub struct ServerFailure {
    /// Name of the server, or label=value of the failure domain.
    pub fails: String,
    /// Servers that are gone.
    pub servers: Vec<String>,
    pub moves: Vec<FailOverMove>,
    /// Workloads of all servers that change, as in the policy that then holds.
    pub workloads: Vec<PolicyWorkload>,
    /// Of those, the one whose bound is closest to its SLO; absent if no server changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tightest: Option<TightestWorkload>,
    /// Workloads that have no place then. The failure is survived if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub unplaced: Vec<FailedWorkload>,
    /// All servers that remain, with their names.
    #[serde(skip)]
    state: Vec<(String, PlannedServer)>,
}

/// A workload of a server that is gone.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FailOverMove {
    pub workload: String,
    pub from: String,
    pub to: String,
}

#[derive(Debug, Serialize, JsonSchema)]
pub struct TightestWorkload {
    pub workload: String,
    /// Part of its SLO that its bound leaves.
    pub slack: f64,
}

/// A workload that has no place while servers are gone.
#[derive(Debug, Serialize, JsonSchema)]
pub struct FailedWorkload {
    #[serde(skip)]
    index: usize,
    pub workload: String,
    /// Why, and what would give it one.
    pub reason: String,
}

impl PlanSurvival {
    /// Returns the number of failures that are not survived.
    pub fn unsurvived(&self) -> usize {
        self.failures.iter().filter(|failure| !failure.unplaced.is_empty()).count()
    }

    /// Says how many servers survival takes, after the number of workloads that fit.
    pub fn summary(&self) -> String {
        let servers = plural(self.servers_needed, "server");
        if self.unsurvived() > 0 {
            let why = match self.servers_lower_bound {
                Some(None) => "; no plan for these servers survives all",
                _ => "",
            };
            let unsurvived = self.unsurvived();
            let are = if unsurvived == 1 { "is" } else { "are" };
            let of = plural(self.failures.len(), "failure");
            return format!(
                "{servers}, but {unsurvived} of {of} of a {} {are} not survived{why}",
                self.fails
            );
        }
        let more = match self.servers_needed - self.servers_without.min(self.servers_needed) {
            0 => "as many as without that".to_owned(),
            more => format!("{more} more than without that"),
        };
        let needed = match self.servers_lower_bound.flatten() {
            None | Some(0) => String::new(),
            Some(1) => "; at least 1 is needed".to_owned(),
            Some(least) => format!("; at least {least} are needed"),
        };
        format!("{servers} of which any one {} may fail ({more}{needed})", self.fails)
    }

    /// Says each change that would make all failures survived.
    pub fn remedies_in_words(&self) -> Vec<String> {
        let words = self.remedies.iter().filter_map(|remedy| match remedy {
            Remedy::Servers { class, count, .. } => Some(more_servers(class, *count)),
            _ => None,
        });
        words.collect()
    }

    /// Returns the policy after a failure, for each.
    pub fn policies<'a>(
        &'a self,
        problem: &'a ClusterProblem,
        planned: &'a PlannedCluster,
    ) -> impl Iterator<Item = (&'a ServerFailure, Policy)> {
        self.failures.iter().map(move |failure| {
            let servers = failure.state.iter().map(|(name, server)| (name.as_str(), server));
            let refused = planned.refused().into_iter().map(|refused| (refused.index, refused.reason));
            let unplaced = failure.unplaced.iter().map(|unplaced| (unplaced.index, unplaced.reason.clone()));
            let without = refused.chain(unplaced).collect();
            (failure, policy_of_servers(problem, planned, servers.collect(), without))
        })
    }
}

/// Makes a plan survive the failure of any server, or of any failure domain of the cluster file, if that is possible. Unless
/// workloads are kept where they are, their servers may change for it.
pub(super) fn survive_failures(problem: &ClusterProblem, planned: &mut PlannedCluster) -> PlanSurvival {
    let start = cpu_time();
    let domains = domains(problem);
    let without = planned.placement.servers.len();
    let is_kept = planned.changed.is_some() || planned.recipe.order != PlacementOrder::Best;
    let least = servers_to_survive(&planned.instance, &domains, planned.lower_bound.servers);
    // Workloads that fit on no empty server count for nothing in the bound.
    let is_alone = |refusal: &PlacementRefusal| refusal.alone.is_some() && !problem.has_rules();
    let at_least = planned.placement.refused.iter().all(is_alone).then_some(least);
    let mut placement = planned.placement.clone();
    if planned.changed.is_some() {
        placement.numbers = planned.numbers().into_iter().map(Some).collect();
    }
    let method = planned.recipe.method;
    let found = survive(&planned.instance, method, &domains, placement, is_kept, at_least.flatten());
    if planned.changed.is_none() {
        planned.names = names_of(&planned.instance, &found.placement);
        planned.placement = found.placement.clone();
        planned.advice = advice(problem, &planned.instance, &planned.recipe, &planned.placement);
        verify(problem, &planned.instance, &planned.placement.servers, &planned.names);
    }
    let name = |class: usize, number: usize| server_name(&problem.servers[class].class, number);
    let idle: Vec<String> = found.idle.iter().map(|id| name(id.class, id.number)).collect();
    let failures = found.failures.iter().map(|failure| named(problem, planned, failure)).collect();
    let more = found.more_servers.iter().map(|more| Remedy::Servers {
        class: problem.servers[more.class].class.clone(),
        count: more.count,
        price: None,
    });
    let survival = PlanSurvival {
        fails: fails(problem),
        servers_needed: found.servers(),
        servers_without: without,
        servers_lower_bound: at_least,
        idle,
        remedies: more.collect(),
        failures,
    };
    verify_failures(problem, planned, &found, &survival);
    planned.cpu += cpu_time().saturating_sub(start);
    survival
}

/// The failure domain of each class, in numbers.
fn domains(problem: &ClusterProblem) -> Vec<Option<usize>> {
    let mut known: BTreeMap<&str, usize> = BTreeMap::new();
    let classes = problem.servers.iter().map(|class| {
        let value = problem.failure_domain.as_ref().and_then(|label| class.labels.get(label))?;
        let next = known.len();
        Some(*known.entry(value).or_insert(next))
    });
    classes.collect()
}

/// Words for what fails at once.
fn fails(problem: &ClusterProblem) -> String {
    let Some(label) = &problem.failure_domain else { return "server".to_owned() };
    let is_labelled = |class: &ServerClass| class.labels.contains_key(label);
    if problem.servers.iter().all(is_labelled) {
        label.clone()
    } else {
        format!("{label} or server without one")
    }
}

fn named(problem: &ClusterProblem, planned: &PlannedCluster, failure: &FailOver) -> ServerFailure {
    let servers: Vec<String> = failure.failed.iter().map(|&server| planned.names[server].clone()).collect();
    let class = &problem.servers[planned.placement.servers[failure.failed[0]].class];
    let label = problem.failure_domain.as_ref().and_then(|label| class.labels.get_key_value(label));
    let fails = label.map_or_else(|| servers[0].clone(), |(label, value)| format!("{label}={value}"));
    let state = state(problem, planned, failure);
    let mut moves = Vec::new();
    let mut workloads = Vec::new();
    let mut tightest = None::<TightestWorkload>;
    let instance = &planned.instance;
    let homes = homes(planned);
    for changed in &failure.servers {
        let to = changed_name(problem, planned, changed.position, changed.id);
        for guarantee in changed.server.guarantees(instance) {
            let workload = &instance.workloads[guarantee.workload];
            let slack =
                1.0 - instance.share_of_slos(guarantee.workload, changed.server.class, guarantee.total);
            if tightest.as_ref().is_none_or(|known| slack < known.slack) {
                tightest = Some(TightestWorkload { workload: workload.name.clone(), slack });
            }
            workloads
                .push((guarantee.workload, admitted(problem, instance, &changed.server, &to, &guarantee)));
            let from = homes[&guarantee.workload];
            if failure.failed.contains(&from) {
                let from = planned.names[from].clone();
                let name = workload.name.clone();
                moves.push((guarantee.workload, FailOverMove { workload: name, from, to: to.clone() }));
            }
        }
    }
    moves.sort_by_key(|(workload, _)| *workload);
    workloads.sort_by_key(|(workload, _)| *workload);
    let unplaced =
        failure.unplaced.iter().map(|unplaced| failed_workload(problem, planned, unplaced)).collect();
    ServerFailure {
        fails,
        servers,
        moves: moves.into_iter().map(|(_, it)| it).collect(),
        workloads: workloads.into_iter().map(|(_, it)| it).collect(),
        tightest,
        unplaced,
        state,
    }
}

/// The server of each workload in the plan.
fn homes(planned: &PlannedCluster) -> BTreeMap<usize, usize> {
    let servers = planned.placement.servers.iter().enumerate();
    servers.flat_map(|(server, planned)| planned.members.iter().map(move |&w| (w, server))).collect()
}

fn changed_name(
    problem: &ClusterProblem,
    planned: &PlannedCluster,
    position: Option<usize>,
    id: placement::ServerId,
) -> String {
    position.map_or_else(
        || server_name(&problem.servers[id.class].class, id.number),
        |position| planned.names[position].clone(),
    )
}

/// The servers with workloads after a failure, with their names.
fn state(
    problem: &ClusterProblem,
    planned: &PlannedCluster,
    failure: &FailOver,
) -> Vec<(String, PlannedServer)> {
    let mut state = Vec::new();
    for (position, server) in planned.placement.servers.iter().enumerate() {
        if failure.failed.contains(&position) {
            continue;
        }
        let changed = failure.servers.iter().find(|changed| changed.position == Some(position));
        let server = changed.map_or(server, |changed| &changed.server);
        state.push((planned.names[position].clone(), server.clone()));
    }
    for opened in failure.servers.iter().filter(|changed| changed.position.is_none()) {
        let name = changed_name(problem, planned, None, opened.id);
        state.push((name, opened.server.clone()));
    }
    state
}

fn failed_workload(
    problem: &ClusterProblem,
    planned: &PlannedCluster,
    unplaced: &UnplacedWorkload,
) -> FailedWorkload {
    let UnplacedWorkload { workload, excluded, without_rule } = unplaced;
    let spec = &problem.workloads[*workload];
    let named = |other: usize| planned.instance.workloads[other].name.clone();
    let words = excluded_words(excluded, &named);
    let why = if excluded.total == 0 {
        "no other server is left".to_owned()
    } else if !spec.on.is_empty() && excluded.elsewhere == excluded.total {
        format!("it may be on {} only, which leaves no other server", spec.on.join(", "))
    } else if words.is_empty() {
        format!("no room on {}", plural(excluded.total, "other server"))
    } else {
        format!("of {}, {}", plural(excluded.total, "other server"), words.join("; "))
    };
    let remedy = without_rule
        .map_or_else(String::new, |rule| format!("; it would have a place with no `{}`", rule.name()));
    FailedWorkload { index: *workload, workload: spec.name.clone(), reason: why + &remedy }
}

/// Computes every bound of every state again from the limits, and checks by names that no rule is broken, that no workload
/// is lost, and that none moves but those of servers that fail.
///
/// # Panics
///
/// When a state breaks what the plan promises.
fn verify_failures(
    problem: &ClusterProblem,
    planned: &PlannedCluster,
    found: &SurvivingPlacement,
    survival: &PlanSurvival,
) {
    let instance = &planned.instance;
    let homes = homes(planned);
    for (failure, after) in found.failures.iter().zip(&survival.failures) {
        let fails = &after.fails;
        for changed in &failure.servers {
            if let Err(broken) = changed.server.verify(instance) {
                panic!("the plan breaks its own promise when {fails} fails: {broken:?}");
            }
        }
        let mut placed = Vec::new();
        let mut there: BTreeMap<usize, &str> = BTreeMap::new();
        let mut names: BTreeSet<&str> = BTreeSet::new();
        for (name, server) in &after.state {
            assert!(names.insert(name), "two servers are '{name}' when {fails} fails");
            assert!(!after.servers.contains(name), "'{name}' has workloads when it fails");
            for &workload in &server.members {
                assert!(
                    there.insert(workload, name).is_none(),
                    "a workload is on two servers when {fails} fails"
                );
                let workload = &problem.workloads[workload];
                placed.push(PlacedWorkload { workload, server: name, class: &problem.servers[server.class] });
            }
        }
        if let Some(broken) = broken_rule(problem.failure_domain.as_deref(), &placed) {
            panic!("the plan breaks a rule of the cluster file when {fails} fails: {broken}");
        }
        for (workload, home) in &homes {
            let is_failed = failure.failed.contains(home);
            let is_unplaced = after.unplaced.iter().any(|unplaced| unplaced.index == *workload);
            let to = there.get(workload);
            let is_right = match to {
                None => is_failed && is_unplaced,
                Some(to) => is_failed || *to == planned.names[*home],
            };
            assert!(is_right, "workload {workload} is at {to:?} when {fails} fails");
        }
    }
}

//! Plans as [`Policy`], the document that other verbs take, and back.

use super::{Place, Planned};
use crate::input::Problem;
use crate::output::words;
use model::{
    OperationError, POLICY_FORMAT, PerStage, Policy, PolicyServer, PolicyWorkload, RateLimit, Stage,
    StageLimit,
};
use plan::{PlannedServer, PlanningProblem};
use std::collections::{BTreeMap, BTreeSet};
use units::ByteRate;

/// Names of servers by their number in a fleet.
#[derive(Debug, Default)]
pub(super) struct Names(BTreeMap<usize, String>);

impl Names {
    pub(super) fn give(&mut self, number: usize, name: String) {
        self.0.insert(number, name);
    }

    /// Names for all servers: those given, and the first free `<class>-<n>` for the others.
    pub(super) fn complete(
        mut self,
        instance: &PlanningProblem,
        numbers: &[usize],
        servers: &[PlannedServer],
    ) -> Vec<String> {
        let mut taken: Vec<String> = self.0.values().cloned().collect();
        let mut name = |number: usize, server: &PlannedServer| {
            self.0.remove(&number).unwrap_or_else(|| {
                let class = &instance.classes[server.class].name;
                let free = (1..).map(|n| format!("{class}-{n}")).find(|name| !taken.contains(name));
                let free = free.expect("there are more numbers than servers");
                taken.push(free.clone());
                free
            })
        };
        numbers.iter().zip(servers).map(|(&number, server)| name(number, server)).collect()
    }
}

/// `<class>-<n>`, counted by class in the order of the servers.
pub(super) fn fresh_names(instance: &PlanningProblem, servers: &[PlannedServer]) -> Vec<String> {
    let mut used = vec![0; instance.classes.len()];
    let mut name = |server: &PlannedServer| {
        used[server.class] += 1;
        format!("{}-{}", instance.classes[server.class].name, used[server.class])
    };
    servers.iter().map(&mut name).collect()
}

/// The plan as the document that enforcing and simulating take.
pub(crate) fn policy_of(problem: &Problem, planned: &Planned) -> Policy {
    let class_of = |server: &PlannedServer| &problem.cluster.servers[server.class];
    let servers = planned.placement.servers.iter().zip(&planned.names).map(|(server, name)| PolicyServer {
        name: name.clone(),
        class: class_of(server).class.clone(),
        network_bytes_per_s: class_of(server).network.bytes_per_sec(),
        storage_profile: problem.profiles[server.class].name().to_owned(),
    });
    let places = planned.places();
    let workloads = (0..places.len()).map(|w| workload(problem, planned, w, places[w].as_ref()));
    Policy {
        format: POLICY_FORMAT.into(),
        policy_name: planned.recipe.method.name(),
        servers: servers.collect(),
        workloads: workloads.collect(),
    }
}

fn workload(problem: &Problem, planned: &Planned, index: usize, place: Option<&Place>) -> PolicyWorkload {
    let workload = &planned.instance.workloads[index];
    let server = place.map(|place| &planned.placement.servers[place.server]);
    let limits = |server: &PlannedServer| -> Vec<StageLimit> {
        let network = problem.cluster.servers[server.class].network;
        server.limits_of(index).iter().map(|(stage, limit)| stage_limit(stage, *limit, network)).collect()
    };
    let refusal = planned.placement.refused.iter().position(|refusal| refusal.workload == index);
    PolicyWorkload {
        name: workload.name.clone(),
        admitted: place.is_some(),
        server: place.map(|place| planned.names[place.server].clone()),
        priority: place
            .map(|place| u32::try_from(place.guarantee.priority).expect("fewer than 2^32 workloads")),
        priority_by_stage: None,
        slo: workload.slo,
        slo_percentile: workload.slo.percentile.percent(),
        slo_s: workload.slo.latency.0,
        bound_s: place.map(|place| place.guarantee.total),
        limits: server.map(limits).unwrap_or_default(),
        refusal: refusal.map(|number| words::refusal(planned, number)),
    }
}

/// A limit with its absolute values, on a server with links of this bandwidth.
pub(crate) fn stage_limit(stage: Stage, limit: RateLimit, network: ByteRate) -> StageLimit {
    let capacity = match stage {
        // Device time itself is the unit.
        Stage::Storage => 1.0,
        Stage::NetworkIn | Stage::NetworkOut => network.bytes_per_sec(),
    };
    StageLimit { stage, limit, rate_per_s: limit.rate * capacity, burst_work: limit.burst * capacity }
}

/// A server of a policy with those of its workloads that are still there.
pub(super) struct KeptServer {
    pub(super) name: String,
    /// Limits as they are in the policy.
    pub(super) server: PlannedServer,
    /// Whether all its workloads are still there.
    pub(super) is_whole: bool,
}

/// The servers of a policy.
pub(super) fn servers_of(
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
        let mut kept = PlannedServer { class, members: Vec::new(), limits: Vec::new() };
        let mut is_whole = true;
        let on_it = |w: &&PolicyWorkload| w.server.as_deref() == Some(server.name.as_str());
        for workload in policy.workloads.iter().filter(on_it) {
            if let Some(index) = instance.workloads.iter().position(|w| w.name == workload.name) {
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
pub(super) fn changed(
    policy: &Policy,
    instance: &PlanningProblem,
    servers: &[PlannedServer],
    names: &[String],
) -> Vec<String> {
    let before = |name: &str| -> Vec<&PolicyWorkload> {
        policy.workloads.iter().filter(|w| w.server.as_deref() == Some(name)).collect()
    };
    let same = |server: &PlannedServer, name: &str| {
        let before = before(name);
        before.len() == server.members.len()
            && before.iter().all(|old| {
                let index = server.members.iter().position(|&w| instance.workloads[w].name == old.name);
                index.is_some_and(|at| limits_of(old).is_ok_and(|limits| limits == server.limits[at]))
            })
    };
    let differ = servers.iter().zip(names).filter(|(server, name)| !same(server, name)).map(|(_, name)| name);
    let gone = policy.servers.iter().map(|server| &server.name).filter(|name| !names.contains(name));
    differ.chain(gone).cloned().collect()
}

/// Reads a policy file.
pub(crate) fn read(path: &std::path::Path) -> Result<Policy, OperationError> {
    let text = crate::input::read_text(path, "policy")?;
    let bad = |message: String| {
        OperationError::input(format_args!("{}: {message}", path.display()))
            .hint("`tailwright plan -o policy.json` writes such a file")
    };
    let policy: Policy =
        serde_json::from_str(&text).map_err(|error| bad(format!("not a policy: {error}")))?;
    if policy.format != POLICY_FORMAT {
        return Err(bad(format!("the format is '{}', expected '{POLICY_FORMAT}'", policy.format)));
    }
    match fault(&policy) {
        Some(what) => Err(bad(what)),
        None => Ok(policy),
    }
}

/// What the types do not rule out.
fn fault(policy: &Policy) -> Option<String> {
    let repeated = |names: Vec<&str>| {
        let mut seen = BTreeSet::new();
        names.into_iter().find(|name| !seen.insert(*name)).map(str::to_owned)
    };
    if let Some(name) = repeated(policy.servers.iter().map(|s| s.name.as_str()).collect()) {
        return Some(format!("server '{name}' is given twice"));
    }
    if let Some(name) = repeated(policy.workloads.iter().map(|w| w.name.as_str()).collect()) {
        return Some(format!("workload '{name}' is given twice"));
    }
    let is_sound = |l: &RateLimit| (0.0..=1.0).contains(&l.rate) && l.burst.is_finite() && l.burst >= 0.0;
    let unsound = policy.workloads.iter().find(|w| !w.limits.iter().all(|l| is_sound(&l.limit)));
    unsound
        .map(|w| format!("workload '{}' has a limit with a rate outside 0 to 1 or a negative burst", w.name))
}

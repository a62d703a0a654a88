//! Converts plans to a [`Policy`], and writes its file.

use crate::cluster::{ClusterProblem, policy_server};
use crate::planning::solution::{PlannedCluster, WorkloadPlace};
use crate::refusal::RefusedWorkload;
use model::{PerStage, Policy, PolicyPlacement, PolicyWorkload, RateLimit, StageLimit};
use placement::WorkloadOnClass;

/// Converts the plan to the policy that the enforcers and the simulator read.
///
/// # Panics
///
/// If the plan has limits that cannot be enforced, which is a bug of the planner.
pub fn policy_of(problem: &ClusterProblem, planned: &PlannedCluster) -> Policy {
    let mut servers = Vec::new();
    for (server, name) in planned.placement.servers.iter().zip(&planned.names) {
        let class = &problem.servers[server.class];
        let profile = &problem.profiles[server.class];
        let enforced = planned.instance.classes[server.class].enforced;
        let counted = enforced.map(|enforced| (enforced, server.queue));
        servers.push(policy_server(name.clone(), class, Some(profile), counted));
    }
    let mut workloads: Vec<Option<PolicyWorkload>> = Vec::new();
    for (workload, place) in planned.places().iter().enumerate() {
        workloads.push(place.as_ref().map(|place| admitted(problem, planned, workload, place)));
    }
    for RefusedWorkload { index, workload, slo, reason, .. } in planned.refused() {
        workloads[index] = Some(PolicyWorkload::refused(workload, slo, reason));
    }
    let workloads = workloads.into_iter().map(|it| it.expect("a workload without a place was refused"));
    Policy::new(planned.recipe.method.name(), servers, workloads.collect())
        .unwrap_or_else(|error| panic!("a plan that cannot be enforced: {error}"))
}

fn admitted(
    problem: &ClusterProblem,
    planned: &PlannedCluster,
    workload: usize,
    place: &WorkloadPlace,
) -> PolicyWorkload {
    let server = &planned.placement.servers[place.server];
    let network = problem.servers[server.class].network.bytes_per_sec();
    let mut limits = Vec::new();
    for (stage, bucket) in server.limits_of(workload).iter() {
        let allowance = server.allowance(&planned.instance, workload, stage);
        let limit = RateLimit { rate: bucket.rate, burst: (bucket.burst - allowance).max(0.0) };
        limits.push(StageLimit::new(stage, limit, network).with_allowance(allowance, network));
    }
    let priority = u32::try_from(place.guarantee.priority).expect("fewer than 2^32 workloads");
    let placement = PolicyPlacement {
        server: planned.names[place.server].clone(),
        priority: PerStage::from_fn(|_| priority),
        bound_s: Some(place.guarantee.total),
        limits,
    };
    let workload = &planned.instance.workloads[workload];
    let WorkloadOnClass { largest_request: largest, overtaking, .. } = workload.on_class[server.class];
    let channels = server.queue.channels;
    let densest = overtaking / (f64::from(channels - 1) * largest) * network;
    PolicyWorkload::admitted(workload.name.as_str(), workload.slo, placement)
        .with_largest_request((largest > 0.0).then_some(largest))
        .with_densest_answer((overtaking > 0.0).then_some(densest))
}

//! Converts plans to a [`Policy`], and writes its file.

use crate::cluster::ClusterProblem;
use crate::planning::solution::{PlannedCluster, WorkloadPlace};
use crate::planning::wording::describe_refusal;
use model::{
    PerStage, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, RateLimit, ServerEnforcement, StageLimit,
};
use placement::{DeviceQueue, PlannedServer, WorkloadOnClass};
use workload::profile_file::profile_hash;

/// Converts the plan to the policy that the enforcers and the simulator read.
///
/// # Panics
///
/// If the plan has limits that cannot be enforced, which is a bug of the planner.
pub fn policy_of(problem: &ClusterProblem, planned: &PlannedCluster) -> Policy {
    let mut servers = Vec::new();
    for (server, name) in planned.placement.servers.iter().zip(&planned.names) {
        let class = &problem.cluster.servers[server.class];
        servers.push(PolicyServer {
            name: name.clone(),
            class: class.class.clone(),
            network_bytes_per_s: class.network.bytes_per_sec(),
            storage_profile: problem.profiles[server.class].name().to_owned(),
            storage_profile_hash: Some(profile_hash(&problem.profiles[server.class])),
            enforcement: enforcement(problem, planned, server),
        });
    }
    let places = planned.places();
    let workloads = places.iter().enumerate().map(|(workload, place)| match place {
        Some(place) => admitted(problem, planned, workload, place),
        None => refused(planned, workload),
    });
    Policy::new(planned.recipe.method.name(), servers, workloads.collect())
        .unwrap_or_else(|error| panic!("a plan that cannot be enforced: {error}"))
}

/// Returns the queue and limits of a server's device, if its bounds count them.
fn enforcement(
    problem: &ClusterProblem,
    planned: &PlannedCluster,
    server: &PlannedServer,
) -> Option<ServerEnforcement> {
    let class = planned.instance.classes[server.class].enforced?;
    let DeviceQueue { channels, outstanding, reserve } = server.queue;
    Some(ServerEnforcement {
        channels,
        outstanding,
        beside: server.queue.beside(),
        reserve,
        best_effort_request_s: class.best_effort_request,
        packet_bytes: problem.cluster.servers[server.class].packet.0 as f64,
        proxy_s: class.proxy,
    })
}

fn admitted(
    problem: &ClusterProblem,
    planned: &PlannedCluster,
    workload: usize,
    place: &WorkloadPlace,
) -> PolicyWorkload {
    let server = &planned.placement.servers[place.server];
    let network = problem.cluster.servers[server.class].network.bytes_per_sec();
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

fn refused(planned: &PlannedCluster, workload: usize) -> PolicyWorkload {
    let number = planned.placement.refused.iter().position(|refusal| refusal.workload == workload);
    let why = describe_refusal(planned, number.expect("a workload without a place was refused"));
    let workload = &planned.instance.workloads[workload];
    PolicyWorkload::refused(workload.name.as_str(), workload.slo, why)
}

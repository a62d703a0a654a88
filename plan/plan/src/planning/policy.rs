//! Converts plans to a [`Policy`], and writes its file.

use crate::cluster::{ClusterProblem, policy_server};
use crate::planning::solution::PlannedCluster;
use model::{
    PerStage, Policy, PolicyClient, PolicyHost, PolicyPlacement, PolicySlo, PolicyWorkload, RateLimit, Stage,
    StageLimit,
};
use placement::{
    ClientLinks, ClientPlace, Guarantee, PlannedServer, PlanningProblem, PlanningWorkload, WorkloadOnClass,
};

/// Converts the plan to the policy that the enforcers and the simulator read.
///
/// # Panics
///
/// If the plan has limits that cannot be enforced, which is a bug of the planner.
pub fn policy_of(problem: &ClusterProblem, planned: &PlannedCluster) -> Policy {
    let names = planned.names.iter().map(String::as_str);
    let refused = planned.refused().into_iter().map(|refused| (refused.index, refused.reason)).collect();
    policy_of_servers(problem, planned, names.zip(&planned.placement.servers).collect(), refused)
}

/// Converts servers, with their names, to a policy. All workloads that they do not have are refused for these reasons.
///
/// # Panics
///
/// If the servers have limits that cannot be enforced, or a workload is lost.
pub(super) fn policy_of_servers(
    problem: &ClusterProblem,
    planned: &PlannedCluster,
    servers: Vec<(&str, &PlannedServer)>,
    refused: Vec<(usize, String)>,
) -> Policy {
    let instance = &planned.instance;
    let mut used = Vec::new();
    let mut workloads: Vec<Option<PolicyWorkload>> = vec![None; instance.workloads.len()];
    for (name, server) in servers {
        let class = &problem.servers[server.class];
        let profile = &problem.profiles[server.class];
        let counted = instance.classes[server.class].enforced.map(|enforced| (enforced, server.queue));
        used.push(policy_server(name.to_owned(), class, Some(profile), counted));
        for guarantee in server.guarantees(instance) {
            workloads[guarantee.workload] = Some(admitted(problem, instance, server, name, &guarantee));
        }
    }
    for (workload, reason) in refused {
        let PlanningWorkload { name, slo, .. } = &instance.workloads[workload];
        let further = instance.further_slos(workload).iter();
        let further = further.map(|further| PolicySlo { slo: further.slo, bound_s: None }).collect();
        let refused = PolicyWorkload::refused(name.as_str(), *slo, reason).with_further_slos(further);
        workloads[workload] = Some(refused);
    }
    let workloads = workloads.into_iter().map(|it| it.expect("a workload without a place was refused"));
    let hosts = problem.hosts.iter().map(|host| PolicyHost {
        name: host.name.clone(),
        network_bytes_per_s: host.network.bytes_per_sec(),
    });
    Policy::with_hosts(planned.recipe.method.name(), used, hosts.collect(), workloads.collect())
        .unwrap_or_else(|error| panic!("a plan that cannot be enforced: {error}"))
}

/// The entry of a workload that a server has.
pub(super) fn admitted(
    problem: &ClusterProblem,
    instance: &PlanningProblem,
    server: &PlannedServer,
    server_name: &str,
    guarantee: &Guarantee,
) -> PolicyWorkload {
    let workload = guarantee.workload;
    let network = problem.servers[server.class].network.bytes_per_sec();
    let mut limits = Vec::new();
    for (stage, bucket) in server.limits_of(workload).iter() {
        let allowance = server.allowance(instance, workload, stage);
        let limit = RateLimit { rate: bucket.rate, burst: (bucket.burst - allowance).max(0.0) };
        limits.push(StageLimit::new(stage, limit, network).with_allowance(allowance, network));
    }
    let priority = u32::try_from(guarantee.priority).expect("fewer than 2^32 workloads");
    let placement = PolicyPlacement {
        server: server_name.to_owned(),
        priority: PerStage::from_fn(|_| priority),
        bound_s: Some(guarantee.total),
        limits,
    };
    let client = instance.clients.get(workload).and_then(ClientPlace::served);
    let client = client.map(|links| client_of(problem, links));
    let further = instance.further_slos(workload).iter().map(|further| PolicySlo {
        slo: further.slo,
        bound_s: Some(further.bound(server.class, guarantee.total)),
    });
    let further = further.collect();
    let workload = &instance.workloads[workload];
    let WorkloadOnClass { largest_request: largest, overtaking, .. } = workload.on_class[server.class];
    let channels = server.queue.channels;
    let densest = overtaking / (f64::from(channels - 1) * largest) * network;
    PolicyWorkload::admitted(workload.name.as_str(), workload.slo, placement)
        .with_largest_request((largest > 0.0).then_some(largest))
        .with_densest_answer((overtaking > 0.0).then_some(densest))
        .with_client(client)
        .with_further_slos(further)
}

/// The place of a workload on the links of its host, as a policy has it.
fn client_of(problem: &ClusterProblem, links: &ClientLinks) -> PolicyClient {
    let ClientLinks { requests, answers, overtaking, .. } = *links;
    let host = problem.hosts.iter().find(|host| host.name == links.host);
    let host = host.expect("a place is on a host of the cluster");
    let capacity = host.network.bytes_per_sec();
    let answers = RateLimit { rate: answers.rate, burst: (answers.burst - overtaking).max(0.0) };
    PolicyClient {
        host: host.name.clone(),
        priority: u32::try_from(links.priority).expect("fewer than 2^32 workloads"),
        limits: vec![
            StageLimit::new(Stage::NetworkIn, requests, capacity),
            StageLimit::new(Stage::NetworkOut, answers, capacity).with_allowance(overtaking, capacity),
        ],
        request_delay_s: links.delay_at(Stage::NetworkIn),
        answer_delay_s: links.delay_at(Stage::NetworkOut),
    }
}

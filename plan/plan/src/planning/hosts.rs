//! The hosts of a cluster's clients in numbers: the place of each workload on their links.

use crate::cluster::{ClusterProblem, enforced_links};
use model::ClientHost;
use placement::{
    ClientPlace, Normalisation, PlanningClass, PlanningHost, PlanningProblem, PlanningWorkload,
    WorkloadOnClass, client_links,
};

/// Least share of an SLO that is left for the links of a host, even if no server is fast enough for the rest.
const LINKS_SHARE_MIN: f64 = 0.1;

/// Returns the place of every workload on the links of its host; none if the cluster has no hosts. `on_link` has the
/// curves of a workload as fractions of a link of this normalisation.
///
/// Links may take what the SLO leaves beside the time of the fastest idle server.
///
/// Answers that overtake a request at the device with the most of them are in the curves of network-out, whichever server
/// a workload gets.
pub(super) fn client_places(
    problem: &ClusterProblem,
    sustained: bool,
    instance: &PlanningProblem,
    on_link: impl Fn(&Normalisation, usize) -> WorkloadOnClass,
) -> Vec<ClientPlace> {
    let workloads = &instance.workloads;
    let mut places = vec![None; workloads.len()];
    for host in &problem.hosts {
        let is_here = |number: &usize| problem.workloads[*number].host.as_ref() == Some(&host.name);
        let members: Vec<usize> = (0..workloads.len()).filter(is_here).collect();
        let normalisation = Normalisation {
            network: host.network,
            safety_margin: problem.safety_margin,
            sustained,
            enforced: None,
        };
        let mut of_host = Vec::new();
        for &member in &members {
            let workload = &workloads[member];
            let on_class = vec![
                on_link(&normalisation, member)
                    .without_storage()
                    .with_overtaking(overtaking(problem, host, workload)),
            ];
            let mut slo = workload.slo;
            slo.latency.0 = left_for_links(instance, member);
            of_host.push(PlanningWorkload { name: workload.name.clone(), slo, on_class });
        }
        let is_enforced = instance.classes.iter().any(|class| class.enforced.is_some());
        let enforced = is_enforced.then(|| enforced_links(host.packet, host.network));
        let planning = PlanningHost { name: host.name.clone(), enforced, workloads: of_host };
        for (member, place) in members.into_iter().zip(client_links(&planning)) {
            places[member] = Some(place);
        }
    }
    // A cluster with hosts has been checked to have one for each workload.
    places.into_iter().flatten().collect()
}

/// Returns what the SLOs of a workload leave beside the time of an idle server, on the class that leaves most, seconds.
fn left_for_links(instance: &PlanningProblem, workload: usize) -> f64 {
    let on_classes = instance.classes.iter().zip(&instance.workloads[workload].on_class).enumerate();
    let left =
        |(number, (class, on))| instance.latency_asked(workload, number) - time_on_idle_server(class, on);
    let most = on_classes.map(left).fold(f64::NEG_INFINITY, f64::max);
    most.max(LINKS_SHARE_MIN * instance.least_latency_asked(workload))
}

/// Returns the time that a workload's request may take alone on an idle server, with what the server may have begun,
/// seconds.
fn time_on_idle_server(class: &PlanningClass, on: &WorkloadOnClass) -> f64 {
    let Some(enforced) = class.enforced else { return on.base_latency };
    let begun = enforced.shortest_queue().blocking(enforced.best_effort_request, on.largest_request);
    on.base_latency + enforced.own_time(on.largest_request) + begun + 2.0 * enforced.begun_on_link(1)
}

/// Returns the most work that overtakes a request of a workload at any device, seconds of the host's link.
fn overtaking(problem: &ClusterProblem, host: &ClientHost, workload: &PlanningWorkload) -> f64 {
    let capacity = host.network.bytes_per_sec();
    let on_classes = workload.on_class.iter().zip(&problem.servers);
    on_classes.map(|(on, class)| on.overtaking * class.network.bytes_per_sec() / capacity).fold(0.0, f64::max)
}

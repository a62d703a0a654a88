//! The hosts of a cluster's clients in numbers: the place of each workload on their links.

use crate::cluster::{ClusterProblem, enforced_links};
use model::ClientHost;
use placement::{ClientPlace, Normalisation, PlanningHost, PlanningWorkload, WorkloadOnClass, client_links};

/// Returns the place of every workload on the links of its host; none if the cluster has no hosts. `on_link` has the
/// curves of a workload as fractions of a link of this normalisation.
///
/// Answers that overtake a request at the device with the most of them are in the curves of network-out, whichever server
/// a workload gets.
pub(super) fn client_places(
    problem: &ClusterProblem,
    sustained: bool,
    preemptive: bool,
    workloads: &[PlanningWorkload],
    on_link: impl Fn(&Normalisation, usize) -> WorkloadOnClass,
) -> Vec<ClientPlace> {
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
            of_host.push(PlanningWorkload { name: workload.name.clone(), slo: workload.slo, on_class });
        }
        let enforced = (!preemptive).then(|| enforced_links(host.packet, host.network));
        let planning = PlanningHost { name: host.name.clone(), enforced, workloads: of_host };
        for (member, place) in members.into_iter().zip(client_links(&planning)) {
            places[member] = Some(place);
        }
    }
    // A cluster with hosts has been checked to have one for each workload.
    places.into_iter().flatten().collect()
}

/// Returns the most work that overtakes a request of a workload at any device, seconds of the host's link.
fn overtaking(problem: &ClusterProblem, host: &ClientHost, workload: &PlanningWorkload) -> f64 {
    let capacity = host.network.bytes_per_sec();
    let on_classes = workload.on_class.iter().zip(&problem.servers);
    on_classes.map(|(on, class)| on.overtaking * class.network.bytes_per_sec() / capacity).fold(0.0, f64::max)
}

//! Workloads and servers as an admission procedure sees them.

use crate::prediction::problem::{PredictionProblem, TracedWorkload};
use model::{CircularTrace, Job, LatencyModel, ServerMember};
use operation::ProgressObserver;
use operation::parallel::in_parallel;
use placement::admission::{Applicant, IdenticalServers, SharedServer, by_slo};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Returns these workloads of a problem as applicants; sketches them in parallel.
pub(crate) fn applicants<S: Send>(
    problem: &PredictionProblem,
    workloads: impl IntoIterator<Item = usize>,
    observer: &dyn ProgressObserver,
    sketch: impl Fn(&TracedWorkload) -> S + Sync,
) -> Vec<Applicant<S>> {
    let numbers: Vec<usize> = workloads.into_iter().collect();
    let workloads: Vec<&TracedWorkload> =
        numbers.iter().map(|&number| &problem.cluster.workloads[number]).collect();
    let sketches = in_parallel(observer, "sketching", &workloads, |workload| Ok(sketch(workload)));
    let sketches = sketches.expect("no sketch fails");
    let groups = group_sizes(problem);
    let mut applicants = Vec::new();
    for (number, sketch) in numbers.into_iter().zip(sketches) {
        applicants.push(applicant(problem, &groups, number, Arc::new(sketch)));
    }
    applicants
}

/// Returns all workloads of a problem with sketches by a model; those with the same trace share its sketch.
pub(crate) fn sketched_by<M: LatencyModel>(
    problem: &PredictionProblem,
    model: &M,
    observer: &dyn ProgressObserver,
) -> Vec<Applicant<M::Sketch>> {
    sketched(problem, observer, |traffic| model.sketch(traffic))
}

/// Returns all workloads of a problem; sketches each distinct trace once.
pub(super) fn sketched<S: Send + Sync>(
    problem: &PredictionProblem,
    observer: &dyn ProgressObserver,
    sketch: impl Fn(&CircularTrace<Job>) -> S + Sync,
) -> Vec<Applicant<S>> {
    let (distinct, numbers) = problem.distinct_traces();
    let sketches = in_parallel(observer, "sketching", &distinct, |traffic| Ok(Arc::new(sketch(traffic))));
    let sketches = sketches.expect("no sketch fails");
    let groups = group_sizes(problem);
    let mut applicants = Vec::new();
    for (number, sketch) in numbers.into_iter().enumerate() {
        applicants.push(applicant(problem, &groups, number, Arc::clone(&sketches[sketch])));
    }
    applicants
}

/// Returns these workloads of a problem as applicants without sketch and group.
pub(super) fn without_traffic(problem: &PredictionProblem, workloads: &[usize]) -> Vec<Applicant<()>> {
    let mut applicants = Vec::with_capacity(workloads.len());
    for &number in workloads {
        let spec = problem.spec(number);
        applicants.push(Applicant {
            name: spec.name.clone(),
            slo: spec.slo,
            base_latency: problem.base_latency(number),
            group: None,
            sketch: Arc::new(()),
        });
    }
    applicants
}

fn applicant<S>(
    problem: &PredictionProblem,
    groups: &BTreeMap<usize, usize>,
    number: usize,
    sketch: Arc<S>,
) -> Applicant<S> {
    let TracedWorkload { spec, group, base_latency, .. } = &problem.cluster.workloads[number];
    // A group of one restricts nothing, and models treat `None` as independent.
    let group = (groups[group] > 1).then(|| u32::try_from(*group).expect("fewer than 2^32 workloads"));
    Applicant { name: spec.name.clone(), slo: spec.slo, base_latency: *base_latency, group, sketch }
}

/// Returns the number of members of each group.
fn group_sizes(problem: &PredictionProblem) -> BTreeMap<usize, usize> {
    let mut members = BTreeMap::new();
    for workload in &problem.cluster.workloads {
        *members.entry(workload.group).or_default() += 1;
    }
    members
}

/// The servers of a problem.
pub(crate) fn admission_host(problem: &PredictionProblem) -> IdenticalServers {
    IdenticalServers {
        count: problem.server().count,
        slo_factor: placement::PlanningProblem::SLO_FACTOR,
        levels_max: problem.levels_max(),
    }
}

/// Returns the members of a server with priorities by SLO. Each is predicted at the percentile of its SLO.
pub(super) fn server_members<'a, S>(
    problem: &PredictionProblem,
    applicants: &[&'a Applicant<S>],
) -> Vec<ServerMember<'a, S>> {
    let levels_max = problem.levels_max();
    let view = SharedServer { members: applicants, slo_factor: 1.0, levels_max };
    let priorities = by_slo(&view);
    let groups = view.groups();
    let mut members = Vec::new();
    for (number, applicant) in applicants.iter().enumerate() {
        members.push(ServerMember {
            sketch: applicant.sketch.as_ref(),
            priority: priorities[number],
            group: groups[number],
            percentile: applicant.slo.percentile,
        });
    }
    members
}

/// The applicants with these indices.
pub(super) fn of_members<'a, S>(applicants: &'a [Applicant<S>], members: &[usize]) -> Vec<&'a Applicant<S>> {
    members.iter().map(|&member| &applicants[member]).collect()
}

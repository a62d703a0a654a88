//! Workloads and servers as an admission procedure sees them.

use super::problem::{PredictionProblem, TracedWorkload};
use crate::observer::ProgressObserver;
use crate::parallel::in_parallel;
use ::plan::admission::{Applicant, IdenticalServers};
use std::sync::Arc;

/// Some workloads of a problem as a procedure sees them, sketched in parallel.
pub(crate) fn applicants<S: Send>(
    problem: &PredictionProblem,
    workloads: impl IntoIterator<Item = usize>,
    observer: &dyn ProgressObserver,
    sketch: impl Fn(&TracedWorkload) -> S + Sync,
) -> Vec<Applicant<S>> {
    let workloads: Vec<&TracedWorkload> =
        workloads.into_iter().map(|workload| &problem.workloads[workload]).collect();
    let sketches = in_parallel(observer, "sketching", &workloads, |workload| Ok(sketch(workload)));
    let sketches = sketches.expect("no sketch fails");
    let mut applicants = Vec::new();
    for (workload, sketch) in workloads.into_iter().zip(sketches) {
        applicants.push(Applicant {
            name: workload.spec.name.clone(),
            slo: workload.spec.slo,
            group: shared_group(problem, workload.group),
            sketch: Arc::new(sketch),
        });
    }
    applicants
}

/// The number of a group that has several members; a workload alone is in no group.
fn shared_group(problem: &PredictionProblem, group: usize) -> Option<u32> {
    let members = problem.workloads.iter().filter(|workload| workload.group == group).count();
    (members > 1).then(|| u32::try_from(group).expect("fewer than 2^32 workloads"))
}

/// The servers of a problem.
pub(crate) fn admission_host(problem: &PredictionProblem) -> IdenticalServers {
    IdenticalServers {
        count: problem.count,
        base_latency: problem.base_latency(),
        slo_factor: ::plan::PlanningProblem::SLO_FACTOR,
    }
}

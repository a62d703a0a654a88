//! Workloads and servers as an admission procedure sees them.

use super::problem::{PredictionProblem, TracedWorkload};
use crate::observer::ProgressObserver;
use crate::parallel::in_parallel;
use ::plan::admission::{Applicant, IdenticalServers};
use model::LatencyModel;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Some workloads of a problem as a procedure sees them, sketched in parallel.
pub(crate) fn applicants<S: Send>(
    problem: &PredictionProblem,
    workloads: impl IntoIterator<Item = usize>,
    observer: &dyn ProgressObserver,
    sketch: impl Fn(&TracedWorkload) -> S + Sync,
) -> Vec<Applicant<S>> {
    let numbers: Vec<usize> = workloads.into_iter().collect();
    let workloads: Vec<&TracedWorkload> = numbers.iter().map(|&number| &problem.workloads[number]).collect();
    let sketches = in_parallel(observer, "sketching", &workloads, |workload| Ok(sketch(workload)));
    let sketches = sketches.expect("no sketch fails");
    let groups = group_sizes(problem);
    let mut applicants = Vec::new();
    for (number, sketch) in numbers.into_iter().zip(sketches) {
        applicants.push(applicant(problem, &groups, number, Arc::new(sketch)));
    }
    applicants
}

/// All workloads of a problem as a model sees them; those with the same trace share its sketch.
pub(crate) fn sketched_by<M: LatencyModel>(
    problem: &PredictionProblem,
    model: &M,
    observer: &dyn ProgressObserver,
) -> Vec<Applicant<M::Sketch>> {
    let (mut distinct, mut numbers): (Vec<&Arc<_>>, Vec<usize>) = (Vec::new(), Vec::new());
    for workload in &problem.workloads {
        let known = distinct.iter().position(|traffic| Arc::ptr_eq(traffic, &workload.traffic));
        numbers.push(known.unwrap_or_else(|| {
            distinct.push(&workload.traffic);
            distinct.len() - 1
        }));
    }
    let sketches =
        in_parallel(observer, "sketching", &distinct, |traffic| Ok(Arc::new(model.sketch(traffic))));
    let sketches = sketches.expect("no sketch fails");
    let groups = group_sizes(problem);
    let mut applicants = Vec::new();
    for (number, sketch) in numbers.into_iter().enumerate() {
        applicants.push(applicant(problem, &groups, number, Arc::clone(&sketches[sketch])));
    }
    applicants
}

fn applicant<S>(
    problem: &PredictionProblem,
    groups: &BTreeMap<usize, usize>,
    number: usize,
    sketch: Arc<S>,
) -> Applicant<S> {
    let TracedWorkload { spec, group, .. } = &problem.workloads[number];
    // A workload alone is in no group.
    let group = (groups[group] > 1).then(|| u32::try_from(*group).expect("fewer than 2^32 workloads"));
    Applicant { name: spec.name.clone(), slo: spec.slo, group, sketch }
}

/// How many members each group of a problem has.
fn group_sizes(problem: &PredictionProblem) -> BTreeMap<usize, usize> {
    let mut members = BTreeMap::new();
    for workload in &problem.workloads {
        *members.entry(workload.group).or_default() += 1;
    }
    members
}

/// The servers of a problem.
pub(crate) fn admission_host(problem: &PredictionProblem) -> IdenticalServers {
    IdenticalServers {
        count: problem.count,
        base_latency: problem.base_latency(),
        slo_factor: ::plan::PlanningProblem::SLO_FACTOR,
        levels_max: problem.levels_max(),
    }
}

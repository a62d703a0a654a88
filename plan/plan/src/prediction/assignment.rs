//! Workloads with their servers and priorities as a [`Policy`].

use crate::cluster::{self, policy_server};
use crate::prediction::applicant::sketched_by;
use crate::prediction::enforced_models::worst_case;
use crate::prediction::problem::PredictionProblem;
use crate::prediction::procedure_name::ProcedureName;
use crate::refusal::{Refusal, describe_refusal, excluded_words};
use model::{Policy, PolicyPlacement, PolicyWorkload, RateLimit, ServerMember, Stage, StageLimit};
use operation::Silent;
use placement::admission::{AdmissionRefusal, Priority};
use predict::{EnforcedPath, EnforcedSketch, bunching_allowance};
use std::collections::BTreeSet;
use units::plural;

/// Server and guarantee of a workload.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WorkloadAssignment {
    /// Number of the server, from 0.
    pub server: usize,
    /// Priority at each stage; 0 is served first.
    pub priority: Priority,
    /// The promised latency, base latency included, seconds.
    pub bound_s: f64,
}

/// The name of a server in use, `<class>-<n>`.
pub fn server_name(problem: &PredictionProblem, server: usize) -> String {
    cluster::server_name(&problem.server().class, server + 1)
}

/// Returns the reason of a refusal as a sentence.
pub(crate) fn describe_prediction_refusal(problem: &PredictionProblem, refusal: &AdmissionRefusal) -> String {
    let name = |server: usize| server_name(problem, server);
    if let AdmissionRefusal::Ruled { excluded, .. } = refusal {
        let words = excluded_words(excluded, &|workload| problem.spec(workload).name.clone()).join("; ");
        let closest =
            refusal.closest().map(|_| describe_refusal(&Refusal::Prediction(refusal), usize::MAX, &name));
        let closest = closest.map_or_else(String::new, |closest| format!("; {closest}"));
        return format!("of {}, {words}{closest}", plural(excluded.total, "server"));
    }
    describe_refusal(&Refusal::Prediction(refusal), problem.server().count, &name)
}

/// The policy of a procedure. By workload its assignment, or why it has none; `None` where it did not ask.
pub(crate) fn assignment_policy(
    problem: &PredictionProblem,
    procedure: ProcedureName,
    assignments: &[Option<Result<WorkloadAssignment, String>>],
) -> Policy {
    let enforced = problem.enforced.filter(|_| procedure.row().counts_enforcement);
    let mut used: Vec<usize> =
        assignments.iter().flatten().flatten().map(|assignment| assignment.server).collect();
    used.sort_unstable();
    used.dedup();
    let mut servers = Vec::new();
    for server in used {
        let name = server_name(problem, server);
        let counted = enforced.map(|path| (path.class, path.queue));
        servers.push(policy_server(name, problem.server(), problem.profile(), counted));
    }
    let limits = assigned_limits(problem, enforced, assignments);
    let mut workloads = Vec::new();
    for (workload, assignment) in assignments.iter().enumerate() {
        let spec = problem.spec(workload);
        match assignment {
            Some(Ok(assignment)) => {
                let placement = PolicyPlacement {
                    server: server_name(problem, assignment.server),
                    priority: assignment.priority,
                    bound_s: Some(assignment.bound_s),
                    limits: limits[workload].clone(),
                };
                workloads.push(
                    PolicyWorkload::admitted(spec.name.as_str(), spec.slo, placement)
                        .with_largest_request(largest_request(problem, workload))
                        .with_densest_answer(
                            enforced.and_then(|path| densest_answer(problem, &path, workload)),
                        ),
                );
            }
            Some(Err(why)) => workloads.push(PolicyWorkload::refused(spec.name.as_str(), spec.slo, why)),
            None => {}
        }
    }
    Policy::new(procedure.name(), servers, workloads)
        .unwrap_or_else(|error| panic!("a packing that cannot be enforced: {error}"))
}

/// The device time of a workload's largest request, in seconds; `None` without a device.
fn largest_request(problem: &PredictionProblem, workload: usize) -> Option<f64> {
    let jobs = problem.cluster.workloads[workload].traffic.items().iter();
    let largest = jobs.map(|job| job.work[Stage::Storage]).max()?;
    (problem.profile().is_some() && largest.0 > 0).then(|| largest.as_secs())
}

/// Returns the maximum ratio of network-out bytes to device seconds over a workload's requests; `None` if
/// requests are served one at a time.
fn densest_answer(problem: &PredictionProblem, path: &EnforcedPath, workload: usize) -> Option<f64> {
    let mut densest = path.class.densest_answer;
    for job in problem.cluster.workloads[workload].traffic.items() {
        if job.work[Stage::Storage].0 > 0 {
            densest = densest.max(job.work[Stage::NetworkOut].as_secs() / job.work[Stage::Storage].as_secs());
        }
    }
    let is_known = path.has_storage && path.queue.channels > 1;
    is_known.then_some(densest * problem.server().network.bytes_per_sec())
}

/// Returns several simultaneous limits per stage for each workload, which never delay its trace (thesis
/// §3.2.1). Each has an allowance for bunching at earlier stages: the worst case, or the SLO if that is
/// longer. Work that takes longer than the SLO may wait for its own tokens. On preemptive servers nothing
/// bunches.
fn assigned_limits(
    problem: &PredictionProblem,
    enforced: Option<EnforcedPath>,
    assignments: &[Option<Result<WorkloadAssignment, String>>],
) -> Vec<Vec<StageLimit>> {
    let model = worst_case(enforced);
    let placed = |workload: usize| assignments[workload].as_ref()?.as_ref().ok();
    let applicants = sketched_by(problem, &model, &Silent);
    let mut limits = vec![Vec::new(); assignments.len()];
    let servers: BTreeSet<usize> = assignments.iter().flatten().flatten().map(|a| a.server).collect();
    for server in servers {
        let members: Vec<usize> = (0..assignments.len())
            .filter(|&workload| placed(workload).is_some_and(|a| a.server == server))
            .collect();
        let company: Vec<ServerMember<'_, _>> = members
            .iter()
            .map(|&workload| ServerMember {
                sketch: &*applicants[workload].sketch,
                priority: placed(workload).expect("a member is placed").priority,
                group: workload,
                percentile: problem.spec(workload).slo.percentile,
            })
            .collect();
        let worst = model.worst_case(&company);
        for (position, &workload) in members.iter().enumerate() {
            let slo = problem.spec(workload).slo.latency.0;
            let bunched = |stage| worst.as_ref().map_or(0.0, |worst| worst[position].bunched[stage].min(slo));
            limits[workload] = stage_limits(problem, company[position].sketch, bunched);
        }
    }
    limits
}

/// Returns the limits of a workload whose arrivals bunch by these times at each stage.
fn stage_limits<S>(
    problem: &PredictionProblem,
    sketch: &EnforcedSketch<S>,
    bunched: impl Fn(Stage) -> f64,
) -> Vec<StageLimit> {
    let network = problem.server().network.bytes_per_sec();
    let mut limits = Vec::new();
    for stage in Stage::ALL {
        if stage == Stage::Storage && problem.profile().is_none() {
            continue;
        }
        for &(rate, burst) in sketch.limits(stage) {
            let allowance = bunching_allowance(rate, bunched(stage));
            let limit = StageLimit::new(stage, RateLimit { rate, burst }, network);
            limits.push(limit.with_allowance(allowance, network));
        }
    }
    limits
}

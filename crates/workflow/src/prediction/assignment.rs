//! Workloads with their servers and priorities as a [`Policy`].

use super::problem::PredictionProblem;
use ::plan::admission::Priority;
use model::{
    CircularTrace, Job, LatencyModel, Policy, PolicyPlacement, PolicyServer, PolicyWorkload, Stage,
    StageLimit,
};
use predict::WorstCase;
use std::sync::Arc;

/// Where a workload goes and what it is promised.
#[derive(Debug, Clone, Copy)]
pub struct WorkloadAssignment {
    /// Number of the server, from 0.
    pub server: usize,
    /// Priority at each stage; 0 is served first.
    pub priority: Priority,
    /// The promised latency, base latency included, seconds.
    pub bound_s: f64,
}

/// The name of a server in use, `<class>-<n>`.
pub fn server_name(problem: &PredictionProblem, server: usize) -> String {
    format!("{}-{}", problem.class, server + 1)
}

/// The policy of a procedure. By workload its assignment, or why it has none; `None` where it did not ask.
pub fn assignment_policy(
    problem: &PredictionProblem,
    procedure: &str,
    assignments: &[Option<Result<WorkloadAssignment, String>>],
) -> Policy {
    let mut used: Vec<usize> =
        assignments.iter().flatten().flatten().map(|assignment| assignment.server).collect();
    used.sort_unstable();
    used.dedup();
    let mut servers = Vec::new();
    for server in used {
        servers.push(PolicyServer {
            name: server_name(problem, server),
            class: problem.class.clone(),
            network_bytes_per_s: problem.network.bytes_per_sec(),
            storage_profile: problem.profile.as_ref().map_or("", |profile| profile.name()).to_owned(),
            enforcement: None,
        });
    }
    let mut limits = SharedLimits { problem, known: Vec::new() };
    let mut workloads = Vec::new();
    for (workload, assignment) in assignments.iter().enumerate() {
        let spec = &problem.workloads[workload].spec;
        match assignment {
            Some(Ok(assignment)) => {
                let placement = PolicyPlacement {
                    server: server_name(problem, assignment.server),
                    priority: assignment.priority,
                    bound_s: Some(assignment.bound_s),
                    limits: limits.of(workload),
                };
                workloads.push(
                    PolicyWorkload::admitted(spec.name.as_str(), spec.slo, placement)
                        .with_largest_request(largest_request(problem, workload)),
                );
            }
            Some(Err(why)) => workloads.push(PolicyWorkload::refused(spec.name.as_str(), spec.slo, why)),
            None => {}
        }
    }
    Policy::new(procedure, servers, workloads)
        .unwrap_or_else(|error| panic!("a packing that cannot be enforced: {error}"))
}

/// The device time of a workload's largest request, in seconds; `None` without a device.
fn largest_request(problem: &PredictionProblem, workload: usize) -> Option<f64> {
    let jobs = problem.workloads[workload].traffic.items().iter();
    let largest = jobs.map(|job| job.work[Stage::Storage]).max()?;
    (problem.profile.is_some() && largest.0 > 0).then(|| largest.as_secs())
}

/// Limits may let through this much more than the trace has, as a fraction.
const LIMITER_TOLERANCE: f64 = 0.05;

/// The limits of traces, each computed once.
struct SharedLimits<'a> {
    problem: &'a PredictionProblem,
    known: Vec<(&'a Arc<CircularTrace<Job>>, Vec<StageLimit>)>,
}

impl SharedLimits<'_> {
    /// The limits of a workload.
    fn of(&mut self, workload: usize) -> Vec<StageLimit> {
        let traffic = &self.problem.workloads[workload].traffic;
        if let Some((_, limits)) = self.known.iter().find(|(known, _)| Arc::ptr_eq(known, traffic)) {
            return limits.clone();
        }
        let limits = limits(self.problem, workload);
        self.known.push((traffic, limits.clone()));
        limits
    }
}

/// Several simultaneous limits per stage, which delay nothing of the trace (thesis §3.2.1).
fn limits(problem: &PredictionProblem, workload: usize) -> Vec<StageLimit> {
    let sketch = WorstCase::default().sketch(&problem.workloads[workload].traffic);
    let network = problem.network.bytes_per_sec();
    let mut limits = Vec::new();
    for stage in Stage::ALL {
        if stage == Stage::Storage && problem.profile.is_none() {
            continue;
        }
        for limit in ::plan::enforceable_limiters(sketch.curve(stage), LIMITER_TOLERANCE) {
            limits.push(StageLimit::new(stage, limit, network));
        }
    }
    limits
}

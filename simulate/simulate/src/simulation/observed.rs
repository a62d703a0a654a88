//! Simulated requests of one run as observations.

use crate::simulation::policy::server_case;
use model::{Observation, Observations, Op, OperationError, Policy, RequestOutcome, Stage};
use plan::cluster::ClusterProblem;
use scenario::SimulationCase;
use scenario::server::WorkloadRequests;
use sim::engine::{LoggedRequest, SimulationEngine, SimulationError};
use units::{Bytes, Nanos};

/// Runs every server of a policy once, from the beginning of each trace until the end of the longest on the
/// server, and returns all requests in order of arrival. Shorter traces repeat.
///
/// # Errors
///
/// When the cluster is not the one of the policy, a trace cannot be simulated, or `interrupted` returns true
/// before the end.
pub fn observe_policy(
    policy: &Policy,
    problem: &ClusterProblem,
    seed: u64,
    interrupted: &dyn Fn() -> bool,
) -> Result<Observations, OperationError> {
    let mut all = Observations {
        stages: Stage::ALL.map(|stage| stage.name().to_owned()).into(),
        ..Observations::default()
    };
    let mut times: Vec<[Nanos; 3]> = Vec::new();
    for server in &policy.servers {
        let case = server_case(policy, server, problem, None)?;
        for (request, stages) in observe_server(case, problem, (seed, interrupted), &mut all.workloads)? {
            all.requests.push(request);
            times.push(stages);
        }
    }
    // Servers are simulated one after the other.
    let mut order: Vec<usize> = (0..all.requests.len()).collect();
    order.sort_by_key(|row| all.requests[*row].intended);
    all.stage_times = order.iter().flat_map(|row| times[*row]).collect();
    all.requests = order.iter().map(|row| all.requests[*row]).collect();
    Ok(all)
}

/// A request with its time at each stage.
type StagedObservation = (Observation, [Nanos; 3]);

/// Runs one server, and appends its workloads to `workloads`.
fn observe_server(
    mut case: SimulationCase,
    problem: &ClusterProblem,
    (seed, interrupted): (u64, &dyn Fn() -> bool),
    workloads: &mut Vec<String>,
) -> Result<Vec<StagedObservation>, OperationError> {
    start_together(&mut case);
    let mut members = Vec::new();
    for workload in &case.workloads {
        members.push(ReplayedWorkload::read(&workload.name, problem, workloads)?);
    }
    let engine =
        SimulationEngine::new(&case.network, case.entries(seed), seed).map_err(OperationError::input)?;
    let (_, logged) =
        engine.ended_by(interrupted).run_logged(case.plan.window).map_err(|error| match error {
            SimulationError::Interrupted => {
                OperationError::machine("interrupted: what is shown is complete; no observations are written")
            }
            other => OperationError::input(other),
        })?;
    let mut observed = Vec::new();
    for request in logged {
        let stages = [request.stations[0], request.stations[1], request.stations[2]];
        observed.push((members[request.class as usize].observe(&request), stages));
    }
    Ok(observed)
}

/// Makes all traces start at once, and removes the warm-up.
fn start_together(case: &mut SimulationCase) {
    for workload in &mut case.workloads {
        if let WorkloadRequests::Recorded { begin, .. } = &mut workload.requests {
            *begin = Some(Nanos::ZERO);
        }
    }
    if let Some((begin, end)) = case.plan.window.span {
        case.plan.window.span = Some((Nanos::ZERO, end - begin));
    }
}

/// A workload whose requests repeat those of its trace in order.
struct ReplayedWorkload {
    /// Index among the observed workloads.
    number: u32,
    /// Direction and size of the requests of its trace.
    requests: Vec<(Op, Bytes)>,
    /// Requests observed so far.
    observed: usize,
}

impl ReplayedWorkload {
    /// Reads the trace of a workload of the case and assigns its index.
    fn read(
        name: &str,
        problem: &ClusterProblem,
        workloads: &mut Vec<String>,
    ) -> Result<Self, OperationError> {
        let spec = problem.workloads.iter().find(|spec| spec.name == name);
        let spec = spec.expect("the case was made of these workloads");
        // The same reader options as in the case.
        let reader =
            trace::open(&spec.trace, &trace::OpenOptions::default()).map_err(OperationError::input)?;
        let requests = reader.map(|request| request.map(|request| (request.op, request.size)));
        let requests = requests.collect::<Result<Vec<_>, _>>().map_err(OperationError::input)?;
        let number = u32::try_from(workloads.len()).map_err(OperationError::input)?;
        workloads.push(name.to_owned());
        Ok(Self { number, requests, observed: 0 })
    }

    /// Returns the next request as an observation.
    fn observe(&mut self, request: &LoggedRequest) -> Observation {
        let (op, size) = self.requests[self.observed % self.requests.len()];
        self.observed += 1;
        Observation {
            workload: self.number,
            op,
            size,
            intended: request.arrival,
            sent: request.arrival,
            outcome: request.done.map_or(RequestOutcome::Lost, RequestOutcome::Done),
        }
    }
}

//! What a simulation writes as if it had been observed: every request of one run.

use super::policy::server_case;
use crate::cluster::ClusterProblem;
use model::{Observation, Observations, Op, OperationError, Policy, PolicyServer, RequestOutcome, Stage};
use scenario::SimulationCase;
use scenario::server::WorkloadRequests;
use sim::engine::{LoggedRequest, SimulationEngine};
use units::{Bytes, Nanos};

/// Runs every server of a policy once, from the beginning of each trace until the end of the longest on the
/// server, and returns all requests in order of arrival. Shorter traces repeat.
///
/// # Errors
///
/// When the cluster is not the one of the policy, or a trace cannot be simulated.
pub fn observe_policy(
    policy: &Policy,
    problem: &ClusterProblem,
    seed: u64,
) -> Result<Observations, OperationError> {
    let mut all = Observations {
        stages: Stage::ALL.map(|stage| stage.name().to_owned()).into(),
        ..Observations::default()
    };
    let mut times: Vec<[Nanos; 3]> = Vec::new();
    for server in &policy.servers {
        observe_server(policy, server, problem, seed, &mut all, &mut times)?;
    }
    // Servers are simulated one after the other.
    let mut order: Vec<usize> = (0..all.requests.len()).collect();
    order.sort_by_key(|row| all.requests[*row].intended);
    all.stage_times = order.iter().flat_map(|row| times[*row]).collect();
    all.requests = order.iter().map(|row| all.requests[*row]).collect();
    Ok(all)
}

fn observe_server(
    policy: &Policy,
    server: &PolicyServer,
    problem: &ClusterProblem,
    seed: u64,
    all: &mut Observations,
    times: &mut Vec<[Nanos; 3]>,
) -> Result<(), OperationError> {
    let mut case = server_case(policy, server, problem)?;
    start_together(&mut case);
    let mut members = Vec::new();
    for workload in &case.workloads {
        members.push(ReplayedWorkload::read(&workload.name, problem, all)?);
    }
    let engine =
        SimulationEngine::new(&case.network, case.entries(seed), seed).map_err(OperationError::input)?;
    let (_, logged) = engine.run_logged(case.plan.window).map_err(OperationError::input)?;
    for request in logged {
        all.requests.push(members[request.class as usize].observe(&request));
        times.push([request.stations[0], request.stations[1], request.stations[2]]);
    }
    Ok(())
}

/// Lets everybody's trace start at once, and everything be measured.
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

/// A workload whose requests arrive in the order of its trace, again and again.
struct ReplayedWorkload {
    /// Its number among the observed workloads.
    number: u32,
    /// Direction and size of the requests of its trace.
    requests: Vec<(Op, Bytes)>,
    /// How many requests were observed so far.
    observed: usize,
}

impl ReplayedWorkload {
    /// Reads the trace of a workload of the case, and gives it a number.
    fn read(name: &str, problem: &ClusterProblem, all: &mut Observations) -> Result<Self, OperationError> {
        let spec = problem.cluster.workloads.iter().find(|spec| spec.name == name);
        let spec = spec.expect("the case was made of these workloads");
        // As the case reads them.
        let reader =
            trace::open(&spec.trace, &trace::OpenOptions::default()).map_err(OperationError::input)?;
        let requests = reader.map(|request| request.map(|request| (request.op, request.size)));
        let requests = requests.collect::<Result<Vec<_>, _>>().map_err(OperationError::input)?;
        let number = u32::try_from(all.workloads.len()).map_err(OperationError::input)?;
        all.workloads.push(name.to_owned());
        Ok(Self { number, requests, observed: 0 })
    }

    /// The next request as an observation.
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

//! What a simulation writes as if it had been observed: every request of one run.

use super::simulate_policy::case;
use crate::input::Problem;
use model::{Observation, Observations, Op, OperationError, Outcome, Policy, PolicyServer, Stage};
use scenario::Case;
use scenario::server::Demand;
use sim::engine::{LoggedRequest, SimulationEngine};
use std::path::Path;
use units::{Bytes, Nanos};

/// Runs every server of a policy once, from the beginning of each trace until the end of the longest on the server, and
/// writes all requests. Shorter traces repeat.
pub(super) fn write(
    path: &Path,
    policy: &Policy,
    problem: &Problem,
    seed: u64,
) -> Result<(), OperationError> {
    let mut all = Observations {
        stages: Stage::ALL.map(|stage| stage.name().to_owned()).into(),
        ..Observations::default()
    };
    let mut times: Vec<[Nanos; 3]> = Vec::new();
    for server in &policy.servers {
        observe(policy, server, problem, seed, &mut all, &mut times)?;
    }
    // Servers are simulated one after the other.
    let mut order: Vec<usize> = (0..all.requests.len()).collect();
    order.sort_by_key(|row| all.requests[*row].intended);
    all.stage_times = order.iter().flat_map(|row| times[*row]).collect();
    all.requests = order.iter().map(|row| all.requests[*row]).collect();
    trace::observations::write(path, &all).map_err(|error| {
        OperationError::machine(&error)
            .hint("check that the folder exists, its permissions and the space left")
    })
}

fn observe(
    policy: &Policy,
    server: &PolicyServer,
    problem: &Problem,
    seed: u64,
    all: &mut Observations,
    times: &mut Vec<[Nanos; 3]>,
) -> Result<(), OperationError> {
    let mut case = case(policy, server, problem)?;
    from_the_beginning(&mut case);
    let mut members = case
        .tenants
        .iter()
        .map(|tenant| Member::of(&tenant.name, problem, all))
        .collect::<Result<Vec<_>, OperationError>>()?;
    let engine =
        SimulationEngine::new(&case.network, case.entries(seed), seed).map_err(OperationError::input)?;
    let (_, passages) = engine.run_logged(case.plan.window).map_err(OperationError::input)?;
    for passage in passages {
        all.requests.push(members[passage.class as usize].next(&passage));
        times.push([passage.stations[0], passage.stations[1], passage.stations[2]]);
    }
    Ok(())
}

/// Everybody starts at once, and everything is measured.
fn from_the_beginning(case: &mut Case) {
    for tenant in &mut case.tenants {
        if let Demand::Recorded { begin, .. } = &mut tenant.demand {
            *begin = Some(Nanos::ZERO);
        }
    }
    if let Some((begin, end)) = case.plan.window.span {
        case.plan.window.span = Some((Nanos::ZERO, end - begin));
    }
}

/// A workload whose requests come in the order of its trace, again and again.
struct Member {
    number: u32,
    requests: Vec<(Op, Bytes)>,
    next: usize,
}

impl Member {
    fn of(name: &str, problem: &Problem, all: &mut Observations) -> Result<Self, OperationError> {
        let spec = problem.cluster.workloads.iter().find(|spec| spec.name == name);
        let spec = spec.expect("the case was made of these workloads");
        // As the case reads them.
        let reader =
            trace::open(&spec.trace, &trace::OpenOptions::default()).map_err(OperationError::input)?;
        let requests = reader.map(|request| request.map(|request| (request.op, request.size)));
        let requests = requests.collect::<Result<Vec<_>, _>>().map_err(OperationError::input)?;
        let number = u32::try_from(all.workloads.len()).map_err(OperationError::input)?;
        all.workloads.push(name.to_owned());
        Ok(Self { number, requests, next: 0 })
    }

    fn next(&mut self, passage: &LoggedRequest) -> Observation {
        let (op, size) = self.requests[self.next % self.requests.len()];
        self.next += 1;
        Observation {
            workload: self.number,
            op,
            size,
            intended: passage.arrival,
            sent: passage.arrival,
            outcome: passage.done.map_or(Outcome::Lost, Outcome::Done),
        }
    }
}

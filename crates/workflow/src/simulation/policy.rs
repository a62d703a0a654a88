//! Every server of a policy, simulated under its priorities and limits.

use crate::cluster::ClusterProblem;
use crate::observer::ProgressObserver;
use model::{OperationError, Policy, PolicyServer, PolicyWorkload};
use scenario::server::{
    RecordedRequests, ServerRules, SimulatedWorkload, SloVerdict, StorageServer, WorkloadOutcome,
    WorkloadRequests, trace_on_server,
};
use scenario::{ScenarioRun, SimulationCase};
use sim::engine::SimulationPlan;
use std::sync::Arc;
use units::ByteRate;

/// Random alignments of the traces that each server is simulated under.
const REPLICATIONS: usize = 8;

/// What the workloads of a policy see.
#[derive(Debug)]
pub struct PolicySimulation {
    /// How many random alignments of the traces each server was simulated under.
    pub replications: usize,
    /// The servers of the policy, in its order.
    pub servers: Vec<SimulatedServer>,
}

/// A server of a policy that was simulated.
#[derive(Debug)]
pub struct SimulatedServer {
    /// The name that the server has in the policy.
    pub name: String,
    /// What each of its workloads saw.
    pub outcomes: Vec<WorkloadOutcome>,
}

impl PolicySimulation {
    /// Whether nobody's SLO is missed or left open.
    pub fn is_met(&self) -> bool {
        self.servers.iter().all(|server| are_slos_met(&server.outcomes))
    }
}

/// Whether nobody's SLO is missed or left open.
pub fn are_slos_met(outcomes: &[WorkloadOutcome]) -> bool {
    outcomes.iter().all(|outcome| matches!(outcome.verdict, None | Some(SloVerdict::Met)))
}

/// Simulates every server of a policy with the traces and devices of a cluster.
///
/// # Errors
///
/// When the cluster is not the one of the policy, or a trace cannot be simulated.
pub fn simulate_policy(
    policy: &Policy,
    problem: &ClusterProblem,
    seed: u64,
    observer: &dyn ProgressObserver,
) -> Result<PolicySimulation, OperationError> {
    let task = observer.begin("simulating", policy.servers.len() as u64, "servers");
    let mut servers = Vec::new();
    for server in &policy.servers {
        let case = server_case(policy, server, problem)?;
        let run = ScenarioRun::new(case, Vec::new(), seed).map_err(OperationError::input)?;
        servers.push(SimulatedServer { name: server.name.clone(), outcomes: run.workload_outcomes() });
        task.advance();
    }
    Ok(PolicySimulation { replications: REPLICATIONS, servers })
}

/// A server of a policy as something to simulate.
pub(super) fn server_case(
    policy: &Policy,
    server: &PolicyServer,
    problem: &ClusterProblem,
) -> Result<SimulationCase, OperationError> {
    let classes = &problem.cluster.servers;
    let class = classes.iter().position(|class| class.class == server.class).ok_or_else(|| {
        OperationError::input(format_args!(
            "the policy has server '{}' of class '{}', which the cluster does not have",
            server.name, server.class
        ))
    })?;
    let network = ByteRate::from_bytes_per_sec(server.network_bytes_per_s).unwrap_or(classes[class].network);
    let device = problem.profiles[class].clone();
    let channels = server.enforcement.map_or(1, |enforcement| enforcement.channels);
    let storage = StorageServer::new(device, network, channels).map_err(OperationError::input)?;
    let members = policy.workloads.iter().filter(|at| at.server.as_deref() == Some(server.name.as_str()));
    let workloads = members.map(|member| workload(member, problem, &storage)).collect::<Result<_, _>>()?;
    let mut plan = SimulationPlan::of_requests(1, 0);
    plan.replications = REPLICATIONS;
    let rules = ServerRules::Policy(Box::new(policy.clone()));
    SimulationCase::storage(server.name.clone(), storage, workloads, &rules, plan)
        .map_err(OperationError::input)
}

fn workload(
    member: &PolicyWorkload,
    problem: &ClusterProblem,
    storage: &StorageServer,
) -> Result<SimulatedWorkload, OperationError> {
    let spec = problem.cluster.workloads.iter().find(|spec| spec.name == member.name);
    let spec = spec.ok_or_else(|| {
        OperationError::input(format_args!(
            "the policy has workload '{}', which {} does not describe",
            member.name,
            problem.origin.display()
        ))
        .hint("give the cluster or the SLOs that the policy was planned for")
    })?;
    let RecordedRequests { trace, accesses } =
        trace_on_server(&spec.trace, storage).map_err(OperationError::input)?;
    Ok(SimulatedWorkload {
        name: member.name.clone(),
        slo: Some(member.slo),
        best_effort: false,
        weight: 1,
        requests: WorkloadRequests::Recorded { trace: Arc::new(trace), accesses, begin: None },
    })
}

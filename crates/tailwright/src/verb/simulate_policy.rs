//! `tailwright simulate POLICY.json`: every server of a policy, under its priorities and limits.

use crate::arguments::PolicyInputArgs;
use crate::exit::VerbAnswer;
use crate::output::json::pretty;
use crate::output::workloads;
use crate::terminal::{self, TerminalObserver};
use model::{OperationError, Policy};
use serde::Serialize;
use std::path::Path;
use workflow::cluster::ClusterProblem;
use workflow::planning::read_policy;
use workflow::simulation::{PolicySimulation, observe_policy, simulate_policy};

#[derive(Serialize)]
struct PolicySimulationDocument<'a> {
    policy: &'a str,
    seed: u64,
    replications: usize,
    servers: Vec<SimulatedServerDocument<'a>>,
}

#[derive(Serialize)]
struct SimulatedServerDocument<'a> {
    name: &'a str,
    workloads: Vec<workloads::WorkloadOutcomeDocument>,
}

/// Simulates every server of a policy and prints what its workloads saw.
pub(super) fn run(
    policy: &Path,
    inputs: &PolicyInputArgs,
    output: Option<&Path>,
    seed: u64,
    as_json: bool,
) -> Result<VerbAnswer, OperationError> {
    let policy = read_policy(policy)?;
    let problem = ClusterProblem::read(&inputs.source(&policy)?, &TerminalObserver)?;
    let simulation = simulate_policy(&policy, &problem, seed, &TerminalObserver)?;
    if let Some(path) = output {
        let observations = observe_policy(&policy, &problem, seed)?;
        ::trace::observations::write(path, &observations).map_err(|error| {
            OperationError::machine(&error)
                .hint("check that the folder exists, its permissions and the space left")
        })?;
    }
    terminal::print(&if as_json {
        json(&policy, &simulation, seed)
    } else {
        text(&policy, &simulation, seed)
    });
    Ok(if simulation.is_met() { VerbAnswer::Yes } else { VerbAnswer::No })
}

fn json(policy: &Policy, simulation: &PolicySimulation, seed: u64) -> String {
    let servers = simulation.servers.iter().map(|server| SimulatedServerDocument {
        name: &server.name,
        workloads: workloads::documents(&server.outcomes),
    });
    pretty(&PolicySimulationDocument {
        policy: &policy.policy_name,
        seed,
        replications: simulation.replications,
        servers: servers.collect(),
    })
}

fn text(policy: &Policy, simulation: &PolicySimulation, seed: u64) -> String {
    let mut rows = Vec::new();
    for server in &simulation.servers {
        for outcome in &server.outcomes {
            rows.push([vec![server.name.clone()], workloads::row(outcome)].concat());
        }
    }
    let refused = policy.workloads.iter().filter(|workload| !workload.admitted).count();
    let refused = match refused {
        0 => String::new(),
        count => format!("\n{count} workloads that were not admitted are left out.\n"),
    };
    format!(
        "{} servers under the policy of {}, {} random alignments each, seed {seed}.\n\n{}{refused}",
        simulation.servers.len(),
        policy.policy_name,
        simulation.replications,
        workloads::table(&["server"], rows)
    )
}

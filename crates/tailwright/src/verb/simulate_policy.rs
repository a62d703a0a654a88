//! `tailwright simulate POLICY.json`: every server of a policy, under its priorities and limits.

use crate::exit::Answer;
use crate::output::json::pretty;
use crate::output::workloads;
use crate::terminal::{self, TerminalObserver};
use crate::verb::simulate::SimulateArgs;
use model::{OperationError, Policy};
use serde::Serialize;
use workflow::cluster::ClusterProblem;
use workflow::planning::read_policy;
use workflow::simulation::{PolicySimulation, observe_policy, simulate_policy};

#[derive(Serialize)]
struct PolicyDocument<'a> {
    policy: &'a str,
    seed: u64,
    replications: usize,
    servers: Vec<ServerDocument<'a>>,
}

#[derive(Serialize)]
struct ServerDocument<'a> {
    name: &'a str,
    workloads: Vec<workloads::WorkloadDocument>,
}

/// Simulates a policy.
pub(super) fn run(args: &SimulateArgs) -> Result<Answer, OperationError> {
    let policy = read_policy(&args.scenario)?;
    let problem = ClusterProblem::read(&args.inputs.source(&policy)?, &TerminalObserver)?;
    let simulation = simulate_policy(&policy, &problem, args.seed, &TerminalObserver)?;
    if let Some(path) = &args.output {
        let observations = observe_policy(&policy, &problem, args.seed)?;
        ::trace::observations::write(path, &observations).map_err(|error| {
            OperationError::machine(&error)
                .hint("check that the folder exists, its permissions and the space left")
        })?;
    }
    terminal::print(&if args.json {
        json(&policy, &simulation, args.seed)
    } else {
        text(&policy, &simulation, args.seed)
    });
    Ok(if simulation.is_met() { Answer::Yes } else { Answer::No })
}

fn json(policy: &Policy, simulation: &PolicySimulation, seed: u64) -> String {
    let servers = simulation.servers.iter().map(|server| ServerDocument {
        name: &server.name,
        workloads: workloads::documents(&server.outcomes),
    });
    pretty(&PolicyDocument {
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

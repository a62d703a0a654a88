//! `tailwright simulate POLICY.json`: every server of a policy, under its priorities and limits.

use crate::exit::Answer;
use crate::input::{InputArgs, Problem};
use crate::output::json::pretty;
use crate::output::workloads;
use crate::planning;
use crate::terminal;
use crate::verb::simulate_observed;
use clap::Args;
use model::{OperationError, Policy, PolicyServer, PolicyWorkload, WorkloadSpec};
use scenario::server::{Demand, Outcome, Rules, StorageServer, Tenant, of_trace};
use scenario::{Case, Run};
use serde::Serialize;
use sim::engine::SimulationPlan;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::ByteRate;

/// Where the traces and devices of a policy are.
#[derive(Debug, Args)]
pub(super) struct PolicyArgs {
    /// For a policy: the cluster that it was planned for.
    #[arg(long, value_name = "CLUSTER.toml", conflicts_with_all = ["slos", "traces", "storage", "network"])]
    cluster: Option<PathBuf>,
    /// For a policy: its workloads and their traces, as `plan` takes them.
    #[arg(long, value_name = "FILE.csv", requires = "storage")]
    slos: Option<PathBuf>,
    /// Where the traces named in --slos are (default: beside that file).
    #[arg(long, value_name = "DIR", requires = "slos")]
    traces: Option<PathBuf>,
    /// Device profile of every server's storage.
    #[arg(long, value_name = "PROFILE.json", requires = "slos")]
    storage: Option<PathBuf>,
    /// Link bandwidth of every server (default: that of the policy).
    #[arg(long, value_name = "RATE", requires = "slos")]
    network: Option<ByteRate>,
    /// For a policy: write every request of one more run, all traces from their beginning, as observations.
    #[arg(short, long, value_name = "OBSERVATIONS.parquet")]
    output: Option<PathBuf>,
}

impl PolicyArgs {
    /// Whether single requests are wanted.
    pub(super) fn observes(&self) -> bool {
        self.output.is_some()
    }

    fn problem(&self, policy: &Policy) -> Result<Problem, OperationError> {
        if let Some(cluster) = &self.cluster {
            return InputArgs::of_cluster(cluster.clone()).load();
        }
        let Some(slos) = &self.slos else {
            return Err(OperationError::input("a policy does not say where its traces are")
                .hint("add --cluster CLUSTER.toml, or --slos FILE.csv and --storage PROFILE.json"));
        };
        let planned =
            policy.servers.first().and_then(|at| ByteRate::from_bytes_per_sec(at.network_bytes_per_s));
        let network = self.network.or(planned).ok_or_else(|| {
            OperationError::input("the policy has no server with a network").hint("add --network RATE")
        })?;
        InputArgs::of_slos(slos.clone(), self.traces.clone(), self.storage.clone(), network).load()
    }
}

/// A server that was simulated.
#[derive(Serialize)]
struct Server {
    name: String,
    workloads: Vec<workloads::Workload>,
    #[serde(skip)]
    outcomes: Vec<Outcome>,
}

#[derive(Serialize)]
struct Document<'a> {
    policy: &'a str,
    seed: u64,
    replications: usize,
    servers: Vec<Server>,
}

/// Simulates a policy.
pub(super) fn run(
    path: &Path,
    args: &PolicyArgs,
    seed: u64,
    as_json: bool,
) -> Result<Answer, OperationError> {
    let policy = planning::read_policy(path)?;
    let problem = args.problem(&policy)?;
    let progress = terminal::progress(policy.servers.len() as u64, "simulating", "servers");
    let mut servers = Vec::new();
    for server in &policy.servers {
        let case = case(&policy, server, &problem)?;
        let run = Run::of(case, Vec::new(), seed).map_err(OperationError::input)?;
        let outcomes = run.workloads();
        let workloads = workloads::documents(&outcomes);
        servers.push(Server { name: server.name.clone(), workloads, outcomes });
        progress.inc(1);
    }
    progress.finish_and_clear();
    if let Some(path) = &args.output {
        simulate_observed::write(path, &policy, &problem, seed)?;
    }
    let met = servers.iter().all(|server| workloads::all_met(&server.outcomes));
    let document = Document { policy: &policy.policy_name, seed, replications: REPLICATIONS, servers };
    terminal::print(&if as_json { pretty(&document) } else { text(&policy, &document) });
    Ok(if met { Answer::Yes } else { Answer::No })
}

const REPLICATIONS: usize = 8;

fn text(policy: &Policy, document: &Document) -> String {
    let rows = document.servers.iter().flat_map(|server| {
        let row = |outcome: &Outcome| [vec![server.name.clone()], workloads::row(outcome)].concat();
        server.outcomes.iter().map(row).collect::<Vec<_>>()
    });
    let refused = policy.workloads.iter().filter(|workload| !workload.admitted).count();
    let refused = match refused {
        0 => String::new(),
        count => format!("\n{count} workloads that were not admitted are left out.\n"),
    };
    format!(
        "{} servers under the policy of {}, {} random alignments each, seed {}.\n\n{}{refused}",
        document.servers.len(),
        document.policy,
        document.replications,
        document.seed,
        workloads::table(&["server"], rows.collect())
    )
}

pub(super) fn case(
    policy: &Policy,
    server: &PolicyServer,
    problem: &Problem,
) -> Result<Case, OperationError> {
    let classes = &problem.cluster.servers;
    let class = classes.iter().position(|class| class.class == server.class).ok_or_else(|| {
        OperationError::input(format_args!(
            "the policy has server '{}' of class '{}', which the cluster does not have",
            server.name, server.class
        ))
    })?;
    let network = ByteRate::from_bytes_per_sec(server.network_bytes_per_s).unwrap_or(classes[class].network);
    let device = problem.profiles[class].clone();
    let storage = StorageServer::new(device, network, 1).map_err(OperationError::input)?;
    let members = policy.workloads.iter().filter(|at| at.server.as_deref() == Some(server.name.as_str()));
    let tenants = members.map(|member| tenant(member, problem, &storage)).collect::<Result<_, _>>()?;
    let mut plan = SimulationPlan::of(1, 0);
    plan.replications = REPLICATIONS;
    let rules = Rules::Policy(Box::new(policy.clone()));
    Case::storage(server.name.clone(), storage, tenants, &rules, plan).map_err(OperationError::input)
}

fn tenant(
    member: &PolicyWorkload,
    problem: &Problem,
    storage: &StorageServer,
) -> Result<Tenant, OperationError> {
    let found = problem.cluster.workloads.iter().find(|spec| spec.name == member.name);
    let spec: &WorkloadSpec = found.ok_or_else(|| {
        OperationError::input(format_args!(
            "the policy has workload '{}', which {} does not describe",
            member.name,
            problem.origin.display()
        ))
        .hint("give the cluster or the SLOs that the policy was planned for")
    })?;
    let trace = of_trace(&spec.trace, storage).map_err(OperationError::input)?;
    Ok(Tenant {
        name: member.name.clone(),
        slo: Some(member.slo),
        best_effort: false,
        weight: 1,
        demand: Demand::Recorded { trace: Arc::new(trace), begin: None },
    })
}

//! `tailwright simulate POLICY.json`: every server of a policy, under its priorities and limits.

use crate::simulate::policy_inputs::PolicyInputArgs;
use crate::simulate::workloads;
use cli::exit::VerbAnswer;
use cli::interrupt::{check_complete, is_stopped, stop_on_termination};
use cli::terminal::{self, TerminalObserver};
use model::{OperationError, Policy};
use operation::document::document;
use operation::policy_file::read_policy;
use plan::cluster::ClusterProblem;
use simulate::simulation::{
    PolicySimulation, PolicySimulationSettings, SimulatedBound, observe_policy, simulate_policy,
};
use std::path::Path;
use trace::check_observations;
use units::plural;

/// Simulates every server of a policy and prints what its workloads saw.
pub(super) fn run(
    policy: &Path,
    inputs: &PolicyInputArgs,
    output: Option<&Path>,
    settings: PolicySimulationSettings,
    as_json: bool,
) -> Result<VerbAnswer, OperationError> {
    check_observations(output)?;
    let policy = read_policy(policy)?;
    let mut source = inputs.source(&policy)?;
    source.results = output.into_iter().map(Path::to_owned).collect();
    let problem = ClusterProblem::read(&source, &TerminalObserver)?;
    let _ = stop_on_termination();
    let seed = settings.seed;
    let simulation = simulate_policy(&policy, &problem, settings, &is_stopped, &TerminalObserver)?;
    let written = output.filter(|_| !simulation.interrupted).map_or(Ok(()), |path| {
        let observations = observe_policy(&policy, &problem, seed, &is_stopped)?;
        ::trace::observations::write(path, &observations)
            .map_err(|error| OperationError::machine(&error).hint(error.hint()))
    });
    if as_json {
        terminal::print(&document(&simulation.document(&policy, seed)));
    } else {
        terminal::print_text(&text(&policy, &simulation, seed));
    }
    written?;
    if simulation.interrupted {
        check_complete("what is shown are the servers that were complete; no observations are written")?;
    }
    Ok(if simulation.is_met() { VerbAnswer::Yes } else { VerbAnswer::No })
}

/// Says of a verdict what became of the bound: a broken one takes its place.
fn add_bound(verdict: &mut String, bound: &SimulatedBound) {
    if bound.is_broken() {
        *verdict = "bound broken".to_owned();
    } else if let Some(why) = bound.assumption() {
        verdict.push_str(", beyond its bound: ");
        verdict.push_str(why);
    }
}

/// A line that says which servers are flooded.
fn flood_line(simulation: &PolicySimulation) -> String {
    let time = |seconds: f64| operation::text::time(seconds);
    let all = simulation.servers.len();
    let flooded = simulation.flooded.len();
    let longest = simulation.flooded.iter().map(|(_, seconds)| *seconds).fold(0.0, f64::max);
    match flooded {
        0 => "Without best-effort requests.".to_owned(),
        _ if flooded == all => {
            format!(
                "Flooded by best-effort reads and writes of up to {}, the largest that bounds assume.",
                time(longest)
            )
        }
        _ => {
            let names: Vec<&str> = simulation.flooded.iter().map(|(name, _)| name.as_str()).collect();
            format!(
                "{} flooded by best-effort reads and writes of up to {}.",
                names.join(", "),
                time(longest)
            )
        }
    }
}

fn text(policy: &Policy, simulation: &PolicySimulation, seed: u64) -> String {
    let mut rows = Vec::new();
    for server in &simulation.servers {
        for (outcome, bound) in server.outcomes.iter().zip(&server.bounds) {
            let mut row = workloads::row(outcome);
            if let (Some(verdict), Some(bound)) = (row.last_mut(), bound) {
                add_bound(verdict, bound);
            }
            let seconds = |time: Option<f64>| time.map_or_else(|| "-".to_owned(), operation::text::time);
            let longest = seconds(bound.and_then(|bound| bound.longest_s));
            rows.push(
                [vec![server.name.clone(), seconds(bound.map(|bound| bound.bound_s)), longest], row].concat(),
            );
        }
    }
    let refused = policy.workloads.iter().filter(|workload| !workload.admitted).count();
    let refused = match refused {
        0 => String::new(),
        1 => "\n1 workload that was not admitted is left out.\n".to_owned(),
        count => format!("\n{count} workloads that were not admitted are left out.\n"),
    };
    let broken =
        simulation.broken_bounds.as_ref().map_or(String::new(), |broken| format!("{}\n", broken.sentence));
    format!(
        "{broken}{} under the policy of {}, {} random alignments each, seed {seed}.\n{}\n\n{}{refused}",
        plural(simulation.servers.len(), "server"),
        policy.policy_name,
        simulation.replications,
        flood_line(simulation),
        workloads::table(&["server", "bound", "longest"], rows)
    )
}

//! `tailwright lab cluster`: a cluster that is planned from half of each trace and run with the other half.

use crate::lab::cluster_text as cluster_run;
use clap::Args;
use cli::exit::VerbAnswer;
use cli::interrupt::{check_complete, undo_on_termination};
use cli::quantities::results;
use cli::terminal::{self, Talk, TerminalObserver, talk};
use lab::cluster_run::{
    CLUSTER_FILE, ClusterHalves, PlayedCluster, forecast_cluster, judge_cluster, play_cluster,
    write_default_cluster,
};
use lab::experiment::{ExperimentLock, RunSettings};
use measure_cli::verify::page::VerifiedRun;
use measure_cli::verify::text as verified;
use model::{Cluster, OperationError, Policy};
use operation::files::{check_writable, write_result, write_wanted};
use placement::LimitMethod;
use plan::cluster::{ClusterDescription, ClusterProblem, ClusterSource};
use plan::planning::{PlanningQuestion, PlanningRecipe, plan_cluster, policy_of};
use plan_cli::arguments::{ClusterArgs, MayLack};
use std::path::{Path, PathBuf};
use units::Nanos;

const HELP: &str = "\
Examples:
  tailwright lab cluster   a generated cluster of six workloads
  tailwright lab cluster --dry-run
      what is planned, and what the run will decide
  tailwright lab cluster cluster.toml --duration 5min --report page.html
  tailwright lab cluster --slos slos.csv --storage ssd-profile.json \\
      --network 40MB/s --max-servers 2

Plans from the first half of each trace with a safety margin, as `tailwright plan` does, enforces the \
policy at links and proxies of this machine, sends the second half to emulated SSDs beside a best-effort \
reader on each, and prints for each workload its bound, what was measured, and whether its SLO is \
met. docs/reference/lab.md describes it.

Exit codes: 0 every SLO is met, every workload was admitted and no request of a workload within its limits \
took longer than its bound; 1 otherwise, or undecided; 2 bad input; 3 without root, while another \
experiment is running, or after a signal ended it.";

/// Default margin of the plan: the second half of each trace, which is played, differs from the first,
/// which is planned for.
const MARGIN: f64 = 1.3;
/// Above this share of CPUs that are busy, threads wait for a CPU often enough to be seen in the tail.
const CPU_BUSY_MAX: f64 = 0.9;

/// A cluster, planned from half of each trace and run with the other half
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ClusterRunArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    /// How long requests are observed.
    #[arg(long, value_name = "TIME", default_value = "120s")]
    duration: Nanos,
    /// Time for which requests are sent before they are observed.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    warm_up: Nanos,
    /// Seed of places on the devices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Ordinary threads for devices, proxies and generator.
    #[arg(long)]
    no_realtime: bool,
    /// Print what would be done, and do nothing: the plan, and what the run will decide.
    #[arg(long = "dry-run", alias = "plan")]
    plan: bool,
    /// Write the plan that is run, as a policy file.
    #[arg(short, long, value_name = "POLICY.json")]
    output: Option<PathBuf>,
    /// Write a page with charts for a browser.
    #[arg(long, value_name = "PAGE.html", conflicts_with = "plan")]
    report: Option<PathBuf>,
    /// Print JSON: the findings, as `tailwright verify` does, or with --dry-run the plan, a policy.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &ClusterRunArgs) -> Result<VerbAnswer, OperationError> {
    check_writable(args.output.as_deref(), "policy")?;
    check_writable(args.report.as_deref(), "report")?;
    let folder = tempfile::Builder::new().prefix("tailwright").tempdir().map_err(|error| {
        OperationError::machine(format_args!("no temporary folder: {error}")).hint("see the variable TMPDIR")
    })?;
    if args.duration == Nanos::ZERO {
        return Err(OperationError::input("--duration 0s: expected a time above zero, such as 120s"));
    }
    let halves = read_halves(args, folder.path())?;
    let policy = planned(args, &halves, folder.path())?;
    let settings = RunSettings {
        warm_up: args.warm_up,
        duration: args.duration,
        seed: args.seed,
        realtime: !args.no_realtime,
    };
    let forecast = forecast_cluster(&policy, &halves, &settings)?;
    let said = cluster_run::plan_text(&policy, &halves, &settings, &forecast);
    if args.plan {
        if args.json {
            terminal::print(&operation::document::pretty(&policy));
        } else {
            terminal::print_text(&said);
        }
        return Ok(VerbAnswer::Yes);
    }
    talk(Talk::Plain, said.trim_end());
    let alone = ExperimentLock::acquire()?;
    let PlayedCluster { report, cpu_busy } = play(&policy, &halves, &settings)?;
    drop(alone);
    report.warnings.iter().for_each(|warning| talk(Talk::Warning, warning));
    let findings = judge_cluster(&policy, &halves, &report.observations);
    let name = Some(policy.policy_name.as_str());
    let page = || {
        let origin = cluster_run::origin(&settings, args.cluster.safety_margin().unwrap_or(MARGIN), &policy);
        let observations = &report.observations;
        measure_cli::verify::page::html(&VerifiedRun {
            policy: Some(&policy),
            observations,
            findings: &findings,
            origin,
        })
    };
    let drawn = write_wanted(args.report.as_deref(), "report", page);
    if args.json {
        terminal::print(&verified::json(name, &findings, None));
    } else {
        terminal::print_text(&cluster_run::text(&policy, &findings));
    }
    say_how_busy(cpu_busy);
    drawn?;
    if let Some(path) = &args.report {
        talk(Talk::Plain, format_args!("the report is {}", path.display()));
    }
    check_complete("what is judged is what was measured until then")?;
    Ok(if cluster_run::is_kept(&findings) { VerbAnswer::Yes } else { VerbAnswer::No })
}

/// The cluster of the arguments, or the generated one, with its traces cut in two.
fn read_halves(args: &ClusterRunArgs, folder: &Path) -> Result<ClusterHalves, OperationError> {
    let mut source = if args.cluster.is_given() {
        args.cluster.source(MayLack::default())?
    } else {
        let made = folder.join("generated");
        std::fs::create_dir(&made).map_err(|error| {
            OperationError::machine(format_args!("cannot make {}: {error}", made.display()))
                .hint("see the variable TMPDIR")
        })?;
        ClusterSource::new(ClusterDescription::File(write_default_cluster(&made)?))
    };
    source.safety_margin = Some(args.cluster.safety_margin().unwrap_or(MARGIN));
    source.results = results([&args.output, &args.report]);
    let problem = ClusterProblem::read(&source, &TerminalObserver)?;
    let ClusterProblem { safety_margin, failure_domain, servers, hosts, workloads, .. } = problem;
    if !hosts.is_empty() {
        return Err(OperationError::input(
            "the experiment has client hosts of its own, and does not play those of [[host]]",
        )
        .hint("leave out [[host]] and `host`"));
    }
    let cluster = Cluster { safety_margin, failure_domain, servers, hosts, workloads };
    ClusterHalves::new(cluster, &problem.profiles, &problem.options)
}

/// The policy that `tailwright plan` makes from the first halves.
fn planned(args: &ClusterRunArgs, halves: &ClusterHalves, folder: &Path) -> Result<Policy, OperationError> {
    halves.write(folder)?;
    let mut source = ClusterSource::new(ClusterDescription::File(folder.join(CLUSTER_FILE)));
    source.cached = false;
    let recipe = PlanningRecipe::of(LimitMethod::Exact);
    let question =
        PlanningQuestion { source: &source, recipe: &recipe, keep: None, survive: false, compare: false };
    let run = plan_cluster(&question, &TerminalObserver)?;
    let policy = policy_of(&run.problem, &run.planned);
    if let Some(path) = &args.output {
        write_result(path, &plan_cli::plan::document::plan(&run), "policy")?;
    }
    Ok(policy)
}

/// A machine without CPU time left delays requests in ways that no bound counts.
fn say_how_busy(cpu_busy: Option<f64>) {
    let Some(busy) = cpu_busy else { return };
    let said = format!("the machine's CPUs were busy {:.0}% of the time", busy * 100.0);
    if busy > CPU_BUSY_MAX {
        let advice = "latencies include waits for a CPU, which bounds do not count: end other programs, use a \
                      release build, or slower devices and links";
        talk(Talk::Warning, format_args!("{said}: {advice}"));
    } else {
        talk(Talk::Plain, said);
    }
}

fn play(
    policy: &Policy,
    halves: &ClusterHalves,
    settings: &RunSettings,
) -> Result<PlayedCluster, OperationError> {
    let stop = undo_on_termination();
    let length = (settings.warm_up + settings.duration).0 / 1_000_000;
    let bar = terminal::progress(length, "running", "ms");
    let mut tick =
        |progress: load::LoadProgress| bar.set_position((progress.elapsed.0 / 1_000_000).min(length));
    let played = play_cluster(policy, halves, settings, &mut tick, &stop);
    bar.finish_and_clear();
    played
}

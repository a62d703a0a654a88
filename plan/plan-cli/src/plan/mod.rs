//! `tailwright plan`: where every workload goes, with which limits, and what it is then guaranteed.

pub(crate) mod comparison;
pub mod document;
pub(crate) mod fleet;
pub(crate) mod page;
pub(crate) mod placement;
pub(crate) mod placement_page;
pub(crate) mod survival;
pub(crate) mod table;
pub(crate) mod text;

use crate::arguments::{CalibrationArgs, ClusterArgs, MayLack, MethodArgs, model, prediction_source};
use crate::plan::text as planned;
use clap::Args;
use cli::exit::VerbAnswer;
use cli::interrupt::stop_on_termination;
use cli::quantities::results;
use cli::terminal::{self, Talk, TerminalObserver, pasted, pasted_command, pasted_path, talk};
use model::OperationError;
use operation::files::{check_empty_folder, check_writable, write_wanted};
use operation::policy_file::read_policy;
use plan::planning::{PlanRun, PlanningQuestion, plan_cluster};
use plan::prediction::{ModelName, PredictionProblem, calibrate_slos, place};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use units::plural;

const HELP: &str = "\
Examples:
  tailwright plan tailwright-demo/cluster.toml
  tailwright plan cluster.toml --report plan.html -o policy.json
  tailwright plan cluster.toml --keep policy.json -o policy.json
      workloads came or went
  tailwright plan cluster.toml --survive 1       any one server may fail
  tailwright plan cluster.toml --model replayed  fewer servers for an assumption
  tailwright plan cluster.toml --model calibrated --coverage 95%
      the same for the next window of traffic
  tailwright plan --slos slos.csv --traces traces/ --storage ssd-profile.json \\
      --network 125MB/s --max-servers 62 --json

A cluster file:
  [[server]]
  class = \"ssd\"
  count = 8
  storage = \"ssd-profile.json\"      # device profile, relative to this file
  network = \"125MB/s\"               # or 1Gbps; in each direction

  [[workload]]
  name = \"mail\"
  trace = \"traces/mail.csv.gz\"      # representative requests
  slo = \"99.9% < 200ms\"

In the JSON, rate is a fraction of the stage's capacity and burst is in seconds of that capacity; \
rate_per_s and burst_work are the same in bytes (network) and seconds of device time (storage). \
The JSON is also the policy file that other verbs take.

What was read of a trace is kept in $XDG_CACHE_HOME/tailwright/footprints \
(~/.cache/tailwright/footprints), by content; the folder can be removed at any time.

Ctrl-C ends --model with the best placement so far; a second one ends it without.

Exit codes: 0 all workloads are admitted; 1 some are not, or a failure is not survived; 2 bad input; 3 --model was interrupted.";

/// Place workloads on servers, with priorities and rate limits that guarantee their tail latencies.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct PlanArgs {
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    method: MethodArgs,
    /// By which model: place by what it predicts, not by guaranteed limits: fewer servers for a stated assumption.
    #[arg(long, value_name = "MODEL", value_parser = model(), conflicts_with_all = ["policy", "order", "fast_first_fit", "segments", "effort", "time_budget", "keep", "compare", "survive"])]
    model: Option<ModelName>,
    /// Workloads that may burst together, with --model (a table with the columns workload and group, or one
    /// group per line, or JSON arrays of names).
    #[arg(long, value_name = "FILE", requires = "model")]
    groups: Option<PathBuf>,
    /// Leave the workloads of this policy where they are, and place new ones beside them, first fit. A
    /// workload whose requests, SLO or server have changed moves if it no longer fits, and is listed.
    #[arg(long, value_name = "POLICY.json", conflicts_with_all = ["order", "effort", "time_budget"])]
    keep: Option<PathBuf>,
    /// With --keep: when a workload cannot stay where it is, write nothing and say who (exit code 1).
    #[arg(long, requires = "keep")]
    no_moves: bool,
    /// Plan so that every SLO still holds with any one server gone, or, with failure_domain in the cluster
    /// file, any one domain: says who then goes where, and which servers are kept idle for it. N is 1.
    #[arg(long, value_name = "N", value_parser = survival::one_failure)]
    survive: Option<usize>,
    /// With --survive: write the policy after each failure to this folder, which is made or empty.
    #[arg(long, value_name = "FOLDER", requires = "survive")]
    survive_policies: Option<PathBuf>,
    /// Also plan with the published methods and show how many servers they need.
    #[arg(long, conflicts_with = "survive")]
    compare: bool,
    /// Write the plan, as a policy file.
    #[arg(short, long, value_name = "POLICY.json")]
    output: Option<PathBuf>,
    /// Write a page with charts for a browser.
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    /// Print JSON: the plan, which is a policy file.
    #[arg(long)]
    json: bool,
    /// List every workload, also when there are many.
    #[arg(long)]
    all: bool,
    #[command(flatten)]
    calibration: CalibrationArgs,
}

pub fn run(args: &PlanArgs) -> Result<VerbAnswer, OperationError> {
    check_writable(args.output.as_deref(), "policy")?;
    check_writable(args.report.as_deref(), "report")?;
    if let Some(model) = args.model {
        return args.place_by_model(model);
    }
    args.calibration.refuse_without_model()?;
    check_empty_folder(args.survive_policies.as_deref(), "policies")?;
    let keep = args.keep.as_deref().map(read_policy).transpose()?;
    let recipe = args.method.recipe()?;
    let mut source = args.cluster.source(MayLack::default())?;
    source.results = results([&args.output, &args.report]);
    let question = PlanningQuestion {
        source: &source,
        recipe: &recipe,
        keep: keep.as_ref(),
        survive: args.survive.is_some(),
        compare: args.compare,
    };
    let run = plan_cluster(&question, &TerminalObserver)?;
    let moved = run.planned.changed.as_ref().map_or(&[][..], |changed| &changed.moved);
    if args.no_moves && !moved.is_empty() {
        if args.json {
            terminal::print(&document::plan(&run));
        } else {
            terminal::print_text(&planned::moves(moved));
        }
        talk(Talk::Plain, "not every workload can stay where it is, so no plan was made (--no-moves)");
        return Ok(VerbAnswer::No);
    }
    let written = write_wanted(args.output.as_deref(), "policy", || document::plan(&run));
    let drawn = write_wanted(args.report.as_deref(), "report", || page::html(&run));
    let policies = match (&args.survive_policies, &run.survival) {
        (Some(folder), Some(survival)) => survival::write_policies(folder, &run, survival),
        _ => Ok(()),
    };
    if args.json {
        terminal::print(&document::plan(&run));
    } else {
        terminal::print_text(&planned::text(&run, args.all));
    }
    written.and(drawn).and(policies)?;
    if !args.json {
        terminal::print_text(&args.next_steps(&run));
    }
    Ok(answer(&run))
}

/// Returns the exit status of a run with this plan.
pub(crate) fn answer(run: &PlanRun) -> VerbAnswer {
    let is_survived = run.survival.as_ref().is_none_or(|survival| survival.unsurvived() == 0);
    if run.planned.placement.refused.is_empty() && is_survived { VerbAnswer::Yes } else { VerbAnswer::No }
}

impl PlanArgs {
    fn place_by_model(&self, model: ModelName) -> Result<VerbAnswer, OperationError> {
        let mut source = prediction_source(&self.cluster, self.groups.as_deref(), false)?;
        source.preemptive = self.method.is_preemptive();
        source.cluster.results = results([&self.output, &self.report]);
        source.calibration = self.calibration.goal_for(&[model.into()])?;
        let stop = stop_on_termination();
        let problem = PredictionProblem::read(&source, &TerminalObserver)?;
        problem.check_without_rules()?;
        let interrupted = || stop.load(Ordering::Relaxed);
        if model == ModelName::Calibrated && !calibrate_slos(&problem, &interrupted, &TerminalObserver) {
            return Err(OperationError::machine(
                "interrupted while held-out windows were replayed: no workload is placed",
            )
            .hint("fewer windows take less time: a longer --horizon, a lower --coverage"));
        }
        let placed = place(&problem, model, &interrupted, &TerminalObserver);
        // A plan without a workload replaces no earlier one.
        let is_empty = placed.interrupted && placed.packing.servers.is_empty();
        let policy = self.output.as_deref().filter(|_| !is_empty);
        let page = self.report.as_deref().filter(|_| !is_empty);
        let written = write_wanted(policy, "policy", || placement::json(&problem, &placed));
        let drawn = write_wanted(page, "report", || placement_page::html(&problem, &placed));
        if self.json {
            terminal::print(&placement::json(&problem, &placed));
        } else {
            terminal::print_text(&placement::text(&problem, &placed));
        }
        written.and(drawn)?;
        if is_empty {
            return Err(OperationError::machine(
                "interrupted before any workload was placed: nothing is written",
            ));
        }
        if placed.interrupted {
            let placed = problem.cluster.workloads.len() - placed.packing.refused.len();
            let all = plural(problem.cluster.workloads.len(), "workload");
            return Err(OperationError::machine(format_args!(
                "interrupted: the placement holds, but the search was not over; it has a place for {placed} of {all}"
            )));
        }
        let is_kept = placed.packing.refused.is_empty() && placed.is_kept(&problem);
        Ok(if is_kept { VerbAnswer::Yes } else { VerbAnswer::No })
    }

    /// Returns commands to paste that use this plan.
    fn next_steps(&self, run: &PlanRun) -> String {
        let mut text = String::new();
        let tightest = run.planned.tightest().map(|w| &run.planned.instance.workloads[w].name);
        // A second run may find another plan, so the hint explains the policy that was written.
        if let (Some(name), Some(policy)) = (tightest, &self.output) {
            let file = self.cluster.file();
            let options = self.cluster.option_words();
            let explain = explain_command(name, file, options, policy);
            text.push_str(&format!("  {explain}\n"));
        }
        // Standard input cannot be read again by a pasted command.
        if !std::env::args_os().any(|word| word == "-") {
            let options = [
                (self.output.is_none(), ["-o", "policy.json"]),
                (self.report.is_none(), ["--report", "plan.html"]),
            ];
            for (_, option) in options.into_iter().filter(|(is_open, _)| *is_open) {
                text.push_str(&format!("  {}\n", this_command_with(&option)));
            }
        }
        if text.is_empty() { text } else { format!("\nnext:\n{text}") }
    }
}

/// Returns this command with more options, inserted before `--` if there is one.
fn this_command_with(options: &[&str]) -> String {
    let mut words: Vec<OsString> = std::env::args_os().skip(1).collect();
    let at = words.iter().position(|word| word == "--").unwrap_or(words.len());
    words.splice(at..at, options.iter().map(OsString::from));
    pasted_command(words.into_iter())
}

/// The command that derives the bound of a workload in a plan.
pub(crate) fn explain_command(
    workload: &str,
    cluster: Option<&Path>,
    mut options: Vec<String>,
    plan: &Path,
) -> String {
    options.extend(["--plan".to_owned(), pasted_path(plan)]);
    let names: Vec<String> = [pasted(workload)].into_iter().chain(cluster.map(pasted_path)).collect();
    let options = options.join(" ");
    let names = names.join(" ");
    // A name that looks like an option stands behind all options.
    match workload.starts_with('-') {
        true => format!("tailwright explain {options} -- {names}"),
        false => format!("tailwright explain {names} {options}"),
    }
}

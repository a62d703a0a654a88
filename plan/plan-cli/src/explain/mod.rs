//! `tailwright explain`: the derivation of one workload's bound, term by term.

pub(crate) mod predicted;
pub(crate) mod text;

use crate::arguments::{CalibrationArgs, ClusterArgs, MayLack, MethodArgs, model, prediction_source};
use crate::explain::text as derivation;
use clap::Args;
use cli::exit::VerbAnswer;
use cli::quantities::percentage;
use cli::terminal::{self, TerminalObserver};
use model::OperationError;
use operation::policy_file::read_policy;
use plan::RefusedWorkload;
use plan::cluster::find_workload;
use plan::planning::{GuaranteeExplanation, RefusalExplanation, explain, recipe_of_policy};
use plan::prediction;
use plan::prediction::{ModelName, PredictionProblem};
use std::path::PathBuf;
use units::Percentile;

const HELP: &str = "\
Examples:
  tailwright explain database-1 tailwright-demo/cluster.toml
  tailwright explain mail cluster.toml
  tailwright explain mail cluster.toml --plan policy.json   as this plan has it
  tailwright explain C7 --slos slos.csv --storage ssd-profile.json \\
      --network 125MB/s \\
      --max-servers 8
  tailwright explain mail cluster.toml --model probabilistic
      what a model predicts on one server

Without --plan, the plan is made anew from the same inputs; the same inputs give the same plan.

Exit codes: 0 explained; 1 the workload is not admitted (why is printed); 2 bad input.";

/// Derive one workload's latency bound, term by term.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ExplainArgs {
    #[arg(value_name = "WORKLOAD", help = "Which workload")]
    workload: String,
    #[command(flatten)]
    cluster: ClusterArgs,
    #[command(flatten)]
    method: MethodArgs,
    /// Explain this plan (from `tailwright plan -o`) instead of making one.
    #[arg(long, value_name = "POLICY.json", conflicts_with_all = ["policy", "order", "effort", "time_budget", "fast_first_fit", "segments", "preemptive"])]
    plan: Option<PathBuf>,
    /// By which model: derive what it predicts when all workloads share one server, as `tailwright bound` has it.
    #[arg(long, value_name = "MODEL", value_parser = model(), conflicts_with_all = ["plan", "policy", "order", "fast_first_fit", "segments", "effort", "time_budget"])]
    model: Option<ModelName>,
    /// The percentile that a model is asked about, such as 99.9 (default: that of the SLO).
    #[arg(long, value_name = "PERCENT", requires = "model", value_parser = percentage)]
    percentile: Option<Percentile>,
    /// Workloads that may burst together, with --model (see `tailwright bound --help`).
    #[arg(long, value_name = "FILE", requires = "model")]
    groups: Option<PathBuf>,
    /// Requests pass a network link alone; with --model.
    #[arg(long, requires = "model")]
    link_only: bool,
    #[command(flatten)]
    calibration: CalibrationArgs,
    /// Print JSON: the derivation.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &ExplainArgs) -> Result<VerbAnswer, OperationError> {
    if let Some(model) = args.model {
        return args.explain_prediction(model);
    }
    args.calibration.refuse_without_model()?;
    let mut recipe = args.method.recipe()?;
    let policy = args.plan.as_deref().map(read_policy).transpose()?;
    if let Some(policy) = &policy {
        recipe = recipe_of_policy(policy)?;
    }
    let source = args.cluster.source(MayLack::default())?;
    match explain(&args.workload, &source, &recipe, policy.as_ref(), &TerminalObserver)? {
        GuaranteeExplanation::Admitted(found) => {
            if args.json {
                terminal::print(&operation::document::document(&*found));
            } else {
                terminal::print_text(&derivation::text(&found));
            }
            Ok(VerbAnswer::Yes)
        }
        GuaranteeExplanation::Refused(refused) => {
            if args.json {
                terminal::print(&operation::document::document(&*refused));
            } else {
                let RefusalExplanation { refused: RefusedWorkload { workload, reason, .. }, derivation } =
                    *refused;
                let derived =
                    derivation.map_or_else(String::new, |derived| derivation::refused_text(&derived));
                terminal::print_text(&format!("{workload} is not admitted: {reason}\n{derived}"));
            }
            Ok(VerbAnswer::No)
        }
    }
}

impl ExplainArgs {
    fn explain_prediction(&self, model: ModelName) -> Result<VerbAnswer, OperationError> {
        let mut source = prediction_source(&self.cluster, self.groups.as_deref(), self.link_only)?;
        source.preemptive = self.method.is_preemptive();
        source.calibration = self.calibration.goal_for(&[model.into()])?;
        let problem = PredictionProblem::read(&source, &TerminalObserver)?;
        let names: Vec<&str> =
            problem.cluster.workloads.iter().map(|workload| workload.spec.name.as_str()).collect();
        let workload = find_workload(&self.workload, &names)?;
        let derivation = prediction::derive(&problem, workload, model, self.percentile, &TerminalObserver);
        if self.json {
            terminal::print(&operation::document::document(&derivation));
        } else {
            terminal::print_text(&predicted::text(&derivation));
        }
        Ok(VerbAnswer::Yes)
    }
}

//! `tailwright admit`: who may come, decided one after the other.

pub(crate) mod text;

use crate::admit::text as admission;
use crate::arguments::{PredictionArgs, procedure};
use clap::Args;
use cli::exit::VerbAnswer;
use cli::quantities::results;
use cli::terminal::{self, TerminalObserver};
use model::OperationError;
use operation::files::{check_writable, write_wanted};
use plan::admission::{AdmissionQuestion, admission_policy, admit};
use plan::prediction::ProcedureName;
use std::path::PathBuf;

const HELP: &str = "\
Examples:
  tailwright admit tailwright-demo/cluster.toml
  tailwright admit cluster.toml --model probabilistic
  tailwright admit cluster.toml --model replayed --events day.txt --json
  tailwright admit --slos slos.csv --traces traces/ --storage ssd-profile.json \\
      --network 125MB/s \\
      --max-servers 2 --groups teams.csv
  tailwright admit --slos slos.csv --traces traces/ --link-only \\
      --network 1Gbps --model silo++

Workloads arrive in the order of the input and go to the first server where all SLOs, \
theirs included, are met. A group arrives as a whole and is accepted or refused as a whole. \
Without --max-servers there is one server.

Events, one per line:
  arrive mail
  arrive web-1 web-2        together or not at all
  depart mail

Exit codes: 0 all workloads are admitted; 1 a workload was refused; 2 bad input.";

/// Decide on arriving and departing workloads, and say why one is refused.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct AdmitArgs {
    #[command(flatten)]
    prediction: PredictionArgs,
    /// By which model or procedure: what must hold for all workloads after each arrival.
    #[arg(long, value_name = "MODEL", value_parser = procedure(), default_value = "worst-case")]
    model: ProcedureName,
    /// Arrivals and departures (default: all workloads arrive, in the order of the input).
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Write who is where, with priorities and limits, as a policy file.
    #[arg(short, long, value_name = "POLICY.json")]
    output: Option<PathBuf>,
    /// Print JSON: the decisions.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &AdmitArgs) -> Result<VerbAnswer, OperationError> {
    check_writable(args.output.as_deref(), "policy")?;
    let mut source = args.prediction.source(&[args.model])?;
    source.cluster.results = results([&args.output]);
    let question = AdmissionQuestion { source, procedure: args.model, events: args.events.clone() };
    let (problem, outcome) = admit(&question, &TerminalObserver)?;
    let written = write_wanted(args.output.as_deref(), "policy", || {
        operation::document::pretty(&admission_policy(&problem, &outcome))
    });
    if args.json {
        terminal::print(&admission::json(&problem, &outcome));
    } else {
        terminal::print_text(&admission::text(&problem, &outcome));
    }
    written?;
    let nobody = outcome.refused(&problem).is_empty() && outcome.refused_again(&problem).is_empty();
    Ok(if nobody { VerbAnswer::Yes } else { VerbAnswer::No })
}

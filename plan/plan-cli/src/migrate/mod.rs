//! `tailwright migrate`: from one policy to another, step by step, with every promise kept.

pub(crate) mod text;

use crate::arguments::{ClusterArgs, MayLack};
use crate::migrate::text as migration;
use clap::Args;
use cli::exit::VerbAnswer;
use cli::quantities::results;
use cli::terminal::{self, TerminalObserver};
use model::OperationError;
use operation::document::{document, pretty};
use operation::files::{check_empty_folder, write_result};
use operation::policy_file::read_policy;
use plan::planning::{MigrationPlan, MigrationQuestion, plan_migration};
use std::fs;
use std::path::{Path, PathBuf};
use units::{ByteRate, Bytes};

const HELP: &str = "\
Examples:
  tailwright migrate tailwright-demo/plan.json tailwright-demo/plan.json \\
      tailwright-demo/cluster.toml
  tailwright migrate old.json new.json cluster.toml -o steps
  tailwright migrate old.json new.json cluster.toml --copy-rate 20MB/s

Make the new policy with the cluster file as it is now: `tailwright plan cluster.toml -o new.json`, \
or with --keep old.json, which moves no workload that can stay.

Each step is a policy for all hosts. Apply it on all of them before the next one. Whichever hosts \
have applied it already, every SLO holds. During a copy step, copy the data as its line says.

Exit codes: 0 steps were found, or none are needed; 1 none were found; 2 bad input.";

/// Lead from one policy to another in steps that keep every SLO: who moves when, and how fast data may be copied.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct MigrateArgs {
    /// The policy that is enforced now.
    #[arg(value_name = "OLD.json")]
    old: PathBuf,
    /// The policy that is wanted.
    #[arg(value_name = "NEW.json")]
    new: PathBuf,
    #[command(flatten)]
    cluster: ClusterArgs,
    /// The highest rate at which the data of a workload is copied; it is halved until the copy fits.
    #[arg(long, value_name = "RATE", default_value = "100MB/s", value_parser = positive_rate)]
    copy_rate: ByteRate,
    /// Size of the requests of copies.
    #[arg(long, value_name = "SIZE", default_value = "64KiB", value_parser = positive_size)]
    copy_request: Bytes,
    /// Write the policy of each step to this folder, which is made or empty.
    #[arg(short, long, value_name = "FOLDER")]
    output: Option<PathBuf>,
    /// Print JSON: the steps.
    #[arg(long)]
    json: bool,
}

fn positive_rate(text: &str) -> Result<ByteRate, String> {
    let rate: ByteRate = text.parse().map_err(|error| format!("{error}"))?;
    if rate.bytes_per_sec() >= 1.0 { Ok(rate) } else { Err("expected at least 1B/s".to_owned()) }
}

fn positive_size(text: &str) -> Result<Bytes, String> {
    let size: Bytes = text.parse().map_err(|error| format!("{error}"))?;
    if (1..=1 << 30).contains(&size.0) { Ok(size) } else { Err("expected 1B to 1GiB".to_owned()) }
}

pub fn run(args: &MigrateArgs) -> Result<VerbAnswer, OperationError> {
    check_empty_folder(args.output.as_deref(), "steps")?;
    let old = read_policy(&args.old)?;
    let new = read_policy(&args.new)?;
    let mut source = args.cluster.source(MayLack::default())?;
    source.results = results([&args.output]);
    let question = MigrationQuestion {
        source: &source,
        old: &old,
        new: &new,
        copy_rate: args.copy_rate,
        copy_request: args.copy_request,
    };
    let plan = plan_migration(&question, &TerminalObserver)?;
    let written = args.output.as_deref().map_or(Ok(()), |folder| write_steps(folder, &plan));
    if args.json {
        terminal::print(&document(&plan));
    } else {
        terminal::print_text(&migration::text(&plan, args.output.as_deref()));
    }
    written?;
    Ok(if plan.found { VerbAnswer::Yes } else { VerbAnswer::No })
}

/// Writes the policy of each step to a file of its own.
fn write_steps(folder: &Path, plan: &MigrationPlan) -> Result<(), OperationError> {
    if plan.steps.is_empty() {
        return Ok(());
    }
    fs::create_dir_all(folder).map_err(|error| {
        OperationError::machine(format_args!("{}: cannot make the folder: {error}", folder.display()))
            .hint("check its permissions and the space left")
    })?;
    for step in &plan.steps {
        write_result(&folder.join(step.file_name()), &pretty(&step.policy), "policy")?;
    }
    Ok(())
}

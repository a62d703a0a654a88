//! `tailwright trace split`: a recording becomes a trace per workload.

use crate::trace::arguments::TraceInputArgs;
use clap::ValueEnum;
use cli::terminal::{self, TerminalObserver};
use plan::trace_files::{TraceFileError, cluster_text, split_trace};
use std::path::PathBuf;
use trace::SplitKey;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "What is printed is the beginning of a cluster file; what it does not know is marked CHANGE.\n\
    With --by client, the requests of a client to each of several servers, ports or devices are a trace each.\n\n\
    Examples:\n  \
    tailwright simulate tailwright-demo/plan.json \\\n      --cluster tailwright-demo/cluster.toml -o observed.parquet\n  \
    tailwright trace split observed.parquet -o traces\n  tailwright trace split recording -o traces > cluster.toml\n  \
    tailwright trace split capture.tcpdump --by client -o traces > cluster.toml\n\n\
    Exit codes: 0 done; 2 bad input; 3 the output cannot be written."
)]
pub(super) struct SplitArgs {
    #[arg(value_name = "FILE|FOLDER", help = "Recording, observations or capture of tcpdump to read")]
    file: PathBuf,
    /// Write the traces to this folder, NAME.parquet each
    #[arg(short, long, value_name = "FOLDER")]
    output: PathBuf,
    /// Key by which requests are split into traces
    #[arg(long, value_name = "KEY", value_enum, default_value = "workload")]
    by: SplitKeyArg,
    #[command(flatten)]
    input: TraceInputArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SplitKeyArg {
    Workload,
    Client,
}

pub(super) fn run(args: &SplitArgs) -> Result<(), TraceFileError> {
    let key = match args.by {
        SplitKeyArg::Workload => SplitKey::Workload,
        SplitKeyArg::Client => SplitKey::Client,
    };
    let parts = split_trace(&args.file, key, &args.input.options(), &args.output, &TerminalObserver)?;
    terminal::print(&cluster_text(&args.file, &parts));
    Ok(())
}

//! `tailwright trace split`: a recording becomes a trace per workload.

use crate::trace::arguments::TraceInputArgs;
use clap::ValueEnum;
use cli::terminal::{self, TerminalObserver};
use operation::files::write_result;
use plan::trace_files::{
    ClusterFacts, ServerPlace, SplitTrace, TraceFileError, cluster_text, hosts_text, split_trace,
};
use std::path::PathBuf;
use trace::SplitKey;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "What is printed is the beginning of a cluster file; what it does not know is marked CHANGE.\n\
    With --by client, the requests of a client to each of several servers, ports or devices are a trace each.\n\n\
    Examples:\n  \
    tailwright simulate tailwright-demo/plan.json \\\n      --cluster tailwright-demo/cluster.toml -o observed.parquet\n  \
    tailwright trace split observed.parquet -o traces\n  tailwright trace split recording -o traces > cluster.toml\n  \
    tailwright trace split capture.tcpdump --by client -o traces > cluster.toml\n  \
    tailwright trace split recording --by client -o traces \\\n      --storage ssd.json --hosts hosts.toml > cluster.toml\n\n\
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
    /// Write a hosts file, too: the server as the recording and, where it runs, this machine know it, and clients by their addresses
    #[arg(long, value_name = "HOSTS.toml")]
    hosts: Option<PathBuf>,
    /// Device profile of the server, for both files
    #[arg(long, value_name = "PROFILE.json")]
    storage: Option<PathBuf>,
    /// Rate of the server's link, such as 1Gbps [default: what the link says with --hosts on the server's machine]
    #[arg(long, value_name = "RATE", value_parser = as_given::<units::ByteRate>)]
    network: Option<String>,
    /// SLO of all workloads, such as "99.9% < 100ms"
    #[arg(long, value_name = "SLO", value_parser = as_given::<model::Slo>)]
    slo: Option<String>,
    #[command(flatten)]
    input: TraceInputArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SplitKeyArg {
    Workload,
    Client,
}

/// Checks a value, which is written to files as it was given.
fn as_given<T: std::str::FromStr>(text: &str) -> Result<String, T::Err> {
    text.parse::<T>().map(|_| text.to_owned())
}

pub(super) fn run(args: &SplitArgs) -> Result<(), TraceFileError> {
    let key = match args.by {
        SplitKeyArg::Workload => SplitKey::Workload,
        SplitKeyArg::Client => SplitKey::Client,
    };
    let SplitTrace { parts, servers } =
        split_trace(&args.file, key, &args.input.options(), &args.output, &TerminalObserver)?;
    let mut facts =
        ClusterFacts { storage: args.storage.clone(), network: args.network.clone(), slo: args.slo.clone() };
    if let Some(path) = &args.hosts {
        let mut place = ServerPlace::of(&servers, &parts)?;
        place.link = facts.network.clone().or(place.link);
        facts.network.clone_from(&place.link);
        let text = hosts_text(&args.file, &place, &parts, args.storage.as_deref());
        write_result(path, &text, "hosts file")?;
    }
    terminal::print(&cluster_text(&args.file, &parts, &facts));
    Ok(())
}

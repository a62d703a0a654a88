//! `tailwright trace split`: a recording becomes a trace per workload.

use crate::trace::arguments::TraceInputArgs;
use clap::ValueEnum;
use cli::terminal::{self, TerminalObserver};
use model::OperationError;
use operation::files::{check_apart, write_result};
use plan::trace_files::{
    ClusterFacts, ServerPlace, SplitTrace, TraceFileError, check_profile, cluster_text, hosts_text,
    split_trace,
};
use std::path::{Path, PathBuf};
use trace::SplitKey;
use units::ByteRate;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "What is printed is the beginning of a cluster file; what it does not know is marked CHANGE. \
    With --by client, the requests of a client to each of several servers, ports or devices are a trace each.\n\n\
    Examples:\n  \
    tailwright simulate tailwright-demo/plan.json \\\n      --cluster tailwright-demo/cluster.toml -o observed.parquet\n  \
    tailwright trace split observed.parquet -o traces\n  tailwright trace split recording -o traces > cluster.toml\n  \
    tailwright trace split capture.tcpdump --by client -o traces > cluster.toml\n  \
    tailwright trace split recording --by client -o traces \\\n      --storage ssd.json --write-hosts hosts.toml > cluster.toml\n\n\
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
    /// Write a hosts file, too: the server as the recording and, where it runs, this machine know it, and clients by their
    /// addresses
    #[arg(long, value_name = "HOSTS.toml")]
    write_hosts: Option<PathBuf>,
    /// Device profile of the storage of the server, for both files
    #[arg(long, value_name = "PROFILE.json")]
    storage: Option<PathBuf>,
    /// Link bandwidth of every server, such as 1Gbps, for both files (default: what the link says, with --write-hosts on
    /// the server's machine)
    #[arg(long, value_name = "RATE")]
    network: Option<ByteRate>,
    #[command(flatten)]
    input: TraceInputArgs,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SplitKeyArg {
    Workload,
    Client,
}

/// Returns the path of a profile as a hosts file in another folder has to name it.
fn seen_from(hosts: &Path, profile: &Path) -> Result<PathBuf, OperationError> {
    if hosts.parent().is_none_or(|folder| folder.as_os_str().is_empty()) {
        return Ok(profile.to_owned());
    }
    std::path::absolute(profile).map_err(|error| {
        OperationError::machine(format_args!(
            "{}: the current folder is not known: {error}",
            profile.display()
        ))
    })
}

pub(super) fn run(args: &SplitArgs) -> Result<(), TraceFileError> {
    let key = match args.by {
        SplitKeyArg::Workload => SplitKey::Workload,
        SplitKeyArg::Client => SplitKey::Client,
    };
    if args.write_hosts.as_deref() == Some(Path::new("-")) {
        return Err(OperationError::input(
            "--write-hosts: expected a file, because the cluster file is printed",
        )
        .into());
    }
    if let Some(path) = &args.storage {
        check_profile(path)?;
    }
    let SplitTrace { parts, servers } =
        split_trace(&args.file, key, &args.input.options(), &args.output, &TerminalObserver)?;
    let network = args.network.map(|rate| rate.to_string());
    let mut facts = ClusterFacts { storage: args.storage.clone(), network };
    if let Some(path) = &args.write_hosts {
        let mut place = ServerPlace::of(&servers, &parts)?;
        place.link = facts.network.clone().or(place.link);
        facts.network.clone_from(&place.link);
        check_apart(Some(path), parts.iter().map(|part| Some(part.path.as_path())))?;
        let profile = args.storage.as_deref().map(|profile| seen_from(path, profile)).transpose()?;
        let text = hosts_text(&args.file, &place, &parts, profile.as_deref());
        write_result(path, &text, "hosts file")?;
    }
    terminal::print(&cluster_text(&args.file, &parts, &facts));
    Ok(())
}

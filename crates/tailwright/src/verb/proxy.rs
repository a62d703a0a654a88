//! `tailwright proxy`: the storage enforcer before a server, in the foreground.

use crate::exit::VerbAnswer;
use crate::output::json;
use crate::terminal::{self, TextTable};
use clap::Args;
use enforce::network::StateStore;
use enforce::storage::{self, Proxy, ProxyHandle, ProxyReport, ProxySnapshot};
use model::OperationError;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::path::PathBuf;
use units::{Bytes, Nanos, Seconds};
use workflow::enforcement::{ProxyFiles, ProxySettings, proxy_options};

const HELP: &str = "\
Examples:
  tailwright proxy policy.json --hosts hosts.toml --server ssd-1     serve until SIGTERM
  tailwright proxy --hosts hosts.toml --server ssd-1                 no policy yet: everybody is best effort
  tailwright apply policy.json --hosts hosts.toml                    another policy, while traffic flows
  tailwright proxy --status --server ssd-1                           what it has seen

In the hosts file:
  [[server]]
  name = \"ssd-1\"
  host = \"store-1\"
  address = [\"10.0.0.9\"]
  [server.storage]
  profile = \"ssd.json\"               # device profile, as `tailwright profile` writes it
  outstanding = 16                   # most requests at the device at once
  front = [{ protocol = \"nfs\", listen = \"10.0.0.9\", forward = \"127.0.0.1\" }]

SIGTERM answers what was asked and ends; a second one ends at once. SIGHUP reads policy and hosts file again.
docs/proxy.md describes every field.

Exit codes: 0 ended as it was told; 2 bad input; 3 an address that cannot be had, or no proxy to ask.";

/// Stand before a storage server: queue every workload's requests, serve them by priority within their limits.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ProxyArgs {
    /// From `tailwright plan -o`; without it everybody is best effort until `tailwright apply` brings one.
    #[arg(value_name = "POLICY.json", conflicts_with = "status")]
    policy: Option<PathBuf>,
    /// Where servers and clients are.
    #[arg(long, value_name = "HOSTS.toml", required_unless_present = "status")]
    hosts: Option<PathBuf>,
    /// The server of the policy that it stands before.
    #[arg(long, value_name = "NAME")]
    server: String,
    /// Where it takes orders (default: in --state).
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// The folder in which `apply` looks for it.
    #[arg(long, value_name = "FOLDER", default_value = StateStore::DEFAULT)]
    state: PathBuf,
    /// Before sleeping, look for requests so long, while that mostly finds some: shorter latency for CPU time; 0s: never.
    #[arg(long, value_name = "TIME", default_value = "50us")]
    spin: Nanos,
    /// Real-time priority (SCHED_FIFO), 1 to 99; takes root.
    #[arg(long, value_name = "PRIORITY")]
    realtime: Option<u32>,
    /// Most connections of clients.
    #[arg(long, value_name = "COUNT", default_value_t = 1024)]
    connections: u64,
    /// How long requests may take after SIGTERM.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    drain: Nanos,
    /// In the end, write the first million requests as observations: waiting in the proxy, time at the server.
    #[arg(long, value_name = "FILE.parquet")]
    record: Option<PathBuf>,
    /// Ask a running proxy what it has seen.
    #[arg(long)]
    status: bool,
    #[arg(long, help = "Print JSON")]
    json: bool,
}

/// Requests that `--record` keeps at most.
const RECORDED_MAX: usize = 1_000_000;

pub(crate) fn run(args: &ProxyArgs) -> Result<VerbAnswer, OperationError> {
    let control = args.control.clone().unwrap_or_else(|| storage::control_path(&args.state, &args.server));
    if args.status {
        let snapshot = storage::query_status(&control)?;
        terminal::print(&if args.json { json::pretty(&snapshot) } else { text(&snapshot) });
        return Ok(VerbAnswer::Yes);
    }
    let files =
        ProxyFiles { hosts: args.hosts.clone().expect("clap asks for it"), policy: args.policy.clone() };
    let settings = ProxySettings {
        server: args.server.clone(),
        connections_max: args.connections,
        spin: args.spin,
        drain: args.drain,
        recorded_max: if args.record.is_some() { RECORDED_MAX } else { 0 },
    };
    let proxy = Proxy::bind(proxy_options(&files, &settings)?)?;
    let _socket = storage::listen_for_control(&control, proxy.handle())?;
    for address in proxy.addresses() {
        eprintln!("proxy: listening on {address}");
    }
    handle_signals(proxy.handle(), files)?;
    if let Some(priority) = args.realtime {
        machine::realtime::fifo(priority)
            .map_err(|error| OperationError::machine(error).hint("run as root"))?;
    }
    let report = proxy.run()?;
    write_record(args, &report)?;
    terminal::print(&if args.json { json::pretty(&report.snapshot) } else { text(&report.snapshot) });
    Ok(VerbAnswer::Yes)
}

/// Starts a thread that waits for signals; it ends with the process.
fn handle_signals(proxy: ProxyHandle, files: ProxyFiles) -> Result<(), OperationError> {
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| OperationError::machine(format_args!("signals cannot be caught: {error}")))?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal != SIGHUP {
                // The second one finds it draining, and ends it.
                proxy.drain();
                continue;
            }
            let changed =
                files.read().and_then(|(policy, deployment)| proxy.configure(policy, Some(deployment)));
            match changed {
                Ok(true) => eprintln!("proxy: policy and hosts file were read again"),
                Ok(false) => {
                    eprintln!("proxy: policy and hosts file were read again; they say what they said")
                }
                Err(error) => {
                    eprintln!("proxy: nothing has changed");
                    crate::exit::report(&error);
                }
            }
        }
    });
    Ok(())
}

fn write_record(args: &ProxyArgs, report: &ProxyReport) -> Result<(), OperationError> {
    let Some(path) = &args.record else { return Ok(()) };
    ::trace::observations::write(path, &report.observations).map_err(OperationError::machine)?;
    if report.left_out > 0 {
        eprintln!("warning: {}: the last {} requests are left out", path.display(), report.left_out);
    }
    Ok(())
}

fn text(snapshot: &ProxySnapshot) -> String {
    let headings = ["workload", "requests", "bytes", "other", "waited", "longest", "at server"];
    let mut table = TextTable::of_rows(&headings, 1, []);
    for seen in &snapshot.workloads {
        let requests = seen.requests.max(1) as f64;
        table.row(vec![
            seen.workload.clone(),
            seen.requests.to_string(),
            Bytes(seen.bytes).to_string(),
            seen.control.to_string(),
            Seconds(seen.waited_s / requests).to_string(),
            Seconds(seen.waited_max_s).to_string(),
            Seconds(seen.served_s / requests).to_string(),
        ]);
    }
    let ProxySnapshot { connections, cut, waiting, outstanding, changes, .. } = snapshot;
    format!(
        "{}\n{connections} connections ({cut} were cut off), {waiting} requests wait, {outstanding} are at the server; the policy was changed {changes} times\n",
        table.render()
    )
}

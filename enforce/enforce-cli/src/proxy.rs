//! `tailwright proxy`: the storage enforcer in front of a server, in the foreground.

use ::trace::recording::{RecordableRequest, is_recording_name};
use clap::Args;
use cli::exit::VerbAnswer;
use cli::scrape::{open_endpoint, scrape_address};
use cli::terminal::{self, Talk, TerminalObserver, TextTable, talk};
use enforce::facade::{ProxyFiles, ProxyMetricsPage, ProxySettings, ProxyStart, ReloadAnswer, proxy_start};
use enforce::network::StateStore;
use enforce::storage::{
    self, PolicyMemory, PolicyOrigin, ProxiedRequest, Proxy, ProxyConfigurator, ProxyOptions, ProxyReport,
    ProxySnapshot, ProxyStatus, Redirection,
};
use machine::user::OrdinaryUser;
use model::OperationError;
use schemars::JsonSchema;
use serde::Serialize;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use trace::check_observations;
use trace::recorder::{
    RecordedMessage, RecorderThread, RecordingTally, check_nothing_lost, recording_channel,
    recording_settings,
};
use units::{Bytes, Nanos, Seconds, plural};

const HELP: &str = "\
Examples:
  tailwright proxy policy.json --hosts hosts.toml --server ssd-1
      serve until SIGTERM
  tailwright proxy --hosts hosts.toml --server ssd-1
      no policy yet: all requests are best effort
  tailwright apply policy.json --hosts hosts.toml
      change the policy while traffic flows
  tailwright proxy --hosts hosts.toml --server ssd-1 --record rec
      record requests for the first plan
  tailwright proxy --status --server ssd-1   print counters
  tailwright proxy policy.json --hosts hosts.toml --server ssd-1 --take-over
      replace the running proxy, such as after an upgrade
  tailwright proxy policy.json --hosts hosts.toml --server ssd-1 \\
      --listen 127.0.0.1:9465   for Prometheus

In the hosts file:
  [[server]]
  name = \"ssd-1\"
  host = \"store-1\"
  address = [\"10.0.0.9\"]
  [server.storage]
  profile = \"ssd.json\"               # device profile, as `tailwright profile` writes it
  outstanding = 16                   # most requests at the device at once
  front = [{ protocol = \"nfs\", listen = \"10.0.0.9\", forward = \"127.0.0.1\" }]

On SIGTERM the proxy answers pending requests and ends; a second one ends it at once. SIGHUP reads policy and hosts file \
again, unless `apply` has sent a policy. That one is saved and used again after a restart, until `apply --remove`. \
docs/reference/hosts-file.md describes every field.

Exit codes: 0 stopped by a signal; 2 bad input; 3 an address that is not available, no proxy that answers, or \
requests missing in a recording.";

/// Forward and schedule requests to a storage server: queue every workload's requests, serve them by priority within their limits.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ProxyArgs {
    /// Policy from `tailwright plan -o`; without it all requests are best effort until `tailwright apply`
    /// sends one.
    #[arg(value_name = "POLICY.json", conflicts_with = "status")]
    policy: Option<PathBuf>,
    /// Where servers and clients are.
    #[arg(long, value_name = "HOSTS.toml", required_unless_present = "status")]
    hosts: Option<PathBuf>,
    /// Server of the policy to which requests are forwarded.
    #[arg(long, value_name = "NAME")]
    server: String,
    /// Its control socket (default: in --state).
    #[arg(long, value_name = "SOCKET")]
    control: Option<PathBuf>,
    /// Folder of the state, by which `apply` finds the proxy.
    #[arg(long, value_name = "FOLDER", default_value = StateStore::DEFAULT)]
    state: PathBuf,
    /// Busy-wait so long before sleeping, while polling mostly finds requests: trades CPU time for
    /// latency; 0s: never.
    #[arg(long, value_name = "TIME", default_value = "50us")]
    spin: Nanos,
    /// Threads that move bytes, up to 64, for the one that schedules: more requests per second where several
    /// CPUs are free; 0: it moves them itself.
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u8).range(0..=64))]
    loops: u8,
    /// Real-time priority (SCHED_FIFO), 1 to 99; takes root.
    #[arg(long, value_name = "PRIORITY")]
    realtime: Option<u32>,
    /// After listening, become this user (a name, or numbers as 65534:65534) and give up root for good.
    #[arg(long, value_name = "USER")]
    user: Option<OrdinaryUser>,
    /// Maximum number of client connections.
    #[arg(long, value_name = "N", default_value_t = 1024)]
    connections: u64,
    /// Take over the listeners and connections of the running proxy, which then ends: no client notices.
    #[arg(long, conflicts_with_all = ["status", "record"])]
    take_over: bool,
    /// Time limit for the requests in progress after SIGTERM.
    #[arg(long, value_name = "TIME", default_value = "10s")]
    drain: Nanos,
    /// Record requests: to a FOLDER as they come, in bounded space, for traces, and it survives a kill; to a FILE.parquet the
    /// first million in the end.
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// The most disk space of a recording; the oldest requests are deleted for newer ones.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", requires = "record")]
    record_space: Bytes,
    /// Where to listen for scrapers of Prometheus, such as 127.0.0.1:9465.
    #[arg(long, value_name = "ADDRESS", value_parser = scrape_address, conflicts_with = "status")]
    listen: Option<SocketAddr>,
    /// Accept servers that are used differently from the assumptions of the policy's bounds. The output then
    /// begins with a line that bounds do not apply.
    #[arg(long)]
    without_bounds: bool,
    /// Query the counters of a running proxy.
    #[arg(long)]
    status: bool,
    #[arg(long, help = "Print JSON: the counters")]
    json: bool,
}

/// Answer of a running proxy.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProxyStatusDocument<'a> {
    #[serde(flatten)]
    status: &'a ProxyStatus,
}

/// Counters of a proxy at its end.
#[derive(Serialize, JsonSchema)]
pub(crate) struct ProxyCountersDocument<'a> {
    #[serde(flatten)]
    counters: &'a ProxySnapshot,
}

/// Attempts to listen for scrapers after a take-over, and the time between them.
const ENDPOINT_ATTEMPTS: u32 = 300;
const ENDPOINT_INTERVAL: Duration = Duration::from_millis(20);

/// Maximum number of requests in the file of `--record`.
const RECORDED_MAX: usize = 1_000_000;

pub fn run(args: &ProxyArgs) -> Result<VerbAnswer, OperationError> {
    let control = args.control.clone().unwrap_or_else(|| storage::control_path(&args.state, &args.server));
    if args.status {
        let status = storage::query_status(&control)?;
        let words = text(&status.snapshot) + &origin_text(&status) + &predecessor_text(&status.snapshot);
        if args.json {
            terminal::print(&operation::document::document(&ProxyStatusDocument { status: &status }));
        } else {
            terminal::print_text(&words);
        }
        return Ok(VerbAnswer::Yes);
    }
    serve(args, &control)
}

/// Forwards requests to the server until a request to end.
fn serve(args: &ProxyArgs, control: &Path) -> Result<VerbAnswer, OperationError> {
    let files = ProxyFiles {
        hosts: args.hosts.clone().expect("clap asks for it"),
        policy: args.policy.clone(),
        server: args.server.clone(),
        without_bounds: args.without_bounds,
    };
    let folder = args.record.as_deref().filter(|path| is_recording_name(path));
    if folder.is_none() {
        check_observations(args.record.as_deref())?;
    }
    let space = recording_settings(args.record_space)?;
    let (sender, receiver) = recording_channel();
    let settings = ProxySettings {
        connections_max: args.connections,
        spin: args.spin,
        loops: args.loops,
        drain: args.drain,
        record: args.record.clone(),
        recorded_max: if args.record.is_some() && folder.is_none() { RECORDED_MAX } else { 0 },
        recording: folder.map(|_| sender),
    };
    let memory = PolicyMemory::beside(control);
    // Before the policy is read: the running proxy accepts no other one from now on.
    let mut predecessor = args.take_over.then(|| storage::take_over(control)).transpose()?;
    let ProxyStart { options, current, broken } = proxy_start(&files, &settings, &memory, &TerminalObserver)?;
    broken.iter().for_each(|broken| talk(Talk::Warning, format_args!("proxy: {broken}")));
    if current.is_remembered() {
        talk(
            Talk::Plain,
            format_args!("proxy: using the policy saved by apply: {}", memory.path().display()),
        );
    }
    drop(settings);
    storage::raise_open_files();
    let mut proxy = match &mut predecessor {
        Some(predecessor) => Proxy::inherit(options.clone(), predecessor)?,
        None => Proxy::bind(options.clone())?,
    };
    check_user(args, &proxy)?;
    let configurator = ProxyConfigurator::new(proxy.handle(), &options, current, Some(memory.clone()))?;
    let mut socket = match predecessor {
        Some(_) => None,
        None => Some(storage::listen_for_control(control, configurator.clone())?),
    };
    memory.prepare(args.user.as_ref().map(|user| (user.user, user.group)))?;
    let page = Arc::new(ProxyMetricsPage::new(configurator.clone(), &args.server));
    let open = move |address| {
        let page = Arc::clone(&page);
        open_endpoint(address, move || page.text())
    };
    let listen = args.listen.filter(|_| predecessor.is_none());
    let endpoint = listen.map(&open).transpose()?;
    for address in proxy.addresses() {
        talk(Talk::Plain, format_args!("proxy: listening on {address}"));
    }
    // Before root is given up, and after the proxy listens.
    let redirection = redirect(&options)?;
    handle_signals(configurator.clone(), files, redirection.clone())?;
    become_what_is_wanted(args)?;
    if folder.is_none() {
        // The process may be another user now, without access to the file.
        check_observations(args.record.as_deref())?;
    }
    let started = ProxyTimes(proxy.started_at());
    let begin = |folder| RecorderThread::begin(folder, space, receiver, started, TerminalObserver);
    let recorder = folder.map(begin).transpose()?;
    configurator.remember()?;
    if let Some(predecessor) = predecessor {
        let (process, count) = proxy.take_over(&predecessor)?;
        talk(
            Talk::Plain,
            format_args!("proxy: took over {} from process {process}", plural(count, "connection")),
        );
        socket = Some(storage::serve_taken_control(control, predecessor, configurator.clone())?);
        if let Some(address) = args.listen {
            open_later(move || open(address));
        }
    }
    let ran = proxy.run();
    drop(socket);
    drop(redirection.lock().unwrap_or_else(PoisonError::into_inner).take());
    let report = ran?;
    if report.is_taken_over {
        talk(Talk::Plain, "proxy: another process has taken over");
    }
    // No counter changes any more.
    drop(endpoint);
    drop(options);
    let written = match recorder {
        Some(recorder) => recorder.finish().and_then(|tally| say_what_was_recorded(args, tally, &report)),
        None => write_record(args, &report),
    };
    if args.json {
        terminal::print(&operation::document::document(&ProxyCountersDocument {
            counters: &report.snapshot,
        }));
    } else {
        terminal::print_text(&text(&report.snapshot));
    }
    written?;
    Ok(VerbAnswer::Yes)
}

/// Opens an endpoint, which lasts until the process exits, as soon as the process before has left its address.
fn open_later<E: 'static>(open: impl Fn() -> Result<E, OperationError> + Send + 'static) {
    std::thread::spawn(move || {
        for _ in 0..ENDPOINT_ATTEMPTS {
            match open() {
                Ok(endpoint) => return std::mem::forget(endpoint),
                Err(_) => std::thread::sleep(ENDPOINT_INTERVAL),
            }
        }
        if let Err(error) = open().map(std::mem::forget) {
            talk(Talk::Warning, format_args!("proxy: no metrics: {error}"));
        }
    });
}

/// Takes the real-time priority and then the user of the command line: a user without privileges could not
/// raise the priority.
fn become_what_is_wanted(args: &ProxyArgs) -> Result<(), OperationError> {
    if let Some(priority) = args.realtime {
        machine::realtime::fifo(priority)
            .map_err(|error| OperationError::machine(error).hint("run as root"))?;
    }
    let Some(user) = &args.user else { return Ok(()) };
    machine::user::become_user(user).map_err(|error| {
        OperationError::machine(format_args!("root cannot be given up: {error}"))
            .hint("--user takes root; without root the proxy is the user that starts it")
    })
}

/// Refuses to give up capabilities that connections to the server require.
fn check_user(args: &ProxyArgs, proxy: &Proxy) -> Result<(), OperationError> {
    let needed: Vec<&str> = proxy.capabilities().iter().copied().collect();
    if args.user.is_none() || needed.is_empty() {
        return Ok(());
    }
    let needed = needed.join(" and ");
    Err(OperationError::input(format_args!(
        "--user would give up {needed}, which the `source` of a front needs"
    ))
    .hint("start it as that user with these capabilities: docs/reference/proxy.md, What the server sees"))
}

/// The redirection of a proxy until its end, released by the thread that waits for signals.
type SharedRedirection = Arc<Mutex<Option<Redirection>>>;

/// Redirects new connections to the fronts that ask for it, and says so.
fn redirect(options: &ProxyOptions) -> Result<SharedRedirection, OperationError> {
    let server = options.deployment.servers.iter().find(|server| server.name == options.server);
    let storage = server.and_then(|server| server.storage.as_ref());
    let redirection = storage.map(Redirection::install).transpose()?.flatten();
    for front in storage.iter().flat_map(|storage| &storage.front) {
        if let Ok(Some(known)) = front.known_address() {
            talk(
                Talk::Plain,
                format_args!(
                    "proxy: new connections to {known} from other hosts are redirected here until the proxy \
                     ends; older ones stay with the server until they reconnect"
                ),
            );
        }
    }
    Ok(Arc::new(Mutex::new(redirection)))
}

/// Starts a thread that waits for signals; it ends with the process.
fn handle_signals(
    proxy: ProxyConfigurator,
    files: ProxyFiles,
    redirection: SharedRedirection,
) -> Result<(), OperationError> {
    let mut signals = signal_hook::iterator::Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| OperationError::machine(format_args!("signals cannot be caught: {error}")))?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            if signal != SIGHUP {
                let mut redirection = redirection.lock().unwrap_or_else(PoisonError::into_inner);
                redirection.iter_mut().for_each(Redirection::release);
                // A second signal finds the proxy draining, and ends it.
                proxy.handle().drain();
                continue;
            }
            match files.reload(&proxy, &TerminalObserver) {
                Ok(answer) => talk(Talk::Plain, format_args!("proxy: {}", reload_text(answer))),
                Err(error) => {
                    talk(Talk::Plain, "proxy: nothing has changed");
                    cli::exit::report(&error);
                }
            }
        }
    });
    Ok(())
}

fn reload_text(answer: ReloadAnswer) -> &'static str {
    match answer {
        ReloadAnswer::Changed => "policy and hosts file were read again",
        ReloadAnswer::Unchanged => "policy and hosts file were read again; the rules are unchanged",
        ReloadAnswer::Kept => "kept the policy from apply, and read no file; `apply --remove` removes it",
    }
}

/// Start of a proxy's clock, nanoseconds since 1970.
struct ProxyTimes(u64);

impl RecordedMessage<ProxiedRequest> for ProxyTimes {
    fn recorded<'a>(&'a self, message: &'a ProxiedRequest) -> RecordableRequest<'a> {
        RecordableRequest {
            arrival: Nanos(self.0) + message.arrived,
            size: message.size,
            op: message.op,
            offset: message.offset,
            response: message.ended - message.arrived,
            waited: message.sent - message.arrived,
            workload: &message.workload,
            client: Some(message.client),
        }
    }
}

/// Reports the recording; fails if requests are missing in it.
fn say_what_was_recorded(
    args: &ProxyArgs,
    tally: RecordingTally,
    report: &ProxyReport,
) -> Result<(), OperationError> {
    let place = args.record.as_deref().unwrap_or(Path::new(""));
    let written = plural(tally.written, "request");
    talk(Talk::Plain, format_args!("proxy: wrote {written} to {}", place.display()));
    check_nothing_lost(place, tally.lost + report.unrecorded)
}

fn write_record(args: &ProxyArgs, report: &ProxyReport) -> Result<(), OperationError> {
    let Some(path) = &args.record else { return Ok(()) };
    ::trace::observations::write(path, &report.observations)
        .map_err(|error| OperationError::machine(&error).hint(error.hint()))?;
    if report.left_out > 0 {
        talk(
            Talk::Warning,
            format_args!("{}: left out at its end: {}", path.display(), plural(report.left_out, "request")),
        );
    }
    Ok(())
}

fn text(snapshot: &ProxySnapshot) -> String {
    let headings = ["workload", "requests", "bytes", "other", "uncounted", "waited", "longest", "at server"];
    let mut table = TextTable::of_rows(&headings, 1, []);
    for seen in &snapshot.workloads {
        let requests = seen.requests.max(1) as f64;
        table.row(vec![
            seen.workload.clone(),
            seen.requests.to_string(),
            Bytes(seen.bytes).to_string(),
            seen.control.to_string(),
            seen.unexpected.to_string(),
            Seconds(seen.waited_s / requests).to_string(),
            Seconds(seen.waited_max_s).to_string(),
            Seconds(seen.served_s / requests).to_string(),
        ]);
    }
    let ProxySnapshot { connections, places, cut, waiting, outstanding, changes, .. } = snapshot;
    format!(
        "{}\n{} of at most {places} ({cut} cut off); requests that wait: {waiting}, at the server: {outstanding}; changes of the policy: {changes}\n",
        table.answered_by(&["waited", "requests", "longest"]).render(),
        plural(*connections, "connection")
    )
}

fn predecessor_text(snapshot: &ProxySnapshot) -> String {
    match snapshot.taken_over_from {
        Some(process) => format!(
            "took over from process {process}; counters continue since {} ago\n",
            plural(snapshot.take_overs, "take-over")
        ),
        None => String::new(),
    }
}

fn origin_text(status: &ProxyStatus) -> String {
    let origin = match status.policy_from {
        PolicyOrigin::Files => "by the files of the command line",
        PolicyOrigin::Apply => "by `tailwright apply`",
    };
    match &status.policy_name {
        Some(name) => format!("policy '{name}', {origin}\n"),
        None => format!("no policy, {origin}: all requests are best effort\n"),
    }
}

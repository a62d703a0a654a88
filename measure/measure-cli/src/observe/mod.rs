//! `tailwright observe`: requests of a live server, stage by stage.

pub(crate) mod block;
pub(crate) mod causes;
pub(crate) mod cost;
pub(crate) mod counters;
pub(crate) mod doubts;
pub(crate) mod fields;
pub(crate) mod ideal;
pub(crate) mod live;
pub(crate) mod live_page;
pub(crate) mod page;
pub(crate) mod text;

use crate::observe::cost::full_percent;
use crate::observe::live::{LiveArg, LiveTerminal};

use crate::observe::text::ObservedServer;
use crate::observe::{block as observed_block, doubts as observed_doubts, text as observed};
use clap::builder::TypedValueParser;
use clap::{Args, ValueEnum};
use cli::choice::value_of;
use cli::exit::VerbAnswer;
use cli::interrupt::stop_on_termination;
use cli::quantities::{at_least_one, share};
use cli::scrape::{open_endpoint, scrape_address};
use cli::terminal::{self, Talk, TerminalObserver, talk};
use machine::listening::is_any_listening;
use measure::observation::{
    IdealAssumptions, ObservationFiles, PublishedMetrics, ServerObservation, ServerQuestion, watch_server,
};
use model::OperationError;
use observe::{
    BlockDevice, BlockSettings, CostLimit, IntendedWaits, ObservationSettings, PROTOCOLS, ProbeSettings,
    Protocol, self_test,
};
use operation::files::write_wanted;
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use trace::recorder::{check_nothing_lost, recording_settings};
use units::{Nanos, plural};

const HELP: &str = "\
Examples:
  tailwright observe --port 11211 --duration 30s
  tailwright observe --port 80,443 --duration 1min --json
  tailwright observe --port 6379 --protocol resp
      requests as the protocol has them
  tailwright observe --port 80 --accept-queue
      how long connections wait to be accepted
  tailwright observe --port 80 --intended-waits exclude
      a server with long polls
  tailwright observe --port 11211 -o live.parquet
      every request, for `tailwright verify`
  tailwright observe --port 11211 --report live.html   a page with charts
  tailwright observe --port 11211 --duration 24h --record recording
      for `trace`, `bound` and `plan`
  tailwright observe --port 11211 --mean-service 8us --workers 4
      what is known for the ideal
  tailwright observe --port 11211 --slowest slow.json
      for https://ui.perfetto.dev
  tailwright observe --port 11211 --duration 5min --cost-limit 0.5%
      a server that must not be slowed down
  tailwright observe --port 11211 --listen 127.0.0.1:9464
      for Prometheus, until Ctrl-C
  tailwright observe --selftest   does it work on this machine?
  tailwright observe --block --disk sda --duration 10s
      who waits how long for a disk

Beside the measured latencies stand ideal ones: the same arrivals, and nothing but queueing. What \
is between them is due to the server and its machine, and not to its load.

The server is not changed and not restarted; nothing is done to packets and sockets of other \
ports. It takes root, or the capabilities CAP_BPF and CAP_PERFMON. Ctrl-C, SIGTERM and SIGHUP end it with \
what there is, and so does the end of the server, without --listen. On a terminal a page shows what \
is seen while it is seen. docs/reference/observe.md says what the stages are, what the ideal rests on, what is \
guessed and what is not seen.

Exit codes: 0 done; 1 no request was seen, or the self-test has failed; 2 bad input; 3 a privilege or \
a kernel feature is missing, or not everything could be written.";

/// Requests of the self-test by each of its clients.
const SELF_TEST_REQUESTS: usize = 5_000;

/// How long an observation takes that nobody watches.
const USUAL_TIME: Nanos = Nanos(10_000_000_000);

/// For at most this long, and a tenth of the time, the kernel measures what observing costs.
const COST_TIME_MAX: Duration = Duration::from_secs(1);

/// See where requests of a live server spend their time, without a change to it.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct ObserveArgs {
    /// Ports that the server listens on, TCP and UDP. Several are taken together, in one distribution: observe servers
    /// one by one to tell them apart.
    #[arg(long, value_name = "PORT,…", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..),
          required_unless_present_any = ["selftest", "block", "device"])]
    port: Vec<u16>,
    /// Observe requests of block devices, not of servers: time in queues and at the device, by process.
    #[arg(long, conflicts_with_all = ["port", "share", "protocol", "accept_queue", "buffer", "output", "intended_waits", "selftest",
          "service", "workers", "report", "record", "hdr", "prometheus_file", "slowest"])]
    block: bool,
    /// The disk, with --block: only this whole device, such as `sda`.
    #[arg(long = "disk", alias = "device", value_name = "NAME", conflicts_with_all = ["port", "selftest"])]
    device: Option<String>,
    /// How long to observe at most (default: until Ctrl-C with a live page or --listen and without --output, otherwise 10s).
    #[arg(long, alias = "for", value_name = "TIME")]
    duration: Option<Nanos>,
    /// When to show what is seen while it is seen: a page on a terminal, or a line each second.
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto", conflicts_with_all = ["block", "selftest"])]
    live: LiveArg,
    /// Where to listen for scrapers of Prometheus, such as 127.0.0.1:9464; observes until Ctrl-C, also when the server ends.
    #[arg(long, value_name = "ADDRESS", value_parser = scrape_address, conflicts_with_all = ["block", "selftest"])]
    listen: Option<SocketAddr>,
    /// Observe this share of TCP connections only, above 0; costs less. All of UDP is observed.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0, value_parser = share)]
    share: f64,
    /// Keep what observing costs below this share of one CPU, on average: a server that costs more is observed in windows of
    /// a second at random, and not at all in between. Takes CAP_SYS_ADMIN. [default: 3%; `none` with options that want all
    /// requests: --output, --record, --hdr, --prometheus-file, --listen, --accept-queue]
    #[arg(long, value_name = "SHARE|none", value_parser = cost_limit, conflicts_with_all = ["block", "selftest"])]
    cost_limit: Option<CostLimitArg>,
    /// Seed of the places of the windows of --cost-limit [default: another one each time, which is printed].
    #[arg(long, value_name = "N", conflicts_with_all = ["block", "selftest"])]
    seed: Option<u64>,
    /// What is spoken on the ports: the protocol says where requests begin and end. The first bytes of reads and writes
    /// are looked at for that: they are in memory for about 20 ms and written nowhere. Otherwise packets, reads and writes
    /// decide what a request is.
    #[arg(long, value_name = "NAME", value_parser = protocol())]
    protocol: Option<Protocol>,
    /// Say how long connections wait to be accepted. Costs a little at every system call of the machine.
    #[arg(long)]
    accept_queue: bool,
    /// Room in the kernel for events that are not looked at yet: a power of two.
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    buffer: units::Bytes,
    /// Write every request, with its stages, as observations (Parquet). Keeps all of them in memory: about 130 bytes each.
    #[arg(short, long, value_name = "OBSERVATIONS.parquet")]
    output: Option<PathBuf>,
    /// The mean time that a request takes a worker, from a run at saturation; estimated without.
    #[arg(long = "mean-service", alias = "service", value_name = "TIME")]
    service: Option<Nanos>,
    /// How many requests are served at a time by the ideal (default: as many as threads answer).
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    workers: Option<NonZeroUsize>,
    /// Write a page with charts for a browser.
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    /// Record requests: to a FOLDER as they come, with clients, in bounded space, that survives a kill; to a
    /// FILE.parquet or FILE.csv as one trace, written on the way and in its place when the observation has ended.
    #[arg(long, value_name = "FOLDER")]
    record: Option<PathBuf>,
    /// The most disk space of a recording: the oldest requests are deleted for newer ones.
    #[arg(long, value_name = "SIZE", default_value = "1GiB", requires = "record")]
    record_space: units::Bytes,
    /// Write latencies as an interval log of HdrHistogram, a line for each second.
    #[arg(long, value_name = "FILE.hlog")]
    hdr: Option<PathBuf>,
    /// Write counters in the text format of Prometheus, replaced each second in which requests come.
    #[arg(long, value_name = "FILE.prom")]
    prometheus_file: Option<PathBuf>,
    /// Write the slowest requests with their stages for Perfetto or the tracing page of Chrome.
    #[arg(long, value_name = "FILE.json")]
    slowest: Option<PathBuf>,
    /// How many requests --slowest writes.
    #[arg(long, value_name = "N", default_value = "100", requires = "slowest", value_parser = at_least_one)]
    slowest_requests: NonZeroUsize,
    /// Send requests to an echo server over loopback, and check that all are seen as their clients saw them.
    #[arg(long, conflicts_with_all = ["port", "duration", "share", "protocol", "accept_queue", "buffer", "output", "service",
          "workers", "report", "record", "hdr", "prometheus_file", "slowest"])]
    selftest: bool,
    /// Whether the time that the server sleeps in the middle of requests (long polls) counts where causes are shown.
    #[arg(long, value_name = "HOW", value_enum, default_value = "include")]
    intended_waits: IntendedWaitsArg,
    #[arg(long, help = "Print JSON: what was seen")]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IntendedWaitsArg {
    Include,
    Exclude,
}

/// The share of one CPU that observing may take unless told otherwise.
const USUAL_COST_LIMIT: f64 = 0.03;

/// Limit of the cost, as given.
#[derive(Debug, Clone, Copy, PartialEq)]
enum CostLimitArg {
    Unlimited,
    Share(f64),
}

fn cost_limit(text: &str) -> Result<CostLimitArg, String> {
    if text == "none" { Ok(CostLimitArg::Unlimited) } else { share(text).map(CostLimitArg::Share) }
}

fn protocol() -> impl TypedValueParser<Value = Protocol> {
    value_of(PROTOCOLS.iter().map(|row| (row.protocol, row.name, row.words)))
}

pub fn run(args: &ObserveArgs) -> Result<VerbAnswer, OperationError> {
    if args.selftest {
        let report = self_test(SELF_TEST_REQUESTS)?;
        if args.json {
            terminal::print(&observed::test_json(&report));
        } else {
            terminal::print_text(&observed::test_text(&report));
        }
        return Ok(if report.is_right() { VerbAnswer::Yes } else { VerbAnswer::No });
    }
    if args.block {
        return run_block(args);
    }
    if let Some(device) = &args.device {
        return Err(OperationError::input("--disk needs --block")
            .hint(format_args!("tailwright observe --block --disk {device} shows who waits for this disk")));
    }
    let question =
        ServerQuestion { settings: args.settings()?, assumed: args.assumed()?, files: args.files()? };
    let asked = &question.settings.probes;
    let metrics = args.listen.map(|_| PublishedMetrics::new(asked.ports.iter().copied()));
    let endpoint = args.listen.zip(metrics.clone());
    let open =
        |(address, metrics): (SocketAddr, PublishedMetrics)| open_endpoint(address, move || metrics.page());
    let _endpoint = endpoint.map(open).transpose()?;
    let stop = args.live.stop();
    let mut live = LiveTerminal::new(
        args.live,
        (args.subject(), observed::share_words(asked)),
        args.beginning(),
        args.listen.is_none(),
    );
    let observation = watch_server(&question, &stop, &mut live, metrics, TerminalObserver)?;
    let server = ObservedServer { asked, observation: &observation, joining_ns: live.joining_ns() };
    drop(live);
    let blindness = observed_doubts::blindness(&observation.report);
    let wanted = args.report.as_deref().filter(|_| blindness.is_none());
    let written = write_wanted(wanted, "report", || page::html(server));
    let recorded = args.say_what_was_recorded(&observation);
    if args.json {
        terminal::print(&observed::json(server));
    } else {
        terminal::print_text(&observed::text(server));
    }
    let has_any = observation.report.statistics.count() > 0;
    if let Some(error) = blindness {
        return Err(error);
    }
    if !has_any {
        args.say_why_there_is_none(&asked.ports);
    }
    observation.written.and(written).and(recorded)?;
    Ok(if has_any { VerbAnswer::Yes } else { VerbAnswer::No })
}

/// Another one each time: who observes again and again shall not always look at the same moments.
fn new_seed() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().subsec_nanos().into()
}

fn run_block(args: &ObserveArgs) -> Result<VerbAnswer, OperationError> {
    let device = args.device.as_deref().map(BlockDevice::named).transpose();
    let device =
        device.map_err(|error| OperationError { message: format!("--disk: {}", error.message), ..error })?;
    let settings = BlockSettings { device, duration: args.time()? };
    let stop = stop_on_termination();
    let attached = || talk(Talk::Plain, args.beginning());
    let report = observe::observe_block(&settings, &stop, attached)?;
    if args.json {
        terminal::print(&observed_block::json(&report));
    } else {
        terminal::print_text(&observed_block::text(&report));
    }
    let has_any = !report.seen.statistics.by_device_time().is_empty();
    Ok(if has_any { VerbAnswer::Yes } else { VerbAnswer::No })
}

impl ObserveArgs {
    /// The option, if any, for which every request is wanted.
    fn wants_all(&self) -> Option<&'static str> {
        let wanted = [
            (self.output.is_some(), "--output"),
            (self.record.is_some(), "--record"),
            (self.hdr.is_some(), "--hdr"),
            (self.prometheus_file.is_some(), "--prometheus-file"),
            (self.listen.is_some(), "--listen"),
            (self.accept_queue, "--accept-queue"),
        ];
        wanted.into_iter().find_map(|(is_given, option)| is_given.then_some(option))
    }

    /// The share of one CPU that observing may take, if that is limited.
    fn cost_share(&self) -> Result<Option<f64>, OperationError> {
        match (self.cost_limit, self.wants_all()) {
            (Some(CostLimitArg::Share(limit)), _) if !(limit > 0.0 && limit <= 1.0) => {
                Err(OperationError::input(
                    "--cost-limit: expected a share of one CPU above 0 and up to 1, or none",
                )
                .hint("3% keeps what observing costs below 30 ms of CPU time a second, on average"))
            }
            (Some(CostLimitArg::Share(_)), Some(option)) => Err(OperationError::input(format_args!(
                "--cost-limit cannot be used with {option}, which is for all requests"
            ))
            .hint("leave out one of the two; --share limits the cost by observing fewer connections")),
            (Some(CostLimitArg::Share(limit)), None) => Ok(Some(limit)),
            (Some(CostLimitArg::Unlimited), _) | (None, Some(_)) => Ok(None),
            (None, None) => Ok(observe::may_measure_cost().then_some(USUAL_COST_LIMIT)),
        }
    }

    /// The longest time; `None` for one that only a signal ends.
    fn limit(&self) -> Option<Nanos> {
        // What --output keeps in memory grows with the time.
        let is_watched = self.listen.is_some() || self.live.has_page();
        let is_endless = is_watched && !self.block && self.output.is_none();
        self.duration.or_else(|| (!is_endless).then_some(USUAL_TIME))
    }

    /// What is observed, in few words.
    fn subject(&self) -> String {
        let ports: Vec<String> = self.port.iter().map(u16::to_string).collect();
        format!("port {}", ports.join(","))
    }

    /// What is said when nothing is missed any more.
    fn beginning(&self) -> String {
        let what = match self.share {
            share if share < 1.0 => format!("observing about {} of TCP connections", full_percent(share)),
            _ => "observing".to_owned(),
        };
        match self.limit() {
            Some(time) => format!("{what} for {time}; Ctrl-C ends it earlier"),
            None => format!("{what} until Ctrl-C"),
        }
    }

    /// What may be the reason that no request was seen.
    fn say_why_there_is_none(&self, ports: &BTreeSet<u16>) {
        if !is_any_listening(ports) {
            let subject = self.subject();
            talk(
                Talk::Hint,
                format_args!(
                    "no socket of this machine listens at {subject}: is the server here, and is it running?"
                ),
            );
        } else if self.share < 1.0 {
            let share = full_percent(self.share);
            talk(
                Talk::Hint,
                format_args!("with --share {share}, perhaps no connection was chosen: choose a larger share"),
            );
        }
    }

    fn time(&self) -> Result<Duration, OperationError> {
        let Some(limit) = self.limit() else { return Ok(Duration::MAX) };
        let duration = Some(Duration::from_nanos(limit.0)).filter(|time| !time.is_zero());
        duration.ok_or_else(|| OperationError::input("--duration: expected a time such as 30s"))
    }

    fn settings(&self) -> Result<ObservationSettings, OperationError> {
        if !(self.share > 0.0 && self.share <= 1.0) {
            return Err(OperationError::input("--share: expected a share above 0 and up to 1")
                .hint("0.1 observes every tenth connection, more or less"));
        }
        let cost_share = self.cost_share()?;
        let ring_bytes = u32::try_from(self.buffer.0).ok();
        let ring_bytes =
            ring_bytes.filter(|bytes| bytes.is_power_of_two() && (1 << 16..=1 << 30).contains(bytes));
        let ring_bytes = ring_bytes.ok_or_else(|| {
            OperationError::input(format_args!(
                "--buffer: expected a power of two from 64KiB to 1GiB, not {}",
                self.buffer
            ))
            .hint("it is room in the kernel, of which 8MiB mostly suffice")
        })?;
        let duration = self.time()?;
        let ports: BTreeSet<u16> = self.port.iter().copied().collect();
        Ok(ObservationSettings {
            probes: ProbeSettings {
                ports,
                share: self.share,
                ring_bytes,
                protocol: self.protocol,
                accepts: self.accept_queue,
            },
            duration,
            cost_duration: COST_TIME_MAX.min(duration / 10),
            intended_waits: match self.intended_waits {
                IntendedWaitsArg::Include => IntendedWaits::Included,
                IntendedWaitsArg::Exclude => IntendedWaits::Excluded,
            },
            cost_limit: cost_share.map(|share| CostLimit { share, seed: self.seed.unwrap_or_else(new_seed) }),
        })
    }

    fn assumed(&self) -> Result<IdealAssumptions, OperationError> {
        if self.service == Some(Nanos::ZERO) {
            return Err(OperationError::input("--mean-service: expected a time such as 8us"));
        }
        Ok(IdealAssumptions { service: self.service, workers: self.workers })
    }

    fn files(&self) -> Result<ObservationFiles, OperationError> {
        Ok(ObservationFiles {
            observations: self.output.clone(),
            record: self.record.clone(),
            recording: recording_settings(self.record_space)?,
            latency_log: self.hdr.clone(),
            metrics: self.prometheus_file.clone(),
            slowest: self.slowest.clone().map(|path| (path, self.slowest_requests.get())),
            report: self.report.clone(),
        })
    }

    /// Fails where requests are missing in a recording.
    fn say_what_was_recorded(&self, observation: &ServerObservation) -> Result<(), OperationError> {
        let Some(path) = &self.record else { return Ok(()) };
        match observation.recorded {
            Some(recorded) => {
                talk(
                    Talk::Plain,
                    format_args!("wrote {} to {}", plural(recorded.requests, "request"), path.display()),
                );
                if recorded.late > 0 {
                    talk(
                        Talk::Warning,
                        format_args!(
                            "{} of them took so long that they stand at a later arrival",
                            recorded.late
                        ),
                    );
                }
                check_nothing_lost(path, recorded.lost)?;
            }
            None if observation.report.statistics.count() > 0 => {}
            None => talk(Talk::Warning, format_args!("no request, so {} is not written", path.display())),
        }
        Ok(())
    }
}

//! `tailwright observe`: requests of a live server, stage by stage.

use super::observe_live::{LiveArg, LiveTerminal, open_endpoint};
use crate::exit::VerbAnswer;
use crate::interrupt::stop_on_termination;
use crate::output::{observed, observed_block};
use crate::report::observed as page;
use crate::terminal;
use clap::{Args, ValueEnum};
use model::OperationError;
use observe::{BlockDevice, BlockSettings, IntendedWaits, ObservationSettings, ProbeSettings, self_test};
use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;
use units::{Nanos, Seconds};
use workflow::files::write_wanted;
use workflow::observation::{
    IdealAssumptions, ObservationFiles, PublishedMetrics, ServerObservation, ServerQuestion, watch_server,
};

const HELP: &str = "\
Examples:
  tailwright observe --port 11211 --for 30s
  tailwright observe --port 80,443 --for 1min --json
  tailwright observe --port 80 --intended-waits exclude   a server with long polls
  tailwright observe --port 11211 -o live.parquet     every request, for `tailwright verify`
  tailwright observe --port 11211 --report live.html  a page with charts
  tailwright observe --port 11211 --for 24h --record day.parquet    a trace for `bound` and `plan`
  tailwright observe --port 11211 --service 8us --workers 4         what is known for the ideal
  tailwright observe --port 11211 --slowest slow.json               for https://ui.perfetto.dev
  tailwright observe --port 11211 --listen 127.0.0.1:9464           for Prometheus, until Ctrl-C
  tailwright observe --selftest                       does it work on this machine?
  tailwright observe --block --device sda --for 10s   who waits how long for a disk

Beside the measured latencies stand ideal ones: the same arrivals, and nothing but queueing. What
is between them is due to the server and its machine, and not to its load.

The server is not changed and not restarted; nothing is done to packets and sockets of other
ports. It takes root, or the capabilities CAP_BPF and CAP_PERFMON. Ctrl-C, SIGTERM and SIGHUP end it with
what there is, and so does the end of the server, without --listen. On a terminal a page shows what
is seen while it is seen. docs/observe.md says what the stages are, what the ideal rests on, what is
guessed and what is not seen.

Exit codes: 0 done; 1 no request was seen, or the self-test has failed; 2 bad input; 3 a right or
a kernel feature is missing.";

/// Requests of the self-test by each of its clients.
const SELF_TEST_REQUESTS: usize = 5_000;

/// How long an observation takes that nobody watches.
const USUAL_TIME: Seconds = Seconds(10.0);

/// For at most this long, and a tenth of the time, the kernel measures what observing costs.
const COST_TIME_MAX: Duration = Duration::from_secs(1);

/// See where requests of a live server spend their time, without a change to it.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ObserveArgs {
    /// Ports that the server listens on, TCP and UDP.
    #[arg(long, value_name = "PORT,…", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..),
          required_unless_present_any = ["selftest", "block"])]
    port: Vec<u16>,
    /// Observe requests of block devices, not of servers: time in queues and at the device, by process.
    #[arg(long, conflicts_with_all = ["port", "share", "buffer", "output", "intended_waits", "selftest",
          "service", "workers", "report", "record", "hdr", "prometheus_file", "slowest"])]
    block: bool,
    /// With --block: only this whole device, such as `sda`.
    #[arg(long, value_name = "NAME", requires = "block", conflicts_with_all = ["port", "selftest"])]
    device: Option<String>,
    /// How long to observe at most (default: until Ctrl-C with a live page or --listen and without --output, otherwise 10s).
    #[arg(long = "for", value_name = "TIME")]
    duration: Option<Seconds>,
    /// When to show what is seen while it is seen: a page on a terminal, or a line each second.
    #[arg(long, value_name = "WHEN", value_enum, default_value = "auto", conflicts_with_all = ["block", "selftest"])]
    live: LiveArg,
    /// Serve metrics for Prometheus by HTTP at this address, and go on when the server ends.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with_all = ["block", "selftest"])]
    listen: Option<SocketAddr>,
    /// Observe this share of TCP connections only, above 0; costs less. All of UDP is observed.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    share: f64,
    /// Room in the kernel for events that are not looked at yet: a power of two.
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    buffer: units::Bytes,
    /// Write every request with its stages, as Parquet. Keeps all of them in memory: about 130 bytes each.
    #[arg(short, long, value_name = "FILE.parquet")]
    output: Option<PathBuf>,
    /// The mean time that a request takes a worker, from a run at saturation; estimated without.
    #[arg(long, value_name = "TIME")]
    service: Option<Nanos>,
    /// How many requests the ideal serves at a time; otherwise as many as threads answer.
    #[arg(long, value_name = "N")]
    workers: Option<NonZeroUsize>,
    /// Write a page with charts for a browser.
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
    /// Write arrivals, sizes and directions as a trace while observing; the name says the format.
    #[arg(long, value_name = "FILE.parquet|csv")]
    record: Option<PathBuf>,
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
    #[arg(long, value_name = "N", default_value = "100", requires = "slowest")]
    slowest_requests: NonZeroUsize,
    /// Send requests to an echo server over loopback, and check that all are seen as their clients saw them.
    #[arg(long, conflicts_with_all = ["port", "duration", "share", "buffer", "output", "service",
          "workers", "report", "record", "hdr", "prometheus_file", "slowest"])]
    selftest: bool,
    /// Whether the time that the server sleeps in the middle of requests (long polls) counts where causes are shown.
    #[arg(long, value_name = "HOW", value_enum, default_value = "include")]
    intended_waits: IntendedWaitsArg,
    #[arg(long, help = "Print JSON")]
    json: bool,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum IntendedWaitsArg {
    Include,
    Exclude,
}

pub(crate) fn run(args: &ObserveArgs) -> Result<VerbAnswer, OperationError> {
    if args.selftest {
        let report = self_test(SELF_TEST_REQUESTS)?;
        terminal::print(&if args.json { observed::test_json(&report) } else { observed::test_text(&report) });
        return Ok(if report.is_right() { VerbAnswer::Yes } else { VerbAnswer::No });
    }
    if args.block {
        return run_block(args);
    }
    let question =
        ServerQuestion { settings: args.settings()?, assumed: args.assumed()?, files: args.files() };
    let ports = &question.settings.probes.ports;
    let metrics = args.listen.map(|_| PublishedMetrics::new(ports.iter().copied()));
    let endpoint = args.listen.zip(metrics.as_ref());
    let _endpoint = endpoint.map(|(address, metrics)| open_endpoint(address, metrics)).transpose()?;
    let stop = args.live.stop()?;
    let mut live = LiveTerminal::new(args.live, args.subject(), args.beginning(), args.listen.is_none());
    let observation = watch_server(&question, &stop, &mut live, metrics)?;
    drop(live);
    let written = write_wanted(args.report.as_deref(), "report", || page::html(ports, &observation));
    args.say_what_was_recorded(&observation);
    terminal::print(&if args.json {
        observed::json(ports, &observation)
    } else {
        observed::text(ports, &observation)
    });
    observation.written.and(written)?;
    Ok(if observation.report.statistics.count() > 0 { VerbAnswer::Yes } else { VerbAnswer::No })
}

fn run_block(args: &ObserveArgs) -> Result<VerbAnswer, OperationError> {
    let device = args.device.as_deref().map(BlockDevice::named).transpose();
    let device = device
        .map_err(|error| OperationError { message: format!("--device: {}", error.message), ..error })?;
    let settings = BlockSettings { device, duration: args.time()? };
    let stop = stop_on_termination()?;
    let attached = || eprintln!("{}", args.beginning());
    let report = observe::observe_block(&settings, &stop, attached)?;
    terminal::print(&if args.json { observed_block::json(&report) } else { observed_block::text(&report) });
    let has_any = !report.statistics.by_device_time().is_empty();
    Ok(if has_any { VerbAnswer::Yes } else { VerbAnswer::No })
}

impl ObserveArgs {
    /// The longest time; `None` for one that only a signal ends.
    fn limit(&self) -> Option<Seconds> {
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
        match self.limit() {
            Some(time) => format!("observing for {time}; Ctrl-C ends it earlier"),
            None => "observing until Ctrl-C".to_owned(),
        }
    }

    fn time(&self) -> Result<Duration, OperationError> {
        let Some(limit) = self.limit() else { return Ok(Duration::MAX) };
        let duration = Duration::try_from_secs_f64(limit.0).ok().filter(|time| !time.is_zero());
        duration.ok_or_else(|| OperationError::input("--for: expected a time such as 30s"))
    }

    fn settings(&self) -> Result<ObservationSettings, OperationError> {
        if !(self.share > 0.0 && self.share <= 1.0) {
            return Err(OperationError::input("--share: expected a share above 0 and up to 1")
                .hint("0.1 observes every tenth connection, more or less"));
        }
        let ring_bytes = u32::try_from(self.buffer.0).ok();
        let ring_bytes =
            ring_bytes.filter(|bytes| bytes.is_power_of_two() && (1 << 16..=1 << 30).contains(bytes));
        let ring_bytes = ring_bytes.ok_or_else(|| {
            OperationError::input(format_args!("--buffer: expected a power of two, not {}", self.buffer))
                .hint("from 64KiB to 1GiB, such as 8MiB")
        })?;
        let duration = self.time()?;
        let ports: BTreeSet<u16> = self.port.iter().copied().collect();
        Ok(ObservationSettings {
            probes: ProbeSettings { ports, share: self.share, ring_bytes },
            duration,
            cost_duration: COST_TIME_MAX.min(duration / 10),
            intended_waits: match self.intended_waits {
                IntendedWaitsArg::Include => IntendedWaits::Included,
                IntendedWaitsArg::Exclude => IntendedWaits::Excluded,
            },
        })
    }

    fn assumed(&self) -> Result<IdealAssumptions, OperationError> {
        if self.service == Some(Nanos::ZERO) {
            return Err(OperationError::input("--service: expected a time such as 8us"));
        }
        Ok(IdealAssumptions { service: self.service, workers: self.workers })
    }

    fn files(&self) -> ObservationFiles {
        ObservationFiles {
            observations: self.output.clone(),
            record: self.record.clone(),
            latency_log: self.hdr.clone(),
            metrics: self.prometheus_file.clone(),
            slowest: self.slowest.clone().map(|path| (path, self.slowest_requests.get())),
            report: self.report.clone(),
        }
    }

    fn say_what_was_recorded(&self, observation: &ServerObservation) {
        let Some(path) = &self.record else { return };
        match observation.recorded {
            Some(recorded) => {
                eprintln!("wrote {} requests to {}", recorded.requests, path.display());
                if recorded.late > 0 {
                    eprintln!(
                        "warning: {} of them took so long that they stand at a later arrival",
                        recorded.late
                    );
                }
            }
            None if observation.report.statistics.count() > 0 => {}
            None => eprintln!("warning: no request, so {} is not written", path.display()),
        }
    }
}

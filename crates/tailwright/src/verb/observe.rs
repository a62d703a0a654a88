//! `tailwright observe`: requests of a live server, stage by stage.

use crate::exit::VerbAnswer;
use crate::interrupt::stop_on_termination;
use crate::output::observed;
use crate::terminal;
use clap::Args;
use model::OperationError;
use observe::{ObservationSettings, ObservedRequest, ProbeSettings, observations, self_test};
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;
use units::Seconds;
use workflow::files::check_writable;

const HELP: &str = "\
Examples:
  tailwright observe --port 11211 --for 30s
  tailwright observe --port 80,443 --for 1min --json
  tailwright observe --port 11211 -o live.parquet     every request, for `tailwright verify`
  tailwright observe --selftest                       does it work on this machine?

The server is not changed and not restarted; nothing is done to packets and sockets of other ports. It takes root, or
the capabilities CAP_BPF and CAP_PERFMON. Ctrl-C and SIGTERM end it with what there is, and so does the end of the
server. docs/observe.md says what the stages are, what is guessed and what is not seen.

Exit codes: 0 done; 1 no request was seen, or the self-test has failed; 2 bad input; 3 a right or a kernel feature
is missing.";

/// Requests of the self-test by each of its clients.
const SELF_TEST_REQUESTS: usize = 5_000;

/// For at most this long, and a tenth of the time, the kernel measures what observing costs.
const COST_TIME_MAX: Duration = Duration::from_secs(1);

/// See where requests of a live server spend their time, without a change to it.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ObserveArgs {
    /// Ports that the server listens on, TCP and UDP.
    #[arg(long, value_name = "PORT,…", value_delimiter = ',', value_parser = clap::value_parser!(u16).range(1..),
          required_unless_present = "selftest")]
    port: Vec<u16>,
    /// How long to observe at most.
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    duration: Seconds,
    /// Observe this share of TCP connections only, above 0; costs less. All of UDP is observed.
    #[arg(long, value_name = "SHARE", default_value_t = 1.0)]
    share: f64,
    /// Room in the kernel for events that are not looked at yet: a power of two.
    #[arg(long, value_name = "SIZE", default_value = "8MiB")]
    buffer: units::Bytes,
    /// Write every request with its stages, as Parquet. Keeps all of them in memory: about 130 bytes each.
    #[arg(short, long, value_name = "FILE.parquet")]
    output: Option<PathBuf>,
    /// Send requests to an echo server over loopback, and check that all are seen as their clients saw them.
    #[arg(long, conflicts_with_all = ["port", "duration", "share", "buffer", "output"])]
    selftest: bool,
    #[arg(long, help = "Print JSON")]
    json: bool,
}

pub(crate) fn run(args: &ObserveArgs) -> Result<VerbAnswer, OperationError> {
    if args.selftest {
        let report = self_test(SELF_TEST_REQUESTS)?;
        terminal::print(&if args.json { observed::test_json(&report) } else { observed::test_text(&report) });
        return Ok(if report.is_right() { VerbAnswer::Yes } else { VerbAnswer::No });
    }
    let settings = args.settings()?;
    if let Some(path) = &args.output {
        check_writable(path, "observations")?;
    }
    let stop = stop_on_termination()?;
    let mut requests: Vec<ObservedRequest> = Vec::new();
    let attached = || eprintln!("observing for {}; Ctrl-C ends it earlier", args.duration);
    let report = observe::observe(&settings, &stop, attached, &mut |request| {
        if args.output.is_some() {
            requests.push(*request);
        }
    })?;
    if let Some(path) = &args.output {
        trace::observations::write(path, &observations(requests))
            .map_err(|error| OperationError::machine(&error).hint(error.hint()))?;
    }
    let ports = &settings.probes.ports;
    terminal::print(&if args.json { observed::json(ports, &report) } else { observed::text(ports, &report) });
    Ok(if report.statistics.count() > 0 { VerbAnswer::Yes } else { VerbAnswer::No })
}

impl ObserveArgs {
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
        let duration = Duration::try_from_secs_f64(self.duration.0).ok().filter(|time| !time.is_zero());
        let duration = duration.ok_or_else(|| OperationError::input("--for: expected a time such as 30s"))?;
        let ports: BTreeSet<u16> = self.port.iter().copied().collect();
        Ok(ObservationSettings {
            probes: ProbeSettings { ports, share: self.share, ring_bytes },
            duration,
            cost_duration: COST_TIME_MAX.min(duration / 10),
        })
    }
}

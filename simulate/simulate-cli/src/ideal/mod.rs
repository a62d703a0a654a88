//! `tailwright ideal`: the latencies that queueing alone causes, for a stream, a service time and a number of workers.

pub(crate) mod text;

use crate::ideal::text as ideal;
use crate::simulate::page;
use arrivals::{ArrivalPattern, TimeDistribution};
use clap::Args;
use cli::exit::VerbAnswer;
use cli::interrupt::{check_complete, is_stopped, stop_on_termination};
use cli::quantities::{at_least_one, share};
use cli::terminal::{self, TerminalObserver};
use model::OperationError;
use operation::document::document;
use operation::files::{check_writable, write_wanted};
use sim::ideal::ServiceOrder;
use simulate::ideal::{IdealOutcome, IdealSettings, IdealStream, ideal_latency};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

const HELP: &str = "\
Examples:
  tailwright ideal --trace tailwright-demo/traces/database-1.csv.gz \\
      --service 50us --workers 4
  tailwright ideal --trace web.csv.gz --service 50us --workers 4 \\
      --discipline fifo --json
  tailwright ideal --trace web.csv.gz --service \"exp(2ms)\" --load 0.8 \\
      --discipline fifo,lifo
  tailwright ideal --arrivals \"poisson(800/s)\" \\
      --service \"lognormal(mean=1ms, c2=4)\"

Nothing but arrivals, service and the order of service: whatever a real server takes beyond these \
latencies is due to something else. Disciplines: fifo, lifo, random-request (any of those that \
wait), random-worker (a queue per worker). For more disciplines and several stations there is \
`tailwright simulate`.

± are 95 % confidence intervals: of random arrivals from eight independent streams, each after a \
tenth more as warm-up; of a trace from batches of it, where those are alike enough in length and \
unlike enough in content to say something. Percentiles are exact for up to 65536 requests, beyond \
within 0.2 %. Memory does not grow with a trace; with --load, a long one is read twice.

requests_per_wall_s in JSON is the speed of the simulation; everything else is the same for the same \
input and seed.

Exit codes: 0 done; 2 bad input, or a load that no discipline can serve; 3 interrupted, with what was \
complete.";

/// The ideal latency of a server: what queueing alone does to an arrival stream.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct IdealArgs {
    /// Requests arrive as in this trace.
    #[arg(long, value_name = "FILE", conflicts_with = "arrivals")]
    trace: Option<PathBuf>,
    /// Requests arrive as in this process, such as "poisson(500/s)".
    #[arg(long, value_name = "PROCESS", value_parser = arrivals)]
    arrivals: Option<ArrivalPattern>,
    /// Number of requests of that process, in eight independent streams.
    #[arg(long, value_name = "N", default_value_t = 200_000, conflicts_with = "trace")]
    requests: u64,
    /// Service time of a request: a time such as 50us, or a law such as "exp(50us)".
    #[arg(long, value_name = "LAW")]
    service: TimeDistribution,
    /// How many requests are served at a time by the ideal.
    #[arg(long, value_name = "N", default_value = "1", value_parser = at_least_one)]
    workers: NonZeroUsize,
    /// Order of service; several to compare them.
    #[arg(long, value_name = "ORDER", value_delimiter = ',', default_value = "fifo")]
    discipline: Vec<ServiceOrder>,
    /// Utilisation of the workers, such as 0.8 or 80%, below 1: arrivals are compressed or stretched.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    load: Option<f64>,
    /// Seed of service times, random arrivals and random orders.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Write a page with charts for a browser.
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    /// Print JSON: the figures.
    #[arg(long)]
    json: bool,
}

/// Parses a process of arrivals; for the name of a file, the error says where it belongs.
fn arrivals(text: &str) -> Result<ArrivalPattern, String> {
    text.parse::<ArrivalPattern>().map_err(|error| {
        let path = Path::new(text);
        let is_file = path.exists() || path.extension().is_some() || text.contains('/');
        let hint = if is_file { "; requests of a file are --trace FILE" } else { "" };
        format!("{error}{hint}")
    })
}

pub fn run(args: &IdealArgs) -> Result<VerbAnswer, OperationError> {
    check_writable(args.report.as_deref(), "report")?;
    let _ = stop_on_termination();
    let settings = args.settings()?;
    let answer = ideal_latency(&settings, &is_stopped, &TerminalObserver)?;
    let view = ideal::IdealView { settings: &settings, answer: &answer };
    let written = write_wanted(args.report.as_deref(), "report", || html(&view));
    if args.json {
        terminal::print(&document(&answer.document(&settings)));
    } else {
        terminal::print_text(&ideal::text(&view));
    }
    written?;
    check_complete("what is shown is what was complete")?;
    Ok(VerbAnswer::Yes)
}

impl IdealArgs {
    fn settings(&self) -> Result<IdealSettings, OperationError> {
        if !self.load.is_none_or(|load| load > 0.0 && load < 1.0) {
            return Err(OperationError::input("--load: expected a share above 0 and below 1")
                .hint("at 1 and above the queue grows without bound"));
        }
        let stream = match (&self.trace, &self.arrivals) {
            (Some(path), _) => IdealStream::Trace(path.clone()),
            (None, Some(arrivals)) => {
                IdealStream::Random { arrivals: arrivals.clone(), requests: self.requests }
            }
            (None, None) => {
                return Err(OperationError::input("expected --trace FILE or --arrivals PROCESS")
                    .hint("such as --arrivals \"poisson(500/s)\""));
            }
        };
        Ok(IdealSettings {
            stream,
            service: self.service.clone(),
            workers: self.workers,
            disciplines: self.discipline.clone(),
            load: self.load,
            seed: self.seed,
        })
    }
}

/// Explanation of ideal latencies for readers.
const IDEAL: &str = "These latencies come from queueing alone: workers serve requests without any other delay or overhead. Where a \
     real server with the same arrivals, service times, workers and discipline is slower, the difference has another cause.";

fn html(view: &ideal::IdealView) -> String {
    let line = |outcome: &IdealOutcome| (outcome.order.to_string(), page::ccdf(&outcome.latencies));
    let (headings, rows) = ideal::rows(view);
    let table = page::table(&headings, rows);
    let lines = view.answer.outcomes.iter().map(line);
    page::page("Ideal latency", &ideal::lead(view), lines, [table], &[IDEAL, page::FIGURES])
}

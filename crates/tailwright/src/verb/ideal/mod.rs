//! `tailwright ideal`: the latencies that queueing alone causes, for a stream, a service time and a number of workers.

mod measured;

use crate::exit::Answer;
use crate::output::{ideal, json};
use crate::report::simulated as page;
use crate::terminal;
use arrivals::{ArrivalPattern, RequestSource, TimeDistribution};
use clap::Args;
use model::OperationError;
use sim::ideal::{IdealStation, ReplicationSizes, ServiceOrder, Summary, replicate};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Instant;

const HELP: &str = "\
Examples:
  tailwright ideal --trace web.csv.gz --service 50us --workers 4 --discipline fifo --json
  tailwright ideal --trace web.csv.gz --service \"exp(2ms)\" --load 0.8 --discipline fifo,lifo
  tailwright ideal --arrivals \"poisson(800/s)\" --service \"lognormal(mean=1ms, c2=4)\"

Nothing but arrivals, service and the order of service: whatever a real server takes beyond these
latencies is due to something else. Disciplines: fifo, lifo, random-request (any of those that
wait), random-worker (a queue per worker). For more disciplines and several stations there is
`tailwright simulate`.

± are 95 % confidence intervals: of random arrivals from eight independent streams, each after a
tenth more as warm-up; of a trace from batches of it, where those are alike enough in length and
unlike enough in content to say something. Percentiles are exact for up to 65536 requests, beyond
within 0.2 %. Memory does not grow with a trace; with --load, a long one is read twice.

events_per_s in JSON is the speed of the simulation; everything else is the same for the same
input and seed.

Exit codes: 0 done; 2 bad input, or a load that no discipline can serve.";

/// The ideal latency of a server: what queueing alone does to an arrival stream.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct IdealArgs {
    /// Requests arrive as in this trace.
    #[arg(long, value_name = "FILE", required_unless_present = "arrivals", conflicts_with = "arrivals")]
    trace: Option<PathBuf>,
    /// Requests arrive as in this process, such as "poisson(500/s)".
    #[arg(long, value_name = "PROCESS")]
    arrivals: Option<ArrivalPattern>,
    /// How many requests of that process, in eight independent streams.
    #[arg(long, value_name = "N", default_value_t = 200_000, conflicts_with = "trace")]
    requests: u64,
    /// Service time of a request: a time such as 50us, or a law such as "exp(50us)".
    #[arg(long, value_name = "LAW")]
    service: TimeDistribution,
    /// How many requests are served at a time.
    #[arg(long, value_name = "C", default_value = "1")]
    workers: NonZeroUsize,
    /// Who is served next; several to compare them.
    #[arg(long, value_name = "ORDER", value_delimiter = ',', default_value = "fifo")]
    discipline: Vec<ServiceOrder>,
    /// Compress or stretch arrivals so that the workers are busy this share of the time, below 1.
    #[arg(long, value_name = "SHARE")]
    load: Option<f64>,
    /// Of service times, random arrivals and random orders.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Write a page with a chart for a browser.
    #[arg(long, value_name = "IDEAL.html")]
    report: Option<PathBuf>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &IdealArgs) -> Result<Answer, OperationError> {
    if !args.load.is_none_or(|load| load > 0.0 && load < 1.0) {
        return Err(OperationError::input("--load: expected a share above 0 and below 1")
            .hint("at 1 and above the queue grows without bound"));
    }
    let stream = match &args.trace {
        Some(path) => measured::play(args, path)?,
        None => random(args)?,
    };
    let Stream { name, utilisation, outcomes } = stream;
    let service = args.service.to_string();
    let workers = args.workers.get();
    let view = ideal::View { name, service, workers, utilisation, seed: args.seed, outcomes };
    if let Some(path) = &args.report {
        json::write(path, &html(&view), "report")?;
    }
    terminal::print(&if args.json { ideal::json(&view) } else { ideal::text(&view) });
    Ok(Answer::Yes)
}

/// What was played.
struct Stream {
    name: String,
    utilisation: f64,
    outcomes: Vec<ideal::Outcome>,
}

impl IdealArgs {
    fn station(&self, order: ServiceOrder) -> IdealStation {
        IdealStation { workers: self.workers, order }
    }
}

fn random(args: &IdealArgs) -> Result<Stream, OperationError> {
    let Some(arrival) = &args.arrivals else {
        return Err(OperationError::input("--trace or --arrivals is needed"));
    };
    if args.requests == 0 {
        return Err(OperationError::input("--requests: expected at least 1"));
    }
    let workers = args.workers.get();
    let arrival = match args.load {
        Some(load) => arrival.at_utilisation(load, workers, &args.service).map_err(OperationError::input)?,
        None => arrival.clone(),
    };
    let utilisation = match args.service.mean().0 {
        // No work is no load, however fast it comes.
        0.0 => 0.0,
        mean => mean * arrival.mean_rate() / workers as f64,
    };
    stable(utilisation, args)?;
    let name = arrival.to_string();
    let source = RequestSource { arrivals: arrival, service: args.service.clone() };
    let streams = ReplicationSizes::of(args.requests);
    let outcome = |order: &ServiceOrder| {
        let begun = Instant::now();
        let summary = replicate(&source, args.station(*order), streams, args.seed);
        outcome(*order, &summary.map_err(OperationError::input)?, begun.elapsed().as_secs_f64())
    };
    let outcomes = args.discipline.iter().map(outcome).collect::<Result<_, _>>()?;
    Ok(Stream { name, utilisation, outcomes })
}

fn stable(utilisation: f64, args: &IdealArgs) -> Result<(), OperationError> {
    if utilisation < 1.0 {
        return Ok(());
    }
    let workers = crate::output::words::count(args.workers.get(), "worker");
    let message = format!(
        "unstable: grows without bound; the requests bring {:.1} % of the work that {workers} can do",
        100.0 * utilisation
    );
    Err(OperationError::input(message).hint("use more --workers, a shorter --service, or --load 0.8"))
}

fn outcome(order: ServiceOrder, summary: &Summary, elapsed: f64) -> Result<ideal::Outcome, OperationError> {
    let outcome = ideal::Outcome::new(order, summary, elapsed);
    outcome.ok_or_else(|| OperationError::input("there are no requests"))
}

fn html(view: &ideal::View) -> String {
    let line = |outcome: &ideal::Outcome| (outcome.order.to_string(), page::ccdf(&outcome.latencies));
    let (headings, rows) = ideal::rows(view);
    let table = page::table(&headings, rows);
    page::page("Ideal latency", &ideal::lead(view), view.outcomes.iter().map(line), [table])
}

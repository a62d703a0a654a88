//! `tailwright ideal`: the latencies that queueing alone causes, for a stream, a service time and a number of workers.

use crate::failure::{Answer, Failure};
use crate::output::{ideal, json};
use crate::report::simulated as page;
use crate::terminal;
use clap::Args;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::ideal::{Order, Station};
use sim::source::{Arrival, Demand, Law, Source, scale};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Instant;
use units::Nanos;

const HELP: &str = "\
Examples:
  tailwright ideal --trace web.csv.gz --service 50us --workers 4 --discipline fifo --json
  tailwright ideal --trace web.csv.gz --service \"exp(2ms)\" --load 0.8 --discipline fifo,lifo
  tailwright ideal --arrivals \"poisson(800/s)\" --service \"lognormal(mean=1ms, c2=4)\"

Nothing but arrivals, service and the order of service: whatever a real server takes beyond these
latencies is due to something else. Disciplines: fifo, lifo, random-request (any of those that
wait), random-worker (a queue per worker). For more disciplines and several stations there is
`tailwright simulate`.

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
    arrivals: Option<Arrival>,
    /// How many requests of that process.
    #[arg(long, value_name = "N", default_value_t = 200_000, conflicts_with = "trace")]
    requests: usize,
    /// Service time of a request: a time such as 50us, or a law such as "exp(50us)".
    #[arg(long, value_name = "LAW")]
    service: Law,
    /// How many requests are served at a time.
    #[arg(long, value_name = "C", default_value = "1")]
    workers: NonZeroUsize,
    /// Who is served next; several to compare them.
    #[arg(long, value_name = "ORDER", value_delimiter = ',', default_value = "fifo")]
    discipline: Vec<Order>,
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

pub(crate) fn run(args: &IdealArgs) -> Result<Answer, Failure> {
    if !args.load.is_none_or(|load| load > 0.0 && load < 1.0) {
        return Err(Failure::bad_input("--load: expected a share above 0 and below 1")
            .hint("at 1 and above the queue grows without bound"));
    }
    let (name, demands, utilisation) = match &args.trace {
        Some(path) => measured(args, path)?,
        None => random(args)?,
    };
    stable(utilisation, args)?;
    let outcome = |order: &Order| outcome(*order, &demands, args);
    let outcomes = args.discipline.iter().map(outcome).collect::<Result<Vec<_>, _>>()?;
    let service = args.service.to_string();
    let workers = args.workers.get();
    let view = ideal::View { name, service, workers, utilisation, seed: args.seed, outcomes };
    if let Some(path) = &args.report {
        json::write(path, &html(&view), "report")?;
    }
    terminal::print(&if args.json { ideal::json(&view) } else { ideal::text(&view) });
    Ok(Answer::Yes)
}

type Stream = (String, Vec<Demand>, f64);

fn measured(args: &IdealArgs, path: &Path) -> Result<Stream, Failure> {
    let instants = scenario::arrivals_of(path)?;
    let (sampler, mut random) = (args.service.sampler(), StdRng::seed_from_u64(args.seed));
    let demand = |arrival: Nanos| Demand { arrival, service: sampler.draw(&mut random) };
    let mut demands: Vec<Demand> = instants.into_iter().map(demand).collect();
    let workers = args.workers.get();
    if let Some(load) = args.load {
        demands = scale::to_utilisation(&demands, workers, load).map_err(Failure::bad_input)?;
    }
    let utilisation = scale::utilisation(&demands, workers).ok_or_else(|| {
        Failure::bad_input(format!("{}: all requests arrive at one instant", path.display()))
            .hint("a utilisation needs requests at two instants at least")
    })?;
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    Ok((name, demands, utilisation))
}

fn random(args: &IdealArgs) -> Result<Stream, Failure> {
    let Some(arrival) = &args.arrivals else {
        return Err(Failure::bad_input("--trace or --arrivals is needed"));
    };
    if args.requests == 0 {
        return Err(Failure::bad_input("--requests: expected at least 1"));
    }
    let workers = args.workers.get();
    let arrival = match args.load {
        Some(load) => arrival.at_utilisation(load, workers, &args.service).map_err(Failure::bad_input)?,
        None => arrival.clone(),
    };
    let utilisation = match args.service.mean().0 {
        // No work is no load, however fast it comes.
        0.0 => 0.0,
        mean => mean * arrival.mean_rate() / workers as f64,
    };
    stable(utilisation, args)?;
    let name = arrival.to_string();
    let source = Source { arrival, service: args.service.clone() };
    let demands = source.demands(args.seed).map_err(Failure::bad_input)?.take(args.requests).collect();
    Ok((name, demands, utilisation))
}

fn stable(utilisation: f64, args: &IdealArgs) -> Result<(), Failure> {
    if utilisation < 1.0 {
        return Ok(());
    }
    let workers = crate::output::words::count(args.workers.get(), "worker");
    let message = format!(
        "unstable: grows without bound; the requests bring {:.1} % of the work that {workers} can do",
        100.0 * utilisation
    );
    Err(Failure::bad_input(message).hint("use more --workers, a shorter --service, or --load 0.8"))
}

fn outcome(order: Order, demands: &[Demand], args: &IdealArgs) -> Result<ideal::Outcome, Failure> {
    // Lots are drawn apart from service times.
    let seed = StdRng::seed_from_u64(args.seed).random();
    let begun = Instant::now();
    let station = Station { workers: args.workers, order };
    let latencies = station.latencies(demands.iter().copied(), seed).map_err(Failure::bad_input)?;
    let elapsed = begun.elapsed().as_secs_f64();
    ideal::Outcome::new(order, demands, latencies, elapsed)
        .ok_or_else(|| Failure::bad_input("there are no requests"))
}

fn html(view: &ideal::View) -> String {
    let line = |outcome: &ideal::Outcome| {
        let points = outcome.latencies.ccdf(200);
        let points = points.into_iter().map(|(at, share)| (at.as_secs(), share)).collect();
        (outcome.order.to_string(), points)
    };
    let (headings, rows) = ideal::rows(view);
    let table = page::table(&headings, rows);
    page::page("Ideal latency", &ideal::lead(view), view.outcomes.iter().map(line), [table])
}

//! `tailwright simulate`: stations, chains and graphs of a scenario file, with confidence.

use crate::failure::{Answer, Failure};
use crate::output::{json, simulated};
use crate::report;
use crate::simulating;
use crate::terminal;
use clap::Args;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use sim::engine::replicate;
use std::path::PathBuf;
use std::time::Instant;

const HELP: &str = "\
Examples:
  tailwright simulate examples/scenarios/mm1.toml
  tailwright simulate examples/scenarios/three-tier-orf.toml --seed 7 --json
  tailwright simulate examples/scenarios/mm1.toml --load 0.9 --report mm1.html

A scenario, one queue:
  [run]
  requests = 100000                 # measured per replication
  [[station]]
  name = \"queue\"
  workers = 1
  discipline = \"fifo\"               # or round-robin(slice=50us), orf(c=8, slice=50us), ...
  [[entry]]
  arrivals = \"poisson(800/s)\"
  service = { queue = \"exp(1ms)\" }

docs/simulate.md describes every field. Same scenario and seed, same output; only events_per_s,
the speed of the simulation, differs.

Exit codes: 0 done; 1 unstable, or less precise than the scenario asks for; 2 bad input.";

/// Simulate queues, chains and graphs of multi-core tiers under any discipline.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct SimulateArgs {
    /// Stations, steps and entries.
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Of everything that is random.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Scale all arrivals so that the busiest station is utilised to this degree, such as 0.8.
    #[arg(long, value_name = "SHARE")]
    load: Option<f64>,
    /// Write a page with a chart for a browser.
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    /// Print the figures as JSON.
    #[arg(long)]
    json: bool,
}

pub(crate) fn run(args: &SimulateArgs) -> Result<Answer, Failure> {
    let mut case = simulating::read(&args.scenario, args.load)?;
    // Replications have consecutive seeds: these are far from those of another --seed.
    case.plan.seed = StdRng::seed_from_u64(args.seed).random();
    let begun = Instant::now();
    let found = replicate(&case.network, |seed| case.entries(seed), &case.plan)
        .map_err(|invalid| Failure::bad_input(format_args!("{}: {invalid}", args.scenario.display())))?;
    let (station, load) = case.busiest();
    let view = simulated::View {
        case: &case,
        report: &found,
        seed: args.seed,
        elapsed: begun.elapsed().as_secs_f64(),
        overloaded: (load >= 1.0).then(|| (case.network.stations[station].name.as_str(), load)),
    };
    if let Some(path) = &args.report {
        json::write(path, &report::simulated::html(&view), "report")?;
    }
    terminal::print(&if args.json { simulated::json(&view) } else { simulated::text(&view) });
    Ok(if view.verdict() == "done" { Answer::Yes } else { Answer::No })
}

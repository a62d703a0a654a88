//! `tailwright simulate`: stations, chains and graphs of a scenario file, with confidence.

pub(crate) mod figure;
pub(crate) mod measured;
pub(crate) mod page;
pub(crate) mod policy;
pub(crate) mod policy_inputs;
pub(crate) mod text;
pub(crate) mod varied;
pub(crate) mod varied_page;
pub(crate) mod workloads;

use crate::simulate::policy as simulate_policy;
use crate::simulate::policy_inputs::PolicyInputArgs;
use crate::simulate::text as simulated;
use clap::Args;
use cli::exit::VerbAnswer;
use cli::interrupt::{check_complete, is_stopped, stop_on_termination};
use cli::quantities::share;
use cli::terminal::{self, TerminalObserver};
use model::OperationError;
use operation::files::{check_writable, write_wanted};
use simulate::simulation::{
    PolicySimulationSettings, ScenarioSettings, VariantFigures, read_scenario, simulate_variants,
};
use std::path::PathBuf;

const HELP: &str = "\
Examples:
  tailwright simulate tailwright-demo/plan.json \\
      --cluster tailwright-demo/cluster.toml
  tailwright simulate examples/scenarios/mm1.toml
  tailwright simulate examples/scenarios/three-tier-orf.toml --seed 7 --json
  tailwright simulate examples/scenarios/mm1.toml --load 0.9 --report mm1.html
  tailwright simulate examples/scenarios/mm1.toml \\
      --set station.queue.workers=2 \\
      --set 'entry.0.service.queue=hyperexp(mean=1ms, c2=4)'
  tailwright simulate policy.json --cluster cluster.toml
  tailwright simulate policy.json --slos slos.csv --storage profile.json --json
  tailwright simulate policy.json --cluster cluster.toml -o observed.parquet
      for tailwright verify

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

A scenario may vary what --set sets, and is then run for each combination:
  [[vary]]
  name = \"load\"
  set = \"run.load\"
  values = [0.5, 0.7, 0.9]

docs/reference/scenario.md describes every field. Same scenario and seed, same output; only requests_per_wall_s, \
the speed of the simulation, differs.

Exit codes: 0 done, or transient as [run] says, and every SLO met (of a policy: of those that it \
admits); 1 an SLO missed or open for lack of requests, a bound broken, unstable, or less precise than \
the scenario asks for; 2 bad input; 3 interrupted, with what was complete.";

/// Simulate queues, chains and graphs of multi-core tiers under any discipline.
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub struct SimulateArgs {
    /// Stations, steps and entries; a storage server with workloads; or a policy that `plan` wrote (.json).
    #[arg(value_name = "SCENARIO.toml|POLICY.json")]
    scenario: PathBuf,
    #[command(flatten)]
    inputs: PolicyInputArgs,
    /// Write every request, for a policy: of one more run, all traces from their beginning, as observations.
    #[arg(short, long, value_name = "OBSERVATIONS.parquet")]
    output: Option<PathBuf>,
    /// Seed of everything that is random.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Utilisation of the busiest station, such as 0.8 or 80%: all arrivals are scaled.
    #[arg(long, value_name = "SHARE", value_parser = share)]
    load: Option<f64>,
    /// Replace a value of the scenario: run.load=0.8, station.web.workers=4, 'station.*.discipline=lifo'.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// Accept servers that are used in another way than the policy's bounds assume: the answer then says first that bounds do
    /// not apply.
    #[arg(long)]
    without_bounds: bool,
    /// For a policy: leave out the best-effort requests, as large as its bounds assume, that flood its servers.
    #[arg(long)]
    no_flood: bool,
    /// Write a page with charts for a browser.
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    /// Print JSON: the figures.
    #[arg(long)]
    json: bool,
}

pub fn run(args: &SimulateArgs) -> Result<VerbAnswer, OperationError> {
    if args.scenario.extension().is_some_and(|ending| ending == "json") {
        if args.load.is_some() || !args.set.is_empty() || args.report.is_some() {
            return Err(OperationError::input(
                "--load, --set and --report are for scenarios, not for a policy",
            )
            .hint("a scenario with policy = \"policy.json\" under [server] takes them"));
        }
        let settings = PolicySimulationSettings {
            seed: args.seed,
            without_bounds: args.without_bounds,
            flood: !args.no_flood,
            has_class: args.inputs.has_class(),
        };
        return simulate_policy::run(
            &args.scenario,
            &args.inputs,
            args.output.as_deref(),
            settings,
            args.json,
        );
    }
    if args.no_flood {
        return Err(OperationError::input("--no-flood is for a policy: a scenario says what is sent")
            .hint("leave it out, or remove that [[workload]]"));
    }
    if args.inputs.is_given() {
        return Err(OperationError::input(
            "--cluster, --slos and what goes with them are for a policy, not for a scenario",
        )
        .hint("a scenario names its traces itself"));
    }
    if args.output.is_some() {
        return Err(OperationError::input("-o writes the requests of a policy, not of a scenario"));
    }
    check_writable(args.report.as_deref(), "report")?;
    let settings = ScenarioSettings {
        file: args.scenario.clone(),
        set: args.set.clone(),
        load: args.load,
        report: args.report.clone(),
    };
    let variants = read_scenario(&settings)?.variants()?;
    let _ = stop_on_termination();
    let simulated =
        simulate_variants(&variants, args.seed, args.without_bounds, &is_stopped, &TerminalObserver)?;
    let (page, text) = match simulated.as_slice() {
        // Nothing is varied.
        [only] if only.run.choices.is_empty() => show_one(&only.figures(args.seed), args.json),
        several => show_varied(&varied::VariedView { variants: several, seed: args.seed }, args.json),
    };
    let written = write_wanted(args.report.as_deref(), "report", || page);
    if args.json {
        terminal::print(&text);
    } else {
        terminal::print_text(&text);
    }
    written?;
    check_complete("what is shown is what was complete")?;
    let is_as_wanted = simulated.iter().all(|variant| variant.is_as_wanted(args.seed));
    Ok(if is_as_wanted { VerbAnswer::Yes } else { VerbAnswer::No })
}

/// The page and the text of a scenario that varies nothing.
fn show_one(figures: &VariantFigures, as_json: bool) -> (String, String) {
    let text = if as_json { simulated::json(figures) } else { simulated::text(figures) };
    (page::html(figures), text)
}

/// The page and the text of all variants.
fn show_varied(view: &varied::VariedView, as_json: bool) -> (String, String) {
    let text = if as_json { varied::json(view) } else { varied::text(view) };
    (varied_page::html(view), text)
}

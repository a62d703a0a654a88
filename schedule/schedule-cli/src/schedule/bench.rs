//! `tailwright schedule bench`: a scenario as services of this machine.

use crate::schedule::playing::{PlayingArgs, check_modes};
use chain::{ScheduleMode, TierGrouping};
use clap::Args;
use cli::exit::VerbAnswer;
use cli::quantities::share;
use cli::terminal::{Talk, talk};
use model::OperationError;
use scenario::{AxisChoice, Variant};
use simulate::simulation::{ScenarioSettings, read_scenario};
use std::path::PathBuf;

const HELP: &str = "\
Examples:
  tailwright schedule bench examples/scenarios/schedule-chain.toml \\
      --duration 20s
  tailwright schedule bench examples/scenarios/schedule-fan-in.toml \\
      --load 0.5,0.7,0.85,0.95 --json
  tailwright schedule bench examples/scenarios/replay.toml --cpus 2 --load 0.8
  tailwright schedule bench examples/scenarios/schedule-deadlines.toml \\
      --modes fair,orf,deadline
  tailwright schedule bench my.toml --modes fair,limited,orf \\
      --set 'entry.0.service.back=exp(2ms)'

The file is one that `tailwright simulate` takes: stations become services with as many CPUs as \
workers, and what requests need at steps becomes CPU time. Its disciplines give c and nothing else; \
the modes schedule. The modes by deadline need `slo` of every [[class]]. docs/reference/schedule.md says what else is left out, and how to read the figures.

Exit codes: 0 done; 2 bad input; 3 this machine lacks something, such as CPUs, or a signal ended \
it: the repetitions that were complete are shown.";

/// Run a scenario as services of this machine, under different scheduling modes
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ScheduleBenchArgs {
    /// Stations, steps and entries with open arrivals.
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Utilisation of the busiest tier, one run for each [default: that of the file].
    #[arg(long, value_name = "SHARE,…", value_delimiter = ',', value_parser = share)]
    load: Vec<f64>,
    /// Put stations together on so many CPUs, each of them a tier, in place of their workers [default: as many
    /// as workers].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    cpus: Option<u16>,
    /// Replace a value of the scenario, such as station.front.workers=2.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// The modes that are run [default: all that the scenario and the machine allow].
    #[arg(long, value_name = "MODE,…", value_delimiter = ',')]
    modes: Vec<ScheduleMode>,
    #[command(flatten)]
    playing: PlayingArgs,
}

pub(crate) fn run(args: &ScheduleBenchArgs) -> Result<VerbAnswer, OperationError> {
    let modes = if args.modes.is_empty() { ScheduleMode::ALL.to_vec() } else { args.modes.clone() };
    let settings =
        ScenarioSettings { file: args.scenario.clone(), set: args.set.clone(), load: None, report: None };
    let mut document = read_scenario(&settings)?;
    // Grouped stations have no workers of their own.
    let is_given = |path: &str| {
        path == "run.load" && !args.load.is_empty() || path.ends_with(".workers") && args.cpus.is_some()
    };
    let removed = document.remove_axes(is_given)?;
    if !removed.is_empty() {
        talk(Talk::Note, format_args!("--load and --cpus replace what [[vary]] has: {}", removed.join(", ")));
    }
    let loads: Vec<Option<f64>> = match args.load.as_slice() {
        [] => vec![None],
        loads => loads.iter().copied().map(Some).collect(),
    };
    let cpus = args.cpus.map(usize::from);
    let mut variants: Vec<Variant> = Vec::new();
    for variant in document.variants()? {
        for load in &loads {
            variants.push(at_load(&variant, *load, cpus)?);
        }
    }
    check_modes(&args.modes, &variants)?;
    args.playing.play(document.name(), &variants, &modes, cpus)
}

/// Returns the variant with this load of the busiest tier, or that of the file.
fn at_load(variant: &Variant, load: Option<f64>, cpus: Option<usize>) -> Result<Variant, OperationError> {
    let mut variant = variant.clone();
    if let Some(load) = load {
        variant.document.set("run.load", &format!("{load:?}"))?;
        variant.choices.push(AxisChoice { axis: "load".to_owned(), value: load.to_string() });
    }
    let Some(cpus) = cpus else { return Ok(variant) };
    // The load set above applies to a single station; several stations on a CPU share it.
    let case = variant.document.case()?;
    let busiest = case.busiest().1;
    let grouping = TierGrouping::on_cpus(&case, cpus);
    let together = grouping.utilisation().iter().copied().fold(0.0, f64::max);
    if together > 0.0 {
        variant.document.set("run.load", &format!("{:?}", busiest * busiest / together))?;
    }
    Ok(variant)
}

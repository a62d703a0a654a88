//! `tailwright schedule bench`: a scenario as services of this machine.

use super::playing::{PlayingArgs, distinct};
use crate::exit::VerbAnswer;
use chain::ScheduleMode;
use clap::Args;
use model::OperationError;
use scenario::{AxisChoice, Variant};
use std::path::PathBuf;
use workflow::simulation::{ScenarioSettings, read_scenario};

const HELP: &str = "\
Examples:
  tailwright schedule bench examples/scenarios/schedule-chain.toml --duration 20s
  tailwright schedule bench examples/scenarios/schedule-fan-in.toml --load 0.5,0.7,0.85,0.95 --json
  tailwright schedule bench my.toml --modes fair,limited,orf --set 'entry.0.service.back=exp(2ms)'

The file is one that `tailwright simulate` takes: stations become services with as many CPUs as
workers, and what requests need at steps becomes CPU time. Its disciplines give c and nothing else;
the modes schedule. docs/schedule.md says what else is left out, and how to read the figures.

Exit codes: 0 done; 2 bad input; 3 this machine lacks something, such as CPUs.";

/// Play a scenario by services of this machine, under different schedulings
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ScheduleBenchArgs {
    /// Stations, steps and entries with open arrivals.
    #[arg(value_name = "SCENARIO.toml")]
    scenario: PathBuf,
    /// Utilisation of the busiest tier, one run for each [default: that of the file].
    #[arg(long, value_name = "SHARE,…", value_delimiter = ',')]
    load: Vec<f64>,
    /// Replace a value of the scenario, such as station.front.workers=2.
    #[arg(long, value_name = "PATH=VALUE")]
    set: Vec<String>,
    /// The modes that are played [default: all].
    #[arg(long, value_name = "MODE,…", value_delimiter = ',')]
    modes: Vec<ScheduleMode>,
    #[command(flatten)]
    playing: PlayingArgs,
}

pub(crate) fn run(args: &ScheduleBenchArgs) -> Result<VerbAnswer, OperationError> {
    distinct(&args.modes)?;
    let modes = if args.modes.is_empty() { ScheduleMode::ALL.to_vec() } else { args.modes.clone() };
    let settings = ScenarioSettings { file: args.scenario.clone(), set: args.set.clone(), load: None };
    let document = read_scenario(&settings)?;
    let mut variants: Vec<Variant> = Vec::new();
    for variant in document.variants()? {
        if args.load.is_empty() {
            variants.push(variant);
            continue;
        }
        for load in &args.load {
            let mut at_load = variant.clone();
            at_load.document.set("run.load", &format!("{load:?}"))?;
            at_load.choices.push(AxisChoice { axis: "load".to_owned(), value: load.to_string() });
            variants.push(at_load);
        }
    }
    args.playing.play(document.name(), &variants, &modes)
}

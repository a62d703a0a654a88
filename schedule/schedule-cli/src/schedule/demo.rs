//! `tailwright schedule demo`: the effect of oldest-first on two services of this machine, in a minute.

use crate::schedule::playing::{PlayingArgs, check_modes};
use arrivals::TimeDistribution;
use chain::{DemoTopology, ScheduleMode};
use clap::Args;
use cli::exit::VerbAnswer;
use cli::quantities::share;
use model::OperationError;

const HELP: &str = "\
Examples:
  tailwright schedule demo
  tailwright schedule demo --topology chain --load 0.7
  tailwright schedule demo --topology two-classes --duration 10s
  tailwright schedule demo --work 'trimodal(90% 2500us, 9% 25ms, 1% 50ms)' \\
      --duration 20s
  tailwright schedule demo \\
      --modes fair,limited,orf-admission,orf,orf-auto -c 2 --json

Two services on two CPUs, as processes that spend CPU time. Every mode serves the same requests, \
one mode after the other, and a simulation of each is shown beside it. Modes: fair (a thread per request), rr (the same under \
SCHED_RR, where that is permitted), fcfs, limited (c at once, no ages), orf-admission, orf, orf-auto; \
with two-classes, whose requests have SLOs, also deadline-admission and deadline (the earliest deadline first). \
docs/reference/schedule.md says what each is and how to read the figures.

Exit codes: 0 done; 2 bad input; 3 this machine lacks something, such as a second CPU, or a \
signal ended it: the repetitions that were complete are shown.";

/// Show on this machine what serving the oldest requests first does
#[derive(Debug, Args)]
#[command(after_help = HELP)]
pub(crate) struct ScheduleDemoArgs {
    /// chain: one tier calls the other; fan-in: a slow and a fast path join in a shared tier; two-classes: a chain for
    /// requests with SLOs of 75 ms and of 750 ms.
    #[arg(long, value_name = "NAME", default_value = "fan-in")]
    topology: DemoTopology,
    /// CPU time of a request at a tier; half of it at the shared tier of fan-in, and three times as much
    /// for the longer SLO of two-classes.
    #[arg(long, value_name = "LAW", default_value = "exp(5ms)")]
    work: TimeDistribution,
    /// Utilisation of the tiers, above 0 and below 1.
    #[arg(long, value_name = "SHARE", default_value_t = 0.85, value_parser = load)]
    load: f64,
    /// The modes that are run [default: fair,fcfs,limited,orf; of two-classes fair,limited,orf,deadline].
    #[arg(long, value_name = "MODE,…", value_delimiter = ',')]
    modes: Vec<ScheduleMode>,
    #[command(flatten)]
    playing: PlayingArgs,
}

/// Parses a load above 0 that tiers can sustain.
fn load(text: &str) -> Result<f64, String> {
    let expected = || format!("expected a load above 0 and below 1, such as 0.85 or 85%, found '{text}'");
    share(text).ok().filter(|load| *load > 0.0 && *load < 1.0).ok_or_else(expected)
}

pub(crate) fn run(args: &ScheduleDemoArgs) -> Result<VerbAnswer, OperationError> {
    let variants = args.topology.scenario(&args.work, args.load)?.variants()?;
    check_modes(&args.modes, &variants)?;
    let modes = if args.modes.is_empty() { args.topology.modes() } else { args.modes.clone() };
    args.playing.play(&args.topology.to_string(), &variants, &modes, None)
}

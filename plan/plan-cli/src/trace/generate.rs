//! `tailwright trace generate`: synthetic traces of several processes.

use crate::trace::arguments::TraceOutputArgs;
use cli::quantities::{request_rate, share};
use cli::terminal::TerminalObserver;
use plan::trace_files::{TraceFileError, generate_trace, on_off_process, wrong_parameter};
use trace::generate::{MmppState, RateProcess, SizeMix, Synthetic};
use units::{Bytes, Nanos};

#[derive(Debug, clap::Args)]
#[command(arg_required_else_help = true)]
#[command(after_help = "The same arguments and seed give the same trace.\n\nExamples:\n  \
    tailwright trace generate poisson --rate 500/s --duration 60s -o t.parquet\n  \
    tailwright trace generate mmpp --phase 50/s:2s --phase 2000/s:100ms \\\n      --duration 10min -o bursts.parquet\n  \
    tailwright trace generate on-off --rate 300/s --sources 20 --shape 1.4 \\\n      --duration 1h -o heavy.parquet\n  \
    tailwright trace generate b-model --rate 300/s --bias 0.7 --duration 10min \\\n      --size 4KiB:3 --size 64KiB:1 -o b.csv\n  \
    tailwright trace generate poisson --rate 100/s --duration 24h --diurnal 0.6 \\\n      --diurnal-period 24h -o day.parquet\n\n\
    Exit codes: 0 done; 2 bad input; 3 the output cannot be written.")]
pub(super) struct GenerateArgs {
    #[command(subcommand)]
    process: ProcessArgs,
}

const CONSTANT_HELP: &str = "\
Examples:
  tailwright trace generate constant --rate 200/s --duration 60s -o even.csv

Exit codes: 0 done; 2 bad input; 3 the output cannot be written.";

const POISSON_HELP: &str = "\
Examples:
  tailwright trace generate poisson --rate 500/s --duration 60s -o t.parquet
  tailwright trace generate poisson --rate 100/s --duration 24h --diurnal 0.6 \\
      --diurnal-period 24h -o day.parquet

Exit codes: 0 done; 2 bad input; 3 the output cannot be written.";

const MMPP_HELP: &str = "\
Examples:
  tailwright trace generate mmpp --phase 50/s:2s --phase 2000/s:100ms \\
      --duration 10min -o bursts.parquet

Exit codes: 0 done; 2 bad input; 3 the output cannot be written.";

const ON_OFF_HELP: &str = "\
Examples:
  tailwright trace generate on-off --rate 300/s --sources 20 --shape 1.4 \\
      --duration 1h -o heavy.parquet

Exit codes: 0 done; 2 bad input; 3 the output cannot be written.";

const B_MODEL_HELP: &str = "\
Examples:
  tailwright trace generate b-model --rate 300/s --bias 0.7 --duration 10min \\
      --size 4KiB:3 --size 64KiB:1 -o b.csv

Exit codes: 0 done; 2 bad input; 3 the output cannot be written.";

#[derive(Debug, clap::Subcommand)]
enum ProcessArgs {
    #[command(about = "Equal gaps", after_help = CONSTANT_HELP)]
    Constant {
        #[command(flatten)]
        rate: ProcessRateArgs,
        #[command(flatten)]
        common: SyntheticTraceArgs,
    },
    /// Exponential gaps: no burstiness beyond chance
    #[command(after_help = POISSON_HELP)]
    Poisson {
        #[command(flatten)]
        rate: ProcessRateArgs,
        #[command(flatten)]
        common: SyntheticTraceArgs,
    },
    /// Markov-modulated Poisson: random stays in states with a rate each
    #[command(after_help = MMPP_HELP)]
    Mmpp {
        /// A state of the chain: rate and mean stay; give at least two
        #[arg(long = "phase", alias = "state", value_name = "RATE:STAY", value_parser = parse_state, required = true)]
        states: Vec<MmppState>,
        #[command(flatten)]
        common: SyntheticTraceArgs,
    },
    /// Superposed on-off sources with heavy-tailed periods: bursts at all scales
    #[command(after_help = ON_OFF_HELP)]
    OnOff {
        #[command(flatten)]
        rate: ProcessRateArgs,
        #[arg(long, value_name = "N", default_value_t = 20, help = "Independent sources")]
        sources: u32,
        /// Mean time that a source is on
        #[arg(long, value_name = "TIME", default_value = "100ms")]
        on: Nanos,
        /// Mean time that a source is off
        #[arg(long, value_name = "TIME", default_value = "900ms")]
        off: Nanos,
        /// Shape of the Pareto tails, above 1; the Hurst parameter tends to (3 - shape)/2
        #[arg(long, value_name = "ALPHA", default_value_t = 1.4)]
        shape: f64,
        #[command(flatten)]
        common: SyntheticTraceArgs,
    },
    /// b-model: self-similar bursts from uneven halving
    #[command(after_help = B_MODEL_HELP)]
    BModel {
        #[command(flatten)]
        rate: ProcessRateArgs,
        /// Share of the busier half, 0.5 (smooth) to below 1
        #[arg(long, value_name = "SHARE", default_value_t = 0.7, value_parser = share)]
        bias: f64,
        /// Interval that is halved; the whole duration by default
        #[arg(long, value_name = "TIME")]
        interval: Option<Nanos>,
        /// Number of times that it is halved
        #[arg(long, value_name = "N", default_value_t = 20)]
        levels: u32,
        #[command(flatten)]
        common: SyntheticTraceArgs,
    },
}

#[derive(Debug, Clone, clap::Args)]
struct ProcessRateArgs {
    /// Mean arrival rate, such as 500/s
    #[arg(long, value_name = "N/TIME", value_parser = request_rate)]
    rate: f64,
}

#[derive(Debug, Clone, clap::Args)]
struct SyntheticTraceArgs {
    /// How long requests arrive
    #[arg(long, value_name = "TIME")]
    duration: Nanos,
    /// Seed of the trace: the same seed gives the same one
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Request size; several with weights make a mix
    #[arg(long = "size", value_name = "SIZE[:WEIGHT]", value_parser = parse_size, default_value = "4KiB")]
    sizes: Vec<(Bytes, f64)>,
    /// Probability that a request is a read
    #[arg(long, value_name = "SHARE", default_value_t = 0.7, value_parser = share)]
    read_share: f64,
    /// Let the rate swing by this share around its mean, once per --diurnal-period
    #[arg(long, value_name = "SHARE", value_parser = share)]
    diurnal: Option<f64>,
    #[arg(
        long = "diurnal-period",
        alias = "period",
        value_name = "TIME",
        default_value = "24h",
        help = "Cycle of --diurnal"
    )]
    period: Nanos,
    #[command(flatten)]
    output: TraceOutputArgs,
}

pub(super) fn run(args: &GenerateArgs) -> Result<(), TraceFileError> {
    let (process, common) = process(&args.process);
    let process = match common.diurnal {
        Some(amplitude) => RateProcess::Diurnal {
            of: Box::new(process),
            period_s: common.period.as_secs(),
            amplitude,
            phase: 0.0,
        },
        None => process,
    };
    let sizes = SizeMix::new(common.sizes.clone()).map_err(|error| wrong_parameter(&error))?;
    let synthetic = Synthetic {
        process,
        sizes,
        read_share: common.read_share,
        duration: common.duration,
        seed: common.seed,
    };
    generate_trace(&synthetic, &common.output.output(), &TerminalObserver)
}

/// The process that the arguments describe, before it swings with the day.
fn process(args: &ProcessArgs) -> (RateProcess, &SyntheticTraceArgs) {
    match args {
        ProcessArgs::Constant { rate, common } => (RateProcess::Constant { rate: rate.rate }, common),
        ProcessArgs::Poisson { rate, common } => (RateProcess::Poisson { rate: rate.rate }, common),
        ProcessArgs::Mmpp { states, common } => (RateProcess::Mmpp { states: states.clone() }, common),
        ProcessArgs::OnOff { rate, sources, on, off, shape, common } => {
            (on_off_process(rate.rate, *sources, *on, *off, *shape), common)
        }
        ProcessArgs::BModel { rate, bias, interval, levels, common } => {
            let interval_s = interval.unwrap_or(common.duration).as_secs();
            (RateProcess::BModel { rate: rate.rate, bias: *bias, interval_s, levels: *levels }, common)
        }
    }
}

fn parse_state(text: &str) -> Result<MmppState, String> {
    let (rate, stay) = text.split_once(':').ok_or("expected a rate and a mean stay, such as 50/s:2s")?;
    let stay: Nanos = stay.parse().map_err(|error: units::ParseError| error.to_string())?;
    Ok(MmppState { rate: request_rate(rate)?, stay_s: stay.as_secs() })
}

fn parse_size(text: &str) -> Result<(Bytes, f64), String> {
    let (size, weight) = text.split_once(':').unwrap_or((text, "1"));
    let size: Bytes = size.parse().map_err(|error: units::ParseError| error.to_string())?;
    if size.0 == 0 {
        return Err("expected a size of at least 1B: requests without bytes load nothing".to_owned());
    }
    let weight = weight.parse().map_err(|_| "expected a size with a weight, such as 64KiB:3".to_owned())?;
    Ok((size, weight))
}

//! `tailwright trace convert`, `slice` and `merge`: traces in, one trace out.

use crate::trace::arguments::{TraceInputArgs, TraceOutputArgs};
use cli::terminal::TerminalObserver;
use plan::trace_files::{TraceFileError, TraceWindow, convert_trace, merge_traces, slice_trace};
use std::path::PathBuf;
use trace::SliceOrigin;
use units::Nanos;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    tailwright trace convert tailwright-demo/traces/database-1.csv.gz \\\n      -o web.parquet\n  \
    tailwright trace convert disk.blkparse -o disk.csv.zst\n  \
    tailwright trace convert web.csv.gz -o web2x.csv --scale-time 0.5\n      twice as fast\n\n\
    Exit codes: 0 done; 2 bad input; 3 the output cannot be written.")]
pub(super) struct ConvertArgs {
    #[arg(value_name = "FILE", help = "Trace to read")]
    file: PathBuf,
    /// Multiply the time since the first arrival by this factor: below 1 is faster
    #[arg(long, value_name = "FACTOR")]
    scale_time: Option<f64>,
    #[command(flatten)]
    output: TraceOutputArgs,
    #[command(flatten)]
    input: TraceInputArgs,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Times count from the first request of the trace. The window includes its beginning and \
    not its end.\n\nExamples:\n  tailwright trace slice tailwright-demo/traces/database-1.csv.gz \\\n      --from 10s --to 20s --rebase -o part.parquet\n  \
    tailwright trace slice web.csv.gz --from 1min --to 2min --rebase \\\n      -o minute.parquet\n  \
    tailwright trace slice web.csv.gz --first-half -o train.parquet\n  \
    tailwright trace slice web.csv.gz --fraction 0.25..0.75 -o middle.parquet\n\n\
    Exit codes: 0 done; 2 bad input; 3 the output cannot be written."
)]
#[command(group = clap::ArgGroup::new("window").required(true).multiple(true)
    .args(["from", "to", "first_half", "second_half", "fraction"]))]
pub(super) struct SliceArgs {
    #[arg(value_name = "FILE", help = "Trace to read")]
    file: PathBuf,
    /// Beginning of the window
    #[arg(long, value_name = "TIME")]
    from: Option<Nanos>,
    /// End of the window
    #[arg(long, value_name = "TIME")]
    to: Option<Nanos>,
    /// The first half of the time
    #[arg(long, conflicts_with_all = ["from", "to", "second_half", "fraction"])]
    first_half: bool,
    /// The second half of the time
    #[arg(long, conflicts_with_all = ["from", "to", "fraction"])]
    second_half: bool,
    /// A part of the time between two fractions, such as 0.25..0.75
    #[arg(long, value_name = "A..B", value_parser = parse_fraction, conflicts_with_all = ["from", "to"])]
    fraction: Option<(f64, f64)>,
    /// Let time begin at zero at the beginning of the window
    #[arg(long)]
    rebase: bool,
    #[command(flatten)]
    output: TraceOutputArgs,
    #[command(flatten)]
    input: TraceInputArgs,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  tailwright trace merge tailwright-demo/traces/*.csv.gz -o all.parquet\n  \
    tailwright trace merge a.csv.gz b.csv.gz -o both.parquet\n  \
    tailwright trace merge traces/*.csv.gz --align -o cluster.parquet\n\n\
    Exit codes: 0 done; 2 bad input; 3 the output cannot be written."
)]
pub(super) struct MergeArgs {
    #[arg(required = true, value_name = "FILE", help = "Traces to read")]
    files: Vec<PathBuf>,
    /// Let every trace begin at zero
    #[arg(long)]
    align: bool,
    #[command(flatten)]
    output: TraceOutputArgs,
    #[command(flatten)]
    input: TraceInputArgs,
}

pub(super) fn convert(args: &ConvertArgs) -> Result<(), TraceFileError> {
    let options = args.input.options();
    let output = args.output.output();
    convert_trace(&args.file, &options, args.scale_time, &output, &TerminalObserver)
}

pub(super) fn slice(args: &SliceArgs) -> Result<(), TraceFileError> {
    let window = match (args.first_half, args.second_half, args.fraction) {
        (true, _, _) => TraceWindow::Shares(0.0, 0.5),
        (_, true, _) => TraceWindow::Shares(0.5, 1.0),
        (_, _, Some((from, to))) => TraceWindow::Shares(from, to),
        (_, _, None) => TraceWindow::Between(args.from.unwrap_or(Nanos::ZERO), args.to),
    };
    let origin = if args.rebase { SliceOrigin::Rebase } else { SliceOrigin::Keep };
    let options = args.input.options();
    let output = args.output.output();
    slice_trace(&args.file, &options, window, origin, &output, &TerminalObserver)
}

pub(super) fn merge(args: &MergeArgs) -> Result<(), TraceFileError> {
    let options = args.input.options();
    let output = args.output.output();
    merge_traces(&args.files, &options, args.align, &output, &TerminalObserver)
}

fn parse_fraction(text: &str) -> Result<(f64, f64), String> {
    let parsed = text.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    match parsed {
        Some((from, to)) if 0.0 <= from && from < to && to <= 1.0 => Ok((from, to)),
        _ => Err("expected two fractions from 0 to 1 in ascending order, such as 0.25..0.75".to_owned()),
    }
}

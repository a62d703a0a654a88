//! `tailwright trace convert`, `slice` and `merge`: traces in, one trace out.

use super::{InputArgs, OutputArgs, Watched, failure};
use crate::exit::Answer;
use model::{OperationError, Request};
use std::path::{Path, PathBuf};
use trace::{SliceOrigin, TraceError};
use units::Nanos;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tailwright trace convert hm_1.csv.gz -o hm_1.parquet\n  \
    tailwright trace convert disk.blkparse -o disk.csv.zst\n  \
    tailwright trace convert web.csv.gz -o web2x.csv --scale-time 0.5   (twice as fast)")]
pub(super) struct ConvertArgs {
    /// Trace to read
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Multiply the time since the first arrival by this factor: below 1 is faster
    #[arg(long, value_name = "FACTOR")]
    scale_time: Option<f64>,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    input: InputArgs,
}

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Times count from the first request of the trace. The window includes its beginning and \
    not its end.\n\nExamples:\n  tailwright trace slice web.csv.gz --from 1min --to 2min --rebase -o minute.parquet\n  \
    tailwright trace slice web.csv.gz --first-half -o train.parquet\n  \
    tailwright trace slice web.csv.gz --fraction 0.25..0.75 -o middle.parquet"
)]
#[command(group = clap::ArgGroup::new("window").required(true).multiple(true)
    .args(["from", "to", "first_half", "second_half", "fraction"]))]
pub(super) struct SliceArgs {
    /// Trace to read
    #[arg(value_name = "FILE")]
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
    output: OutputArgs,
    #[command(flatten)]
    input: InputArgs,
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  tailwright trace merge a.csv.gz b.csv.gz -o both.parquet\n  \
    tailwright trace merge traces/*.csv.gz --align -o cluster.parquet")]
pub(super) struct MergeArgs {
    /// Traces to read
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Let every trace begin at zero
    #[arg(long)]
    align: bool,
    #[command(flatten)]
    output: OutputArgs,
    #[command(flatten)]
    input: InputArgs,
}

pub(super) fn convert(args: &ConvertArgs) -> Result<Answer, OperationError> {
    if let Some(factor) = args.scale_time.filter(|factor| !(*factor > 0.0 && factor.is_finite())) {
        return Err(OperationError::input(format!(
            "--scale-time: expected a positive number, found {factor}"
        )));
    }
    let watched = Watched::new(args.input.open(&args.file)?, "converting");
    match args.scale_time {
        Some(factor) => args.output.write(trace::scale_time(watched, factor))?,
        None => args.output.write(watched)?,
    };
    Ok(Answer::Yes)
}

pub(super) fn slice(args: &SliceArgs) -> Result<Answer, OperationError> {
    let (from, to) = window(args)?;
    let origin = if args.rebase { SliceOrigin::Rebase } else { SliceOrigin::Keep };
    let watched = Watched::new(args.input.open(&args.file)?, "slicing");
    let mut requests = trace::slice(watched, from, to, origin).peekable();
    if requests.peek().is_none() {
        return Err(OperationError::input(format!(
            "{}: no request arrives in the window",
            args.file.display()
        ))
        .hint("times count from the first request; see tailwright trace info for the duration"));
    }
    args.output.write(requests)?;
    Ok(Answer::Yes)
}

/// Beginning and end since the first request; no end is the end of the trace.
fn window(args: &SliceArgs) -> Result<(Nanos, Option<Nanos>), OperationError> {
    let fractions = match (args.first_half, args.second_half, args.fraction) {
        (true, _, _) => Some((0.0, 0.5)),
        (_, true, _) => Some((0.5, 1.0)),
        (_, _, fraction) => fraction,
    };
    let (from, to) = match fractions {
        None => (args.from.unwrap_or(Nanos::ZERO), args.to),
        Some((from, to)) => {
            let span = span(&args.file, &args.input)?;
            let part = |fraction: f64| Nanos::from_secs(span.as_secs() * fraction).unwrap_or(span);
            // The last request belongs to a window up to the end.
            (part(from), (to < 1.0).then(|| part(to)))
        }
    };
    if to.is_some_and(|to| to <= from) {
        return Err(
            OperationError::input("the window ends before it begins").hint("let --to be later than --from")
        );
    }
    Ok((from, to))
}

/// Time between the first and the last request, which takes a pass over the trace.
fn span(file: &Path, input: &InputArgs) -> Result<Nanos, OperationError> {
    if file == Path::new("-") {
        return Err(OperationError::input("the length of a stream is not known before its end")
            .hint("give a file, or a window with --from and --to"));
    }
    let watched = Watched::new(input.open(file)?, "measuring");
    let mut ends: Option<(Nanos, Nanos)> = None;
    for request in watched {
        let arrival = request.map_err(|error| failure(&error))?.arrival;
        ends = Some((ends.map_or(arrival, |(first, _)| first), arrival));
    }
    Ok(ends.map_or(Nanos::ZERO, |(first, last)| last - first))
}

type Stream = Box<dyn Iterator<Item = Result<Request, TraceError>>>;

pub(super) fn merge(args: &MergeArgs) -> Result<Answer, OperationError> {
    let mut streams: Vec<Stream> = Vec::new();
    for file in &args.files {
        let reader = Watched::without_bar(args.input.open(file)?);
        streams.push(if args.align {
            Box::new(trace::slice(reader, Nanos::ZERO, None, SliceOrigin::Rebase))
        } else {
            Box::new(reader)
        });
    }
    args.output.write(trace::merge(streams))?;
    Ok(Answer::Yes)
}

fn parse_fraction(text: &str) -> Result<(f64, f64), String> {
    let parsed = text.split_once("..").and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    match parsed {
        Some((from, to)) if 0.0 <= from && from < to && to <= 1.0 => Ok((from, to)),
        _ => Err("expected two fractions from 0 to 1 in ascending order, such as 0.25..0.75".to_owned()),
    }
}

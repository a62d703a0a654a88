//! `tailwright trace curves`: the whole burst curve of a trace at every stage.

use crate::trace::arguments::TraceInputArgs;
use cli::terminal::{Align, TerminalObserver, TextTable, print, print_text};
use model::Stage;
use operation::text::time;
use plan::trace_files::{StageCurve, TraceCurves, TraceFileError, trace_curves};
use std::path::PathBuf;
use units::{ByteRate, Bytes};

#[derive(Debug, clap::Args)]
#[command(
    after_help = "A row is a corner of the curve: the most work that arrives within a duration, and the token bucket of the \
    edge that begins there. No bucket of the list ever delays the trace, nor does any on the lines between them.\n\nExamples:\n  \
    tailwright trace curves tailwright-demo/traces/database-1.csv.gz\n  \
    tailwright trace curves web.csv.gz --storage ssd.json --json\n\n\
    Exit codes: 0 done; 2 bad input."
)]
pub(super) struct CurvesArgs {
    /// Trace
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Device profile of the storage: adds the curve of device time
    #[arg(long, value_name = "PROFILE.json")]
    storage: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    input: TraceInputArgs,
}

pub(super) fn run(args: &CurvesArgs) -> Result<(), TraceFileError> {
    let curves = trace_curves(&args.file, &args.input.options(), args.storage.as_deref(), &TerminalObserver)?;
    if args.json {
        print(&operation::document::document(&curves));
    } else {
        print_text(&text(&curves));
    }
    Ok(())
}

fn text(curves: &TraceCurves) -> String {
    let mut text = String::new();
    for StageCurve { stage, mean_rate_per_s, corners } in &curves.stages {
        let is_time = *stage == Stage::Storage;
        let mean = mean_rate_per_s.map_or_else(String::new, |mean| format!(", mean {}", rate(mean, is_time)));
        text.push_str(&format!("{stage}{mean}\n"));
        let mut table = TextTable::new(&[
            ("  within", Align::Right),
            ("at most", Align::Right),
            ("rate", Align::Right),
            ("burst", Align::Right),
        ]);
        for corner in corners {
            table.row(vec![
                format!("  {}", time(corner.duration_s)),
                work(corner.work, is_time),
                rate(corner.rate_per_s, is_time),
                work(corner.burst_work, is_time),
            ]);
        }
        text.push_str(&format!("{}\n", table.render()));
    }
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// An amount of work of a stage.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count of bytes, rounded up")]
fn work(work: f64, is_time: bool) -> String {
    if is_time { time(work) } else { Bytes(work.ceil() as u64).to_string() }
}

/// A rate of a stage: a share of the device, or bytes per second.
fn rate(rate: f64, is_time: bool) -> String {
    if is_time {
        operation::text::percent(rate)
    } else {
        ByteRate::from_bytes_per_sec(rate).map_or_else(|| "0B/s".to_owned(), |rate| rate.to_string())
    }
}

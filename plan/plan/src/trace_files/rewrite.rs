//! Traces that are converted, cut and merged.

use crate::trace_files::error::TraceFileError;
use crate::trace_files::output::TraceOutput;
use crate::trace_files::reader::ObservedReader;
use model::{OperationError, Request};
use operation::ProgressObserver;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use trace::{OpenOptions, SliceOrigin, TraceError, TracePlace};
use units::Nanos;

/// Factors beyond these leave nothing of a trace: all at one instant, or in another century.
const TIME_FACTORS: RangeInclusive<f64> = 1e-9..=1e9;

/// Writes a trace in another format, with the time since the first arrival multiplied by a factor.
///
/// # Errors
///
/// When the factor is beyond what leaves anything of a trace, or a trace cannot be read or written.
pub fn convert_trace(
    path: &Path,
    options: &OpenOptions,
    time_factor: Option<f64>,
    output: &TraceOutput,
    observer: &dyn ProgressObserver,
) -> Result<(), TraceFileError> {
    if let Some(factor) = time_factor.filter(|factor| !TIME_FACTORS.contains(factor)) {
        let least = TIME_FACTORS.start();
        let most = TIME_FACTORS.end();
        let message = format!("--scale-time: expected a factor from {least:e} to {most:e}, found {factor:?}");
        return Err(OperationError::input(message).into());
    }
    let reader = ObservedReader::open(path, options, "converting", observer)?;
    match time_factor {
        Some(factor) => output.write(trace::scale_time(reader, factor), observer),
        None => output.write(reader, observer),
    }
}

/// A window of time, counted from the first request of a trace. It includes its beginning and not its end.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum TraceWindow {
    /// Between two times; without an end up to the end of the trace.
    Between(Nanos, Option<Nanos>),
    /// Between two shares of the time of the trace, 0 to 1; a window up to 1 includes the last request.
    Shares(f64, f64),
}

/// Cuts a window of time out of a trace.
///
/// # Errors
///
/// When the window ends before it begins or has no requests, or a trace cannot be read or written.
pub fn slice_trace(
    path: &Path,
    options: &OpenOptions,
    window: TraceWindow,
    origin: SliceOrigin,
    output: &TraceOutput,
    observer: &dyn ProgressObserver,
) -> Result<(), TraceFileError> {
    let (from, to) = match window {
        TraceWindow::Between(from, to) => (from, to),
        TraceWindow::Shares(from, to) => {
            let span = measure_span(path, options, observer)?;
            let part = |share: f64| Nanos::from_secs(span.as_secs() * share).unwrap_or(span);
            // The last request belongs to a window up to the end.
            (part(from), (to < 1.0).then(|| part(to)))
        }
    };
    if to.is_some_and(|to| to <= from) {
        let error = OperationError::input("the window ends before it begins");
        return Err(error.hint("let --to be later than --from").into());
    }
    let reader = ObservedReader::open(path, options, "slicing", observer)?;
    let mut requests = trace::slice(reader, from, to, origin).peekable();
    if requests.peek().is_none() {
        let message = format!("{}: no request arrives in the window", path.display());
        return Err(OperationError::input(message)
            .hint("times count from the first request; see tailwright trace info for the duration")
            .into());
    }
    output.write(requests, observer)
}

/// Time between the first and the last request, which takes a pass over the trace.
fn measure_span(
    path: &Path,
    options: &OpenOptions,
    observer: &dyn ProgressObserver,
) -> Result<Nanos, TraceFileError> {
    if path == Path::new("-") {
        return Err(OperationError::input("the length of a stream is not known before its end")
            .hint("give a file, or a window with --from and --to")
            .into());
    }
    let mut ends: Option<(Nanos, Nanos)> = None;
    for request in ObservedReader::open(path, options, "measuring", observer)? {
        let arrival = request?.arrival;
        ends = Some((ends.map_or(arrival, |(first, _)| first), arrival));
    }
    Ok(ends.map_or(Nanos::ZERO, |(first, last)| last - first))
}

type RequestStream<'a> = Box<dyn Iterator<Item = Result<Request, TraceError>> + 'a>;

/// Merges traces into one in order of arrival; aligned ones all begin at zero.
///
/// # Errors
///
/// When a trace cannot be read or written.
pub fn merge_traces(
    paths: &[PathBuf],
    options: &OpenOptions,
    is_aligned: bool,
    output: &TraceOutput,
    observer: &dyn ProgressObserver,
) -> Result<(), TraceFileError> {
    let mut streams: Vec<RequestStream> = Vec::new();
    for path in paths {
        let reader = ObservedReader::open_one_of_many(&TracePlace::of(path), options, observer)?;
        streams.push(if is_aligned {
            Box::new(trace::slice(reader, Nanos::ZERO, None, SliceOrigin::Rebase))
        } else {
            Box::new(reader)
        });
    }
    output.write(trace::merge(streams), observer)
}

//! When the requests of a trace file arrive.

use model::OperationError;
use std::path::Path;
use trace::{OpenOptions, TraceError};
use units::Nanos;

/// When the requests of a trace arrive, all at once.
///
/// # Errors
/// When it cannot be read or is empty.
pub fn read_trace_arrivals(path: &Path) -> Result<Vec<Nanos>, OperationError> {
    let all = trace_arrivals(path)?.collect::<Result<Vec<_>, _>>()?;
    if all.is_empty() { Err(empty_trace_error(path)) } else { Ok(all) }
}

/// When the requests of a trace arrive, one by one.
///
/// # Errors
/// When it cannot be read; an error ends the stream.
pub fn trace_arrivals(
    path: &Path,
) -> Result<impl Iterator<Item = Result<Nanos, OperationError>> + use<>, OperationError> {
    let reader = trace::open(path, &OpenOptions::default()).map_err(|error| unreadable(&error))?;
    Ok(reader.map(|request| request.map(|request| request.arrival).map_err(|error| unreadable(&error))))
}

fn unreadable(error: &TraceError) -> OperationError {
    OperationError::input(error).hint(error.hint())
}

/// The error about a trace without requests.
pub fn empty_trace_error(path: &Path) -> OperationError {
    OperationError::input(format_args!("{}: the trace is empty", path.display()))
        .hint("give a trace with requests, or --arrivals")
}

//! Errors of reading and writing traces.

use model::OperationError;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use trace::{TraceError, TraceErrorKind};

/// A trace could not be read or written, or not as it was asked for.
#[derive(Debug)]
pub enum TraceFileError {
    /// A trace could not be read.
    Trace(TraceError),
    /// The trace that was asked for could not be written.
    Output(TraceError),
    /// An invalid request or option.
    Operation(OperationError),
}

impl TraceFileError {
    /// Returns true if the reader of the standard output has closed it, which users do not regard as an
    /// error.
    pub fn is_closed_output(&self) -> bool {
        let Self::Output(error) = self else { return false };
        standard_output_error(error).is_some_and(|io| io.kind() == ErrorKind::BrokenPipe)
    }
}

/// Why the standard output cannot be written, if it is that which cannot.
fn standard_output_error(error: &TraceError) -> Option<&std::io::Error> {
    match error.kind() {
        TraceErrorKind::Io(io) if error.file() == Path::new("-") => Some(io),
        _ => None,
    }
}

impl From<TraceError> for TraceFileError {
    fn from(error: TraceError) -> Self {
        Self::Trace(error)
    }
}

impl From<OperationError> for TraceFileError {
    fn from(error: OperationError) -> Self {
        Self::Operation(error)
    }
}

impl From<TraceFileError> for OperationError {
    /// A trace's own message and hint; the machine is to blame for what it cannot write.
    fn from(error: TraceFileError) -> Self {
        match error {
            TraceFileError::Operation(error) => error,
            TraceFileError::Trace(error) => Self::input(&error).hint(error.hint()),
            TraceFileError::Output(error) => match (standard_output_error(&error), error.kind()) {
                (Some(io), _) => Self::machine(format_args!("the standard output cannot be written: {io}"))
                    .hint(OUTPUT_HINT),
                (None, TraceErrorKind::Io(_)) => Self::machine(&error).hint(error.hint()),
                _ => Self::input(&error).hint(error.hint()),
            },
        }
    }
}

/// Hint for a failed write to the standard output.
const OUTPUT_HINT: &str = "check the space left, and where the output goes";

impl fmt::Display for TraceFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(error) | Self::Output(error) => error.fmt(f),
            Self::Operation(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TraceFileError {}

//! What can go wrong between one trace and another.

use model::OperationError;
use std::fmt;
use std::io::ErrorKind;
use std::path::Path;
use trace::{TraceError, TraceErrorKind};

/// A trace could not be read or written, or not as it was asked for.
#[derive(Debug)]
pub enum TraceFileError {
    /// Reading or writing failed.
    Trace(TraceError),
    /// What was asked for makes no sense.
    Operation(OperationError),
}

impl TraceFileError {
    /// Whether whoever read the standard output has gone, which is no error to a person.
    pub fn is_closed_output(&self) -> bool {
        let Self::Trace(error) = self else { return false };
        error.file() == Path::new("-") && is_io(error, &[ErrorKind::BrokenPipe])
    }
}

fn is_io(error: &TraceError, kinds: &[ErrorKind]) -> bool {
    matches!(error.kind(), TraceErrorKind::Io(io) if kinds.contains(&io.kind()))
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
    /// A trace's own message and hint; the machine is to blame when it has no room or no rights to write.
    fn from(error: TraceFileError) -> Self {
        match error {
            TraceFileError::Operation(error) => error,
            TraceFileError::Trace(error) => {
                let is_machine = is_io(&error, &[ErrorKind::StorageFull, ErrorKind::ReadOnlyFilesystem]);
                let operation = if is_machine { Self::machine(&error) } else { Self::input(&error) };
                operation.hint(error.hint())
            }
        }
    }
}

impl fmt::Display for TraceFileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Trace(error) => error.fmt(f),
            Self::Operation(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TraceFileError {}

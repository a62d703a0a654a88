//! Error of a run that was interrupted before any part of it was complete.

use model::OperationError;

/// Returns the error of a run that was interrupted before there was a result.
pub(super) fn nothing_complete() -> OperationError {
    OperationError::machine("interrupted before anything was complete: there is nothing to show")
        .hint("fewer requests are sooner done, such as --requests 100000")
}

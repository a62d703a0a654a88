//! A run that was ended before anything of it was complete.

use model::OperationError;

/// The error of a run that was interrupted before there was anything to show.
pub(super) fn nothing_complete() -> OperationError {
    OperationError::machine("interrupted before anything was complete: there is nothing to show")
        .hint("fewer requests are sooner done, such as --requests 100000")
}

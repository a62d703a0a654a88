//! The error about a scenario that cannot be read or run.

use model::OperationError;

/// The error about the scenario that came from `origin`; `message` says where in it and what was expected.
pub(crate) fn scenario_error(origin: &str, message: &str) -> OperationError {
    OperationError::input(format_args!("{origin}: {}", message.trim_end()))
        .hint("docs/reference/scenario.md describes a scenario; `tailwright simulate --help` shows one")
}

//! Errors as the exceptions that `tailwright._errors` defines.

use model::{Blame, OperationError};
use pyo3::prelude::*;
use std::fmt::Display;

/// Creates the exception of this class with a message and perhaps a remedy.
fn exception(py: Python<'_>, class: &str, message: &str, hint: Option<&str>) -> PyErr {
    let created = py
        .import("tailwright._errors")
        .and_then(|module| module.getattr(class))
        .and_then(|class| class.call1((message, hint)));
    created.map_or_else(|error| error, PyErr::from_value)
}

/// Creates the exception for what the caller passed.
pub(crate) fn input(py: Python<'_>, message: impl Display) -> PyErr {
    exception(py, "InputError", &message.to_string(), None)
}

/// Creates the exception for an operation that failed.
pub(crate) fn failed(py: Python<'_>, error: &OperationError) -> PyErr {
    let class = match error.blame {
        Blame::Input => "InputError",
        Blame::Machine => "MachineError",
    };
    exception(py, class, &error.message, error.hint.as_deref())
}

/// Creates the exception for a bug of this library.
pub(crate) fn internal(py: Python<'_>, message: &str) -> PyErr {
    exception(py, "InternalError", message, None)
}

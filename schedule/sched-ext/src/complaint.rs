//! Messages about missing features of the kernel, and its refusals.

use model::OperationError;
use std::fmt;
use std::io;

pub(crate) fn unsuitable(what: impl fmt::Display) -> OperationError {
    OperationError::machine(format_args!("the scheduler does not fit this kernel: {what}"))
        .hint("docs/reference/schedule-kernel.md says which kernels it was tried with")
}

pub(crate) fn refused(what: &str, error: &(dyn std::error::Error + 'static)) -> OperationError {
    let is_permission = error
        .downcast_ref::<io::Error>()
        .is_some_and(|error| error.kind() == io::ErrorKind::PermissionDenied);
    let refused = OperationError::machine(format_args!("the kernel refuses {what}: {error}"));
    if is_permission { refused.hint("run it as root") } else { refused }
}

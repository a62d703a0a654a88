//! Workloads by the names that people type.

use model::OperationError;
use operation::text::nearest_word;

/// The position of the workload of this name.
///
/// # Errors
///
/// When no workload has the name; the hint has the nearest name, or the first ones.
pub fn find_workload(name: &str, names: &[&str]) -> Result<usize, OperationError> {
    names.iter().position(|known| *known == name).ok_or_else(|| unknown(name, names))
}

/// Maximum number of names that a message lists.
const LISTED_MAX: usize = 5;

fn unknown(given: &str, names: &[&str]) -> OperationError {
    let error = OperationError::input(format_args!("there is no workload '{given}' among {}", names.len()));
    match nearest_word(given, names.iter().copied()) {
        Some(nearest) => error.hint(format_args!("did you mean {nearest}?")),
        None => {
            let listed = names.iter().take(LISTED_MAX).copied().collect::<Vec<_>>().join(", ");
            let more = if names.len() > LISTED_MAX { ", …" } else { "" };
            error.hint(format_args!("there are {listed}{more}"))
        }
    }
}

//! Check of the destination of an observations file.

use crate::TraceFormat;
use model::OperationError;
use operation::files::check_writable;
use std::path::Path;

/// Checks that observations can be written to the requested path, and that its name does not suggest a
/// format other than Parquet.
///
/// # Errors
///
/// When the file could not be written now, or its name suggests another format.
pub fn check_observations(path: Option<&Path>) -> Result<(), OperationError> {
    const OTHERS: [&str; 4] = [".json", ".html", ".txt", ".toml"];
    let Some(path) = path else { return Ok(()) };
    let name = path.to_string_lossy();
    let is_other = TraceFormat::from_file_name(&name).is_some_and(|format| format != TraceFormat::Parquet)
        || name.ends_with(".parquet.gz")
        || OTHERS.iter().any(|ending| name.ends_with(ending));
    if is_other {
        return Err(OperationError::input(format_args!(
            "{name}: observations are Parquet, and the name says another format"
        ))
        .hint("give a name that ends in .parquet; `tailwright trace convert` writes their requests in other formats"));
    }
    check_writable(Some(path), "observations")
}

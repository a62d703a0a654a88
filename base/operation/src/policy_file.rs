//! Policy files as input.

use crate::files::read_text;
use model::{OperationError, Policy};
use std::path::Path;

/// Reads a policy file and checks it.
///
/// # Errors
///
/// When the file cannot be read or has no sound policy of the format that is known.
pub fn read_policy(path: &Path) -> Result<Policy, OperationError> {
    let text = read_text(path, "policy")?;
    Policy::from_json(&text).map_err(|error| {
        OperationError::input(format_args!("{}: {error}", path.display()))
            .hint("`tailwright plan -o policy.json` writes such a file")
    })
}

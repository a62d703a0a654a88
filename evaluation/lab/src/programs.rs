//! Locates the programs that a lab runs.

use model::OperationError;
use std::path::PathBuf;

/// The path of one of the programs in the list of `machine::programs`.
///
/// # Errors
/// When it is not installed: with the package that has it.
///
/// # Panics
/// When the list does not have the name.
pub fn find(name: &str) -> Result<PathBuf, OperationError> {
    let package = machine::programs::package(name).expect("the list has all programs that a lab runs");
    machine::programs::find(name).ok_or_else(|| {
        OperationError::machine(format_args!("{name} is not installed"))
            .hint(format_args!("install the Debian package {package}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn finds_what_is_there() {
        assert!(find("sh").is_ok_and(|path| path.is_absolute()));
        if let Err(error) = find("nginx") {
            assert!(error.hint.as_deref().unwrap_or_default().contains("nginx-light"), "{error}");
        }
    }
}

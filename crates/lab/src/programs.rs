//! Programs that a lab runs, and where they come from.

use model::OperationError;
use std::path::PathBuf;

/// Where one of the programs in `programs.txt` is.
///
/// # Errors
/// When it is not installed: with the package that has it.
///
/// # Panics
/// With the name of another program.
pub fn find(name: &str) -> Result<PathBuf, OperationError> {
    let package = machine::programs::package(name).expect("programs stand in the list");
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
        if let Err(fault) = find("nginx") {
            assert!(fault.hint.as_deref().unwrap_or_default().contains("nginx-light"), "{fault}");
        }
    }
}

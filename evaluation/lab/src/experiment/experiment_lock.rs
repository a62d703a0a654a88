//! One experiment at a time: two would use the same names of namespaces and disturb each other's measurements.

use crate::file_lock::try_lock;
use enforce::command::may_configure_networks;
use model::OperationError;
use std::fs::File;
use std::path::Path;

/// The folder of the lock. Its name is fixed, because all experiments of a machine must find the same lock, and only root
/// can write below /run.
const FOLDER: &str = "/run/tailwright";

/// The right to run experiments on this machine, until it is dropped.
#[derive(Debug)]
pub struct ExperimentLock {
    _file: File,
}

impl ExperimentLock {
    /// Keeps other experiments from running on this machine.
    ///
    /// # Errors
    /// Without root, and while another experiment runs.
    pub fn acquire() -> Result<Self, OperationError> {
        if !may_configure_networks() {
            return Err(
                OperationError::machine("this process may not make network namespaces").hint("run as root")
            );
        }
        Self::acquire_in(Path::new(FOLDER))
    }

    fn acquire_in(folder: &Path) -> Result<Self, OperationError> {
        let path = folder.join("run.lock");
        let locked = std::fs::create_dir_all(folder).and_then(|()| try_lock(&path));
        let locked = locked.map_err(|error| {
            OperationError::machine(format_args!("{}: {error}", path.display())).hint("run as root")
        })?;
        locked.map(|file| Self { _file: file }).ok_or_else(|| {
            OperationError::machine("another experiment is running on this machine")
                .hint("wait until it is done")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_waits() {
        let folder = tempfile::tempdir().unwrap();
        let first = ExperimentLock::acquire_in(folder.path()).unwrap();
        let error = ExperimentLock::acquire_in(folder.path()).unwrap_err();
        assert!(error.message.contains("another experiment"), "{error}");
        drop(first);
        ExperimentLock::acquire_in(folder.path()).unwrap();
    }
}

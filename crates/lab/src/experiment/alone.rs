//! One experiment at a time: two would share names of namespaces, and neither would measure what it is about.

use enforce::command::may_configure_networks;
use model::OperationError;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::path::Path;

const FOLDER: &str = "/run/tailwright";

/// The right to play, until it is dropped.
#[derive(Debug)]
pub struct Alone {
    _lock: File,
}

impl Alone {
    /// Keeps other experiments of this machine away.
    ///
    /// # Errors
    /// Without root, and while another experiment is played.
    pub fn new() -> Result<Self, OperationError> {
        if !may_configure_networks() {
            return Err(
                OperationError::machine("this process may not make network namespaces").hint("run as root")
            );
        }
        Self::at(Path::new(FOLDER))
    }

    fn at(folder: &Path) -> Result<Self, OperationError> {
        let file = folder.join("run.lock");
        let cannot =
            |error| OperationError::machine(format_args!("{}: {error}", file.display())).hint("run as root");
        std::fs::create_dir_all(folder).map_err(cannot)?;
        let lock = File::create(&file).map_err(cannot)?;
        flock(&lock, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            OperationError::machine("another experiment is being played on this machine")
                .hint("wait until it is done")
        })?;
        Ok(Self { _lock: lock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_waits() {
        let folder = std::env::temp_dir().join(format!("tailwright-alone-{}", std::process::id()));
        let first = Alone::at(&folder).unwrap();
        let fault = Alone::at(&folder).unwrap_err();
        assert!(fault.message.contains("another experiment"), "{fault}");
        drop(first);
        Alone::at(&folder).unwrap();
        std::fs::remove_dir_all(folder).unwrap();
    }
}

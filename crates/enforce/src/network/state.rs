//! What is remembered of a host between runs: how its devices were found, so that they can be put back, and what was
//! made, so that only differences are touched.
//!
//! Written before anything is changed and again when all is changed: a run that is cut short leaves a record of
//! what was found and of the numbers in use, and the next run sets right what differs. Kept under `/run` by default,
//! which a reboot empties together with the queues.

use super::target::Target;
use super::tree::Slots;
use model::OperationError;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const FORMAT: &str = "tailwright-network-state-1";

/// What is remembered of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct State {
    format: String,
    /// By device: as it was before the first change.
    pub(super) before: BTreeMap<String, Before>,
    /// By device: numbers of lanes.
    pub(super) slots: BTreeMap<String, Slots>,
    /// What the last run that succeeded made.
    pub(super) made: Made,
    /// Whether a run has begun to change something and has not come to its end.
    pub(super) underway: bool,
}

/// A device before the first change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Before {
    pub(super) qdisc: String,
    pub(super) gso_max_size: u64,
    pub(super) gso_max_segs: u64,
}

/// What a run made, and how it prints.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Made {
    pub(super) target: Target,
    /// By device and number.
    pub(super) classes: BTreeMap<String, BTreeMap<u16, String>>,
    /// By device.
    pub(super) filters: BTreeMap<String, String>,
    pub(super) nft: String,
}

impl State {
    /// Of a host that nobody has touched.
    pub(super) fn new() -> Self {
        Self {
            format: FORMAT.into(),
            before: BTreeMap::new(),
            slots: BTreeMap::new(),
            made: Made::default(),
            underway: false,
        }
    }
}

/// The folder with a file per host.
#[derive(Debug, Clone)]
pub struct Store(PathBuf);

impl Store {
    /// Where it is when nothing else is said.
    pub const DEFAULT: &str = "/run/tailwright";

    /// States are kept in this folder, which is made when it is needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    fn path(&self, host: &str) -> PathBuf {
        self.0.join(format!("network-{host}.json"))
    }

    /// The state of a host; `None` when there is none.
    pub(super) fn load(&self, host: &str) -> Result<Option<State>, OperationError> {
        let path = self.path(host);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(&path, &error)),
        };
        let state: State = serde_json::from_str(&text).map_err(|error| damaged(&path, &error.to_string()))?;
        if state.format != FORMAT {
            return Err(damaged(&path, &format!("its format is '{}'", state.format)));
        }
        Ok(Some(state))
    }

    /// Replaces the file as a whole.
    pub(super) fn save(&self, host: &str, state: &State) -> Result<(), OperationError> {
        let path = self.path(host);
        let aside = path.with_extension("new");
        let text = serde_json::to_string_pretty(state).expect("a state has text keys");
        let write = || {
            fs::create_dir_all(&self.0)?;
            fs::write(&aside, text)?;
            File::open(&aside)?.sync_all()?;
            fs::rename(&aside, &path)
        };
        write().map_err(|error| unusable(&path, &error))
    }

    /// Forgets a host.
    pub(super) fn forget(&self, host: &str) -> Result<(), OperationError> {
        let path = self.path(host);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(&path, &error)),
            _ => Ok(()),
        }
    }

    /// Keeps others from changing hosts until the result is dropped.
    pub fn lock(&self) -> Result<Lock, OperationError> {
        let path = self.0.join("lock");
        let open = || {
            fs::create_dir_all(&self.0)?;
            File::create(&path)
        };
        let file = open().map_err(|error| unusable(&path, &error))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            OperationError::machine(format_args!(
                "another run of `tailwright apply` holds {}",
                path.display()
            ))
            .hint("wait until it is done")
        })?;
        Ok(Lock { _file: file })
    }
}

/// Others wait while it lives.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

fn unusable(path: &Path, error: &io::Error) -> OperationError {
    OperationError::machine(format_args!("{}: {error}", path.display()))
        .hint("run as root, or choose another folder with --state")
}

fn damaged(path: &Path, why: &str) -> OperationError {
    OperationError::machine(format_args!("{} is not a state of this program: {why}", path.display()))
        .hint("move it away; then --replace takes over what is there")
}

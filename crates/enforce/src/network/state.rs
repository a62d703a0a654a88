//! What is remembered of a host between runs: what its devices were like before, so that they can be restored, and what
//! was configured, so that only differences are touched.
//!
//! The file is written before the first change and again when all is changed. A run that is cut short thus leaves a
//! record of the original devices and of the class numbers in use, and the next run repairs what differs. Files are
//! kept under `/run` by default, which a reboot empties together with the queues.

use super::configuration::HostConfiguration;
use super::htb::{ClassNumbers, is_in_use};
use super::observed::ObservedDevice;
use model::OperationError;
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

const FORMAT: &str = "tailwright-network-state-1";

/// The state file of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedHostState {
    format: String,
    /// The devices as they were before the first change, by name.
    #[serde(rename = "before")]
    pub(super) original: BTreeMap<String, OriginalDevice>,
    /// The class numbers that traffic classes have, by device.
    #[serde(rename = "slots")]
    pub(super) numbers: BTreeMap<String, ClassNumbers>,
    /// What the last run that succeeded configured.
    #[serde(rename = "made")]
    pub(super) applied: AppliedConfiguration,
    /// Whether a run has begun to change something and has not come to its end.
    #[serde(rename = "underway")]
    pub(super) is_changing: bool,
}

/// A device as it was before the first change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OriginalDevice {
    pub(super) qdisc: String,
    pub(super) gso_max_size: u64,
    pub(super) gso_max_segs: u64,
}

/// What a run configured, and how tc and nft printed it afterwards.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct AppliedConfiguration {
    pub(super) target: HostConfiguration,
    /// The classes as tc printed them, by device and number.
    pub(super) classes: BTreeMap<String, BTreeMap<u16, String>>,
    /// The filters as tc printed them, by device.
    pub(super) filters: BTreeMap<String, String>,
    pub(super) nft: String,
}

impl OriginalDevice {
    /// Remembers a device; a queueing discipline of ours is none that could be restored.
    pub(super) fn new(observed: &ObservedDevice) -> Self {
        Self {
            qdisc: if observed.is_ours() { String::new() } else { observed.qdisc.clone() },
            gso_max_size: observed.gso_max_size,
            gso_max_segs: observed.gso_max_segs,
        }
    }

    /// Whether somebody had configured the device, which we cannot restore.
    pub(super) fn is_foreign(&self) -> bool {
        ObservedDevice { qdisc: self.qdisc.clone(), ..ObservedDevice::default() }.is_foreign()
    }
}

impl SavedHostState {
    /// The state of a host that nobody has touched.
    pub(super) fn new() -> Self {
        Self {
            format: FORMAT.into(),
            original: BTreeMap::new(),
            numbers: BTreeMap::new(),
            applied: AppliedConfiguration::default(),
            is_changing: false,
        }
    }

    /// Forgets devices that are no longer configured, and the numbers of traffic classes that are gone.
    pub(super) fn forget_unused(&mut self) {
        let devices = &self.applied.target.devices;
        self.original.retain(|name, _| devices.contains_key(name));
        self.numbers.retain(|name, _| devices.contains_key(name));
        for (name, numbers) in &mut self.numbers {
            numbers.retain(|_, first| is_in_use(*first, &devices[name].classes));
        }
    }
}

/// The folder that has a state file for each host.
#[derive(Debug, Clone)]
pub struct StateStore(PathBuf);

impl StateStore {
    /// The folder that is used unless another one is asked for.
    pub const DEFAULT: &str = "/run/tailwright";

    /// Keeps state files in this folder, which is created when it is needed.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    fn path(&self, host: &str) -> PathBuf {
        self.0.join(format!("network-{host}.json"))
    }

    /// Reads the state of a host; `None` when there is no file.
    pub(super) fn load(&self, host: &str) -> Result<Option<SavedHostState>, OperationError> {
        let path = self.path(host);
        let text = match fs::read_to_string(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unusable(&path, &error)),
        };
        let state: SavedHostState =
            serde_json::from_str(&text).map_err(|error| damaged(&path, &error.to_string()))?;
        if state.format != FORMAT {
            return Err(damaged(&path, &format!("its format is '{}'", state.format)));
        }
        Ok(Some(state))
    }

    /// Replaces the file of a host as a whole: a crash leaves the old one or the new one.
    pub(super) fn save(&self, host: &str, state: &SavedHostState) -> Result<(), OperationError> {
        let path = self.path(host);
        let text = serde_json::to_string_pretty(state).expect("a state has text keys");
        self.write_and_rename(&path, &text).map_err(|error| unusable(&path, &error))
    }

    /// The folder belongs to whoever configures networks, so that nobody else can plant a link at the fixed name, which
    /// only the holder of [`StateLock`] writes to.
    fn write_and_rename(&self, path: &Path, text: &str) -> io::Result<()> {
        let temporary = path.with_extension("new");
        fs::create_dir_all(&self.0)?;
        fs::write(&temporary, text)?;
        File::open(&temporary)?.sync_all()?;
        fs::rename(&temporary, path)
    }

    /// Removes the file of a host, if there is one.
    pub(super) fn forget(&self, host: &str) -> Result<(), OperationError> {
        let path = self.path(host);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(unusable(&path, &error)),
            _ => Ok(()),
        }
    }

    /// Keeps other processes from changing hosts until the lock is dropped.
    ///
    /// # Errors
    /// When another process holds the lock, or the folder cannot be written.
    pub fn lock(&self) -> Result<StateLock, OperationError> {
        let path = self.0.join("lock");
        let file = fs::create_dir_all(&self.0)
            .and_then(|()| File::create(&path))
            .map_err(|error| unusable(&path, &error))?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|_| {
            OperationError::machine(format_args!(
                "another run of `tailwright apply` holds {}",
                path.display()
            ))
            .hint("wait until it is done")
        })?;
        Ok(StateLock { _file: file })
    }
}

/// The lock on the hosts of a [`StateStore`], which is held as long as the value lives.
#[derive(Debug)]
pub struct StateLock {
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

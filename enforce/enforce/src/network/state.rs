//! State of a host kept between runs: its devices' original settings, so that they can be restored, and the
//! applied configuration, so that only differences are changed.
//!
//! The file is written before the first change and again after the last. An interrupted run thus leaves a
//! record of the original devices and of the class numbers in use, and the next run repairs what differs.
//! Files are kept under `/run` by default, which a reboot empties together with the queues.

use super::configuration::HostConfiguration;
use super::htb::{ClassNumbers, is_in_use};
use super::namespace::HostNamespace;
use super::observed::ObservedDevice;
use crate::state_folder::{StateFolder, StateFolderLock};
use model::OperationError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

const FORMAT: &str = "tailwright-network-state-1";
/// Maximum wait for another run, and for child processes of one that was killed.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(30);

/// State file of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedHostState {
    format: String,
    /// Network namespace of the host, empty for the machine's own; absent in files of older versions.
    #[serde(default)]
    netns: Option<String>,
    /// Devices before the first change, by name.
    #[serde(rename = "before")]
    pub(super) original: BTreeMap<String, OriginalDevice>,
    /// Class numbers of traffic classes, by device.
    #[serde(rename = "slots")]
    pub(super) numbers: BTreeMap<String, ClassNumbers>,
    /// Configuration applied by the last successful run.
    #[serde(rename = "made")]
    pub(super) applied: AppliedConfiguration,
    /// A run has begun a change and not completed it.
    #[serde(rename = "underway")]
    pub(super) is_changing: bool,
}

/// Settings of a device before the first change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct OriginalDevice {
    pub(super) qdisc: String,
    pub(super) gso_max_size: u64,
    pub(super) gso_max_segs: u64,
}

/// Configuration applied by a run, and the output of tc and nft after it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct AppliedConfiguration {
    pub(super) target: HostConfiguration,
    /// Output of tc for classes, by device and number.
    pub(super) classes: BTreeMap<String, BTreeMap<u16, String>>,
    /// Output of tc for filters, by device.
    pub(super) filters: BTreeMap<String, String>,
    pub(super) nft: String,
}

impl OriginalDevice {
    /// Saves a device's settings. Tailwright's own queueing discipline and packet sizes are not worth
    /// restoring; the kernel's defaults take their place.
    pub(super) fn new(observed: &ObservedDevice) -> Self {
        let (gso_max_size, gso_max_segs) = if observed.has_our_packet_sizes() {
            observed.default_packet_sizes
        } else {
            (observed.gso_max_size, observed.gso_max_segs)
        };
        let qdisc = if observed.is_ours() { String::new() } else { observed.qdisc.clone() };
        Self { qdisc, gso_max_size, gso_max_segs }
    }

    /// Returns true if others had configured the device, which cannot be restored.
    pub(super) fn is_foreign(&self) -> bool {
        ObservedDevice { qdisc: self.qdisc.clone(), ..ObservedDevice::default() }.is_foreign()
    }
}

impl SavedHostState {
    /// Returns the state of a host without changes.
    pub(super) fn new(namespace: &HostNamespace) -> Self {
        Self {
            format: FORMAT.into(),
            netns: Some(namespace.0.clone().unwrap_or_default()),
            original: BTreeMap::new(),
            numbers: BTreeMap::new(),
            applied: AppliedConfiguration::default(),
            is_changing: false,
        }
    }

    /// Returns the network namespace of the host; `None` if the file does not record it.
    pub(super) fn namespace(&self) -> Option<HostNamespace> {
        let netns = self.netns.as_ref()?;
        Some(HostNamespace((!netns.is_empty()).then(|| netns.clone())))
    }

    /// Removes devices that are no longer configured, and the numbers of unused traffic classes.
    pub(super) fn forget_unused(&mut self) {
        let devices = &self.applied.target.devices;
        self.original.retain(|name, _| devices.contains_key(name));
        self.numbers.retain(|name, _| devices.contains_key(name));
        for (name, numbers) in &mut self.numbers {
            numbers.retain(|_, first| is_in_use(*first, &devices[name].classes));
        }
    }
}

/// Folder with a state file for each host.
#[derive(Debug, Clone)]
pub struct StateStore(PathBuf);

impl StateStore {
    /// Default folder.
    pub const DEFAULT: &str = "/run/tailwright";

    /// Keeps state files in this folder, which is created on demand.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self(folder.into())
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Returns the names of hosts with a state file, sorted.
    ///
    /// # Errors
    /// If the folder cannot be read or trusted.
    pub fn hosts(&self) -> Result<Vec<String>, OperationError> {
        let Some(folder) = StateFolder::open(&self.0)? else { return Ok(Vec::new()) };
        let mut hosts = Vec::new();
        for name in folder.names()? {
            let host = name.to_str().and_then(|name| name.strip_prefix("network-")?.strip_suffix(".json"));
            hosts.extend(host.map(str::to_owned));
        }
        Ok(hosts)
    }

    /// Reads the state of a host; `None` if there is no file.
    pub(super) fn load(&self, host: &str) -> Result<Option<SavedHostState>, OperationError> {
        let Some(folder) = StateFolder::open(&self.0)? else { return Ok(None) };
        let name = file_name(host);
        let Some(text) = folder.read(&name)? else { return Ok(None) };
        let path = self.0.join(name);
        let state: SavedHostState =
            serde_json::from_str(&text).map_err(|error| damaged(&path, &error.to_string()))?;
        if state.format != FORMAT {
            return Err(damaged(&path, &format!("its format is '{}'", state.format)));
        }
        Ok(Some(state))
    }

    /// Replaces the file of a host atomically: a crash leaves the old one or the new one. It is
    /// world-readable, so that a dry run works without root.
    pub(super) fn save(&self, host: &str, state: &SavedHostState) -> Result<(), OperationError> {
        let text = serde_json::to_string_pretty(state).expect("a state has text keys");
        StateFolder::create(&self.0)?.write(&file_name(host), &text, 0o644)
    }

    /// Removes the file of a host, if there is one.
    pub(super) fn forget(&self, host: &str) -> Result<(), OperationError> {
        match StateFolder::open(&self.0)? {
            Some(folder) => folder.remove(&file_name(host)).map(drop),
            None => Ok(()),
        }
    }

    /// Keeps other processes from changing hosts until the lock is dropped. `waiting` is called if
    /// another process holds it.
    ///
    /// # Errors
    /// When another process keeps the lock, or the folder cannot be written or trusted.
    pub fn lock(&self, waiting: &mut dyn FnMut()) -> Result<StateFolderLock, OperationError> {
        StateFolder::create(&self.0)?.lock(LOCK_WAIT_MAX, waiting)
    }
}

fn file_name(host: &str) -> String {
    format!("network-{host}.json")
}

fn damaged(path: &Path, why: &str) -> OperationError {
    OperationError::machine(format_args!("{} is not a state of this program: {why}", path.display()))
        .hint("move it to another place; then --replace replaces the queueing disciplines that are there")
}

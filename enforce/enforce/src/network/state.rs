//! What is remembered of a host between runs: what its devices were like before, so that they can be restored, and what
//! was configured, so that only differences are touched.
//!
//! The file is written before the first change and again when all is changed. A run that is cut short thus leaves a
//! record of the original devices and of the class numbers in use, and the next run repairs what differs. Files are
//! kept under `/run` by default, which a reboot empties together with the queues.

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
/// How long a run waits for another one, and for programs that one which was killed has left running.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(30);

/// The state file of a host.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct SavedHostState {
    format: String,
    /// The network namespace that the host is, empty for that of the machine; files of older versions do not say it.
    #[serde(default)]
    netns: Option<String>,
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
    /// Remembers a device. A queueing discipline and packet sizes of ours are none that could be restored: those that
    /// the kernel gives such a device take their place.
    pub(super) fn new(observed: &ObservedDevice) -> Self {
        let (gso_max_size, gso_max_segs) = if observed.has_our_packet_sizes() {
            observed.default_packet_sizes
        } else {
            (observed.gso_max_size, observed.gso_max_segs)
        };
        let qdisc = if observed.is_ours() { String::new() } else { observed.qdisc.clone() };
        Self { qdisc, gso_max_size, gso_max_segs }
    }

    /// Whether somebody had configured the device, which we cannot restore.
    pub(super) fn is_foreign(&self) -> bool {
        ObservedDevice { qdisc: self.qdisc.clone(), ..ObservedDevice::default() }.is_foreign()
    }
}

impl SavedHostState {
    /// The state of a host that nobody has touched.
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

    /// The network namespace of the host; `None` where the file does not say it.
    pub(super) fn namespace(&self) -> Option<HostNamespace> {
        let netns = self.netns.as_ref()?;
        Some(HostNamespace((!netns.is_empty()).then(|| netns.clone())))
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

    /// The path of the folder.
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// The names of the hosts that are remembered, in their order.
    ///
    /// # Errors
    /// When the folder cannot be read or trusted.
    pub fn hosts(&self) -> Result<Vec<String>, OperationError> {
        let Some(folder) = StateFolder::open(&self.0)? else { return Ok(Vec::new()) };
        let mut hosts = Vec::new();
        for name in folder.names()? {
            let host = name.to_str().and_then(|name| name.strip_prefix("network-")?.strip_suffix(".json"));
            hosts.extend(host.map(str::to_owned));
        }
        Ok(hosts)
    }

    /// Reads the state of a host; `None` when there is no file.
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

    /// Replaces the file of a host as a whole: a crash leaves the old one or the new one. Everybody may read it, so that
    /// a dry run needs no root.
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

    /// Keeps other processes from changing hosts until the lock is dropped. `waiting` is called if another one has it.
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

//! State of a persistent lab, and its folder.
//!
//! The folder is not temporary and its name is fixed: commands that are run hours later find the lab there. By default
//! it lies below /run, which only root can write to and which is empty after a reboot, like the lab itself.

use crate::file_lock::try_lock;
use crate::servers::is_running;
use model::OperationError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fs::{self, File};
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr};
use std::path::{Path, PathBuf};

/// The value of `format` in a state file.
pub(crate) const STATE_FORMAT: &str = "tailwright-lab-1";

/// A lab as it was brought up: the content of a state file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LabState {
    /// The format of the file: `STATE_FORMAT`.
    pub format: String,
    /// Prefix of the namespaces' names.
    pub prefix: String,
    /// The hosts in the order of their addresses.
    pub hosts: Vec<RecordedHost>,
    /// The servers in the order in which they were started.
    pub servers: Vec<RecordedServer>,
}

/// A host of a lab in a state file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedHost {
    /// The name of the host in the lab.
    pub name: String,
    /// The network namespace that is the host.
    pub netns: String,
    /// The IPv4 address of the host.
    pub ipv4: Ipv4Addr,
    /// The IPv6 address of the host.
    pub ipv6: Ipv6Addr,
}

/// A server of a lab in a state file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RecordedServer {
    /// The name of the service.
    pub name: String,
    /// The URI under which clients reach it, or a proxy in front of it.
    pub uri: String,
    /// True if it listens on 127.0.0.1 of its host only: clients reach it when a proxy listens at the URI.
    #[serde(default)]
    pub behind_proxy: bool,
    /// The process that ends the server when it is killed.
    pub pid: u32,
    /// When that process was started, in ticks since boot.
    pub started: u64,
    /// The file with the output of the server.
    pub log: PathBuf,
}

impl RecordedServer {
    /// Returns true if the process that was started still runs.
    pub fn is_running(&self) -> bool {
        is_running(self.pid, self.started)
    }
}

/// The folder with the state file and the logs of one lab, locked against other commands.
#[derive(Debug)]
pub struct LabFolder {
    path: PathBuf,
    _lock: File,
}

impl LabFolder {
    /// The default folder of a lab.
    pub const DEFAULT: &'static str = "/run/tailwright";

    /// Creates the folder if need be, and locks it until this is dropped.
    ///
    /// # Errors
    /// When it cannot be written, or another command has it locked.
    pub fn open(path: &Path) -> Result<Self, OperationError> {
        fs::create_dir_all(path).map_err(|error| file_error(path, &error))?;
        let file = path.join("lab.lock");
        let lock = try_lock(&file).map_err(|error| file_error(&file, &error))?.ok_or_else(|| {
            OperationError::machine("another tailwright is changing the lab").hint("wait until it is done")
        })?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Reads the state file; `None` if there is none.
    pub(super) fn state(&self) -> Result<Option<LabState>, OperationError> {
        read_state(&self.path)
    }

    /// Replaces the state file atomically, so that readers never see half of it.
    pub(super) fn write_state(&self, state: &LabState) -> Result<(), OperationError> {
        let file = self.state_file();
        let partial = self.partial_state_file();
        let text = serde_json::to_string_pretty(state).expect("plain data") + "\n";
        fs::write(&partial, text)
            .and_then(|()| fs::rename(&partial, &file))
            .map_err(|error| file_error(&file, &error))
    }

    /// Removes the state file and the logs of servers.
    pub(super) fn clear(&self) -> Result<(), OperationError> {
        for path in [self.state_file(), self.partial_state_file()] {
            match fs::remove_file(&path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(file_error(&path, &error));
                }
                _ => {}
            }
        }
        // Logs that cannot be removed do no harm: the next start replaces them.
        let _ = fs::remove_dir_all(self.servers());
        Ok(())
    }

    /// The folder for logs and configurations of servers.
    pub(super) fn servers(&self) -> PathBuf {
        self.path.join("servers")
    }

    fn state_file(&self) -> PathBuf {
        self.path.join("lab.json")
    }

    fn partial_state_file(&self) -> PathBuf {
        self.path.join("lab.json.tmp")
    }
}

/// Reads the state of the lab in a folder; `None` without a state file.
///
/// # Errors
/// If the state file cannot be read.
pub fn read_state(folder: &Path) -> Result<Option<LabState>, OperationError> {
    let file = folder.join("lab.json");
    let text = match fs::read_to_string(&file) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(file_error(&file, &error)),
    };
    match serde_json::from_str::<LabState>(&text) {
        Ok(state) if state.format == STATE_FORMAT => Ok(Some(state)),
        Ok(state) => Err(unreadable(&file, format_args!("its format is '{}'", state.format))),
        Err(error) => Err(unreadable(&file, error)),
    }
}

fn file_error(path: &Path, error: &io::Error) -> OperationError {
    OperationError::machine(format_args!("{}: {error}", path.display()))
        .hint("run as root, or give --state a folder")
}

fn unreadable(file: &Path, what: impl std::fmt::Display) -> OperationError {
    let hint = "`tailwright lab down` removes the lab by its names and forgets this file";
    OperationError::machine(format_args!("{}: {what}", file.display())).hint(hint)
}

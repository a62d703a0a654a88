//! The policy that `apply` sent to a proxy, saved in a file so that it applies again after a restart.
//!
//! The file is in a separate folder beside the control socket, `proxy-SERVER/policy.json`, which belongs
//! to the user that the proxy runs as. So a proxy that has dropped root can still replace the file, and
//! nothing else of root's.

use crate::state_folder::StateFolder;
use model::{OperationError, Policy};
use serde::{Deserialize, Serialize};
use std::path::{Path, PathBuf};

const FORMAT: &str = "tailwright-proxy-state-1";
const FILE: &str = "policy.json";

/// A policy sent to a proxy, and the text of its hosts file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct RememberedPolicy {
    format: String,
    pub(super) policy: Option<Policy>,
    pub(super) hosts: String,
}

impl RememberedPolicy {
    pub(super) fn new(policy: Option<Policy>, hosts: String) -> Self {
        Self { format: FORMAT.to_owned(), policy, hosts }
    }
}

/// Location of a proxy's saved policy.
#[derive(Debug, Clone)]
pub struct PolicyMemory {
    /// Folder of the control socket.
    state: PathBuf,
    /// Name of the folder within it.
    name: String,
}

impl PolicyMemory {
    /// Returns the memory of the proxy with this control socket; the folder is created on demand.
    pub fn beside(control: &Path) -> Self {
        let name = control.file_name().unwrap_or_default().to_string_lossy();
        let name = name.strip_suffix(".sock").map_or_else(|| format!("{name}.d"), str::to_owned);
        let state = control.parent().filter(|folder| !folder.as_os_str().is_empty());
        Self { state: state.unwrap_or(Path::new(".")).to_owned(), name }
    }

    /// Returns the path of the saved policy.
    pub fn path(&self) -> PathBuf {
        self.state.join(&self.name).join(FILE)
    }

    /// Creates the folder, and gives it to this user and group, as which the proxy will run; without them
    /// to this process.
    ///
    /// # Errors
    /// When another user could change the folder's contents, or it cannot be created.
    pub fn prepare(&self, owner: Option<(u32, u32)>) -> Result<(), OperationError> {
        let own = Some((rustix::process::geteuid().as_raw(), rustix::process::getegid().as_raw()));
        StateFolder::create(&self.state)?.private_folder(&self.name, owner.or(own)).map(drop)
    }

    /// Returns the saved policy; `None` if there is none.
    pub(super) fn load(&self) -> Result<Option<RememberedPolicy>, OperationError> {
        let Some(folder) = self.folder()? else { return Ok(None) };
        let Some(text) = folder.read(FILE)? else { return Ok(None) };
        let damaged = |why: &str| {
            OperationError::machine(format_args!(
                "{} is no policy that apply brought: {why}",
                self.path().display()
            ))
            .hint("remove the file, and apply the policy again")
        };
        let remembered: RememberedPolicy =
            serde_json::from_str(&text).map_err(|error| damaged(&error.to_string()))?;
        if remembered.format == FORMAT { Ok(Some(remembered)) } else { Err(damaged(&remembered.format)) }
    }

    /// Saves a policy, in place of the earlier one.
    pub(super) fn save(&self, remembered: &RememberedPolicy) -> Result<(), OperationError> {
        let text = serde_json::to_string(remembered).expect("a policy is plain data");
        if let Some(folder) = self.folder()? {
            return folder.write(FILE, &text, 0o600);
        }
        self.prepare(None)?;
        match self.folder()? {
            Some(folder) => folder.write(FILE, &text, 0o600),
            None => Err(OperationError::machine(format_args!("{} is gone", self.path().display()))),
        }
    }

    /// Returns true if a policy is saved.
    ///
    /// # Errors
    /// When the folder cannot be trusted.
    pub(crate) fn is_used(&self) -> Result<bool, OperationError> {
        Ok(match self.folder()? {
            Some(folder) => folder.names()?.iter().any(|name| name == FILE),
            None => false,
        })
    }

    /// Deletes the saved policy. Returns false if there was none.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn forget(&self) -> Result<bool, OperationError> {
        match self.folder()? {
            Some(folder) => folder.remove(FILE),
            None => Ok(false),
        }
    }

    fn folder(&self) -> Result<Option<StateFolder>, OperationError> {
        match StateFolder::open(&self.state)? {
            Some(state) => state.existing_folder(&self.name),
            None => Ok(None),
        }
    }
}

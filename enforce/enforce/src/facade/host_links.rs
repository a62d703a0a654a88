//! The links of one host, changed as an agent needs it: exactly as the policy says, or not at all.

use crate::command::Programs;
use crate::deployment::Deployment;
use crate::network::{self, ApplyOptions, DesiredHost, HostChange, StateStore};
use crate::state_folder::StateFolderLock;
use model::{OperationError, Policy};
use std::path::Path;

/// A planned change of the links of a host. While it exists no other program changes them.
#[derive(Debug)]
pub struct LinkChange {
    change: HostChange,
    _lock: StateFolderLock,
}

impl LinkChange {
    /// Plans the change that brings a host's links to what a policy says; `state` is the folder of saved states.
    ///
    /// # Errors
    /// If anything of the policy has no effect in the deployment or on this host, the host is unknown or its devices are
    /// configured by others, or a query of the host fails.
    pub fn plan(
        policy: &Policy,
        deployment: &Deployment,
        host: &str,
        state: &Path,
    ) -> Result<Self, OperationError> {
        let desired = network::desired_network(policy, deployment)?;
        let own: &DesiredHost = (desired.hosts.iter().find(|desired| desired.host.name == host))
            .ok_or_else(|| OperationError::input(format_args!("the hosts file has no host '{host}'")))?;
        let store = StateStore::new(state);
        let lock = store.lock(&mut || ())?;
        let change = HostChange::to_apply(&mut Programs, own, &store, ApplyOptions::default())?;
        let warnings = [desired.warnings.as_slice(), &desired.overloads, &change.report().warnings].concat();
        if !warnings.is_empty() {
            return Err(OperationError::input(warnings.join("; ")));
        }
        Ok(Self { change, _lock: lock })
    }

    /// Returns true if the links are not as the policy says.
    pub fn is_needed(&self) -> bool {
        self.change.is_needed()
    }

    /// Returns the number of commands that it takes.
    pub fn commands(&self) -> usize {
        self.change.report().commands.len()
    }

    /// Returns the size of the largest packet that the host's shaped devices send, bytes, if one is known.
    pub fn packet_bytes(&self) -> Option<u64> {
        self.change.packet_bytes()
    }

    /// Makes the change.
    ///
    /// # Errors
    /// If a command fails. The message says whether the host is as before, and so does [`Self::has_begun`].
    pub fn execute(&mut self) -> Result<(), OperationError> {
        self.change.execute(&mut Programs)
    }

    /// Returns true if the links may differ from what they were before [`Self::execute`].
    pub fn has_begun(&self) -> bool {
        self.change.has_begun()
    }

    /// Returns true if the links are observed to be as the policy says.
    ///
    /// # Errors
    /// If a query of the host fails.
    pub fn is_in_force(&self) -> Result<bool, OperationError> {
        self.change.is_in_force(&mut Programs)
    }

    /// Restores what was before [`Self::execute`].
    ///
    /// # Errors
    /// If a command fails.
    pub fn undo(&mut self) -> Result<(), OperationError> {
        self.change.undo(&mut Programs)
    }
}

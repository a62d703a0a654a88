//! Change of the proxy in front of a storage server: checked first, then made, and undone if another change
//! fails.

use crate::facade::hosts_file::HostsFile;
use crate::storage::{self, PolicyMemory, ProxyCheck};
use model::{Blame, OperationError, Policy};
use std::path::{Path, PathBuf};

/// Planned change of the proxy in front of a server.
#[derive(Debug)]
pub(super) struct ProxyChange {
    server: String,
    control: PathBuf,
    situation: ProxySituation,
    has_begun: bool,
}

/// State of a proxy before a change.
#[derive(Debug)]
enum ProxySituation {
    /// A running proxy that would accept the policy.
    Running(ProxyCheck),
    /// A proxy on another machine or without access, which only a dry run reports.
    Unknown,
    /// No proxy; true if an earlier `apply` saved a policy for it.
    Absent(bool),
}

/// A proxy's part in the changes of a host, made or planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyAnswer {
    /// Server of the policy that the proxy is in front of.
    pub server: String,
    /// Control socket of the proxy.
    pub control: PathBuf,
    /// The state of the proxy is known: it is on this machine, and this process has access.
    pub is_known: bool,
    pub is_running: bool,
    /// The enforced or the saved policy changes.
    pub is_change: bool,
}

impl ProxyChange {
    /// Asks the proxy in front of a server if it would accept the policy. Removing a policy needs no running
    /// proxy.
    ///
    /// # Errors
    /// If no proxy runs that should enforce a policy (except in a dry run), or it would refuse it.
    pub(super) fn new(
        state: &Path,
        server: &str,
        policy: Option<&Policy>,
        hosts: &HostsFile,
        is_dry_run: bool,
    ) -> Result<Self, OperationError> {
        let control = storage::control_path(state, server);
        let situation = if storage::is_listening(&control) || (policy.is_some() && !is_dry_run) {
            match storage::check_policy(&control, policy, hosts.text.clone()) {
                Ok(check) => ProxySituation::Running(check),
                // Only root may access the socket, and a dry run needs no root.
                Err(error) if is_dry_run && error.blame == Blame::Machine => ProxySituation::Unknown,
                Err(error) => return Err(error.about(format_args!("proxy before {server}"))),
            }
        } else {
            match PolicyMemory::beside(&control).is_used() {
                Ok(is_used) => ProxySituation::Absent(is_used),
                Err(_) if is_dry_run => ProxySituation::Unknown,
                Err(error) => return Err(error),
            }
        };
        Ok(Self { server: server.to_owned(), control, situation, has_begun: false })
    }

    /// Returns the change, made or planned.
    pub(super) fn answer(&self) -> ProxyAnswer {
        let (is_known, is_running, is_change) = match &self.situation {
            ProxySituation::Running(check) => (true, true, check.is_change),
            ProxySituation::Unknown => (false, false, true),
            ProxySituation::Absent(is_remembered) => (true, false, *is_remembered),
        };
        let server = self.server.clone();
        let control = self.control.clone();
        ProxyAnswer { server, control, is_known, is_running, is_change }
    }

    /// Returns the change of a proxy on another machine.
    pub(super) fn elsewhere(state: &Path, server: &str) -> Self {
        let control = storage::control_path(state, server);
        let server = server.to_owned();
        let situation = ProxySituation::Unknown;
        Self { server, control, situation, has_begun: false }
    }

    /// Sends the proxy its policy, or its removal. If no proxy runs, deletes the saved policy.
    pub(super) fn execute(&mut self, policy: Option<&Policy>, hosts: &str) -> Result<(), OperationError> {
        match &self.situation {
            ProxySituation::Running(_) => {
                let sent = storage::send_policy(&self.control, policy, hosts.to_owned());
                // A proxy that refuses has changed nothing; after other errors its state is unknown.
                self.has_begun = !sent.as_ref().is_err_and(|error| error.blame == Blame::Input);
                sent.map(drop)
            }
            ProxySituation::Unknown => Ok(()),
            ProxySituation::Absent(_) => PolicyMemory::beside(&self.control).forget().map(drop),
        }
    }

    /// Restores the proxy's previous configuration.
    pub(super) fn undo(&mut self) -> Result<(), OperationError> {
        match &self.situation {
            ProxySituation::Running(check) if self.has_begun => {
                storage::restore_policy(&self.control, check.present.clone()).map(drop)
            }
            _ => Ok(()),
        }
    }
}

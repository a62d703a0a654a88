//! The change of the proxy before a storage server: looked at first, then made, and undone if something else fails.

use crate::facade::hosts_file::HostsFile;
use crate::storage::{self, PolicyMemory, ProxyCheck};
use model::{Blame, OperationError, Policy};
use std::path::{Path, PathBuf};

/// What will happen to the proxy before a server.
#[derive(Debug)]
pub(super) struct ProxyChange {
    server: String,
    control: PathBuf,
    situation: ProxySituation,
    has_begun: bool,
}

/// What was found at the place of a proxy.
#[derive(Debug)]
enum ProxySituation {
    /// A proxy that would accept what is wanted.
    Running(ProxyCheck),
    /// One on another machine or that may not be asked, of which only a dry run speaks.
    Unknown,
    /// No proxy, and whether one would find a policy there that an earlier `apply` brought.
    Absent(bool),
}

/// A proxy as part of what was done on a host, or would be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxyAnswer {
    /// The server of the policy that it stands before.
    pub server: String,
    /// The socket at which it takes orders.
    pub control: PathBuf,
    /// Whether it could be asked: it is on this machine, and this process may.
    pub is_known: bool,
    /// Whether a proxy runs there.
    pub is_running: bool,
    /// Whether something changes: what it enforces, or what it would after a restart.
    pub is_change: bool,
}

impl ProxyChange {
    /// Asks the proxy before a server whether it would accept the policy. To take a policy away no proxy is needed.
    ///
    /// # Errors
    /// When no proxy runs that should enforce a policy (but in a dry run), or it would refuse it.
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
                // Only root may ask it, and a dry run needs no root.
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

    /// What will be done, or was done.
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

    /// A proxy of another machine.
    pub(super) fn elsewhere(state: &Path, server: &str) -> Self {
        let control = storage::control_path(state, server);
        let server = server.to_owned();
        let situation = ProxySituation::Unknown;
        Self { server, control, situation, has_begun: false }
    }

    /// Gives the proxy the policy, or takes it away. Where none runs, what it would find when it starts is forgotten.
    pub(super) fn execute(&mut self, policy: Option<&Policy>, hosts: &str) -> Result<(), OperationError> {
        match &self.situation {
            ProxySituation::Running(_) => {
                let sent = storage::send_policy(&self.control, policy, hosts.to_owned());
                // One that refuses has changed nothing; of one that does not answer that is not known.
                self.has_begun = !sent.as_ref().is_err_and(|error| error.blame == Blame::Input);
                sent.map(drop)
            }
            ProxySituation::Unknown => Ok(()),
            ProxySituation::Absent(_) => PolicyMemory::beside(&self.control).forget().map(drop),
        }
    }

    /// Gives the proxy back what it enforced before.
    pub(super) fn undo(&mut self) -> Result<(), OperationError> {
        match &self.situation {
            ProxySituation::Running(check) if self.has_begun => {
                storage::restore_policy(&self.control, check.present.clone()).map(drop)
            }
            _ => Ok(()),
        }
    }
}

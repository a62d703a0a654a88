//! What the proxy before a storage server is started with.

use super::hosts_file::HostsFile;
use crate::files::{check_apart, read_text};
use crate::planning::read_policy;
use enforce::deployment::Deployment;
use enforce::storage::{
    ConfiguredPolicy, PolicyMemory, PolicyOrigin, ProxiedRequest, ProxyConfigurator, ProxyOptions,
};
use model::OperationError;
use std::path::{Path, PathBuf};
use std::sync::mpsc::SyncSender;
use units::Nanos;
use workload::device::StorageProfile;

/// Files that a proxy is started with, and that are read again while it runs.
#[derive(Debug, Clone)]
pub struct ProxyFiles {
    /// Where the hosts file is.
    pub hosts: PathBuf,
    /// The policy file; without one everybody is best effort.
    pub policy: Option<PathBuf>,
}

impl ProxyFiles {
    /// Reads the policy, if there is one, and the hosts.
    fn read(&self) -> Result<(HostsFile, ConfiguredPolicy), OperationError> {
        let policy = self.policy.as_deref().map(read_policy).transpose()?;
        let hosts = HostsFile::read(&self.hosts)?;
        let current = ConfiguredPolicy { policy, hosts: hosts.text.clone(), origin: PolicyOrigin::Files };
        Ok((hosts, current))
    }

    /// Reads the files again for a running proxy. One that `apply` has brought a policy keeps it.
    ///
    /// # Errors
    /// When a file cannot be read or is not what it should be; then nothing has changed.
    pub fn reload(&self, proxy: &ProxyConfigurator) -> Result<ReloadAnswer, OperationError> {
        if proxy.current().is_remembered() {
            return Ok(ReloadAnswer::Kept);
        }
        let (_, wanted) = self.read()?;
        Ok(if proxy.configure(wanted)? { ReloadAnswer::Changed } else { ReloadAnswer::Unchanged })
    }
}

/// What became of files that were read again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadAnswer {
    /// Something else is enforced.
    Changed,
    /// They say what was enforced before.
    Unchanged,
    /// They were not read: the policy that `apply` brought goes before them.
    Kept,
}

/// What a proxy is started with.
#[derive(Debug)]
pub struct ProxyStart {
    /// The options, with the policy that will be enforced.
    pub options: ProxyOptions,
    /// The same policy as it was brought, and by whom.
    pub current: ConfiguredPolicy,
}

/// How a proxy runs.
#[derive(Debug, Clone)]
pub struct ProxySettings {
    /// The server of the policy that it stands before.
    pub server: String,
    /// Most connections of clients.
    pub connections_max: u64,
    /// How long it looks for requests before it sleeps.
    pub spin: Nanos,
    /// How long requests may take once it is told to end.
    pub drain: Nanos,
    /// The file or folder that it records to.
    pub record: Option<PathBuf>,
    /// How many requests it keeps as observations.
    pub recorded_max: usize,
    /// Who takes every request that it has finished.
    pub recording: Option<SyncSender<ProxiedRequest>>,
}

/// What a proxy is started with: the hosts, the device profile of its server, and the policy that `apply` brought it
/// before, or else that of the files.
///
/// # Errors
///
/// When a file cannot be read, or the hosts file has no storage for the server.
pub fn proxy_start(
    files: &ProxyFiles,
    settings: &ProxySettings,
    memory: &PolicyMemory,
) -> Result<ProxyStart, OperationError> {
    let (HostsFile { deployment, .. }, mut current) = files.read()?;
    let server = deployment.servers.iter().find(|server| server.name == settings.server);
    let Some(storage) = server.and_then(|server| server.storage.as_ref()) else {
        return Err(no_storage(&deployment, &files.hosts, &settings.server));
    };
    // As in other files that name files: relative to where it stands.
    let path = files.hosts.parent().unwrap_or(Path::new("")).join(&storage.profile);
    check_apart(settings.record.as_deref(), [Some(path.as_path())])?;
    let text = read_text(&path, "device profile")?;
    let profile = StorageProfile::from_json(&text)
        .map_err(|error| OperationError::input(format_args!("{}: {error}", path.display())))?;
    let mut options = ProxyOptions::new(&settings.server, deployment, current.policy.clone(), profile);
    options.connections_max = settings.connections_max;
    (options.busy_poll_max, options.drain) = (settings.spin, settings.drain);
    options.record = settings.recorded_max;
    options.recording.clone_from(&settings.recording);
    if let Some(hosts) = ProxyConfigurator::recall(&mut options, memory)? {
        current = ConfiguredPolicy { policy: options.policy.clone(), hosts, origin: PolicyOrigin::Apply };
    }
    Ok(ProxyStart { options, current })
}

fn no_storage(deployment: &Deployment, hosts: &Path, server: &str) -> OperationError {
    let with_storage = deployment.servers.iter().filter(|server| server.storage.is_some());
    let names: Vec<&str> = with_storage.map(|server| server.name.as_str()).collect();
    let hint = match names.as_slice() {
        [] => "no server of the file has [server.storage]: docs/proxy.md shows one that has".to_owned(),
        names => format!("servers with [server.storage]: {}", names.join(", ")),
    };
    OperationError::input(format_args!("{}: there is no server '{server}' with storage", hosts.display()))
        .hint(hint)
}

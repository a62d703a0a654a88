//! What the proxy before a storage server is started with.

use super::hosts_file::HostsFile;
use crate::files::read_text;
use crate::planning::read_policy;
use enforce::deployment::Deployment;
use enforce::storage::ProxyOptions;
use model::{OperationError, Policy};
use std::path::{Path, PathBuf};
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
    ///
    /// # Errors
    ///
    /// When a file cannot be read or is not what it should be.
    pub fn read(&self) -> Result<(Option<Policy>, Deployment), OperationError> {
        let policy = self.policy.as_deref().map(read_policy).transpose()?;
        Ok((policy, HostsFile::read(&self.hosts)?.deployment))
    }
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
    /// How many requests it keeps as observations.
    pub recorded_max: usize,
}

/// The options of a proxy, with the policy, the hosts and the device profile of its server.
///
/// # Errors
///
/// When a file cannot be read, or the hosts file has no storage for the server.
pub fn proxy_options(files: &ProxyFiles, settings: &ProxySettings) -> Result<ProxyOptions, OperationError> {
    let (policy, deployment) = files.read()?;
    let server = deployment.servers.iter().find(|server| server.name == settings.server);
    let Some(storage) = server.and_then(|server| server.storage.as_ref()) else {
        return Err(no_storage(&deployment, &files.hosts, &settings.server));
    };
    // As in other files that name files: relative to where it stands.
    let path = files.hosts.parent().unwrap_or(Path::new("")).join(&storage.profile);
    let text = read_text(&path, "device profile")?;
    let profile = StorageProfile::from_json(&text)
        .map_err(|error| OperationError::input(format_args!("{}: {error}", path.display())))?;
    let mut options = ProxyOptions::new(&settings.server, deployment, policy, profile);
    options.connections_max = settings.connections_max;
    (options.busy_poll_max, options.drain) = (settings.spin, settings.drain);
    options.record = settings.recorded_max;
    Ok(options)
}

fn no_storage(deployment: &Deployment, hosts: &Path, server: &str) -> OperationError {
    let with_storage = deployment.servers.iter().filter(|server| server.storage.is_some());
    let names: Vec<&str> = with_storage.map(|server| server.name.as_str()).collect();
    OperationError::input(format_args!("{}: there is no server '{server}' with storage", hosts.display()))
        .hint(format_args!("servers with [server.storage]: {}", names.join(", ")))
}

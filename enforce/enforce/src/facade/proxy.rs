//! What the proxy before a storage server is started with.

use crate::deployment::Deployment;
use crate::facade::conditions::server_runs;
use crate::facade::hosts_file::HostsFile;
use crate::storage::{
    ConfiguredPolicy, PolicyMemory, PolicyOrigin, ProxiedRequest, ProxyConfigurator, ProxyOptions,
};
use model::OperationError;
use operation::files::{check_apart, read_text};
use operation::policy_file::read_policy;
use operation::{Notice, ProgressObserver};
use operation::{check_conditions, outdated_bounds};
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
    /// The server of the policy that the proxy stands before.
    pub server: String,
    /// Enforce the policy also where its bounds do not apply.
    pub without_bounds: bool,
}

impl ProxyFiles {
    /// Reads the policy, if there is one, and the hosts.
    fn read(
        &self,
        observer: &dyn ProgressObserver,
    ) -> Result<(HostsFile, ConfiguredPolicy, Option<String>), OperationError> {
        let policy = self.policy.as_deref().map(read_policy).transpose()?;
        let hosts = HostsFile::read(&self.hosts)?;
        let mut broken = None;
        if let Some(policy) = &policy {
            let mut runs = server_runs(policy, &hosts, None);
            runs.retain(|run| run.server == self.server);
            broken = check_conditions(policy, &runs, self.without_bounds, observer)?;
        }
        let current = ConfiguredPolicy { policy, hosts: hosts.text.clone(), origin: PolicyOrigin::Files };
        Ok((hosts, current, broken))
    }

    /// Reads the files again for a running proxy. One that `apply` has brought a policy keeps it.
    ///
    /// # Errors
    /// When a file cannot be read or is not what it should be; then nothing has changed.
    pub fn reload(
        &self,
        proxy: &ProxyConfigurator,
        observer: &dyn ProgressObserver,
    ) -> Result<ReloadAnswer, OperationError> {
        if proxy.current().is_remembered() {
            return Ok(ReloadAnswer::Kept);
        }
        let (_, wanted, broken) = self.read(observer)?;
        broken.into_iter().for_each(|broken| observer.notice(Notice::Warning(broken)));
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
    /// The first line of what the proxy says where the bounds of the policy file do not apply.
    pub broken: Option<String>,
}

/// How a proxy runs.
#[derive(Debug, Clone)]
pub struct ProxySettings {
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
    observer: &dyn ProgressObserver,
) -> Result<ProxyStart, OperationError> {
    let (HostsFile { deployment, .. }, mut current, mut broken) = files.read(observer)?;
    let server = deployment.servers.iter().find(|server| server.name == files.server);
    let Some(storage) = server.and_then(|server| server.storage.as_ref()) else {
        return Err(no_storage(&deployment, &files.hosts, &files.server));
    };
    // As in other files that name files: relative to where it stands.
    let path = files.hosts.parent().unwrap_or(Path::new("")).join(&storage.profile);
    check_apart(settings.record.as_deref(), [Some(path.as_path())])?;
    let text = read_text(&path, "device profile")?;
    let profile = StorageProfile::from_json(&text)
        .map_err(|error| OperationError::input(format_args!("{}: {error}", path.display())))?;
    let mut options = ProxyOptions::new(&files.server, deployment, current.policy.clone(), profile);
    options.connections_max = settings.connections_max;
    (options.busy_poll_max, options.drain) = (settings.spin, settings.drain);
    options.record = settings.recorded_max;
    options.recording.clone_from(&settings.recording);
    if let Some(hosts) = ProxyConfigurator::recall(&mut options, memory)? {
        current = ConfiguredPolicy { policy: options.policy.clone(), hosts, origin: PolicyOrigin::Apply };
        // `apply` has compared it; where bounds do not apply any more the proxy warns, and storage stays reachable.
        let recalled = current.policy.as_ref();
        let outdated = recalled.and_then(|policy| outdated_bounds(policy, [files.server.as_str()]));
        broken = outdated.map(|outdated| format!("bounds do not apply: {outdated}"));
    }
    Ok(ProxyStart { options, current, broken })
}

fn no_storage(deployment: &Deployment, hosts: &Path, server: &str) -> OperationError {
    let with_storage = deployment.servers.iter().filter(|server| server.storage.is_some());
    let names: Vec<&str> = with_storage.map(|server| server.name.as_str()).collect();
    let hint = match names.as_slice() {
        [] => "no server of the file has [server.storage]: docs/reference/hosts-file.md shows one that has"
            .to_owned(),
        names => format!("servers with [server.storage]: {}", names.join(", ")),
    };
    OperationError::input(format_args!("{}: there is no server '{server}' with storage", hosts.display()))
        .hint(hint)
}

//! Starting a proxy in front of a storage server.

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

/// Files that a proxy reads at its start and on reload.
#[derive(Debug, Clone)]
pub struct ProxyFiles {
    /// Path of the hosts file.
    pub hosts: PathBuf,
    /// Path of the policy; without one all requests are best effort.
    pub policy: Option<PathBuf>,
    /// Name in the policy of the server behind the proxy.
    pub server: String,
    /// Enforce the policy even if its bounds do not apply.
    pub without_bounds: bool,
}

impl ProxyFiles {
    /// Reads the hosts file and the policy, if there is one.
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
            let found = check_conditions(policy, &runs, self.without_bounds, observer)?;
            broken = found.map(|found| found.sentence);
        }
        let current = ConfiguredPolicy { policy, hosts: hosts.text.clone(), origin: PolicyOrigin::Files };
        Ok((hosts, current, broken))
    }

    /// Reads the files again for a running proxy. A policy from `apply` takes precedence and stays.
    ///
    /// # Errors
    /// If a file cannot be read or is invalid; then nothing has changed.
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

/// Result of reading the files again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReloadAnswer {
    /// The enforced rules have changed.
    Changed,
    /// The files describe the rules already enforced.
    Unchanged,
    /// The files were not read because the policy from `apply` takes precedence.
    Kept,
}

/// Inputs for starting a proxy.
#[derive(Debug)]
pub struct ProxyStart {
    /// Options, with the policy to enforce.
    pub options: ProxyOptions,
    /// The same policy as received, and its source.
    pub current: ConfiguredPolicy,
    /// First line of the proxy's output if the bounds of the policy do not apply.
    pub broken: Option<String>,
}

/// Settings of a proxy from the command line.
#[derive(Debug, Clone)]
pub struct ProxySettings {
    /// Maximum number of client connections.
    pub connections_max: u64,
    /// Maximum time of polling before sleeping.
    pub spin: Nanos,
    /// Number of threads that move bytes for the one that decides; with 0 it moves them itself.
    pub loops: u8,
    /// Time for requests in flight after a request to end.
    pub drain: Nanos,
    /// File or folder of recordings.
    pub record: Option<PathBuf>,
    /// Maximum number of requests kept as observations.
    pub recorded_max: usize,
    /// Receiver of every completed request.
    pub recording: Option<SyncSender<ProxiedRequest>>,
}

/// Prepares a proxy's start: its options from the hosts file and the device profile, and the policy saved by
/// `apply`, or else that of the files.
///
/// # Errors
///
/// If a file cannot be read, or the hosts file has no storage for the server.
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
    // Relative to the hosts file, like all paths in files.
    let path = files.hosts.parent().unwrap_or(Path::new("")).join(&storage.profile);
    check_apart(settings.record.as_deref(), [Some(path.as_path())])?;
    let text = read_text(&path, "device profile")?;
    let profile = StorageProfile::from_json(&text)
        .map_err(|error| OperationError::input(format_args!("{}: {error}", path.display())))?;
    let mut options = ProxyOptions::new(&files.server, deployment, current.policy.clone(), profile);
    options.connections_max = settings.connections_max;
    (options.busy_poll_max, options.drain) = (settings.spin, settings.drain);
    options.loops = settings.loops;
    options.record = settings.recorded_max;
    options.recording.clone_from(&settings.recording);
    if let Some(hosts) = ProxyConfigurator::recall(&mut options, memory)? {
        current = ConfiguredPolicy { policy: options.policy.clone(), hosts, origin: PolicyOrigin::Apply };
        // `apply` checked the bounds when it saved the policy. If they no longer apply the proxy only warns,
        // so that storage stays reachable.
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

//! A policy made real on hosts, and taken back.

use super::hosts_file::HostsFile;
use crate::observer::{Notice, ProgressObserver};
use enforce::command::{CommandRunner, Programs, UnreachableHost, may_configure_networks};
use enforce::deployment::Deployment;
use enforce::network::{self, ApplyOptions, ApplyReport, DesiredHost, DesiredNetwork, StateStore};
use enforce::storage;
use model::{OperationError, Policy};
use std::path::PathBuf;

/// What is done on which hosts.
#[derive(Debug, Clone)]
pub struct ApplySettings {
    /// Only this host, which is then this machine or a network namespace of it.
    pub host: Option<String>,
    /// Say what would be run, on all hosts, and change nothing.
    pub dry_run: bool,
    /// Give devices back as they were found.
    pub remove: bool,
    /// Take over devices that somebody else has set up.
    pub replace: bool,
    /// The folder that remembers what was found and made.
    pub state: PathBuf,
}

/// Makes a policy real on the hosts that are on this machine; without a policy nothing is wanted of them. What was
/// done is handed to `done`, host by host.
///
/// # Errors
///
/// When the policy does not fit the hosts, or this process may not configure networks, or a device was set up by
/// somebody else.
pub fn apply_policy(
    policy: Option<&Policy>,
    hosts: &HostsFile,
    settings: &ApplySettings,
    observer: &dyn ProgressObserver,
    done: &mut dyn FnMut(ApplyReport),
) -> Result<(), OperationError> {
    let desired = desired_hosts(policy, &hosts.deployment)?;
    for warning in &desired.warnings {
        observer.notice(Notice::Warning(warning.clone()));
    }
    let chosen = choose_hosts(&desired, hosts, settings)?;
    if !settings.dry_run && !may_configure_networks() {
        return Err(OperationError::machine("this process may not configure networks")
            .hint("run as root; --dry-run shows what would be run"));
    }
    let store = StateStore::new(&settings.state);
    let _lock = if settings.dry_run { None } else { Some(store.lock()?) };
    for (host, is_here) in chosen {
        let mut report = change_host(settings, host, is_here, &store)?;
        for warning in &report.warnings {
            observer.notice(Notice::Warning(warning.clone()));
        }
        for server in &hosts.deployment.servers {
            if is_here && server.host == host.host.name && server.storage.is_some() {
                report.commands.push(change_proxy(settings, &server.name, policy, &hosts.text)?);
            }
        }
        done(report);
    }
    Ok(())
}

/// What is wanted of all hosts; nothing when devices are given back.
fn desired_hosts(policy: Option<&Policy>, deployment: &Deployment) -> Result<DesiredNetwork, OperationError> {
    if let Some(policy) = policy {
        return network::desired_network(policy, deployment);
    }
    let hosts = deployment.hosts.iter();
    let hosts = hosts.map(|host| DesiredHost { host: host.clone(), devices: Vec::new() });
    Ok(DesiredNetwork { hosts: hosts.collect(), warnings: Vec::new() })
}

/// The hosts to act on, and whether each is on this machine. A dry run shows them all.
fn choose_hosts<'a>(
    desired: &'a DesiredNetwork,
    hosts: &HostsFile,
    settings: &ApplySettings,
) -> Result<Vec<(&'a DesiredHost, bool)>, OperationError> {
    let names: Vec<&str> = desired.hosts.iter().map(|desired| desired.host.name.as_str()).collect();
    if let Some(name) = &settings.host {
        let host = desired.hosts.iter().find(|desired| desired.host.name == *name).ok_or_else(|| {
            OperationError::input(format_args!("{}: there is no host '{name}'", hosts.path.display()))
                .hint(format_args!("the hosts are {}", names.join(", ")))
        })?;
        return Ok(vec![(host, true)]);
    }
    let hostname = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let hostname = hostname.trim();
    let mut chosen = Vec::new();
    for host in &desired.hosts {
        let is_here = network::is_local(&host.host, hostname);
        if is_here || settings.dry_run {
            chosen.push((host, is_here));
        }
    }
    if chosen.is_empty() {
        let names = names.join(", ");
        return Err(OperationError::input(format_args!("none of {names} is this machine, {hostname}"))
            .hint("--host NAME says which of them it is"));
    }
    Ok(chosen)
}

fn change_host(
    settings: &ApplySettings,
    host: &DesiredHost,
    is_here: bool,
    store: &StateStore,
) -> Result<ApplyReport, OperationError> {
    let (mut programs, mut elsewhere) = (Programs, UnreachableHost);
    let run: &mut dyn CommandRunner = if is_here { &mut programs } else { &mut elsewhere };
    let options = ApplyOptions { dry_run: settings.dry_run, replace: settings.replace };
    let change = if settings.remove { network::remove } else { network::apply };
    change(run, host, store, options)
}

/// Gives the proxy before a server the policy, or takes it away; returns what was done, in words.
fn change_proxy(
    settings: &ApplySettings,
    server: &str,
    policy: Option<&Policy>,
    hosts: &str,
) -> Result<String, OperationError> {
    let path = storage::control_path(&settings.state, server);
    if !settings.dry_run {
        storage::send_policy(&path, policy, hosts.to_owned())?;
    }
    let what = if policy.is_some() { "the policy" } else { "no policy" };
    Ok(format!("# proxy before {server} at {}: {what}", path.display()))
}

//! Applies a policy to hosts and removes it, on all hosts of this machine or on none.
//!
//! First everything is checked: devices, their configuration, programs, proxies, and that these would accept
//! the policy. Then the changes are made. If one fails nevertheless, earlier ones are undone in reverse
//! order.

use crate::command::{CommandRunner, Programs, UnreachableHost, may_configure_networks};
use crate::deployment::Deployment;
use crate::facade::conditions::{check_client_links, server_runs};
use crate::facade::hosts_file::HostsFile;
use crate::facade::proxy_change::{ProxyAnswer, ProxyChange};
use crate::network::{self, ApplyOptions, ApplyReport, DesiredHost, DesiredNetwork, HostChange, StateStore};
use model::{OperationError, Policy};
use operation::check_conditions;
use operation::{Notice, ProgressObserver};
use std::path::PathBuf;

/// Settings of `apply` from the command line.
#[derive(Debug, Clone)]
pub struct ApplySettings {
    /// Only this host, which is this machine or one of its network namespaces.
    pub host: Option<String>,
    /// Report the commands for all hosts, and change nothing.
    pub dry_run: bool,
    /// Restore devices to their state before the first change.
    pub remove: bool,
    /// Take over devices that others have configured.
    pub replace: bool,
    /// Folder of saved states.
    pub state: PathBuf,
    /// Enforce a policy even if its bounds do not apply.
    pub without_bounds: bool,
}

/// Changes of one host, made or planned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostAnswer {
    /// Changes of its network.
    pub network: ApplyReport,
    /// Proxies in front of its storage servers.
    pub proxies: Vec<ProxyAnswer>,
}

/// A host and its planned changes.
#[derive(Debug)]
struct PlannedHost {
    /// `None` for a host elsewhere, of which only a report is needed.
    change: Option<HostChange>,
    report: ApplyReport,
    proxies: Vec<ProxyChange>,
}

/// Applies a policy to the hosts of this machine; without a policy removes what was applied. `done` receives
/// the changes of each host. Returns the first line of the output if bounds do not apply.
///
/// # Errors
///
/// If the policy does not fit the hosts, this process may not configure networks, a device was configured by
/// others, or a proxy is missing or refuses. Then the hosts are unchanged, or the message names those that
/// are not.
pub fn apply_policy(
    policy: Option<&Policy>,
    hosts: &HostsFile,
    settings: &ApplySettings,
    observer: &dyn ProgressObserver,
    done: &mut dyn FnMut(HostAnswer),
) -> Result<Option<String>, OperationError> {
    let desired = desired_hosts(policy, &hosts.deployment)?;
    let warn = |warning: &String| observer.notice(Notice::Warning(warning.clone()));
    desired.warnings.iter().for_each(warn);
    let store = StateStore::new(&settings.state);
    if !settings.dry_run && !may_configure_networks() {
        return Err(OperationError::machine("this process may not configure networks")
            .hint("run as root; --dry-run shows what would be run"));
    }
    let mut waiting = || observer.notice(Notice::Note("waiting for another run of apply".to_owned()));
    let _lock = if settings.dry_run { None } else { Some(store.lock(&mut waiting)?) };
    let mut planned = plan_hosts(policy, hosts, settings, &desired, &store)?;
    let mut broken = None;
    if let Some(policy) = policy {
        let packets = planned.iter().filter_map(|host| host.change.as_ref()?.packet_bytes()).max();
        check_client_links(policy, hosts)?;
        let runs = server_runs(policy, hosts, packets);
        broken = check_conditions(policy, &runs, settings.without_bounds, observer)?;
    }
    check_overloads(policy, &desired, settings.without_bounds)?;
    desired.overloads.iter().for_each(warn);
    if !settings.dry_run {
        execute(&mut planned, policy, &hosts.text)?;
    }
    for host in planned {
        let network = host.change.as_ref().map_or(host.report, HostChange::report);
        network.warnings.iter().for_each(warn);
        done(HostAnswer { network, proxies: host.proxies.iter().map(ProxyChange::answer).collect() });
    }
    Ok(broken.map(|broken| broken.sentence))
}

/// Refuses limits that together let more pass than a link sends, if the policy promises bounds and they are to hold.
fn check_overloads(
    policy: Option<&Policy>,
    desired: &DesiredNetwork,
    without_bounds: bool,
) -> Result<(), OperationError> {
    let promises = policy.is_some_and(|policy| policy.workloads.iter().any(|it| it.bound_s.is_some()));
    let counts_hosts = policy.is_some_and(|policy| !policy.hosts.is_empty());
    let remedy = if counts_hosts {
        "correct the hosts file, or plan again for the hosts that there are"
    } else {
        "give clients' hosts as [[host]] and `host` in the cluster file and plan again: limits and bounds then fit their \
         links"
    };
    match desired.overloads.first() {
        Some(overload) if promises && !without_bounds => {
            Err(OperationError::input(overload).hint(format!("{remedy}; --without-bounds sets these limits")))
        }
        _ => Ok(()),
    }
}

/// Plans all changes, and makes none.
fn plan_hosts(
    policy: Option<&Policy>,
    hosts: &HostsFile,
    settings: &ApplySettings,
    desired: &DesiredNetwork,
    store: &StateStore,
) -> Result<Vec<PlannedHost>, OperationError> {
    // Saved states may be unreadable without root; a dry run then omits abandoned hosts.
    let mut planned = match plan_abandoned(hosts, settings, store) {
        Ok(planned) => planned,
        Err(_) if settings.dry_run => Vec::new(),
        Err(error) => return Err(error),
    };
    for (host, is_here) in choose_hosts(desired, hosts, settings, planned.is_empty())? {
        let (change, report) = plan_host(settings, host, is_here, store)?;
        let mut proxies = Vec::new();
        for server in &hosts.deployment.servers {
            if server.host == host.host.name && server.storage.is_some() {
                let state = &settings.state;
                let name = &server.name;
                proxies.push(if is_here {
                    ProxyChange::new(state, name, policy, hosts, settings.dry_run)?
                } else {
                    ProxyChange::elsewhere(state, name)
                });
            }
        }
        planned.push(PlannedHost { change, report, proxies });
    }
    Ok(planned)
}

/// Plans the restoration of hosts that are no longer in the hosts file, or whose network namespace has
/// changed since.
fn plan_abandoned(
    hosts: &HostsFile,
    settings: &ApplySettings,
    store: &StateStore,
) -> Result<Vec<PlannedHost>, OperationError> {
    let mut planned = Vec::new();
    if settings.host.is_some() {
        return Ok(planned);
    }
    for name in store.hosts()? {
        let named = hosts.deployment.host(&name);
        if named.is_some_and(|host| network::is_remembered_as(host, store).unwrap_or(true)) {
            continue;
        }
        if !settings.dry_run && take_over_name(&name, hosts, store)? {
            continue;
        }
        let Some(change) = HostChange::to_abandon(&mut Programs, &name, store)? else { continue };
        let report = change.report();
        planned.push(PlannedHost { change: Some(change), report, proxies: Vec::new() });
    }
    Ok(planned)
}

/// Returns true if a host of the hosts file is the one saved as `name`; its state is renamed.
fn take_over_name(name: &str, hosts: &HostsFile, store: &StateStore) -> Result<bool, OperationError> {
    let hostname = machine::identity::host_name().unwrap_or_default();
    for host in hosts.deployment.hosts.iter().filter(|host| network::is_local(host, &hostname)) {
        if network::rename_remembered(name, host, store)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Plans the changes of a host, and returns them with their report.
fn plan_host(
    settings: &ApplySettings,
    host: &DesiredHost,
    is_here: bool,
    store: &StateStore,
) -> Result<(Option<HostChange>, ApplyReport), OperationError> {
    let mut programs = Programs;
    let mut elsewhere = UnreachableHost;
    let run: &mut dyn CommandRunner = if is_here { &mut programs } else { &mut elsewhere };
    let options = ApplyOptions { dry_run: settings.dry_run, replace: settings.replace };
    let change = if settings.remove {
        HostChange::to_remove(run, &host.host, store)
    } else {
        HostChange::to_apply(run, host, store, options)
    };
    match change {
        Ok(change) => {
            let report = change.report();
            Ok((Some(change), report))
        }
        Err(error) if settings.dry_run && settings.remove => {
            let name = host.host.name.clone();
            let warnings = vec![format!("{}; the commands that would restore it are unknown", error.message)];
            Ok((None, ApplyReport { host: name, commands: Vec::new(), warnings }))
        }
        Err(error) => Err(error),
    }
}

/// Executes the planned changes. If one fails, those made before are undone in reverse order.
fn execute(planned: &mut [PlannedHost], policy: Option<&Policy>, hosts: &str) -> Result<(), OperationError> {
    let Err(cause) = execute_all(planned, policy, hosts) else { return Ok(()) };
    let mut as_before = Vec::new();
    let mut failed = Vec::new();
    for host in planned.iter_mut().rev() {
        let proxies = host.proxies.iter_mut().rev().try_for_each(ProxyChange::undo);
        let network = host.change.as_mut().map_or(Ok(()), |change| change.undo(&mut Programs));
        match proxies.and(network) {
            Ok(()) => as_before.push(host.report.host.as_str()),
            Err(error) => {
                failed.push(format!("{} could not be restored: {}", host.report.host, error.message));
            }
        }
    }
    as_before.reverse();
    let mut message = cause.message.clone();
    if !as_before.is_empty() {
        message += &format!("; unchanged: {}", as_before.join(", "));
    }
    for failure in failed {
        message += &format!("; {failure}");
    }
    Err(OperationError { message, ..cause })
}

fn execute_all(
    planned: &mut [PlannedHost],
    policy: Option<&Policy>,
    hosts: &str,
) -> Result<(), OperationError> {
    for host in &mut *planned {
        if let Some(change) = &mut host.change {
            change.execute(&mut Programs)?;
        }
    }
    for proxy in planned.iter_mut().flat_map(|host| &mut host.proxies) {
        proxy.execute(policy, hosts)?;
    }
    Ok(())
}

/// Returns the desired state of all hosts; without a policy, that without shaped devices.
fn desired_hosts(policy: Option<&Policy>, deployment: &Deployment) -> Result<DesiredNetwork, OperationError> {
    if let Some(policy) = policy {
        return network::desired_network(policy, deployment);
    }
    let hosts = deployment.hosts.iter();
    let hosts = hosts.map(|host| DesiredHost { host: host.clone(), devices: Vec::new() });
    Ok(DesiredNetwork { hosts: hosts.collect(), warnings: Vec::new(), overloads: Vec::new() })
}

/// Returns the hosts to change, each with true if it is on this machine. A dry run covers all hosts. If
/// `needs_one`, an empty result is an error.
fn choose_hosts<'a>(
    desired: &'a DesiredNetwork,
    hosts: &HostsFile,
    settings: &ApplySettings,
    needs_one: bool,
) -> Result<Vec<(&'a DesiredHost, bool)>, OperationError> {
    let names: Vec<&str> = desired.hosts.iter().map(|desired| desired.host.name.as_str()).collect();
    if let Some(name) = &settings.host {
        let host = desired.hosts.iter().find(|desired| desired.host.name == *name).ok_or_else(|| {
            OperationError::input(format_args!("{}: there is no host '{name}'", hosts.path.display()))
                .hint(format_args!("the hosts are {}", names.join(", ")))
        })?;
        return Ok(vec![(host, true)]);
    }
    let hostname = machine::identity::host_name().unwrap_or_default();
    let mut chosen = Vec::new();
    for host in &desired.hosts {
        let is_here = network::is_local(&host.host, &hostname);
        if is_here || settings.dry_run {
            chosen.push((host, is_here));
        }
    }
    if chosen.is_empty() && needs_one {
        let names = names.join(", ");
        return Err(OperationError::machine(format_args!("none of {names} is this machine, {hostname}"))
            .hint("--host NAME selects one of them"));
    }
    Ok(chosen)
}

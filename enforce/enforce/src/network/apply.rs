//! Brings single hosts to their desired state and back.

use super::change::{ApplyOptions, ApplyReport, HostChange};
use super::desired::DesiredHost;
use super::state::StateStore;
use crate::command::CommandRunner;
use crate::deployment::DeploymentHost;
use model::OperationError;

/// Brings a host to its desired state; runs no command if it is already in that state.
///
/// # Errors
/// If a device does not exist or is configured by others (without [`ApplyOptions::replace`]), or a
/// program fails. Then the host is in its previous state, or the message says that it is not.
pub fn apply(
    run: &mut dyn CommandRunner,
    desired: &DesiredHost,
    store: &StateStore,
    options: ApplyOptions,
) -> Result<ApplyReport, OperationError> {
    let mut change = HostChange::to_apply(run, desired, store, options)?;
    if !options.dry_run {
        change.execute(run)?;
    }
    Ok(change.report())
}

/// Restores the devices of a host to their state before the first [`apply`].
///
/// # Errors
/// As [`apply`].
pub fn remove(
    run: &mut dyn CommandRunner,
    desired: &DesiredHost,
    store: &StateStore,
    options: ApplyOptions,
) -> Result<ApplyReport, OperationError> {
    let mut change = HostChange::to_remove(run, &desired.host, store)?;
    if !options.dry_run {
        change.execute(run)?;
    }
    Ok(change.report())
}

/// Returns true if the saved state of a host is of its present network namespace.
///
/// # Errors
/// When the saved state cannot be read.
pub(crate) fn is_remembered_as(host: &DeploymentHost, store: &StateStore) -> Result<bool, OperationError> {
    let namespace = store.load(&host.name)?.and_then(|state| state.namespace());
    Ok(namespace.is_none_or(|namespace| namespace.0 == host.netns))
}

/// Renames the saved state of host `from` to that of this host, if this host is the same network
/// namespace and has no saved state. Returns true if it was renamed.
///
/// # Errors
/// When the saved state cannot be read or written.
pub(crate) fn rename_remembered(
    from: &str,
    host: &DeploymentHost,
    store: &StateStore,
) -> Result<bool, OperationError> {
    let Some(state) = store.load(from)? else { return Ok(false) };
    let is_same = state.namespace().is_some_and(|namespace| namespace.0 == host.netns);
    if !is_same || store.load(&host.name)?.is_some() {
        return Ok(false);
    }
    store.save(&host.name, &state)?;
    store.forget(from).map(|()| true)
}

/// Returns true if a host is this machine, or a network namespace of it.
pub(crate) fn is_local(host: &DeploymentHost, hostname: &str) -> bool {
    host.netns.is_some() || host.name == hostname
}

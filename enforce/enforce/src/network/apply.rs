//! Brings single hosts to their desired state and back.

use super::change::{ApplyOptions, ApplyReport, HostChange};
use super::desired::DesiredHost;
use super::state::StateStore;
use crate::command::CommandRunner;
use crate::deployment::DeploymentHost;
use model::OperationError;

/// Brings a host to its desired state, and runs nothing where it is in that state already.
///
/// # Errors
/// Devices that do not exist, that somebody else has configured (without [`ApplyOptions::replace`]), and what a program
/// of the system refuses; then the host is as it was before, or the message says that it is not.
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

/// Restores the devices of a host to what they were before the first [`apply`].
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

/// Whether what is remembered of a host is about the network namespace that it is now.
///
/// # Errors
/// When what is remembered cannot be read.
pub fn is_remembered_as(host: &DeploymentHost, store: &StateStore) -> Result<bool, OperationError> {
    let namespace = store.load(&host.name)?.and_then(|state| state.namespace());
    Ok(namespace.is_none_or(|namespace| namespace.0 == host.netns))
}

/// Remembers the host `from` under the name of this one, which is the same network namespace and of which nothing is
/// remembered; whether it was so.
///
/// # Errors
/// When what is remembered cannot be read or written.
pub fn rename_remembered(
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

/// Whether a host is this machine, or a network namespace of it.
pub fn is_local(host: &DeploymentHost, hostname: &str) -> bool {
    host.netns.is_some() || host.name == hostname
}

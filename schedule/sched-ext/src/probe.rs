//! Support and state of sched_ext in this kernel.

use crate::complaint::refused;
use model::OperationError;
use std::fs;
use std::io;

const STATE_FILE: &str = "/sys/kernel/sched_ext/state";
const ROOT_NAME_FILE: &str = "/sys/kernel/sched_ext/root/ops";
/// Kernel's name of the scheduler above that of a group, if it is one of this crate.
pub(crate) const ROOT_NAME: &str = "tailwright_root";
const RELEASE_FILE: &str = "/proc/sys/kernel/osrelease";

/// Returns the state of sched_ext: `enabled` while a scheduler of any program is attached, `disabled` without
/// one. `None` without sched_ext.
pub fn state() -> Option<String> {
    fs::read_to_string(STATE_FILE).ok().map(|state| state.trim().to_owned())
}

/// Returns the kernel's release.
pub(crate) fn release() -> String {
    fs::read_to_string(RELEASE_FILE).unwrap_or_default().trim().to_owned()
}

/// Returns true if a scheduler for the machine is attached, of any program.
pub(crate) fn has_scheduler() -> bool {
    state().as_deref() == Some("enabled")
}

/// Fails for a kernel without sched_ext, or with another scheduler attached.
pub(crate) fn check() -> Result<(), OperationError> {
    let Some(state) = state() else {
        return Err(OperationError::machine(format_args!("the kernel {} has no sched_ext", release())).hint(
            "use Linux 7.3 of Debian's trixie-backports, with which it was tested; kernels before 6.13 or without \
             CONFIG_SCHED_CLASS_EXT do not work. The gate of docs/reference/gate.md works on any kernel",
        ));
    };
    if state == "disabled" {
        return Ok(());
    }
    Err(busy(&state))
}

/// Returns the name of the machine's scheduler.
fn root_name() -> String {
    fs::read_to_string(ROOT_NAME_FILE).unwrap_or_default().trim().to_owned()
}

/// Returns the error for a kernel that refuses a scheduler for the machine.
pub(crate) fn refused_machine(error: &io::Error) -> OperationError {
    if error.kind() == io::ErrorKind::ResourceBusy {
        busy("enabling")
    } else {
        refused("the scheduler", error)
    }
}

/// Returns the error for a kernel that refuses the scheduler of a control group.
pub(crate) fn refused_group(error: &io::Error) -> OperationError {
    let above = root_name();
    match error.kind() {
        io::ErrorKind::Unsupported if above == ROOT_NAME => {
            OperationError::machine("a parent control group has a scheduler, which accepts none below it")
                .hint("that scheduler already manages its threads; a group has one scheduler at a time")
        }
        io::ErrorKind::Unsupported => OperationError::machine(format_args!(
            "the scheduler '{above}' does not accept schedulers of control groups"
        ))
        .hint("end it, or run without --cgroup after it"),
        io::ErrorKind::ResourceBusy => {
            OperationError::machine("the control group, or one in it, has a scheduler already")
                .hint("a group has one scheduler at a time")
        }
        io::ErrorKind::NotFound => OperationError::input("the control group no longer exists"),
        _ => refused("the scheduler of the control group", error),
    }
}

/// Returns the error for a scheduler above that has refused the scheduler of a control group.
pub(crate) fn rejected_group(reason: &str) -> OperationError {
    let above = root_name();
    let message =
        format_args!("the scheduler '{above}' has refused the scheduler of the control group: {reason}");
    OperationError::machine(message).hint("Tailwright's accepts one group at a time (-16)")
}

/// Returns the error for another attached scheduler.
pub(crate) fn busy(state: &str) -> OperationError {
    OperationError::machine(format_args!("sched_ext has a scheduler already (its state is {state})"))
        .hint("one scheduler at a time: `cat /sys/kernel/sched_ext/root/ops` names it")
}

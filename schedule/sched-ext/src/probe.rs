//! Whether this kernel has sched_ext, and what it does.

use crate::complaint::refused;
use model::OperationError;
use std::fs;
use std::io;

const STATE_FILE: &str = "/sys/kernel/sched_ext/state";
const ROOT_NAME_FILE: &str = "/sys/kernel/sched_ext/root/ops";
/// What the kernel calls the scheduler above that of a group, if it is one of this crate.
pub(crate) const ROOT_NAME: &str = "tailwright_root";
const RELEASE_FILE: &str = "/proc/sys/kernel/osrelease";

/// Whether this kernel has sched_ext.
pub fn is_supported() -> bool {
    state().is_some()
}

/// What sched_ext does: `enabled` while a scheduler of any program schedules, `disabled` without one. `None` without sched_ext.
pub fn state() -> Option<String> {
    fs::read_to_string(STATE_FILE).ok().map(|state| state.trim().to_owned())
}

/// The name of the kernel's version.
pub(crate) fn release() -> String {
    fs::read_to_string(RELEASE_FILE).unwrap_or_default().trim().to_owned()
}

/// Whether a scheduler of the machine is there, of any program.
pub(crate) fn has_scheduler() -> bool {
    state().as_deref() == Some("enabled")
}

/// Complains about a kernel without sched_ext, or one that has another scheduler now.
pub(crate) fn check() -> Result<(), OperationError> {
    let Some(state) = state() else {
        return Err(OperationError::machine(format_args!("the kernel {} has no sched_ext", release())).hint(
            "use Linux 7.3 of Debian's trixie-backports, with which it was tried; a kernel before 6.13 or without \
             CONFIG_SCHED_CLASS_EXT will not do. On any kernel the gate of docs/reference/gate.md does without",
        ));
    };
    if state == "disabled" {
        return Ok(());
    }
    Err(busy(&state))
}

/// What the scheduler of the machine is called.
fn root_name() -> String {
    fs::read_to_string(ROOT_NAME_FILE).unwrap_or_default().trim().to_owned()
}

/// The complaint about a kernel that does not let a scheduler of the machine in.
pub(crate) fn refused_machine(error: &io::Error) -> OperationError {
    if error.kind() == io::ErrorKind::ResourceBusy {
        busy("enabling")
    } else {
        refused("the scheduler", error)
    }
}

/// The complaint about a kernel that does not let the scheduler of a control group in.
pub(crate) fn refused_group(error: &io::Error) -> OperationError {
    let above = root_name();
    match error.kind() {
        io::ErrorKind::Unsupported if above == ROOT_NAME => OperationError::machine(
            "a control group above that one has a scheduler, which lets none in it have another one",
        )
        .hint("its threads have that scheduler already; a group has one scheduler at a time"),
        io::ErrorKind::Unsupported => {
            OperationError::machine(format_args!("the scheduler '{above}' lets none have a control group"))
                .hint("end it, or run without --cgroup after it")
        }
        io::ErrorKind::ResourceBusy => {
            OperationError::machine("the control group, or one in it, has a scheduler already")
                .hint("a group has one scheduler at a time")
        }
        io::ErrorKind::NotFound => OperationError::input("the control group is not there any more"),
        _ => refused("the scheduler of the control group", error),
    }
}

/// The complaint about a scheduler above that has not let that of a control group in, for this reason.
pub(crate) fn rejected_group(reason: &str) -> OperationError {
    let above = root_name();
    let message = format_args!("the scheduler '{above}' has not let that of the control group in: {reason}");
    OperationError::machine(message)
        .hint("it decides who may have one; one of ours lets one group at a time (-16)")
}

/// The complaint about another scheduler, with what sched_ext does.
pub(crate) fn busy(state: &str) -> OperationError {
    OperationError::machine(format_args!("sched_ext has a scheduler already (its state is {state})"))
        .hint("one program at a time schedules: `cat /sys/kernel/sched_ext/root/ops` names it")
}

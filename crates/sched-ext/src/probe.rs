//! Whether this kernel has sched_ext, and what it does.

use model::OperationError;
use std::fs;

const STATE_FILE: &str = "/sys/kernel/sched_ext/state";
const RELEASE_FILE: &str = "/proc/sys/kernel/osrelease";

/// Whether this kernel has sched_ext.
pub fn is_supported() -> bool {
    state().is_some()
}

/// What sched_ext does: `enabled` while a scheduler of any program schedules, `disabled` without one. `None` without sched_ext.
pub fn state() -> Option<String> {
    fs::read_to_string(STATE_FILE).ok().map(|state| state.trim().to_owned())
}

/// Complains about a kernel without sched_ext, or one that has another scheduler now.
pub(crate) fn check() -> Result<(), OperationError> {
    let Some(state) = state() else {
        let release = fs::read_to_string(RELEASE_FILE).unwrap_or_default();
        return Err(OperationError::machine(format_args!("the kernel {} has no sched_ext", release.trim())).hint(
            "use Linux 7.3 of Debian's trixie-backports, with which it was tried; a kernel before 6.13 or without \
             CONFIG_SCHED_CLASS_EXT will not do. On any kernel the gate of docs/schedule.md does without",
        ));
    };
    if state == "disabled" {
        return Ok(());
    }
    Err(busy(&state))
}

/// The complaint about another scheduler, with what sched_ext does.
pub(crate) fn busy(state: &str) -> OperationError {
    OperationError::machine(format_args!("sched_ext has a scheduler already (its state is {state})"))
        .hint("one program at a time schedules: `cat /sys/kernel/sched_ext/root/ops` names it")
}

//! Whether this process may make changes and take them back, found out before anything is changed.
//!
//! What is easily done is not always easily undone: any process may make its threads SCHED_IDLE, and without rights none
//! gets them back. The rules are those of `user_check_sched_setscheduler` in the kernel.

use crate::linux::{capabilities, scheduling_limits};
use crate::setting::{PlannedChange, ProcessIdentity, Setting, ThreadAspect};
use machine::scheduling::{SchedulingPolicy, ThreadScheduling, scheduling};
use model::OperationError;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// The number of CAP_SYS_NICE in `linux/capability.h`.
const SYS_NICE: u32 = 23;

/// The first reason for which changes cannot be made and taken back by this process.
pub fn missing_right(changes: &[PlannedChange]) -> Option<OperationError> {
    let has_nice = capabilities() >> SYS_NICE & 1 == 1;
    changes.iter().find_map(|change| match &change.setting {
        Setting::Thread { thread, aspect } if !has_nice => {
            let missing = |why: &str| {
                let message = format_args!("{}: {why}, which takes CAP_SYS_NICE", change.setting);
                OperationError::machine(message).hint("run as root, or `setpriv --ambient-caps +sys_nice`")
            };
            if !is_of_this_user(thread.process) {
                return Some(missing("it is another user's"));
            }
            let wanted = change.value.parse::<ThreadScheduling>().ok();
            let (before, after) = match aspect {
                ThreadAspect::Cpus => return None,
                ThreadAspect::Scheduling => (scheduling(thread.id).ok()?, wanted?),
            };
            let limits = scheduling_limits(thread.process)?;
            if !is_allowed(&before, &after, limits) {
                return Some(missing("it may not become that"));
            }
            (!is_allowed(&after, &before, limits)).then(|| missing("it could not be undone"))
        }
        Setting::KernelFile { path, .. } => unwritable(path),
        Setting::WakeupLatency => unwritable(Path::new("/dev/cpu_dma_latency")),
        _ => None,
    })
}

fn unwritable(path: &Path) -> Option<OperationError> {
    let error = accessat(CWD, path, Access::WRITE_OK, AtFlags::EACCESS).err()?;
    let message = format_args!("{}: {}", path.display(), std::io::Error::from(error));
    Some(OperationError::machine(message).hint("run as root"))
}

fn is_of_this_user(process: ProcessIdentity) -> bool {
    let about = std::fs::metadata(format!("/proc/{}", process.id));
    about.is_ok_and(|about| about.uid() == rustix::process::geteuid().as_raw())
}

/// Whether the kernel lets a process without CAP_SYS_NICE do this; limits are the least nice value and the largest
/// real-time priority that the process may have.
fn is_allowed(from: &ThreadScheduling, to: &ThreadScheduling, (nice_min, priority_max): (i32, u32)) -> bool {
    let is_idle = |scheduling: &ThreadScheduling| scheduling.policy == SchedulingPolicy::Idle;
    if to.policy.is_real_time() {
        let changes_policy = to.policy != from.policy;
        if changes_policy && priority_max == 0 || to.priority > from.priority && to.priority > priority_max {
            return false;
        }
    } else if to.nice < from.nice && to.nice < nice_min {
        return false;
    }
    let may_leave_idle = !is_idle(from) || is_idle(to) || from.nice >= nice_min;
    let keeps_reset = !from.resets_on_fork || to.resets_on_fork;
    may_leave_idle && keeps_reset
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_undone_is_known_before() {
        let ordinary = ThreadScheduling::ordinary;
        let idle = ThreadScheduling { policy: SchedulingPolicy::Idle, ..ordinary(0) };
        let fifo = |priority| ThreadScheduling::real_time(SchedulingPolicy::Fifo, priority);
        // The limits of an ordinary user: nice 0 to 19, no real-time priority. RLIMIT_NICE is 0 there, which stands for 20.
        let none = (20, 0);
        assert!(is_allowed(&ordinary(0), &idle, none) && !is_allowed(&idle, &ordinary(0), none));
        assert!(
            is_allowed(&ordinary(0), &ordinary(5), none) && !is_allowed(&ordinary(5), &ordinary(0), none)
        );
        assert!(!is_allowed(&ordinary(0), &fifo(1), none) && is_allowed(&fifo(1), &ordinary(0), none));
        let some = (-5, 10);
        assert!(is_allowed(&idle, &ordinary(0), some) && is_allowed(&ordinary(5), &ordinary(-5), some));
        assert!(!is_allowed(&ordinary(5), &ordinary(-6), some));
        assert!(is_allowed(&ordinary(0), &fifo(10), some) && !is_allowed(&ordinary(0), &fifo(11), some));
    }
}

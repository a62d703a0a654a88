//! Checks that this process may make changes and undo them, before anything is changed.
//!
//! Doing and undoing can need different rights: any process may make its threads SCHED_IDLE, but without
//! CAP_SYS_NICE it may not leave SCHED_IDLE if RLIMIT_NICE forbids the nice value. The rules are those of
//! `user_check_sched_setscheduler` and `proc_sched_autogroup_set_nice` in the kernel.

use crate::linux::{LinuxSettings, capabilities, identity, scheduling_limits, unusable};
use crate::open_sockets::ServerSockets;
use crate::setting::{
    FileForm, PlannedChange, ProcessIdentity, Setting, SettingStore as _, ThreadAspect, ThreadIdentity,
};
use machine::scheduling::{SchedulingPolicy, ThreadScheduling, scheduling};
use model::OperationError;
use rustix::fs::{Access, AtFlags, CWD, accessat};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// CAP_SYS_NICE of `linux/capability.h`.
const SYS_NICE: u32 = 23;

/// Scheduling rights of this process.
#[derive(Debug, Clone, Copy)]
struct OwnRights {
    /// True if it has CAP_SYS_NICE in the initial user namespace.
    has_nice: bool,
    /// Lowest nice value allowed without CAP_SYS_NICE.
    nice_min: i32,
}

/// Returns the first reason why this process cannot make or undo changes.
pub fn missing_right(changes: &[PlannedChange]) -> Option<OperationError> {
    let limits = identity(std::process::id()).and_then(scheduling_limits);
    let has = |capability: u32| capabilities() >> capability & 1 == 1;
    let own = OwnRights {
        has_nice: has(SYS_NICE) && is_initial(std::fs::read_link("/proc/self/ns/user").ok().as_deref()),
        nice_min: limits.map_or(20, |(nice_min, _)| nice_min),
    };
    changes.iter().find_map(|change| missing_for(change, own))
}

/// Link target of the initial user namespace (`PROC_USER_INIT_INO` in the kernel). CAP_SYS_NICE in any other
/// one does not apply to scheduling.
const INITIAL_NAMESPACE: &str = "user:[4026531837]";

/// Returns true for the initial user namespace, or if the kernel does not tell.
fn is_initial(namespace: Option<&Path>) -> bool {
    namespace.is_none_or(|namespace| namespace == Path::new(INITIAL_NAMESPACE))
}

fn missing_for(change: &PlannedChange, own: OwnRights) -> Option<OperationError> {
    match &change.setting {
        Setting::Thread { thread, aspect } if !own.has_nice => missing_for_thread(change, *thread, *aspect),
        Setting::KernelFile { path, form: FileForm::AutogroupNice, .. } => {
            unwritable(path).or_else(|| missing_for_group(change, own))
        }
        Setting::KernelFile { path, .. } => unwritable(path),
        Setting::GroupDevice { path, .. } => unwritable(path),
        Setting::IoScheduler { queue } => unwritable(&queue.join("scheduler")),
        Setting::WakeupLatency => unwritable(Path::new("/dev/cpu_dma_latency")),
        Setting::Sockets { sockets, .. } => missing_for_sockets(change, sockets),
        _ => None,
    }
}

fn missing_for_thread(
    change: &PlannedChange,
    thread: ThreadIdentity,
    aspect: ThreadAspect,
) -> Option<OperationError> {
    if !is_of_this_user(thread.process) {
        return Some(missing_nice(change, "it is another user's"));
    }
    let wanted = change.value.parse::<ThreadScheduling>().ok();
    let (before, after) = match aspect {
        ThreadAspect::Cpus => return None,
        ThreadAspect::Scheduling => (scheduling(thread.id).ok()?, wanted?),
    };
    let limits = scheduling_limits(thread.process)?;
    if !is_allowed(&before, &after, limits) {
        return Some(missing_nice(change, "it may not become that"));
    }
    (!is_allowed(&after, &before, limits)).then(|| missing_nice(change, "it could not be undone"))
}

/// A negative nice value of an autogroup needs the right to have that value oneself.
fn missing_for_group(change: &PlannedChange, own: OwnRights) -> Option<OperationError> {
    let is_refused = |value: &String| {
        let nice = value.parse().unwrap_or(0);
        nice < 0 && nice < own.nice_min && !own.has_nice
    };
    if is_refused(&change.value) {
        return Some(missing_nice(change, "it may not become that"));
    }
    let before = LinuxSettings::default().read(&change.setting).ok().flatten();
    before.filter(is_refused).map(|_| missing_nice(change, "it could not be undone"))
}

/// Setting socket options needs BPF programs, a place for records, and access to the server's network
/// namespace.
fn missing_for_sockets(change: &PlannedChange, sockets: &ServerSockets) -> Option<OperationError> {
    let missing = observe::missing_rights();
    if !missing.is_empty() {
        let message = format_args!("{}: setting it takes {}", change.setting, missing.join(" and "));
        let hint = "run as root, or as root begin `setpriv --inh-caps +bpf,+perfmon --ambient-caps +bpf,+perfmon --reuid USER`";
        return Some(OperationError::machine(message).hint(hint));
    }
    unusable(sockets)
}

fn missing_nice(change: &PlannedChange, why: &str) -> OperationError {
    let message = format_args!("{}: {why}, which takes CAP_SYS_NICE", change.setting);
    OperationError::machine(message).hint(
        "run as root, or as root begin `setpriv --inh-caps +sys_nice --ambient-caps +sys_nice --reuid USER`",
    )
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

/// Returns true if the kernel allows the change without CAP_SYS_NICE. The limits are the lowest nice value
/// and the highest real-time priority of the process.
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
        // Limits of an ordinary user: nice 0 to 19, no real-time priority. RLIMIT_NICE is 0, which means nice
        // 20.
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

    #[test]
    fn weights_of_sessions_that_could_not_be_undone_are_known_before() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("autogroup");
        let setting =
            Setting::KernelFile { path: path.clone(), form: FileForm::AutogroupNice, process: None };
        for (before, after, nice_min, has_nice, missing) in [
            (0, 5, 20, false, None),
            (5, 0, 20, false, None),
            (0, -10, 20, false, Some("it may not become that")),
            (-5, 5, 20, false, Some("it could not be undone")),
            (-5, 5, -5, false, None),
            (-6, 5, -5, false, Some("it could not be undone")),
            (-20, -10, 20, true, None),
        ] {
            std::fs::write(&path, format!("/autogroup-30 nice {before}\n")).expect("it is ours");
            let change = PlannedChange { setting: setting.clone(), value: after.to_string() };
            let error = missing_for(&change, OwnRights { has_nice, nice_min });
            let is_right = match (&error, missing) {
                (Some(error), Some(missing)) => error.message.contains(missing),
                (error, missing) => error.is_none() && missing.is_none(),
            };
            assert!(is_right, "{before} {after} {nice_min} {has_nice}: {error:?}");
        }
    }
}

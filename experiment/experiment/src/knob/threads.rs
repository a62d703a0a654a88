//! Knobs that are settings of threads: scheduling and CPU affinity.

use super::definition::{KnobTarget, lacking, number};
use crate::cpu_list;
use crate::linux::{default_slice_ns, identity, threads};
use crate::setting::{FileForm, ON, PlannedChange, ProcessIdentity, Setting, ThreadAspect, ThreadIdentity};
use machine::scheduling::{SchedulingPolicy, ThreadScheduling, cpus, scheduling};
use model::OperationError;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::PathBuf;
use units::Seconds;

pub(super) fn fifo(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    real_time(target, value, SchedulingPolicy::Fifo)
}

pub(super) fn round_robin(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    real_time(target, value, SchedulingPolicy::RoundRobin)
}

fn real_time(
    target: &KnobTarget,
    value: &str,
    policy: SchedulingPolicy,
) -> Result<Vec<PlannedChange>, OperationError> {
    let wanted = ThreadScheduling::real_time(policy, number(value, &1, &99)?);
    rescheduled(&target.processes, |now| ThreadScheduling { resets_on_fork: now.resets_on_fork, ..wanted })
}

pub(super) fn batch(target: &KnobTarget, _: &str) -> Result<Vec<PlannedChange>, OperationError> {
    rescheduled(&target.processes, |now| ThreadScheduling {
        policy: SchedulingPolicy::Batch,
        priority: 0,
        ..now
    })
}

pub(super) fn nice(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let nice = number(value, &-20, &19)?;
    rescheduled(&target.processes, |now| ThreadScheduling { nice, ..now })
}

/// Slices that the kernel accepts unchanged, nanoseconds.
const SLICE_NS: (f64, f64) = (100_000.0, 100_000_000.0);

pub(super) fn slice(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let wanted: Option<Seconds> = value.parse().ok();
    let wanted = wanted.map(|time| (time.0 * 1e9).round());
    let wanted = wanted.filter(|slice| (SLICE_NS.0..=SLICE_NS.1).contains(slice));
    let wanted = wanted.ok_or_else(|| OperationError::input("expected a time from 100us to 100ms"))?;
    // Exact: the limits above are positive and below 2^32.
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let slice_ns = wanted as u64;
    let own = scheduling(std::process::id()).map(|own| own.slice_ns);
    if own.is_ok_and(|slice| slice == 0) {
        return Err(lacking("threads have slices of their own since Linux 6.12"));
    }
    rescheduled(&target.processes, |now| ThreadScheduling { slice_ns, ..now })
}

/// Runs other processes only when CPUs would be idle.
pub(super) fn demote(_: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let id: u32 = number(value, &1, &u32::MAX)?;
    let process =
        identity(id).ok_or_else(|| OperationError::input(format_args!("there is no process {id}")))?;
    rescheduled(&[process], |now| ThreadScheduling { policy: SchedulingPolicy::Idle, priority: 0, ..now })
}

/// Changes the scheduling of all threads of processes, present and future.
fn rescheduled(
    processes: &[ProcessIdentity],
    change: impl Fn(ThreadScheduling) -> ThreadScheduling,
) -> Result<Vec<PlannedChange>, OperationError> {
    of_threads(processes, ThreadAspect::Scheduling, |thread, _| {
        scheduling(thread.id).map(|now| (now.to_string(), change(now).to_string()))
    })
}

pub(super) fn pin(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let chosen = if value == "spread" { None } else { Some(cpus_of(value)?) };
    pinned(&target.processes, |index, now| match &chosen {
        Some(chosen) => chosen.clone(),
        None => now.iter().nth(index % now.len().max(1)).into_iter().copied().collect(),
    })
}

/// Parses CPUs in a knob's value: `+` separates them, because commas separate values.
pub(super) fn cpus_of(value: &str) -> Result<BTreeSet<usize>, OperationError> {
    let bad = |_| OperationError::input("expected CPUs such as 1 or 0-2+5");
    let chosen = cpu_list::parse(&value.replace('+', ",")).map_err(bad)?;
    // The kernel refuses offline CPUs, or drops them silently.
    let online = fs::read_to_string("/sys/devices/system/cpu/online").ok();
    let online = online.and_then(|list| cpu_list::parse(&list).ok());
    let absent =
        online.and_then(|online| chosen.difference(&online).next().map(|cpu| (*cpu, online.clone())));
    match absent {
        None => Ok(chosen),
        Some((cpu, online)) => Err(OperationError::input(format_args!(
            "there is no CPU {cpu}: {} are online",
            cpu_list::text(&online)
        ))),
    }
}

/// Pins the threads of processes: `cpus` maps a thread's index and current CPUs to new ones.
pub(super) fn pinned(
    processes: &[ProcessIdentity],
    chosen: impl Fn(usize, &BTreeSet<usize>) -> BTreeSet<usize>,
) -> Result<Vec<PlannedChange>, OperationError> {
    let changes = of_threads(processes, ThreadAspect::Cpus, |thread, index| {
        cpus(thread.id).map(|now| (cpu_list::text(&now), cpu_list::text(&chosen(index, &now))))
    })?;
    match changes.iter().find(|change| change.value.is_empty()) {
        None => Ok(changes),
        Some(change) => Err(lacking(format_args!("{}: no CPU is left", change.setting))),
    }
}

/// Returns a change for each thread and one for later threads. The latter comes first, because threads
/// inherit: from then on a record covers every thread that begins.
fn of_threads(
    processes: &[ProcessIdentity],
    aspect: ThreadAspect,
    values: impl Fn(ThreadIdentity, usize) -> io::Result<(String, String)>,
) -> Result<Vec<PlannedChange>, OperationError> {
    if processes.is_empty() {
        return Err(OperationError::input("it is about threads: expected --pid"));
    }
    let mut changes = Vec::new();
    for process in processes {
        let threads = threads(*process);
        let mut of_process = Vec::new();
        for (index, thread) in threads.iter().enumerate() {
            match values(*thread, index) {
                Ok((before, after)) => of_process.push((*thread, before, after)),
                // The thread has ended meanwhile.
                Err(error) if error.raw_os_error() == Some(rustix::io::Errno::SRCH.raw_os_error()) => {}
                Err(error) => return Err(lacking(format_args!("thread {}: {error}", thread.id))),
            }
        }
        let Some((_, before, _)) = of_process.first() else {
            return Err(OperationError::input(format_args!("there is no process {}", process.id)));
        };
        let mut after_all: Vec<String> = Vec::new();
        let mut inheritable = BTreeSet::new();
        for (_, before, after) in &of_process {
            if !after_all.contains(after) {
                after_all.push(after.clone());
            }
            inheritable.extend([before, after].map(|value| inherited(value)));
            inheritable.extend([before.clone(), after.clone()]);
        }
        let later = Setting::LaterThreads {
            process: *process,
            known: of_process.iter().map(|(thread, ..)| *thread).collect(),
            aspect,
            before: before.clone(),
            after: after_all,
            inheritable: inheritable.into_iter().collect(),
        };
        changes.push(PlannedChange { setting: later, value: ON.to_owned() });
        changes.extend(
            of_process.into_iter().map(|(thread, _, value)| PlannedChange {
                setting: Setting::Thread { thread, aspect },
                value,
            }),
        );
    }
    Ok(changes)
}

/// Returns the value that a new thread inherits: the same, except with reset-on-fork.
fn inherited(value: &str) -> String {
    match value.parse::<ThreadScheduling>() {
        Ok(starts) if starts.resets_on_fork => {
            let policy = if starts.policy.is_real_time() { SchedulingPolicy::Other } else { starts.policy };
            let slice_ns = default_slice_ns().unwrap_or(0);
            let ordinary = ThreadScheduling::ordinary(starts.nice.max(0));
            ThreadScheduling { policy, slice_ns, ..ordinary }.to_string()
        }
        // CPU affinity is inherited unchanged.
        _ => value.to_owned(),
    }
}

/// Autogroup of processes without a session of their own since boot. The kernel refuses to change its nice
/// value.
const ROOT_AUTOGROUP: &str = "/autogroup-0";

pub(super) fn autogroup_nice(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let nice: i32 = number(value, &-20, &19)?;
    let enabled = fs::read_to_string("/proc/sys/kernel/sched_autogroup_enabled").unwrap_or_default();
    if enabled.trim() != "1" {
        return Err(lacking("the kernel does not group processes by session (sched_autogroup_enabled)"));
    }
    if target.processes.is_empty() {
        return Err(OperationError::input("it is about the session of a process: expected --pid"));
    }
    // By autogroup, because the value belongs to all processes of a session.
    let mut changes = BTreeMap::new();
    for process in &target.processes {
        let path = PathBuf::from(format!("/proc/{}/autogroup", process.id));
        let text = fs::read_to_string(&path)
            .map_err(|error| lacking(format_args!("{}: {error}", path.display())))?;
        let group = text.split_once(" nice ").map_or(text.as_str(), |(group, _)| group).to_owned();
        if group == ROOT_AUTOGROUP {
            return Err(lacking(format_args!(
                "process {} is in the root group of tasks, whose weight is fixed: start it by setsid or as a service",
                process.id
            )));
        }
        let setting = Setting::KernelFile { path, form: FileForm::AutogroupNice, process: Some(*process) };
        changes.entry(group).or_insert(PlannedChange { setting, value: nice.to_string() });
    }
    Ok(changes.into_values().collect())
}

/// Changes nothing: a placebo, whose effect is chance.
pub(super) fn nothing(_: &KnobTarget, _: &str) -> Result<Vec<PlannedChange>, OperationError> {
    Ok(Vec::new())
}

/// Runs the user's commands.
pub(super) fn command(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let (apply, undo) = target.commands.as_ref().ok_or_else(|| {
        OperationError::input("expected --apply COMMAND and --revert COMMAND")
            .hint("{} in them stands for the value")
    })?;
    let setting = Setting::Command { apply: apply.replace("{}", value), undo: undo.replace("{}", value) };
    Ok(vec![PlannedChange { setting, value: ON.to_owned() }])
}

/// Replaces the load, and sets nothing on this machine.
pub(super) fn load(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let expected = || {
        OperationError::input("expected --load-command COMMAND with {} in it, and --load-off VALUE")
            .hint("{} stands for the value, and for that of --load-off while the knob is off")
    };
    let (command, off) = target.load.as_ref().ok_or_else(expected)?;
    if !command.contains("{}") {
        return Err(expected());
    }
    if value == off {
        return Err(OperationError::input(
            "it is the value of --load-off, and there is nothing to compare with",
        )
        .hint("try another value"));
    }
    Ok(Vec::new())
}

#[cfg(test)]
mod tests {
    use super::inherited;
    use machine::scheduling::{SchedulingPolicy, ThreadScheduling, own_thread, scheduling, set_scheduling};
    use std::thread;

    /// Returns the settings of such a thread and of one that it starts; `None` if this process may not set
    /// them.
    fn started(from: &ThreadScheduling) -> Option<[String; 2]> {
        let starts = || {
            set_scheduling(own_thread(), from).ok()?;
            let other =
                thread::spawn(|| scheduling(own_thread()).expect("it runs")).join().expect("it looks");
            Some([scheduling(own_thread()).expect("it runs"), other].map(|seen| seen.to_string()))
        };
        thread::scope(|scope| scope.spawn(starts).join().expect("it starts one"))
    }

    #[test]
    fn threads_inherit_as_the_kernel_has_it() {
        let batch = ThreadScheduling { policy: SchedulingPolicy::Batch, ..ThreadScheduling::ordinary(7) };
        let sliced = ThreadScheduling { slice_ns: 5_000_000, ..ThreadScheduling::ordinary(0) };
        let fifo = ThreadScheduling::real_time(SchedulingPolicy::Fifo, 3);
        for from in [batch, sliced, ThreadScheduling::ordinary(-3), fifo] {
            for resets_on_fork in [false, true] {
                let from = ThreadScheduling { resets_on_fork, ..from };
                match started(&from) {
                    Some([seen, other]) => assert_eq!(inherited(&seen), other, "{from}"),
                    None => testkit::skip(&format!("{from}: it takes CAP_SYS_NICE")),
                }
            }
        }
    }
}

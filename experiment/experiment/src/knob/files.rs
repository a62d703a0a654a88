//! Knobs that are kernel files: sysctls, idle states, disks, control groups.

use super::definition::{KnobTarget, PID_NAMES, lacking, number};
use super::threads::cpus_of;
use crate::cpu_list;
use crate::setting::{FileForm, PlannedChange, ProcessIdentity, Setting};
use model::OperationError;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns a change of an existing file.
pub(super) fn file(
    path: impl Into<PathBuf>,
    form: FileForm,
    value: impl Into<String>,
) -> Result<PlannedChange, OperationError> {
    let path = path.into();
    if let Err(error) = fs::metadata(&path) {
        return Err(lacking(format_args!("{}: {error}", path.display())));
    }
    Ok(PlannedChange { setting: Setting::KernelFile { path, form, process: None }, value: value.into() })
}

/// Returns the existing files `folder/*/name`, sorted.
pub(super) fn files_in(folder: &Path, name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> =
        entries.map(|entry| entry.path().join(name)).filter(|file| file.exists()).collect();
    files.sort_unstable();
    files
}

pub(super) fn congestion_control(_: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let folder = Path::new("/proc/sys/net/ipv4");
    let available = fs::read_to_string(folder.join("tcp_available_congestion_control")).unwrap_or_default();
    if !available.split_whitespace().any(|name| name == value) {
        return Err(OperationError::input(format_args!("expected one of: {}", available.trim())));
    }
    Ok(vec![file(folder.join("tcp_congestion_control"), FileForm::Text, value)?])
}

pub(super) fn busy_poll(_: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let microseconds: u32 = number(value, &0, &100_000)?;
    let sysctl = |name| file(format!("/proc/sys/net/core/{name}"), FileForm::Text, microseconds.to_string());
    Ok(vec![sysctl("busy_poll")?, sysctl("busy_read")?])
}

pub(super) fn wakeup_latency(_: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let microseconds: i32 = number(value, &0, &1_000_000)?;
    if !Path::new("/dev/cpu_dma_latency").exists() {
        return Err(lacking("there is no /dev/cpu_dma_latency"));
    }
    if files_in(Path::new("/sys/devices/system/cpu/cpu0/cpuidle"), "disable").is_empty() {
        return Err(lacking("CPUs have no idle states that the kernel chooses from (cpuidle)"));
    }
    Ok(vec![PlannedChange { setting: Setting::WakeupLatency, value: microseconds.to_string() }])
}

/// Disables idle states deeper than the given one.
pub(super) fn idle_states(_: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let deepest: usize = number(value, &0, &64)?;
    let mut changes = Vec::new();
    for cpu in files_in(Path::new("/sys/devices/system/cpu"), "cpuidle") {
        let states = files_in(&cpu, "disable").into_iter().skip(deepest + 1);
        for state in states {
            changes.push(file(state, FileForm::Text, "1")?);
        }
    }
    if changes.is_empty() {
        return Err(lacking(format_args!("CPUs have no idle states beyond state{deepest}")));
    }
    Ok(changes)
}

pub(super) fn governor(_: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let files = files_in(Path::new("/sys/devices/system/cpu/cpufreq"), "scaling_governor");
    if files.is_empty() {
        return Err(lacking("the kernel does not choose the frequency of CPUs here (cpufreq)"));
    }
    files.into_iter().map(|path| file(path, FileForm::Text, value)).collect()
}

pub(super) fn io_scheduler(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let queue = disk(target)?;
    let available = fs::read_to_string(queue.join("scheduler")).unwrap_or_default();
    let mut names = available.split_whitespace().map(|name| name.trim_matches(['[', ']']));
    if !names.any(|name| name == value) {
        return Err(OperationError::input(format_args!("expected one of: {}", available.trim())));
    }
    Ok(vec![PlannedChange { setting: Setting::IoScheduler { queue }, value: value.to_owned() }])
}

pub(super) fn queue_depth(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let depth: u32 = number(value, &1, &65_536)?;
    Ok(vec![file(disk(target)?.join("nr_requests"), FileForm::Text, depth.to_string())?])
}

/// Returns the queue directory of the disk.
pub(super) fn disk(target: &KnobTarget) -> Result<PathBuf, OperationError> {
    let name = target.disk.as_ref().ok_or_else(|| {
        OperationError::input("it sets a disk: expected --disk NAME").hint("`ls /sys/block` shows them")
    })?;
    let path = Path::new("/sys/block").join(name).join("queue");
    let is_name = !name.contains('/') && !name.starts_with('.');
    if is_name && path.exists() {
        return Ok(path);
    }
    Err(OperationError::input(format_args!("there is no disk '{name}'")).hint("`ls /sys/block` shows them"))
}

pub(super) fn cpu_shares(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let shares: u32 = number(value, &1, &262_144)?;
    group_files(target, "cpu", "cpu.shares", &shares.to_string(), FileForm::Text)
}

pub(super) fn cpu_quota(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let microseconds: i64 = number(value, &-1, &1_000_000_000)?;
    group_files(target, "cpu", "cpu.cfs_quota_us", &microseconds.to_string(), FileForm::Text)
}

pub(super) fn group_cpus(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let cpus = cpu_list::text(&cpus_of(value)?);
    group_files(target, "cpuset", "cpuset.cpus", &cpus, FileForm::Text)
}

/// Returns a file of the control groups (version 1) of the processes; an error for the root group.
fn group_files(
    target: &KnobTarget,
    controller: &str,
    name: &str,
    value: &str,
    form: FileForm,
) -> Result<Vec<PlannedChange>, OperationError> {
    if target.processes.is_empty() {
        return Err(OperationError::input("it sets the control group of a process: expected --pid"));
    }
    let mut paths = Vec::new();
    for process in &target.processes {
        paths.push(group(*process, controller)?.join(name));
    }
    paths.sort_unstable();
    paths.dedup();
    paths.into_iter().map(|path| file(path, form, value)).collect()
}

fn group(process: ProcessIdentity, controller: &str) -> Result<PathBuf, OperationError> {
    let groups = fs::read_to_string(format!("/proc/{}/cgroup", process.id)).unwrap_or_default();
    let path = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        controllers.split(',').any(|name| name == controller).then(|| path.to_owned())
    });
    let path = path
        .ok_or_else(|| lacking(format_args!("there are no control groups of version 1 for {controller}")))?;
    if path == "/" {
        // Without --pid the processes are this one alone, which the user did not name.
        return Err(match process.id == std::process::id() {
            true => lacking(format_args!("{PID_NAMES} of a server in a control group of {controller}")),
            false => {
                lacking(format_args!("process {} is in the root control group of {controller}", process.id))
            }
        });
    }
    Ok(Path::new("/sys/fs/cgroup").join(controller).join(path.trim_start_matches('/')))
}

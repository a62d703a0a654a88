//! Knobs that are files of control groups, version 2: weight of the server's group, and limits of its I/O.

use super::definition::{KnobTarget, PID_NAMES, lacking, number};
use super::files::{disk, file};
use crate::linux::LinuxSettings;
use crate::setting::{FileForm, PlannedChange, ProcessIdentity, Setting, SettingStore as _};
use model::OperationError;
use std::fs;
use std::path::{Path, PathBuf};
use units::Seconds;

/// Line of `io.max` that removes all limits of a device.
const NO_LIMIT: &str = "rbps=max wbps=max riops=max wiops=max";
/// Value that removes a device from `io.latency`.
const NO_TARGET: &str = "target=0";

pub(super) fn cpu_weight(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let weight: u32 = number(value, &1, &10_000)?;
    let files = group_files(target, "cpu", "cpu.weight")?;
    files.into_iter().map(|path| file(path, FileForm::Text, weight.to_string())).collect()
}

pub(super) fn io_max(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let limits = parse_limits(value)?;
    of_device(target, "io.max", NO_LIMIT, |now| with_limits(now, &limits))
}

pub(super) fn io_latency(target: &KnobTarget, value: &str) -> Result<Vec<PlannedChange>, OperationError> {
    let time: Option<Seconds> = value.parse().ok();
    let microseconds = time.map(|time| (time.0 * 1e6).round()).filter(|time| (1.0..=1e8).contains(time));
    let microseconds = microseconds
        .ok_or_else(|| OperationError::input("expected a time from 1us to 100s, such as 10ms"))?;
    of_device(target, "io.latency", NO_TARGET, |_| format!("target={microseconds:.0}"))
}

/// Parses limits such as `rbps=1048576+wiops=120` into names and values.
fn parse_limits(value: &str) -> Result<Vec<(&str, &str)>, OperationError> {
    value.split('+').map(parse_limit).collect::<Option<Vec<_>>>().ok_or_else(|| {
        OperationError::input("expected rbps, wbps, riops or wiops with a number or max")
            .hint("bytes and requests per second, joined by +: wbps=1048576+wiops=120")
    })
}

fn parse_limit(text: &str) -> Option<(&str, &str)> {
    let (name, limit) = text.split_once('=')?;
    let is_known = NO_LIMIT.split(' ').any(|known| known.split('=').next() == Some(name));
    let is_limit = limit == "max" || limit.parse::<u64>().is_ok_and(|limit| limit > 0);
    (is_known && is_limit).then_some((name, limit))
}

/// Replaces some limits in a device's line of `io.max`, in the kernel's format.
fn with_limits(now: &str, limits: &[(&str, &str)]) -> String {
    let replaced = |text: &str| {
        let name = text.split('=').next().unwrap_or_default();
        let limit = limits.iter().rev().find(|(known, _)| *known == name);
        limit.map_or(text.to_owned(), |(name, limit)| format!("{name}={limit}"))
    };
    now.split(' ').map(replaced).collect::<Vec<String>>().join(" ")
}

/// Returns a change of the disk's line in a file of each group.
fn of_device(
    target: &KnobTarget,
    name: &str,
    absent: &str,
    value: impl Fn(&str) -> String,
) -> Result<Vec<PlannedChange>, OperationError> {
    let folder = disk(target)?;
    let number = folder.with_file_name("dev");
    let device = fs::read_to_string(&number)
        .map_err(|error| lacking(format_args!("{}: {error}", number.display())))?;
    let change = |path: PathBuf| {
        let setting =
            Setting::GroupDevice { path, device: device.trim().to_owned(), absent: absent.to_owned() };
        let now = LinuxSettings::default().read(&setting)?.unwrap_or_else(|| absent.to_owned());
        Ok(PlannedChange { setting, value: value(&now) })
    };
    group_files(target, "io", name)?.into_iter().map(change).collect()
}

/// Returns a file of each group that the processes are in, without duplicates.
fn group_files(target: &KnobTarget, controller: &str, name: &str) -> Result<Vec<PathBuf>, OperationError> {
    if target.processes.is_empty() {
        return Err(OperationError::input("it sets the control group of a process: expected --pid"));
    }
    let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
    let root = mounted(&mounts)
        .ok_or_else(|| lacking("there are no control groups of version 2 (no cgroup2 is mounted)"))?;
    let mut paths = Vec::new();
    for process in &target.processes {
        paths.push(group_file(&root, &group(*process)?, controller, name)?);
    }
    paths.sort_unstable();
    paths.dedup();
    Ok(paths)
}

/// Returns the mount point of the whole hierarchy, from a line `… ROOT PLACE OPTIONS … - cgroup2 …`.
fn mounted(mounts: &str) -> Option<PathBuf> {
    let place = |line: &str| {
        let (mount, kind) = line.split_once(" - ")?;
        let mut fields = mount.split(' ').skip(3);
        let root = fields.next()?;
        let place = fields.next()?;
        (root == "/" && kind.starts_with("cgroup2 ")).then(|| PathBuf::from(place))
    };
    mounts.lines().find_map(place)
}

/// Returns the version 2 group of a process, from its line `0::/GROUP`.
fn group(process: ProcessIdentity) -> Result<String, OperationError> {
    let groups = fs::read_to_string(format!("/proc/{}/cgroup", process.id)).unwrap_or_default();
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"));
    match group {
        // Without --pid the processes are this one alone.
        Some("/") | None if process.id == std::process::id() => {
            Err(lacking(format_args!("{PID_NAMES} of a server in a control group of version 2")))
        }
        Some("/") | None => Err(lacking(format_args!(
            "process {} is in the root control group of version 2, which has no limits",
            process.id
        ))),
        Some(group) => Ok(group.to_owned()),
    }
}

/// Returns a file of a group, if the controller that creates it is enabled there.
fn group_file(root: &Path, group: &str, controller: &str, name: &str) -> Result<PathBuf, OperationError> {
    let folder = root.join(group.trim_start_matches('/'));
    let path = folder.join(name);
    let has = |folder: &Path| {
        let enabled = fs::read_to_string(folder.join("cgroup.controllers")).unwrap_or_default();
        enabled.split_whitespace().any(|enabled| enabled == controller)
    };
    if path.exists() {
        Ok(path)
    } else if has(&folder) {
        Err(lacking(format_args!("the kernel has no {name} for control groups of version 2")))
    } else if has(root) {
        let message = format_args!("controller {controller} is not enabled for control group {group}");
        Err(OperationError::machine(message)
            .hint(format_args!("write +{controller} to cgroup.subtree_control of the groups above it")))
    } else {
        Err(lacking(format_args!(
            "controller {controller} is not one of control groups of version 2 here (version 1 may have it)"
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_hierarchy_is_found_where_it_is_mounted() {
        let mounts = "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
                      31 23 0:27 /part /mnt rw shared:9 - cgroup2 cgroup2 rw\n\
                      32 23 0:27 / /sys/fs/cgroup/unified rw,relatime shared:10 - cgroup2 cgroup2 rw\n";
        assert_eq!(mounted(mounts), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(mounted("30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"), None);
    }

    #[test]
    fn a_file_that_is_absent_is_absent_for_a_reason() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let root = folder.path();
        fs::create_dir_all(root.join("system/server")).expect("it is ours");
        let write = |file: &str, text: &str| fs::write(root.join(file), text).expect("it is ours");
        let found = |name| group_file(root, "/system/server", "cpu", name).map_err(|error| error.message);
        write("cgroup.controllers", "memory pids\n");
        assert!(found("cpu.weight").is_err_and(|message| message.contains("version 1 may have it")));
        write("cgroup.controllers", "cpu memory\n");
        assert!(
            found("cpu.weight").is_err_and(|message| message.contains("is not enabled for control group"))
        );
        write("system/server/cgroup.controllers", "cpu\n");
        assert!(found("cpu.weight").is_err_and(|message| message.contains("the kernel has no cpu.weight")));
        write("system/server/cpu.weight", "100\n");
        assert_eq!(found("cpu.weight"), Ok(root.join("system/server/cpu.weight")));
    }

    #[test]
    fn limits_replace_those_of_their_name() {
        let limits = parse_limits("wbps=1048576+riops=max").expect("two limits");
        assert_eq!(
            with_limits("rbps=5 wbps=max riops=7 wiops=9", &limits),
            "rbps=5 wbps=1048576 riops=max wiops=9"
        );
        for bad in ["", "wbps", "wbps=0", "wbps=x", "bps=1", "wbps=1++riops=1"] {
            assert!(parse_limits(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_a_file_says_of_a_device_is_written_and_undone() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let path = folder.path().join("io.max");
        fs::write(&path, "8:0 rbps=1 wbps=max riops=max wiops=max\n").expect("it is ours");
        let setting = |device: &str| Setting::GroupDevice {
            path: path.clone(),
            device: device.to_owned(),
            absent: NO_LIMIT.to_owned(),
        };
        let mut store = LinuxSettings::default();
        let mut read = |device: &str| store.read(&setting(device)).expect("it is ours");
        assert_eq!(read("8:0").as_deref(), Some("rbps=1 wbps=max riops=max wiops=max"));
        assert_eq!(read("8:1").as_deref(), Some(NO_LIMIT), "the kernel says nothing of it");
        let limited = with_limits(NO_LIMIT, &[("wiops", "3")]);
        store.write(&setting("8:1"), &limited).expect("it is ours");
        assert_eq!(fs::read_to_string(&path).expect("it is ours"), format!("8:1 {limited}"));
        assert_eq!(store.read(&setting("8:1")).expect("it is ours"), Some(limited));
        fs::remove_file(&path).expect("it is ours");
        assert_eq!(store.read(&setting("8:1")).expect("the group is gone"), None);
    }
}

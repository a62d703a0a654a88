//! CPUs reserved for the scheduler and the threads moved there: a partition of cgroup v2.
//!
//! A partial scheduler has the threads with the policy SCHED_EXT, and the kernel runs all ordinary
//! threads before these. So they get CPUs without ordinary threads: those of a control group whose CPUs
//! no other group may use. Threads moved into the group get the policy, and threads that they start
//! inherit it. The kernel's own threads of these CPUs still go first.

use crate::probe;
use machine::scheduling::{
    SchedulingPolicy, ThreadScheduling, is_extensible, make_extensible, make_ordinary, scheduling,
    set_scheduling,
};
use model::OperationError;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Name of the group below the root of cgroup v2.
const GROUP: &str = "tailwright";
const CONTROLLER: &str = "cpuset";
/// Highest possible CPU number of Linux.
const CPU_MAX: usize = 8191;

/// CPU numbers, at least one, in the kernel's notation: `2-3,5`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuList(BTreeSet<usize>);

impl FromStr for CpuList {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let bad = || format!("'{text}': expected numbers of CPUs from 0 to {CPU_MAX}, such as 2-3,5");
        let number = |text: &str| {
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            text.parse().ok().filter(|cpu: &usize| is_number && *cpu <= CPU_MAX).ok_or_else(bad)
        };
        let mut cpus = BTreeSet::new();
        for part in text.split(',') {
            let (first, last) = part.split_once('-').unwrap_or((part, part));
            let first = number(first)?;
            let last = number(last)?;
            if first > last {
                return Err(bad());
            }
            cpus.extend(first..=last);
        }
        Ok(Self(cpus))
    }
}

impl CpuList {
    /// Returns one more than the highest number.
    pub(crate) fn end(&self) -> usize {
        self.0.last().map_or(0, |last| last + 1)
    }

    pub(crate) fn count(&self) -> usize {
        self.0.len()
    }
}

impl fmt::Display for CpuList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let cpus: Vec<String> = self.0.iter().map(usize::to_string).collect();
        f.write_str(&cpus.join(","))
    }
}

/// CPUs that only processes of one group may use. Dropping the value returns them to all.
#[derive(Debug)]
pub struct CpuPartition {
    root: PathBuf,
    /// True if the cpuset controller was not enabled before.
    is_controller_ours: bool,
    /// Threads switched to the policy SCHED_EXT, with their former scheduling.
    switched: BTreeMap<u32, ThreadScheduling>,
    is_given_back: bool,
}

impl CpuPartition {
    /// Reserves these CPUs, or takes over a partition that an earlier program left behind.
    ///
    /// # Errors
    /// When the kernel has no sched_ext or no cgroup v2 with cpuset, a privilege is missing, or the kernel does not give the CPUs.
    pub fn take(cpus: &CpuList) -> Result<Self, OperationError> {
        probe::check()?;
        let root = mounted_root()?;
        let has_controller = |file: &str| {
            let listed = fs::read_to_string(root.join(file)).unwrap_or_default();
            listed.split_whitespace().any(|listed| listed == CONTROLLER)
        };
        if !has_controller("cgroup.controllers") {
            let message = format_args!("{}: cgroup v2 has no {CONTROLLER} here", root.display());
            let hint = "the kernel needs CONFIG_CPUSETS, and cpuset must not be mounted as cgroup v1";
            return Err(OperationError::machine(message).hint(hint));
        }
        let is_controller_ours = !has_controller("cgroup.subtree_control");
        let partition = Self { root, is_controller_ours, switched: BTreeMap::new(), is_given_back: false };
        if is_controller_ours {
            partition.put_root("cgroup.subtree_control", &format!("+{CONTROLLER}"))?;
        }
        match fs::create_dir(partition.group()) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(failed(&partition.group(), &error));
            }
            _ => {}
        }
        partition.put("cpuset.cpus", &cpus.to_string())?;
        partition.put("cpuset.cpus.partition", "root")?;
        let place = partition.group().join("cpuset.cpus.partition");
        let state = fs::read_to_string(&place).map_err(|error| failed(&place, &error))?;
        if state.trim() == "root" {
            return Ok(partition);
        }
        Err(OperationError::machine(format_args!(
            "the kernel does not give the CPUs {cpus} to one group alone: {}",
            state.trim()
        ))
        .hint("expected CPUs that no other group has to itself, and not all of them"))
    }

    /// Returns the file that takes the process ids to move into the partition.
    pub fn processes_file(&self) -> PathBuf {
        self.group().join("cgroup.procs")
    }

    /// Switches threads that have joined since the last call to sched_ext, and restores those that have
    /// left.
    pub fn switch_threads(&mut self) {
        let here = self.threads();
        let gone: Vec<u32> = self.switched.keys().copied().filter(|thread| !here.contains(thread)).collect();
        for thread in gone {
            let before = self.switched.remove(&thread).expect("it is one of them");
            take_back(thread, Some(&before));
        }
        for thread in here {
            // A thread may end at any time; real-time threads keep their policy.
            let Ok(before) = scheduling(thread) else { continue };
            let is_ordinary = matches!(
                before.policy,
                SchedulingPolicy::Other | SchedulingPolicy::Batch | SchedulingPolicy::Idle
            );
            if is_ordinary && make_extensible(thread).is_ok() {
                self.switched.insert(thread, before);
            }
        }
    }

    /// Makes all threads ordinary again and returns the CPUs. Returns the number of processes that stay
    /// in the group, which is then an ordinary one; an empty group is removed.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn give_back(mut self) -> Result<usize, OperationError> {
        self.undo()
    }

    fn undo(&mut self) -> Result<usize, OperationError> {
        self.is_given_back = true;
        for thread in self.threads() {
            take_back(thread, self.switched.get(&thread));
        }
        self.put("cpuset.cpus.partition", "member")?;
        self.put("cpuset.cpus", "\n")?;
        if fs::remove_dir(self.group()).is_err() {
            return Ok(self.lines("cgroup.procs").len());
        }
        if self.is_controller_ours {
            // Another program may need the controller by now; then it stays enabled.
            let _ = self.put_root("cgroup.subtree_control", &format!("-{CONTROLLER}"));
        }
        Ok(0)
    }

    fn group(&self) -> PathBuf {
        self.root.join(GROUP)
    }

    fn threads(&self) -> BTreeSet<u32> {
        self.lines("cgroup.threads").into_iter().collect()
    }

    fn lines(&self, file: &str) -> Vec<u32> {
        let text = fs::read_to_string(self.group().join(file)).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    fn put(&self, file: &str, value: &str) -> Result<(), OperationError> {
        self.put_root(&format!("{GROUP}/{file}"), value)
    }

    fn put_root(&self, file: &str, value: &str) -> Result<(), OperationError> {
        let place = self.root.join(file);
        fs::write(&place, value).map_err(|error| failed(&place, &error))
    }
}

impl Drop for CpuPartition {
    fn drop(&mut self) {
        if !self.is_given_back {
            // There is no caller left to report an error to.
            let _ = self.undo();
        }
    }
}

/// Returns a thread to its former ordinary scheduling, if known. The thread may have ended.
fn take_back(thread: u32, before: Option<&ThreadScheduling>) {
    if is_extensible(thread).is_ok_and(|is_extensible| is_extensible) {
        let _ = match before {
            Some(before) => set_scheduling(thread, before),
            None => make_ordinary(thread),
        };
    }
}

fn mounted_root() -> Result<PathBuf, OperationError> {
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    root_in(&mounts).ok_or_else(|| {
        OperationError::machine("cgroup v2 is not mounted")
            .hint("mount -t cgroup2 cgroup2 /sys/fs/cgroup, as systemd does")
    })
}

/// Returns the mount point of cgroup v2, from lines of /proc/self/mounts.
fn root_in(mounts: &str) -> Option<PathBuf> {
    let fields = mounts.lines().map(|line| line.split(' ').collect::<Vec<_>>());
    let mut roots = fields.filter(|fields| fields.get(2) == Some(&"cgroup2"));
    roots.next().and_then(|fields| fields.get(1).map(PathBuf::from))
}

fn failed(place: &Path, error: &io::Error) -> OperationError {
    let failed = OperationError::machine(format_args!("{}: {error}", place.display()));
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => failed.hint("run it as root"),
        _ => failed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_of_cpus() {
        for (text, shown) in [("2", "2"), ("2-4,0", "0,2,3,4"), ("1,1", "1")] {
            assert_eq!(text.parse::<CpuList>().map(|cpus| cpus.to_string()), Ok(shown.to_owned()), "{text}");
        }
        for bad in ["", ",", "a", "-1", "+1", "3-2", "1-", "1-2-3", "0-99999", "1, 2"] {
            assert!(bad.parse::<CpuList>().is_err(), "{bad}");
        }
    }

    #[test]
    fn the_root_is_where_the_second_version_is_mounted() {
        let both =
            "cgroup /sys/fs/cgroup/cpu cgroup rw 0 0\ncgroup2 /sys/fs/cgroup/unified cgroup2 rw,nosuid 0 0\n";
        assert_eq!(root_in(both), Some(PathBuf::from("/sys/fs/cgroup/unified")));
        assert_eq!(root_in("proc /proc proc rw 0 0\n"), None);
    }
}

//! The control group whose threads are scheduled by age, while all others are not.

use model::OperationError;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// Magic number of cgroup v2's file system, `CGROUP2_SUPER_MAGIC` of `linux/magic.h`.
const CGROUP_V2: u64 = 0x6367_7270;
/// The kernel's number of the root group.
const ROOT_NUMBER: u64 = 1;

/// A control group of cgroup v2, including its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ControlGroup {
    number: u64,
    outside_permille: u32,
}

impl ControlGroup {
    /// Opens the group with this folder. Threads of other groups come first for at least this share of
    /// each CPU, in thousandths from 1 to 900; the group's threads come first for the rest. Each side may
    /// use the time that the other leaves.
    ///
    /// # Errors
    /// When the folder is not a control group, it is the root group, or the share is out of range.
    pub fn open(folder: &Path, outside_permille: u32) -> Result<Self, OperationError> {
        let bad = |what: &str| {
            OperationError::input(format_args!("{}: {what}", folder.display()))
                .hint("expected the folder of a control group, such as /sys/fs/cgroup/system.slice")
        };
        let found = folder.metadata().map_err(|error| bad(&error.to_string()))?;
        let kind = rustix::fs::statfs(folder).map_err(|error| bad(&error.to_string()))?.f_type;
        if !found.is_dir() || u64::try_from(kind) != Ok(CGROUP_V2) {
            return Err(bad("not a folder of cgroup v2"));
        }
        if found.ino() == ROOT_NUMBER {
            return Err(OperationError::input(format_args!(
                "{}: the group with all processes",
                folder.display()
            ))
            .hint("run without --cgroup, which schedules all of them"));
        }
        if !(1..=900).contains(&outside_permille) {
            let message = "the share of threads of other groups must be between 0.1 % and 90 %";
            return Err(OperationError::input(message));
        }
        Ok(Self { number: found.ino(), outside_permille })
    }

    /// Returns the kernel's number of the group.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    pub(crate) fn outside_permille(&self) -> u32 {
        self.outside_permille
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_group_is_refused() {
        let refused =
            |folder: &str| ControlGroup::open(Path::new(folder), 500).expect_err(folder).to_string();
        assert!(refused("/nowhere").contains("No such file"), "{}", refused("/nowhere"));
        assert!(refused("/proc/self/status").contains("not a folder of cgroup v2"));
        assert!(refused("/tmp").contains("not a folder of cgroup v2"));
    }

    #[test]
    fn the_group_with_all_processes_is_refused() {
        let root = Path::new("/sys/fs/cgroup");
        if !root.join("cgroup.procs").exists() {
            return testkit::skip("cgroup v2 is not mounted");
        }
        let refused = ControlGroup::open(root, 500).expect_err("it has all").to_string();
        assert!(refused.contains("the group with all processes"), "{refused}");
    }
}

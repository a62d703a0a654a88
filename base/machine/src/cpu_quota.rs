//! CPU quotas of control groups, versions 1 and 2: their values, and the number and total time of
//! throttlings.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// The hierarchy of control groups that has the CPU controller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CpuHierarchy {
    /// Mount point.
    place: PathBuf,
    /// The group that is mounted there: `/`, unless only a part of the hierarchy is.
    root: String,
    is_version_1: bool,
}

/// A CPU quota: a maximum of CPU time in each period for all threads of a group together.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CpuQuota {
    /// CPU time, microseconds.
    pub quota_us: u64,
    /// The period, microseconds.
    pub period_us: u64,
}

/// Counters of a quota since its group was made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct QuotaCounts {
    /// Periods in which the group was throttled.
    pub throttled: u64,
    /// Throttled time, nanoseconds, summed over CPUs.
    pub throttled_ns: u64,
}

impl CpuHierarchy {
    /// Returns the hierarchy of this machine, as this process sees it.
    pub fn of_machine() -> Option<Self> {
        Self::of_mounts(&fs::read_to_string("/proc/self/mountinfo").ok()?)
    }

    /// `… ROOT PLACE OPTIONS … - TYPE SOURCE OPTIONS`. Version 1 first: where both are mounted, a controller is in one of
    /// them, and version 1 names it.
    fn of_mounts(mounts: &str) -> Option<Self> {
        let parsed = |line: &str| {
            let (mount, system) = line.split_once(" - ")?;
            let mut fields = mount.split(' ').skip(3);
            let root = fields.next()?.to_owned();
            let place = PathBuf::from(fields.next()?);
            let mut fields = system.split(' ');
            let kind = fields.next()?;
            let options = fields.nth(1).unwrap_or_default();
            let is_version_1 = kind == "cgroup" && options.split(',').any(|option| option == "cpu");
            (is_version_1 || kind == "cgroup2").then_some(Self { place, root, is_version_1 })
        };
        let mut found: Vec<Self> = mounts.lines().filter_map(parsed).collect();
        found.sort_by_key(|hierarchy| !hierarchy.is_version_1);
        found.into_iter().next()
    }

    /// The groups of all threads of a process, with the groups above them.
    pub fn groups_of(&self, process: u32) -> BTreeSet<String> {
        let tasks = fs::read_dir(format!("/proc/{process}/task")).into_iter().flatten().flatten();
        let mut groups = BTreeSet::new();
        for task in tasks {
            let text = fs::read_to_string(task.path().join("cgroup")).unwrap_or_default();
            let Some(group) = text.lines().find_map(|line| self.group_in(line)) else { continue };
            groups.extend(Path::new(group).ancestors().map(|group| group.display().to_string()));
        }
        groups
    }

    /// `NUMBER:CONTROLLERS:GROUP`.
    fn group_in<'a>(&self, line: &'a str) -> Option<&'a str> {
        let mut fields = line.splitn(3, ':').skip(1);
        let controllers = fields.next()?;
        let group = fields.next()?;
        let is_it = if self.is_version_1 {
            controllers.split(',').any(|controller| controller == "cpu")
        } else {
            controllers.is_empty()
        };
        is_it.then_some(group)
    }

    /// Returns a file of a group; `None` if the group is outside the mounted part of the hierarchy.
    fn file(&self, group: &str, name: &str) -> Option<PathBuf> {
        let below = Path::new(group).strip_prefix(&self.root).ok()?;
        Some(self.place.join(below).join(name))
    }

    /// The quota of a group, if it has one.
    pub fn quota(&self, group: &str) -> Option<CpuQuota> {
        let read = |name| fs::read_to_string(self.file(group, name)?).ok();
        if self.is_version_1 {
            let [quota, period] = [read("cpu.cfs_quota_us")?, read("cpu.cfs_period_us")?];
            return quota_of(quota.trim(), period.trim());
        }
        let text = read("cpu.max")?;
        let (quota, period) = text.trim().split_once(' ')?;
        quota_of(quota, period)
    }

    /// Returns the throttling counts of a group's quota; `None` if the group has no such counters.
    pub fn counts(&self, group: &str) -> Option<QuotaCounts> {
        counts_of(&fs::read_to_string(self.file(group, "cpu.stat")?).ok()?)
    }

    /// A command that sets the quota of a group.
    pub fn command(&self, group: &str, quota: CpuQuota) -> Option<String> {
        let CpuQuota { quota_us, period_us } = quota;
        Some(if self.is_version_1 {
            format!("echo {quota_us} > {}", self.file(group, "cpu.cfs_quota_us")?.display())
        } else {
            format!("echo {quota_us} {period_us} > {}", self.file(group, "cpu.max")?.display())
        })
    }
}

/// Without a limit version 1 has -1, and version 2 `max`.
fn quota_of(quota: &str, period: &str) -> Option<CpuQuota> {
    Some(CpuQuota { quota_us: quota.parse().ok()?, period_us: period.parse().ok()? })
}

/// Version 1 counts in nanoseconds, version 2 in microseconds.
fn counts_of(text: &str) -> Option<QuotaCounts> {
    let value = |name: &str| {
        let mut lines = text.lines().filter_map(|line| line.split_once(' '));
        lines.find(|(key, _)| *key == name)?.1.trim().parse::<u64>().ok()
    };
    let microseconds = || value("throttled_usec").map(|us| us.saturating_mul(1000));
    Some(QuotaCounts {
        throttled: value("nr_throttled")?,
        throttled_ns: value("throttled_time").or_else(microseconds)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const VERSION_1: &str = "30 23 0:26 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpuacct,cpu\n\
                             31 23 0:27 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n\
                             32 23 0:28 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";

    #[test]
    fn the_hierarchy_with_the_cpu_controller() {
        let first = CpuHierarchy::of_mounts(VERSION_1).unwrap();
        assert!(first.is_version_1 && first.place == Path::new("/sys/fs/cgroup/cpu"));
        let second =
            CpuHierarchy::of_mounts("3 2 0:2 /part /sys/fs/cgroup rw shared:1 - cgroup2 none rw\n").unwrap();
        assert!(!second.is_version_1 && second.root == "/part");
        assert_eq!(CpuHierarchy::of_mounts("3 2 0:2 / / rw - ext4 /dev/vda rw\n"), None);
        assert_eq!(first.group_in("4:cpuacct,cpu:/a/b:c"), Some("/a/b:c"));
        assert_eq!(first.group_in("5:cpuset:/x"), None);
        assert_eq!((first.group_in("0::/y"), second.group_in("0::/y")), (None, Some("/y")));
        assert_eq!(second.file("/part/a", "cpu.max"), Some(PathBuf::from("/sys/fs/cgroup/a/cpu.max")));
        assert_eq!(second.file("/other", "cpu.max"), None);
    }

    #[test]
    fn both_versions_have_quotas_and_counts() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| fs::write(folder.path().join("g").join(name), text).unwrap();
        fs::create_dir(folder.path().join("g")).unwrap();
        write("cpu.cfs_quota_us", "-1\n");
        write("cpu.cfs_period_us", "100000\n");
        write("cpu.max", "max 100000\n");
        let [first, second] = [true, false].map(|is_version_1| CpuHierarchy {
            place: folder.path().to_owned(),
            root: "/".to_owned(),
            is_version_1,
        });
        assert_eq!((first.quota("/g"), second.quota("/g")), (None, None));
        write("cpu.cfs_quota_us", "5000\n");
        write("cpu.max", "5000 100000\n");
        let quota = CpuQuota { quota_us: 5000, period_us: 100_000 };
        assert_eq!((first.quota("/g"), second.quota("/g")), (Some(quota), Some(quota)));
        write("cpu.stat", "nr_periods 9\nnr_throttled 7\nthrottled_time 5000\n");
        assert_eq!(first.counts("/g"), Some(QuotaCounts { throttled: 7, throttled_ns: 5000 }));
        write("cpu.stat", "usage_usec 1\nnr_periods 9\nnr_throttled 7\nthrottled_usec 5\nnr_bursts 0\n");
        assert_eq!(second.counts("/g"), Some(QuotaCounts { throttled: 7, throttled_ns: 5000 }));
        write("cpu.stat", "usage_usec 1\n");
        assert_eq!(second.counts("/g"), None);
        for (hierarchy, end) in [(&first, "/g/cpu.cfs_quota_us"), (&second, "/g/cpu.max")] {
            assert!(hierarchy.command("/g", quota).unwrap().ends_with(end));
        }
    }
}

//! A control group that has CPUs of its own: a partition of cpusets (cgroup v2), on whose CPUs the kernel lets no thread of
//! others run, except kernel threads that belong to one of these CPUs.

use model::OperationError;
use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

const PARTITION_FILE: &str = "cpuset.cpus.partition";
const CPUS_FILE: &str = "cpuset.cpus.effective";
const THREADS_FILE: &str = "cgroup.threads";

#[derive(Debug)]
pub(crate) struct ExclusiveGroup {
    folder: PathBuf,
    /// Its CPUs, as the kernel lists them.
    cpus: String,
}

impl ExclusiveGroup {
    /// Finds the group of a folder.
    ///
    /// # Errors
    /// Where there is none, or it has no CPUs of its own.
    pub(crate) fn open(folder: &Path) -> Result<Self, OperationError> {
        let folder = folder.to_owned();
        let group = Self { cpus: own_cpus(&folder)?, folder };
        group.threads().map_err(|error| unreadable(&group.folder, &error))?;
        Ok(group)
    }

    /// Complains when the group has lost CPUs of its own, or has others.
    pub(crate) fn check(&self) -> Result<(), OperationError> {
        let cpus = own_cpus(&self.folder)?;
        if cpus == self.cpus {
            return Ok(());
        }
        let message =
            format_args!("{}: the CPUs were {} and are {cpus} now", self.folder.display(), self.cpus);
        Err(OperationError::machine(message).hint("start the scheduler again"))
    }

    /// The threads of the group and of those in it.
    pub(crate) fn threads(&self) -> io::Result<BTreeSet<u32>> {
        let mut threads = BTreeSet::new();
        add_threads(&self.folder, &mut threads)?;
        Ok(threads)
    }
}

fn add_threads(folder: &Path, threads: &mut BTreeSet<u32>) -> io::Result<()> {
    let listed = fs::read_to_string(folder.join(THREADS_FILE))?;
    threads.extend(listed.lines().filter_map(|line| line.parse::<u32>().ok()));
    for entry in fs::read_dir(folder)?.filter_map(Result::ok) {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            match add_threads(&entry.path(), threads) {
                // It was removed meanwhile.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                added => added?,
            }
        }
    }
    Ok(())
}

fn own_cpus(folder: &Path) -> Result<String, OperationError> {
    let read = |name: &str| {
        let text = fs::read_to_string(folder.join(name));
        text.map(|text| text.trim().to_owned()).map_err(|error| unreadable(folder, &error))
    };
    let partition = read(PARTITION_FILE)?;
    if !["root", "isolated"].contains(&partition.as_str()) {
        let message =
            format_args!("{}: the control group has no CPUs of its own ({partition})", folder.display());
        return Err(OperationError::machine(message).hint(
            "ordinary threads on its CPUs would starve those that are scheduled: write CPUs to its cpuset.cpus and root to \
             its cpuset.cpus.partition, as docs/schedule.md shows",
        ));
    }
    read(CPUS_FILE)
}

fn unreadable(folder: &Path, error: &io::Error) -> OperationError {
    OperationError::machine(format_args!("{}: no control group with a cpuset: {error}", folder.display()))
        .hint("expected a folder below /sys/fs/cgroup (cgroup v2) whose parent has +cpuset in cgroup.subtree_control")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(partition: &str) -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("a temporary folder");
        for (name, text) in [(PARTITION_FILE, partition), (CPUS_FILE, "2-3\n"), (THREADS_FILE, "7\n8\n")] {
            fs::write(folder.path().join(name), text).expect("the folder is ours");
        }
        folder
    }

    #[test]
    fn only_a_valid_partition_is_taken() {
        for good in ["root\n", "isolated\n"] {
            assert!(ExclusiveGroup::open(group(good).path()).is_ok(), "{good}");
        }
        for bad in ["member\n", "root invalid (Cpu list in cpuset.cpus not exclusive)\n", ""] {
            let refused = ExclusiveGroup::open(group(bad).path()).expect_err(bad).to_string();
            assert!(refused.contains("no CPUs of its own"), "{refused}");
        }
        let absent = tempfile::tempdir().expect("a temporary folder");
        assert!(ExclusiveGroup::open(absent.path()).is_err());
        assert!(ExclusiveGroup::open(&absent.path().join("none")).is_err());
    }

    #[test]
    fn threads_of_groups_below_belong_to_it_and_other_cpus_are_seen() {
        let folder = group("root\n");
        let opened = ExclusiveGroup::open(folder.path()).expect("it is one");
        let below = folder.path().join("below");
        fs::create_dir(&below).expect("the folder is ours");
        fs::write(below.join(THREADS_FILE), "9\n").expect("the folder is ours");
        assert_eq!(opened.threads().ok(), Some(BTreeSet::from([7, 8, 9])));
        assert!(opened.check().is_ok());
        fs::write(folder.path().join(CPUS_FILE), "2\n").expect("the folder is ours");
        assert!(opened.check().is_err());
    }
}

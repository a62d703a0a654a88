//! Mounts of bpffs in processes of this machine. Each mount is a file system of its own, with other records.

use super::namespace::{living_folder, processes};
use rustix::fs::{major, minor};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Returns paths that may reach the bpffs with this device number: its mount points, one process per mount
/// namespace, as far as this process may read them.
pub(super) fn points_of(device: u64) -> Vec<PathBuf> {
    let mut seen = BTreeSet::new();
    let mut points = Vec::new();
    for process in processes().map(living_folder) {
        // Most processes share a mount namespace. A chroot can hide mounts, so the root is part of the key.
        let Ok(namespace) = fs::read_link(process.join("ns/mnt")) else { continue };
        let root = fs::read_link(process.join("root")).unwrap_or_default();
        if !seen.insert((namespace, root)) {
            continue;
        }
        let mounts = fs::read_to_string(process.join("mountinfo")).unwrap_or_default();
        points.extend(mounts.lines().filter_map(|line| mount_point(line, device)).map(|point| {
            let inside = point.strip_prefix("/").unwrap_or(&point);
            process.join("root").join(inside)
        }));
    }
    points
}

/// Returns the mount point in a line `ID PARENT MAJOR:MINOR ROOT POINT …`, if the whole file system with this
/// device is mounted there.
fn mount_point(line: &str, device: u64) -> Option<PathBuf> {
    let mut fields = line.split(' ').skip(2);
    let numbers = fields.next()?;
    let root = fields.next()?;
    let point = fields.next()?;
    let is_it = numbers == format!("{}:{}", major(device), minor(device)) && root == "/";
    is_it.then(|| Path::new(point).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::makedev;

    #[test]
    fn points_are_those_of_the_whole_file_system() {
        let line = "36 24 0:31 / /sys/fs/bpf rw,relatime shared:12 - bpf bpf rw,mode=700";
        assert_eq!(mount_point(line, makedev(0, 31)), Some(PathBuf::from("/sys/fs/bpf")));
        assert_eq!(mount_point(line, makedev(0, 32)), None);
        assert_eq!(mount_point(&line.replace(" / ", " /folder "), makedev(0, 31)), None);
        assert_eq!(mount_point("36 24 0:31", makedev(0, 31)), None);
    }

    #[test]
    fn what_this_process_has_mounted_is_found() {
        let device = super::super::pinned::device_of(Path::new("/proc")).expect("it is mounted");
        let points = points_of(device);
        assert!(points.iter().any(|point| point.ends_with("root/proc")), "{points:?}");
    }
}

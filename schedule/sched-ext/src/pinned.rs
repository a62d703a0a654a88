//! Files in bpffs by which programs find the scheduler, and their permissions.

use crate::object::SchedulerMaps;
use crate::shared::{CONTROL_FILE, CPUS_FILE};
use machine::bpf::BpfMap;
use model::OperationError;
use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::Path;

/// Pins the maps that programs need in a folder, for root alone or also for a group.
pub(crate) fn pin(maps: &SchedulerMaps, folder: &Path, group: Option<u32>) -> Result<(), OperationError> {
    let failed = |error: io::Error| {
        OperationError::machine(format_args!(
            "{}: what programs need cannot be put there: {error}",
            folder.display()
        ))
        .hint("expected a folder of a mounted file system of BPF: mount -t bpf bpf /sys/fs/bpf")
    };
    remove(folder);
    fs::create_dir_all(folder).map_err(failed)?;
    let pinned = [
        // Pinned first: `unpin` recognises the owner of the files by it.
        (CONTROL_FILE, &maps.control),
        (sched_hint::SLOTS_FILE, &maps.slots),
        (sched_hint::THREADS_FILE, &maps.threads),
        (CPUS_FILE, &maps.cpus),
    ];
    for (name, map) in pinned {
        map.pin(&folder.join(name)).map_err(failed)?;
    }
    let Some(group) = group else {
        return fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(failed);
    };
    // The group may tag threads; settings stay root's.
    for name in [sched_hint::SLOTS_FILE, sched_hint::THREADS_FILE] {
        let path = folder.join(name);
        chown(&path, None, Some(group)).map_err(failed)?;
        fs::set_permissions(&path, fs::Permissions::from_mode(0o660)).map_err(failed)?;
    }
    chown(folder, None, Some(group)).map_err(failed)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o750)).map_err(failed)
}

/// Removes pinned files, if they belong to this scheduler: another one may have started since the kernel
/// ended it.
pub(crate) fn unpin(maps: &SchedulerMaps, folder: &Path) {
    if BpfMap::open(&folder.join(CONTROL_FILE)).is_ok_and(|pinned| pinned.number() == maps.control.number()) {
        remove(folder);
    }
}

fn remove(folder: &Path) {
    for name in [sched_hint::SLOTS_FILE, sched_hint::THREADS_FILE, CONTROL_FILE, CPUS_FILE] {
        // A missing file is fine; one that cannot be removed makes the next pinning fail with an error.
        let _ = fs::remove_file(folder.join(name));
    }
}

/// Fails for a parent folder that members of the group cannot enter: many systems keep /sys/fs/bpf for
/// root alone.
pub(crate) fn check_way(folder: &Path, group: Option<u32>) -> Result<(), OperationError> {
    let Some(group) = group else { return Ok(()) };
    for above in folder.ancestors().skip(1) {
        let Ok(found) = fs::metadata(above) else { continue };
        let right = if found.gid() == group { 0o010 } else { 0o001 };
        if found.mode() & right == 0 {
            let message =
                format_args!("{}: members of the group {group} cannot pass this folder", above.display());
            return Err(OperationError::machine(message)
                .hint(format_args!("as root: chmod o+x {}, which lets nobody list it", above.display())));
        }
    }
    Ok(())
}

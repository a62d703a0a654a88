//! Processes and threads in `/proc`: identity, CPU time, rights.

use crate::setting::{ProcessIdentity, ThreadIdentity};
use model::OperationError;
use std::fs;
use std::path::Path;

/// Returns the identifier of this boot.
///
/// # Errors
/// If the kernel does not report it.
pub fn boot() -> Result<String, OperationError> {
    let path = "/proc/sys/kernel/random/boot_id";
    let id =
        fs::read_to_string(path).map_err(|error| OperationError::machine(format_args!("{path}: {error}")))?;
    Ok(id.trim().to_owned())
}

/// Returns the identity of the process with this PID.
pub fn identity(id: u32) -> Option<ProcessIdentity> {
    let start = start(&Path::new("/proc").join(id.to_string()))?;
    Some(ProcessIdentity { id, start })
}

/// Returns true if a process has not ended; zombies have.
pub fn is_alive(process: ProcessIdentity) -> bool {
    let folder = Path::new("/proc").join(process.id.to_string());
    let Some(fields) = stat_fields(&folder.join("stat")) else { return false };
    let has_ended = matches!(fields.first().map(String::as_str), Some("Z" | "X") | None);
    // Field 20 of proc(5): the main thread may be a zombie while other threads run.
    let has_others = fields.get(17).is_some_and(|threads| threads != "0" && threads != "1");
    (!has_ended || has_others) && start(&folder) == Some(process.start)
}

/// Returns the threads of a process, by TID; empty if it has ended.
pub fn threads(process: ProcessIdentity) -> Vec<ThreadIdentity> {
    let folder = Path::new("/proc").join(process.id.to_string()).join("task");
    let Ok(listing) = fs::read_dir(folder) else { return Vec::new() };
    let thread = |entry: fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        Some(ThreadIdentity { process, id, start: start(&entry.path())? })
    };
    let mut threads: Vec<ThreadIdentity> = listing.flatten().filter_map(thread).collect();
    threads.sort_unstable();
    // If the PID was reused meanwhile, the threads listed are of another process.
    if is_alive(process) { threads } else { Vec::new() }
}

/// Returns the processes of a group, including zombies.
pub(super) fn group_of(group: u32) -> Vec<ProcessIdentity> {
    let listing = fs::read_dir("/proc").into_iter().flatten().flatten();
    let member = |entry: fs::DirEntry| {
        let id = entry.file_name().to_str()?.parse().ok()?;
        let fields = stat_fields(&entry.path().join("stat"))?;
        // Fields 5 and 22 of proc(5).
        let of = fields.get(2)?;
        let start = fields.get(19)?;
        if of.parse() == Ok(group) { Some(ProcessIdentity { id, start: start.parse().ok()? }) } else { None }
    };
    listing.filter_map(member).collect()
}

/// Returns true if a thread has not ended.
pub(super) fn is_running(thread: ThreadIdentity) -> bool {
    let folder = format!("/proc/{}/task/{}", thread.process.id, thread.id);
    start(Path::new(&folder)) == Some(thread.start) && is_alive(thread.process)
}

/// Returns the user and system CPU time of a process, with the resolution of clock ticks (usually 10 ms).
pub(crate) fn cpu_time_ns(process: ProcessIdentity) -> Option<u64> {
    let fields = stat_fields(&Path::new("/proc").join(process.id.to_string()).join("stat"))?;
    let ticks = |index: usize| fields.get(index)?.parse::<u64>().ok();
    // Fields 14 and 15 of proc(5).
    let user = ticks(11)?;
    let system = ticks(12)?;
    Some((user + system) * (1_000_000_000 / rustix::param::clock_ticks_per_second()))
}

fn start(folder: &Path) -> Option<u64> {
    // Field 22 of proc(5).
    stat_fields(&folder.join("stat"))?.get(19)?.parse().ok()
}

/// Returns the fields of a `stat` file after the name, which may contain spaces and parentheses.
fn stat_fields(path: &Path) -> Option<Vec<String>> {
    let text = fs::read(path).ok()?;
    let text = String::from_utf8_lossy(&text);
    let (_, fields) = text.rsplit_once(')')?;
    Some(fields.split_whitespace().map(str::to_owned).collect())
}

/// Returns the limits of a process without CAP_SYS_NICE: lowest nice value and highest real-time priority.
pub(crate) fn scheduling_limits(process: ProcessIdentity) -> Option<(i32, u32)> {
    let text = fs::read_to_string(format!("/proc/{}/limits", process.id)).ok()?;
    let soft = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name))?;
        let word = line.split_whitespace().next()?;
        if word == "unlimited" { Some(u32::MAX) } else { word.parse().ok() }
    };
    let nice = soft("Max nice priority")?.min(40);
    Some((20 - i32::try_from(nice).ok()?, soft("Max realtime priority")?))
}

/// Returns the effective capabilities of this process as a bit set.
pub(crate) fn capabilities() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    line.and_then(|set| u64::from_str_radix(set.trim(), 16).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_itself_and_no_other() {
        let process = identity(std::process::id()).expect("it runs");
        assert!(is_alive(process) && !threads(process).is_empty());
        let earlier = ProcessIdentity { start: process.start - 1, ..process };
        assert!(!is_alive(earlier) && threads(earlier).is_empty());
        assert!(cpu_time_ns(process).is_some());
        assert_eq!(identity(u32::MAX), None);
        assert_eq!(boot(), boot());
    }

    #[test]
    fn a_process_that_has_ended_is_not_alive_before_its_parent_looks() {
        let mut child = std::process::Command::new("true").spawn().expect("there is a true");
        let process = identity(child.id()).expect("nobody has looked yet");
        while is_alive(process) {
            std::thread::yield_now();
        }
        child.wait().expect("it ends");
    }
}

//! The end of proxies that agents started.

use super::proxy_lock::{is_held, server_of};
use cli::exit::VerbAnswer;
use cli::terminal::{Talk, talk};
use model::OperationError;
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// Time for the requests in progress of a proxy, and to end after that.
const END_MAX: Duration = Duration::from_secs(20);
/// Interval between looks whether it has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Ends the proxies whose locks are in a folder, and waits until they have ended.
///
/// # Errors
/// If a process cannot be found or does not end.
pub(super) fn stop(state: &Path) -> Result<VerbAnswer, OperationError> {
    let mut held = Vec::new();
    for entry in std::fs::read_dir(state).into_iter().flatten().flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(server) = server_of(&name).filter(|_| is_held(&entry.path())) {
            held.push((server.to_owned(), entry.path()));
        }
    }
    held.sort();
    for (server, path) in &held {
        let process = holder(path).ok_or_else(|| unknown(server))?;
        let sent = pidfd_send_signal(process, Signal::TERM);
        sent.map_err(|error| OperationError::machine(format_args!("the proxy before {server}: {error}")))?;
    }
    let deadline = Instant::now() + END_MAX;
    for (server, path) in &held {
        while is_held(path) {
            if Instant::now() >= deadline {
                let late = format!("the proxy before {server} has not ended within {} s", END_MAX.as_secs());
                return Err(OperationError::machine(late).hint("end it by SIGKILL"));
            }
            std::thread::sleep(LOOK);
        }
        talk(Talk::Note, format_args!("agent: the proxy before {server} has ended"));
    }
    if held.is_empty() {
        talk(Talk::Note, format_args!("agent: no proxy of an agent runs in {}", state.display()));
    }
    Ok(VerbAnswer::Yes)
}

fn unknown(server: &str) -> OperationError {
    OperationError::machine(format_args!("the process of the proxy before {server} cannot be found"))
        .hint("run as the user of the agent")
}

/// Returns the process whose standard input is this file.
fn holder(path: &Path) -> Option<OwnedFd> {
    let lock = std::fs::metadata(path).ok()?;
    let is_it = |process: &str| {
        let input = std::fs::metadata(PathBuf::from("/proc").join(process).join("fd/0"));
        input.is_ok_and(|input| (input.dev(), input.ino()) == (lock.dev(), lock.ino()))
    };
    for entry in std::fs::read_dir("/proc").ok()?.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let Some(process) = name.parse().ok().and_then(Pid::from_raw).filter(|_| is_it(&name)) else {
            continue;
        };
        // The descriptor keeps the number, so that a second look finds the same process or none.
        let found = pidfd_open(process, PidfdFlags::empty());
        if let Some(found) = found.ok().filter(|_| is_it(&name)) {
            return Some(found);
        }
    }
    None
}

//! Real-time priority: a thread that runs as soon as it is ready.
//!
//! By `chrt` of util-linux, because the system call has no safe wrapper. The kernel still keeps 5 % of a CPU from
//! real-time threads (`kernel.sched_rt_runtime_us`), so that one that never sleeps is seen as late now and then.

use crate::scheduling::own_thread;
use std::io;
use std::num::NonZeroU64;
use std::process::{Command, Stdio};

/// Makes the calling thread SCHED_FIFO at this priority, 1 to 99. Threads and processes that it starts afterwards
/// inherit it.
///
/// # Errors
/// When the process may not do so, or `chrt` is not there: with what to do about it.
pub fn fifo(priority: u32) -> io::Result<()> {
    chrt(&["-f", "-p", &priority.to_string()])
}

/// Makes the calling thread an ordinary one again.
///
/// # Errors
/// As [`fifo`].
pub fn ordinary() -> io::Result<()> {
    chrt(&["-o", "-p", "0"])
}

/// Timers of the calling thread end on time, instead of up to 50 µs later to save wake-ups.
///
/// # Errors
/// On a kernel without timer slack.
pub fn exact_timers() -> io::Result<()> {
    rustix::thread::set_current_timer_slack(NonZeroU64::new(1)).map_err(io::Error::from)
}

fn chrt(args: &[&str]) -> io::Result<()> {
    let thread = own_thread().to_string();
    let output = Command::new("chrt").args(args).arg(thread).stdin(Stdio::null()).output();
    let output =
        output.map_err(|error| io::Error::new(error.kind(), format!("chrt: {error}; install util-linux")))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said = said.lines().last().unwrap_or("chrt failed").trim();
    let remedy = "run as root, or allow it with `ulimit -r`; containers need the capability SYS_NICE";
    Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("{said}; {remedy}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy() -> String {
        let thread = own_thread().to_string();
        let output = Command::new("chrt").args(["-p", &thread]).output().unwrap();
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_thread_becomes_real_time_and_ordinary_again() {
        if let Err(error) = fifo(10) {
            assert!(error.to_string().contains(';'), "says what to do: {error}");
            return testkit::skip(&format!("no real-time priority: {error}"));
        }
        assert!(policy().contains("SCHED_FIFO"), "{}", policy());
        assert!(policy().contains("priority: 10"), "{}", policy());
        ordinary().unwrap();
        assert!(policy().contains("SCHED_OTHER"), "{}", policy());
        assert!(fifo(1000).is_err());
    }

    #[test]
    fn timers_become_exact() {
        exact_timers().unwrap();
        assert_eq!(rustix::thread::current_timer_slack().unwrap(), 1);
    }
}

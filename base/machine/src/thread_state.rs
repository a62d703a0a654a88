//! State of threads of this process, and threads of the kernel.

use std::io;

/// Returns true if a thread of this process sleeps: it waits for something other than a CPU (states S and D).
/// A stopped thread does not sleep.
///
/// # Errors
/// When there is no such thread, or the kernel does not report its state.
pub fn is_asleep(thread: u32) -> io::Result<bool> {
    let stat = std::fs::read(format!("/proc/self/task/{thread}/stat"))?;
    let state = state(&stat).ok_or_else(|| io::Error::other("expected a state in the stat of a thread"))?;
    Ok(matches!(state, b'S' | b'D'))
}

/// Number of kthreadd, which starts all threads of the kernel.
const KTHREADD: u32 = 2;

/// Returns true if a process is a thread of the kernel; false also if there is no such process.
pub fn is_kernel_thread(process: u32) -> bool {
    let stat = std::fs::read(format!("/proc/{process}/stat")).unwrap_or_default();
    process == KTHREADD || parent(&stat) == Some(KTHREADD)
}

/// The field after the state.
fn parent(stat: &[u8]) -> Option<u32> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    std::str::from_utf8(stat.get(end + 1..)?).ok()?.split_whitespace().nth(1)?.parse().ok()
}

/// `NUMBER (NAME) STATE …`, where a name may contain everything that follows it.
fn state(stat: &[u8]) -> Option<u8> {
    let end = stat.iter().rposition(|byte| *byte == b')')?;
    match stat.get(end + 1..)? {
        [b' ', state, b' ', ..] if state.is_ascii_alphabetic() => Some(*state),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scheduling::own_thread;
    use std::sync::mpsc;
    use std::time::{Duration, Instant};

    fn own_number() -> u32 {
        own_thread()
    }

    #[test]
    fn threads_of_the_kernel_are_children_of_kthreadd() {
        assert!(!is_kernel_thread(std::process::id()) && !is_kernel_thread(u32::MAX));
        assert_eq!(parent(b"12 (a) S 2 b) I 2 0"), Some(2));
        assert_eq!(parent(b"12 (a"), None);
    }

    #[test]
    fn names_do_not_mislead() {
        assert_eq!(state(b"12 (a) S b) R 1 2"), Some(b'R'));
        assert_eq!(state(b"12 (a) D 1"), Some(b'D'));
        for malformed in ["", "12 (a)", "12 (a) ", "12 (a) S", "12 (a) 7 1", "12 a S 1"] {
            assert_eq!(state(malformed.as_bytes()), None, "{malformed}");
        }
    }

    #[test]
    fn a_thread_that_waits_is_asleep_and_the_calling_one_is_not() {
        assert!(!is_asleep(own_number()).unwrap());
        let (told, tells) = mpsc::channel();
        let (end, ends) = mpsc::channel::<()>();
        let thread = std::thread::spawn(move || {
            told.send(own_number()).unwrap();
            let _ended = ends.recv();
        });
        let number = tells.recv().unwrap();
        let begun = Instant::now();
        while !is_asleep(number).unwrap() {
            assert!(begun.elapsed() < Duration::from_secs(60), "it sleeps");
        }
        drop(end);
        thread.join().unwrap();
        assert!(is_asleep(u32::MAX).is_err(), "there is no such thread");
    }
}

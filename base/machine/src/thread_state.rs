//! Sleep state of threads of this process.

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

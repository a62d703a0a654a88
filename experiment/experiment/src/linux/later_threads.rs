//! Threads of a process that begin while a knob is on, selected by their current value.

use super::process::threads;
use super::slice::DefaultSlice;
use super::thread_settings::{read_thread, write_thread};
use crate::setting::{ProcessIdentity, ThreadAspect, ThreadIdentity};
use std::io;

/// Maximum number of passes over all threads.
const PASSES_MAX: usize = 100;
/// Consecutive passes without a change, but with threads that ended unseen, after which a process is settled.
const UNSEEN_PASSES: usize = 3;

/// Result of a pass for one thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadPass {
    Settled,
    Changed,
    /// Ended before it was read, and may have started another thread.
    Ended,
}

/// Writes a value to unknown threads whose current value `is_meant`. Returns true if all have it in the end.
pub(super) fn write_later(
    process: ProcessIdentity,
    known: &[ThreadIdentity],
    aspect: ThreadAspect,
    is_meant: impl Fn(&String) -> bool,
    to: &str,
    slice: &mut DefaultSlice,
) -> io::Result<bool> {
    let later = || threads(process).into_iter().filter(|thread| !known.contains(thread)).collect();
    settle(later, |thread| {
        let Some(now) = read_thread(thread, aspect)? else { return Ok(ThreadPass::Ended) };
        if now == to || !is_meant(&now) {
            return Ok(ThreadPass::Settled);
        }
        write_thread(thread, aspect, to, slice)?;
        Ok(ThreadPass::Changed)
    })
}

/// Returns the values of unknown threads that none can have inherited: other programs have set them.
pub(super) fn changed_later(
    process: ProcessIdentity,
    known: &[ThreadIdentity],
    aspect: ThreadAspect,
    inheritable: &[String],
) -> io::Result<Option<String>> {
    let mut changed = Vec::new();
    for thread in threads(process).into_iter().filter(|thread| !known.contains(thread)) {
        let now = read_thread(thread, aspect)?.filter(|now| !inheritable.contains(now));
        changed.extend(now.map(|now| format!("{now} (thread {})", thread.id)));
    }
    Ok(if changed.is_empty() { None } else { Some(changed.join(", ")) })
}

/// Repeats passes until one changes nothing: a thread with the old value may start another one after the
/// threads were listed. Returns false after [`PASSES_MAX`] passes.
fn settle(
    mut list: impl FnMut() -> Vec<ThreadIdentity>,
    mut change: impl FnMut(ThreadIdentity) -> io::Result<ThreadPass>,
) -> io::Result<bool> {
    let mut unseen = 0;
    for _ in 0..PASSES_MAX {
        let passed = list().into_iter().map(&mut change).collect::<io::Result<Vec<ThreadPass>>>()?;
        if passed.contains(&ThreadPass::Changed) {
            unseen = 0;
        } else if passed.contains(&ThreadPass::Ended) && unseen + 1 < UNSEEN_PASSES {
            unseen += 1;
        } else {
            return Ok(true);
        }
    }
    Ok(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::identity;
    use machine::scheduling::{ThreadScheduling, own_thread};
    use std::cell::{Cell, RefCell};
    use std::collections::BTreeSet;
    use std::sync::mpsc;
    use std::thread;

    fn numbered(id: u32) -> ThreadIdentity {
        ThreadIdentity { process: ProcessIdentity { id: 1, start: 1 }, id, start: 1 }
    }

    #[test]
    fn threads_that_begin_during_a_pass_get_one_of_their_own() {
        let changed = RefCell::new(BTreeSet::new());
        let begun = Cell::new(1);
        let pass = |thread: ThreadIdentity| {
            if !changed.borrow_mut().insert(thread.id) {
                return Ok(ThreadPass::Settled);
            }
            begun.set((begun.get() + 1).min(5));
            Ok(ThreadPass::Changed)
        };
        let is_settled = settle(|| (1..=begun.get()).map(numbered).collect(), pass).ok();
        assert_eq!(is_settled, Some(true), "the fifth starts no other");
        assert_eq!(changed.into_inner().len(), 5);
        let is_settled = settle(|| vec![numbered(1)], |_| Ok(ThreadPass::Changed)).ok();
        assert_eq!(is_settled, Some(false), "it never has what it is to have");
    }

    #[test]
    fn threads_that_end_unseen_are_looked_for_again() {
        let passes = Cell::new(0);
        let list = || {
            passes.set(passes.get() + 1);
            vec![numbered(1)]
        };
        let pass = |_| if passes.get() == 1 { Ok(ThreadPass::Ended) } else { Ok(ThreadPass::Settled) };
        assert_eq!((settle(list, pass).ok(), passes.replace(0)), (Some(true), 2));
        let is_settled = settle(list, |_| Ok(ThreadPass::Ended)).ok();
        assert_eq!((is_settled, passes.get()), (Some(true), UNSEEN_PASSES));
    }

    /// The number of a thread that has ended, given to another one.
    #[test]
    fn a_thread_with_the_number_of_a_known_one_is_another() {
        let process = identity(std::process::id()).expect("this process runs");
        let (end, wait) = mpsc::channel::<()>();
        let (tell, number) = mpsc::channel();
        let waiting = thread::spawn(move || {
            tell.send(own_thread()).expect("it is wanted");
            let _ = wait.recv();
        });
        let id = number.recv().expect("the thread runs");
        let is_it = |thread: &ThreadIdentity| thread.id == id;
        let thread = threads(process).into_iter().find(is_it).expect("the thread runs");
        let before = read_thread(thread, ThreadAspect::Scheduling).ok().flatten().expect("the thread runs");
        let lower: ThreadScheduling = before.parse().expect("it was written by us");
        let lower = ThreadScheduling { nice: lower.nice + 1, ..lower }.to_string();
        let mut others = threads(process);
        others.retain(|other| other.id != id);
        let known: Vec<ThreadIdentity> =
            others.into_iter().chain([ThreadIdentity { start: thread.start - 1, ..thread }]).collect();
        let slice = &mut DefaultSlice::default();
        write_later(process, &known, ThreadAspect::Scheduling, |now| *now == before, &lower, slice)
            .expect("anybody may be nicer");
        assert_eq!(read_thread(thread, ThreadAspect::Scheduling).ok().flatten(), Some(lower));
        drop(end);
        waiting.join().expect("it ends");
    }
}

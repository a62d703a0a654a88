//! The slot of the calling thread, looked up on first use and again when a scheduler comes or goes.
//!
//! There are no locks, which a fork could copy while they are held. The child of a fork does not inherit
//! its parent's slots: it recognises the fork by a page that the kernel wipes in children.

use crate::layout::DEFAULT_FOLDER;
use crate::slots::{SlotArray, ThreadSlot};
use machine::bpf::MappedWords;
use std::cell::RefCell;
use std::io;
use std::path::Path;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

/// Minimum interval between a thread's searches for a scheduler.
const LOOK_AGAIN: Duration = Duration::from_secs(1);

#[derive(Debug)]
struct Registration {
    slot: ThreadSlot,
    /// Its first word is one in the process that registered, and zero in its children.
    origin: MappedWords,
}

impl Registration {
    fn holds(&self) -> bool {
        self.origin[0].load(Relaxed) == 1 && self.slot.is_read()
    }
}

#[derive(Debug)]
enum HintState {
    Registered(Registration),
    Unregistered { looked_at: Option<Instant> },
}

thread_local! {
    static STATE: RefCell<HintState> = const { RefCell::new(HintState::Unregistered { looked_at: None }) };
}

/// Declares that the calling thread works for the request with this key. One store if the thread has a
/// slot; without a scheduler nothing happens.
pub fn tag_current(key: u64) {
    with_slot(|slot| slot.tag(key));
}

/// Declares that the calling thread works for no request.
pub fn untag_current() {
    tag_current(0);
}

/// Returns true if a scheduler reads the calling thread's slot.
pub fn is_scheduled() -> bool {
    with_slot(|_| ()).is_some()
}

/// Calls `then` with the thread's slot; `None` without one, and in a thread that is about to end.
fn with_slot<T>(then: impl FnOnce(&ThreadSlot) -> T) -> Option<T> {
    STATE
        .try_with(|state| {
            let mut state = state.try_borrow_mut().ok()?;
            look_for_scheduler(&mut state);
            match &*state {
                HintState::Registered(registration) => Some(then(&registration.slot)),
                HintState::Unregistered { .. } => None,
            }
        })
        .ok()
        .flatten()
}

fn look_for_scheduler(state: &mut HintState) {
    match state {
        HintState::Registered(registration) if registration.holds() => return,
        HintState::Unregistered { looked_at: Some(at) } if at.elapsed() < LOOK_AGAIN => return,
        _ => {}
    }
    *state = match register(Path::new(DEFAULT_FOLDER)) {
        Ok(Some(registration)) => HintState::Registered(registration),
        Ok(None) | Err(_) => HintState::Unregistered { looked_at: Some(Instant::now()) },
    };
}

fn register(folder: &Path) -> io::Result<Option<Registration>> {
    let Some(array) = SlotArray::open(folder)? else { return Ok(None) };
    let origin = MappedWords::wiped_on_fork()?;
    origin[0].store(1, Relaxed);
    Ok(Some(Registration { slot: array.register()?, origin }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_scheduler_nothing_happens() {
        let folder = tempfile::tempdir().expect("a temporary folder");
        assert!(register(folder.path()).expect("no scheduler is no error").is_none());
        tag_current(7);
        untag_current();
        std::fs::write(folder.path().join(crate::SLOTS_FILE), "no map").expect("the folder is ours");
        assert!(register(folder.path()).is_err());
    }
}

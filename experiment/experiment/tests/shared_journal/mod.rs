//! A journal in memory for tests with this machine's settings.

use experiment::{Journal, JournalFile, KnobSwitch, LinuxSettings, boot};
use std::cell::RefCell;
use std::io;
use std::rc::Rc;

/// A journal that outlives the switch that writes it.
#[derive(Debug, Clone, Default)]
pub(crate) struct SharedJournal(Rc<RefCell<Vec<u8>>>);

impl JournalFile for SharedJournal {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.0.borrow_mut().clear();
        Ok(())
    }
}

impl SharedJournal {
    /// Starts a program that continues from this journal.
    pub(crate) fn switch(&self) -> KnobSwitch<LinuxSettings, Self> {
        let journal = Journal::parse(&self.0.borrow()).unwrap_or_else(|error| panic!("{error}"));
        let boot = boot().unwrap_or_else(|error| panic!("{error}"));
        KnobSwitch::new(LinuxSettings::default(), self.clone(), journal, &boot)
    }

    /// Ends a program as SIGKILL does: nothing is undone, and the journal keeps its records.
    pub(crate) fn kill(&self, switch: KnobSwitch<LinuxSettings, Self>) {
        std::mem::forget(switch);
    }

    /// Returns a copy of the records in a separate journal.
    #[allow(dead_code, reason = "not all test programs use it")]
    pub(crate) fn copy(&self) -> Self {
        Self(Rc::new(RefCell::new(self.0.borrow().clone())))
    }

    /// Returns true if nothing is to be undone.
    pub(crate) fn is_empty(&self) -> bool {
        self.0.borrow().is_empty()
    }
}

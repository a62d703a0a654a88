//! The load of an experiment: one command at a time, which is recorded before it sends anything.
//!
//! A load is not a setting that is undone after each period, so its journal is separate and holds the running
//! load. After a kill, a [`KnobSwitch`](crate::KnobSwitch) over that journal ends it.

use crate::journal::Journal;
use crate::linux::LoadCommand;
use crate::setting::{OFF, ON, Setting};
use crate::switch::JournalFile;
use model::OperationError;

/// A load that can be restarted any number of times, and ends when dropped.
#[derive(Debug)]
pub struct RecordedLoad<J: JournalFile> {
    file: J,
    journal: Journal,
    boot: String,
    running: Option<LoadCommand>,
}

impl<J: JournalFile> RecordedLoad<J> {
    /// Creates a load that does not run yet. The file must be empty: nothing may be left of an earlier load.
    pub fn new(file: J, boot: &str) -> Self {
        Self { file, journal: Journal::default(), boot: boot.to_owned(), running: None }
    }

    /// Ends the running load and starts another one.
    ///
    /// # Errors
    /// If the former has ended by itself or does not end, or the journal cannot be written; then nothing is
    /// started.
    pub fn restart(&mut self, command: &str) -> Result<(), OperationError> {
        if let Some(error) = self.failure() {
            return Err(error);
        }
        self.end()?;
        let mut load = LoadCommand::hold(command)?;
        let setting = Setting::Load { process: load.process(), command: command.to_owned() };
        let line = self.journal.begin(&setting, OFF, ON, &self.boot);
        if let Err(error) = self.file.append(&line) {
            self.journal.abandon();
            let message = format_args!("{setting} is not started: the journal cannot be written: {error}");
            return Err(
                OperationError::machine(message).hint("make room, or choose another folder with --state")
            );
        }
        let released = load.release();
        self.running = Some(load);
        released
    }

    /// Returns true if no load runs.
    pub fn has_ended(&self) -> bool {
        self.running.as_ref().is_none_or(LoadCommand::has_ended)
    }

    /// Describes an exit of the load by itself, and tells if it was successful; `None` while it runs.
    pub fn own_end(&mut self) -> Option<(String, bool)> {
        self.running.as_mut().and_then(LoadCommand::own_end)
    }

    /// Returns the error for a load that has ended by itself; `None` while it runs.
    pub fn failure(&mut self) -> Option<OperationError> {
        let (how, _) = self.own_end()?;
        Some(OperationError::input(how).hint("run it alone first; it has to send load until it is ended"))
    }

    /// Ends the load, if it runs.
    ///
    /// # Errors
    /// If one of its processes does not end; then it stays recorded.
    pub fn end(&mut self) -> Result<(), OperationError> {
        let Some(load) = &mut self.running else { return Ok(()) };
        if !load.end() {
            let setting = self.journal.changes().last().map(|change| change.setting.to_string());
            let message = format_args!("{}: a process of it does not end", setting.unwrap_or_default());
            return Err(OperationError::machine(message).hint("`tailwright experiment --undo` tries again"));
        }
        self.running = None;
        // If the file cannot be emptied, its record names a load that has ended, which is harmless.
        if self.file.clear().is_ok() {
            self.journal = Journal::default();
        }
        Ok(())
    }
}

impl<J: JournalFile> Drop for RecordedLoad<J> {
    fn drop(&mut self) {
        // A load that does not end stays recorded.
        let _ = self.end();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::linux::{LinuxSettings, identity, is_alive};
    use crate::switch::{KnobSwitch, UndoOutcome};
    use std::cell::{Cell, RefCell};
    use std::io;
    use std::rc::Rc;
    use std::time::Duration;

    const LIMIT: Duration = Duration::from_secs(60);

    #[derive(Debug, Clone, Default)]
    struct MemoryFile {
        bytes: Rc<RefCell<Vec<u8>>>,
        is_full: Rc<Cell<bool>>,
    }

    impl JournalFile for MemoryFile {
        fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
            if self.is_full.get() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.bytes.borrow_mut().extend_from_slice(bytes);
            Ok(())
        }

        fn clear(&mut self) -> io::Result<()> {
            self.bytes.borrow_mut().clear();
            Ok(())
        }
    }

    impl MemoryFile {
        fn recorded(&self) -> Journal {
            Journal::parse(&self.bytes.borrow()).unwrap_or_else(|error| panic!("{error}"))
        }

        fn switch(&self) -> KnobSwitch<LinuxSettings, Self> {
            KnobSwitch::new(LinuxSettings::default(), self.clone(), self.recorded(), "boot")
        }

        /// Returns the recorded load, of which there is only one.
        fn process(&self) -> crate::ProcessIdentity {
            match self.recorded().changes() {
                [change] => match &change.setting {
                    Setting::Load { process, .. } => *process,
                    other => panic!("{other}"),
                },
                others => panic!("{others:?}"),
            }
        }
    }

    #[test]
    fn one_load_at_a_time_is_recorded_and_runs() {
        let file = MemoryFile::default();
        let mut load = RecordedLoad::new(file.clone(), "boot");
        assert!(load.has_ended() && load.failure().is_none());
        load.restart("exec sleep 1000").unwrap_or_else(|error| panic!("{error}"));
        let first = file.process();
        assert!(is_alive(first) && !load.has_ended());
        load.restart("exec sleep 2000").unwrap_or_else(|error| panic!("{error}"));
        let second = file.process();
        assert!(first != second && !is_alive(first) && is_alive(second));
        drop(load);
        assert!(!is_alive(second) && file.bytes.borrow().is_empty());
    }

    #[test]
    fn a_load_is_ended_from_its_record_after_a_kill() {
        let file = MemoryFile::default();
        let mut load = RecordedLoad::new(file.clone(), "boot");
        load.restart("sleep 1000; :").unwrap_or_else(|error| panic!("{error}"));
        let process = file.process();
        std::mem::forget(load);
        let mut other_boot =
            KnobSwitch::new(LinuxSettings::default(), MemoryFile::default(), file.recorded(), "another");
        assert_eq!(other_boot.off()[0].outcome, UndoOutcome::Gone);
        assert!(is_alive(process));
        let undone = file.switch().off();
        assert_eq!(undone[0].outcome, UndoOutcome::Restored, "{undone:?}");
        assert!(!is_alive(process) && file.bytes.borrow().is_empty());
    }

    #[test]
    fn a_load_that_has_ended_is_nothing_to_undo() {
        let file = MemoryFile::default();
        let mut load = RecordedLoad::new(file.clone(), "boot");
        load.restart("exec sleep 1000").unwrap_or_else(|error| panic!("{error}"));
        let process = file.process();
        let pid =
            rustix::process::Pid::from_raw(i32::try_from(process.id).expect("a number")).expect("a number");
        rustix::process::kill_process(pid, rustix::process::Signal::KILL).expect("it is ours");
        testkit::wait_until(LIMIT, "it ends", || load.has_ended());
        assert_eq!(file.switch().off()[0].outcome, UndoOutcome::Unchanged);
        let error = load.restart("true").expect_err("the load was ended by somebody");
        assert!(error.message.contains("`exec sleep 1000` ended by itself with signal: 9"), "{error}");
    }

    #[test]
    fn without_a_record_nothing_is_started() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let begun = folder.path().join("begun");
        let file = MemoryFile::default();
        file.is_full.set(true);
        let mut load = RecordedLoad::new(file, "boot");
        let error = load.restart(&format!("touch {}", begun.display())).expect_err("the disk is full");
        assert!(error.message.contains("is not started"), "{error}");
        let id = error.message.split("(process ").nth(1).and_then(|rest| rest.split(')').next());
        let id = id.and_then(|id| id.parse().ok()).expect("it is named");
        assert!(!identity(id).is_some_and(is_alive) && !begun.exists());
    }
}

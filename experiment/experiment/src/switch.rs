//! Turns knobs on and off. Every change is recorded before it is made, read back, and undone from the record.

use crate::journal::{Journal, RecordedChange, UndoStep, undo_step};
use crate::open_sockets::{SocketTotals, SocketsTakenBack};
use crate::setting::{OFF, ON, PlannedChange, Setting, SettingStore};
use model::OperationError;
use std::io;

/// Storage of a journal.
pub trait JournalFile {
    /// Appends durably. After an error, the file must not contain a whole line of `bytes`.
    ///
    /// # Errors
    /// If the write fails; then nothing more is appended.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Empties the journal. A crash may bring the old records back until the next append.
    ///
    /// # Errors
    /// If it fails; then all records are still there.
    fn clear(&mut self) -> io::Result<()>;
}

/// Outcome of undoing a change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UndoOutcome {
    /// The old value was restored.
    Restored,
    /// Sockets have their old value, or one that the server has set since.
    SocketsTakenBack(SocketsTakenBack),
    /// The setting had its old value already.
    Unchanged,
    /// The owner of the setting has ended, or the machine was rebooted.
    Gone,
    /// Another program set this value meanwhile; it was left alone.
    LeftAlone(String),
    /// Undo failed; the record is kept.
    Failed(OperationError),
}

/// A change and the outcome of undoing it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UndoneChange {
    pub change: RecordedChange,
    pub outcome: UndoOutcome,
}

/// Settings and their journal. Undoes all changes when dropped.
#[derive(Debug)]
pub struct KnobSwitch<S: SettingStore, J: JournalFile> {
    store: S,
    file: J,
    journal: Journal,
    /// Settings that the kernel restores itself, with their old values.
    unrecorded: Vec<(Setting, String)>,
    boot: String,
}

impl<S: SettingStore, J: JournalFile> KnobSwitch<S, J> {
    /// Continues from a journal.
    pub fn new(store: S, file: J, journal: Journal, boot: &str) -> Self {
        Self { store, file, journal, unrecorded: Vec::new(), boot: boot.to_owned() }
    }

    /// Returns true if nothing is to be undone.
    pub fn is_off(&self) -> bool {
        self.journal.changes().is_empty() && self.unrecorded.is_empty()
    }

    /// Makes changes in order and reads them back. Returns descriptions of those for which the kernel chose
    /// another value.
    ///
    /// # Errors
    /// If a setting refuses its value or the journal cannot be written; then [`Self::off`] undoes what was
    /// changed.
    pub fn on(&mut self, changes: &[PlannedChange]) -> Result<Vec<String>, OperationError> {
        let mut different = Vec::new();
        let mut ended = None;
        let mut is_any_made = false;
        for change in changes {
            let Some(made) = self.change(change)? else {
                ended = Some(&change.setting);
                continue;
            };
            is_any_made = true;
            if !change.setting.is_as_asked(&made, &change.value) {
                different.push(format!("{}: {made} instead of {}", change.setting, change.value));
            }
        }
        match ended {
            Some(setting) if !is_any_made => Err(gone(setting)),
            _ => Ok(different),
        }
    }

    /// Makes one change and returns the value read back; `None` if its thread or socket has ended.
    fn change(&mut self, change: &PlannedChange) -> Result<Option<String>, OperationError> {
        let PlannedChange { setting, value } = change;
        let before = match setting {
            // Each socket has an old value and a record of its own.
            Setting::Sockets { .. } => Some(OFF.to_owned()),
            _ => self.store.read(setting)?,
        };
        let Some(before) = before else {
            return if setting.is_of_many() { Ok(None) } else { Err(gone(setting)) };
        };
        if setting.ends_with_program() {
            self.unrecorded.push((setting.clone(), before));
            self.store.write(setting, value)?;
            return self.store.read(setting)?.ok_or_else(|| gone(setting)).map(Some);
        }
        let line = self.journal.begin(setting, &before, value, &self.boot);
        if let Err(error) = self.file.append(&line) {
            self.journal.abandon();
            let message = format_args!("{setting} is not changed: the journal cannot be written: {error}");
            return Err(
                OperationError::machine(message).hint("make room, or choose another folder with --state")
            );
        }
        self.store.write(setting, value)?;
        let read = if setting.is_readable() { self.store.read(setting)? } else { Some(value.clone()) };
        let Some(made) = read else {
            // The record stays: undo finds the owner gone.
            return if setting.is_of_many() { Ok(None) } else { Err(gone(setting)) };
        };
        // Losing this line is harmless: without it, undo restores the old value unconditionally.
        let line = self.journal.made(&made);
        let _ = self.file.append(&line);
        if made == before && !setting.is_as_asked(&made, value) {
            let message = format_args!("{setting}: it stays {before}, and does not become {value}");
            return Err(OperationError::machine(message));
        }
        Ok(Some(made))
    }

    /// Applies the knob to threads and sockets that began meanwhile. Returns true if another program changed
    /// one of the threads.
    ///
    /// # Errors
    /// If one refuses its value.
    pub fn keep_on(&mut self) -> Result<bool, OperationError> {
        let mut is_changed = false;
        if self.journal.changes().is_empty() {
            self.store.look_at_sockets()?;
        }
        for change in self.journal.changes() {
            if change.setting.is_kept_on() {
                self.store.write(&change.setting, ON)?;
                is_changed |= self.store.changed_by_others(&change.setting)?.is_some();
            }
        }
        Ok(is_changed)
    }

    /// Undoes all changes, last one first. Failed ones stay recorded.
    pub fn off(&mut self) -> Vec<UndoneChange> {
        while let Some((setting, before)) = self.unrecorded.pop() {
            // Not an error: the kernel restores it at the latest when this program exits.
            let _ = self.store.write(&setting, &before);
        }
        let changes: Vec<(usize, RecordedChange)> =
            self.journal.changes().iter().cloned().enumerate().rev().collect();
        let undone: Vec<UndoneChange> = changes
            .into_iter()
            .map(|(index, change)| UndoneChange { outcome: self.undo(index, &change), change })
            .collect();
        let is_done = !undone.iter().any(|undone| matches!(undone.outcome, UndoOutcome::Failed(_)));
        // If the file cannot be emptied, its records stay; undoing them again is harmless.
        if is_done && self.file.clear().is_ok() {
            self.journal = Journal::default();
        }
        undone
    }

    /// Returns totals of the changes of open sockets so far.
    pub fn socket_totals(&self) -> Option<SocketTotals> {
        self.store.socket_totals()
    }

    fn undo(&mut self, index: usize, change: &RecordedChange) -> UndoOutcome {
        if let Setting::Sockets { sockets, .. } = &change.setting
            && change.boot == self.boot
        {
            return match self.store.take_back_from_sockets(sockets) {
                Ok(taken) if taken.is_nothing() => UndoOutcome::Gone,
                Ok(taken) => UndoOutcome::SocketsTakenBack(taken),
                Err(error) => UndoOutcome::Failed(error),
            };
        }
        let now = match self.store.read(&change.setting) {
            Ok(now) => now,
            Err(error) => return UndoOutcome::Failed(error),
        };
        match undo_step(change, &self.boot, now.as_deref()) {
            UndoStep::Gone => UndoOutcome::Gone,
            UndoStep::Unchanged => UndoOutcome::Unchanged,
            UndoStep::Foreign => UndoOutcome::LeftAlone(now.unwrap_or_default()),
            UndoStep::Restore => self.restore(index, change),
        }
    }

    fn restore(&mut self, index: usize, change: &RecordedChange) -> UndoOutcome {
        // A truncated or replaced value is ours, so undo may overwrite it.
        self.note(index, None);
        if let Err(error) = self.store.write(&change.setting, &change.before) {
            return UndoOutcome::Failed(error);
        }
        match self.store.read(&change.setting) {
            Ok(None) => UndoOutcome::Gone,
            Ok(Some(now)) if change.setting.is_readable() && now != change.before => {
                self.note(index, Some(&now));
                let message = format_args!("{}: {now} instead of {}", change.setting, change.before);
                UndoOutcome::Failed(OperationError::machine(message))
            }
            Ok(_) => match self.store.changed_by_others(&change.setting) {
                Ok(None) => UndoOutcome::Restored,
                Ok(Some(others)) => UndoOutcome::LeftAlone(others),
                Err(error) => UndoOutcome::Failed(error),
            },
            Err(error) => UndoOutcome::Failed(error),
        }
    }

    /// Records the value left in place of a change. If the disk is full, it is still known in memory.
    fn note(&mut self, index: usize, left: Option<&str>) {
        let line = self.journal.left(index, left);
        let _ = self.file.append(&line);
    }

    /// Returns true if no change would have an effect.
    ///
    /// # Errors
    /// If a setting cannot be read.
    pub fn is_set(&mut self, changes: &[PlannedChange]) -> Result<bool, OperationError> {
        let mut is_any_known = false;
        for change in changes {
            let is_so = match &change.setting {
                Setting::Sockets { sockets, value } => self.store.sockets_have(sockets, value)?,
                setting if setting.is_readable() => {
                    is_any_known = true;
                    self.store.read(setting)?.map(|now| setting.is_as_asked(&now, &change.value))
                }
                _ => continue,
            };
            is_any_known |= is_so.is_some();
            if is_so == Some(false) {
                return Ok(false);
            }
        }
        Ok(is_any_known)
    }
}

impl<S: SettingStore, J: JournalFile> Drop for KnobSwitch<S, J> {
    fn drop(&mut self) {
        if !self.is_off() {
            self.off();
        }
    }
}

fn gone(setting: &Setting) -> OperationError {
    OperationError::machine(format_args!("{setting}: it is gone"))
}

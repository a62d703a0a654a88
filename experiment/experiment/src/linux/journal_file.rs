//! The journal as a locked file: one program at a time.

use super::store::LinuxSettings;
use crate::journal::{Journal, damage_text};
use crate::switch::{JournalFile, KnobSwitch, UndoneChange};
use enforce::network::StateStore;
use enforce::state_folder::StateFolder;
use model::OperationError;
use rustix::fs::{FlockOperation, flock};
use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Journal of settings.
const NAME: &str = "experiment.jsonl";
/// Journal of the load.
const LOAD_NAME: &str = "experiment-load.jsonl";

/// Returns the default directory of journals: one for root, and one per user with a home directory.
pub fn default_state_folder() -> Option<PathBuf> {
    if rustix::process::geteuid().is_root() {
        return Some(StateStore::DEFAULT.into());
    }
    let named = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = named("XDG_STATE_HOME").or_else(|| named("HOME").map(|home| home.join(".local/state")));
    folder.map(|folder| folder.join("tailwright"))
}

/// An open journal, locked against other programs.
#[derive(Debug)]
pub struct LinuxJournal {
    file: File,
    length: u64,
    /// True if the last line may be incomplete; then nothing may be appended.
    is_torn: bool,
}

/// Opens or creates the journal of a directory and reads it.
///
/// # Errors
/// If another program has it open, other users could change it, or it is damaged.
pub fn open_journal(folder: &Path) -> Result<(LinuxJournal, Journal, PathBuf), OperationError> {
    open(folder, NAME)
}

/// Opens the load's journal in a directory, as [`open_journal`] does that of settings.
///
/// # Errors
/// If another program has it open, other users could change it, or it is damaged.
pub fn open_load_journal(folder: &Path) -> Result<(LinuxJournal, Journal, PathBuf), OperationError> {
    open(folder, LOAD_NAME)
}

fn open(folder: &Path, name: &str) -> Result<(LinuxJournal, Journal, PathBuf), OperationError> {
    let path = folder.join(name);
    let (mut file, bytes) = locked(folder, name)?;
    let journal = Journal::parse(&bytes).map_err(|error| error.about(path.display()))?;
    file.cut(&bytes).map_err(|error| OperationError::machine(format_args!("{}: {error}", path.display())))?;
    Ok((file, journal, path))
}

/// Opens and locks a journal, and returns all of its bytes. The lock lasts until the value is dropped.
fn locked(folder: &Path, name: &str) -> Result<(LinuxJournal, Vec<u8>), OperationError> {
    let path = folder.join(name);
    let mut file = StateFolder::create(folder)?.append(name)?;
    // The lock ends with this program; CLOEXEC keeps it from its children.
    if flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        let message = format_args!("{}: another experiment is running", path.display());
        return Err(OperationError::machine(message)
            .hint("wait until it has ended, or end it: it undoes what it did"));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)
        .map_err(|error| OperationError::machine(format_args!("{}: {error}", path.display())))?;
    Ok((LinuxJournal { file, length: 0, is_torn: false }, bytes))
}

/// Result of undoing the journals of a directory.
#[derive(Debug, Default)]
pub struct UndoneJournals {
    pub changes: Vec<UndoneChange>,
    /// Journals that could not be read completely; their files are unchanged.
    pub unread: Vec<UnreadJournal>,
}

/// A journal that could not be read completely.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadJournal {
    pub path: PathBuf,
    /// Error with a hint about the remedy.
    pub error: OperationError,
}

/// Undoes both journals of a directory: ends the load, then restores settings. Damaged lines do not keep the
/// others from being undone. Such a journal stays unchanged, because only a person can interpret the damaged
/// lines, so the next run undoes its records again unless the file is removed.
pub fn undo_journals(folder: &Path, boot: &str) -> UndoneJournals {
    let mut undone = UndoneJournals::default();
    // Same order of locks as in an experiment, so that none can begin in between.
    let settings = locked(folder, NAME);
    let load = locked(folder, LOAD_NAME);
    for (name, journal) in [(LOAD_NAME, load), (NAME, settings)] {
        let path = folder.join(name);
        match journal {
            Ok((file, bytes)) => undone.take(path, file, &bytes, boot),
            // An unusable directory gives the same error for both journals.
            Err(error) if undone.unread.iter().any(|unread| unread.error == error) => {}
            Err(error) => undone.unread.push(UnreadJournal { path, error }),
        }
    }
    undone
}

impl UndoneJournals {
    fn take(&mut self, path: PathBuf, mut file: LinuxJournal, bytes: &[u8], boot: &str) {
        let (journal, damaged) = Journal::salvage(bytes);
        let problem = match damaged.is_empty() {
            true => file.cut(bytes).err().map(OperationError::machine),
            false => Some(OperationError::machine(damage_text(&damaged)).hint(REMEDY)),
        };
        let store = LinuxSettings::default();
        self.changes.extend(match problem {
            None => KnobSwitch::new(store, file, journal, boot).off(),
            Some(_) => KnobSwitch::new(store, KeptJournal(file), journal, boot).off(),
        });
        self.unread.extend(problem.map(|error| UnreadJournal { error: error.about(path.display()), path }));
    }
}

/// Hint for damaged lines.
const REMEDY: &str = "restore by hand what these lines say, as far as they can be read, and remove the file";

/// A damaged journal: locked and read-only.
struct KeptJournal(#[expect(dead_code, reason = "its lock lasts as long as it")] LinuxJournal);

impl JournalFile for KeptJournal {
    fn append(&mut self, _: &[u8]) -> io::Result<()> {
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl LinuxJournal {
    /// Truncates the file after its last complete line.
    fn cut(&mut self, bytes: &[u8]) -> io::Result<()> {
        let complete = bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1);
        self.length = u64::try_from(complete).expect("a length has 64 bits");
        self.file.set_len(self.length)
    }
}

impl JournalFile for LinuxJournal {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.is_torn {
            return Err(io::Error::other("a part of a record could not be removed"));
        }
        let written = self.file.write_all(bytes).and_then(|()| self.file.sync_data());
        if written.is_err() {
            self.is_torn = self.file.set_len(self.length).is_err();
            return written;
        }
        self.length += u64::try_from(bytes.len()).expect("a length has 64 bits");
        Ok(())
    }

    fn clear(&mut self) -> io::Result<()> {
        self.file.set_len(0)?;
        self.length = 0;
        self.is_torn = false;
        // Readers see an empty file already. After a crash it may hold undone records, which are harmless.
        let _ = self.file.sync_data();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setting::Setting;

    /// A program that another test is just starting has the lock for a moment.
    fn reopened(folder: &Path) -> (LinuxJournal, Journal, PathBuf) {
        let attempts = (0..1000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            open_journal(folder).ok()
        });
        attempts.expect("nobody has it")
    }

    #[test]
    fn records_outlive_the_program_and_a_torn_line_is_cut() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let (mut file, mut journal, path) = open_journal(folder.path()).expect("it is ours");
        let refused = open_journal(folder.path()).expect_err("it is open");
        assert!(refused.message.contains("another experiment"), "{refused}");
        let line = journal.begin(&Setting::WakeupLatency, "5", "0", "boot");
        file.append(&line).expect("there is room");
        drop(file);
        let mut torn = std::fs::read(&path).expect("it is ours");
        torn.extend(b"{\"made\":0,\"val");
        std::fs::write(&path, torn).expect("it is ours");
        let (mut file, read, _) = reopened(folder.path());
        assert_eq!(read, journal);
        file.append(&journal.made("1")).expect("there is room");
        drop(file);
        let (mut file, read, _) = reopened(folder.path());
        assert_eq!(read, journal);
        file.clear().expect("it is ours");
        drop(file);
        assert!(reopened(folder.path()).1.changes().is_empty());
    }

    /// A file stands where the folder should be.
    #[test]
    fn a_folder_that_is_none_is_told() {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        std::fs::write(folder.path().join("file"), "").expect("it is ours");
        assert!(open_journal(&folder.path().join("file")).is_err());
    }
}

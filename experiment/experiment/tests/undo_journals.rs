//! Undo from damaged journals: for any damage of one of them, all intact records of both are undone, and
//! damaged ones are named and kept.

use experiment::{FileForm, Journal, Setting, UndoneJournals, undo_journals};
use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The journal of settings and the journal of the load.
const JOURNALS: [&str; 2] = ["experiment.jsonl", "experiment-load.jsonl"];
const CHANGES: usize = 2;
const BOOT: &str = "boot";

/// A folder with both journals, and the files that they are about.
struct Machine {
    folder: TempDir,
    /// Of each journal, by change: the line that records it.
    records: [Vec<Vec<u8>>; 2],
}

impl Machine {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let machine = Self { folder, records: [Vec::new(), Vec::new()] };
        let records = [0, 1].map(|journal| {
            let (lines, bytes) = machine.recorded(journal);
            fs::write(machine.journal(journal), bytes).expect("it is ours");
            lines
        });
        Self { records, ..machine }
    }

    fn journal(&self, journal: usize) -> PathBuf {
        self.folder.path().join(JOURNALS[journal])
    }

    fn bytes(&self, journal: usize) -> Vec<u8> {
        fs::read(self.journal(journal)).expect("it is ours")
    }

    /// The file of a change.
    fn file(&self, journal: usize, change: usize) -> PathBuf {
        self.folder.path().join(format!("{journal}{change}"))
    }

    /// The lines of changes of a journal, and all of it.
    fn recorded(&self, journal: usize) -> (Vec<Vec<u8>>, Vec<u8>) {
        let mut record = Journal::default();
        let mut lines = Vec::new();
        let mut bytes = Vec::new();
        for change in 0..CHANGES {
            let path = self.file(journal, change);
            let setting = Setting::KernelFile { path, form: FileForm::Text, process: None };
            lines.push(record.begin(&setting, "before", "after", BOOT));
            bytes.extend_from_slice(&lines[change]);
            bytes.extend(record.made("after"));
        }
        (lines, bytes)
    }

    /// Makes all changes, puts this in the place of a journal, and undoes.
    fn undo(&self, journals: [Option<&[u8]>; 2]) -> UndoneJournals {
        for (index, bytes) in journals.into_iter().enumerate() {
            (0..CHANGES).for_each(|change| fs::write(self.file(index, change), "after").expect("it is ours"));
            let path = self.journal(index);
            let _ = fs::remove_dir(&path);
            match bytes {
                Some(bytes) => fs::write(path, bytes).expect("it is ours"),
                None => {
                    let _ = fs::remove_file(&path);
                    fs::create_dir(path).expect("it is ours");
                }
            }
        }
        undo_journals(self.folder.path(), BOOT)
    }

    /// Checks that the records in complete lines, and no others, are undone.
    fn check_files(&self, journal: usize, bytes: &[u8], what: &str) {
        let lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
        for change in 0..CHANGES {
            let is_whole = lines.contains(&&self.records[journal][change][..]);
            let now = fs::read_to_string(self.file(journal, change)).expect("it is ours");
            assert_eq!(now, if is_whole { "before" } else { "after" }, "{what}, change {change}");
        }
    }
}

/// Returns damaged variants of a journal; the flag is true if some of it cannot be read.
fn conditions(whole: &[u8]) -> Vec<(&'static str, Option<Vec<u8>>, bool)> {
    let lines: Vec<&[u8]> = whole.split_inclusive(|byte| *byte == b'\n').collect();
    let with = |line: usize, text: &[u8]| {
        let mut lines = lines.clone();
        lines[line] = text;
        Some(lines.concat())
    };
    vec![
        ("whole", Some(whole.to_vec()), false),
        ("empty", Some(Vec::new()), false),
        ("cut off", Some(whole[..whole.len() - 5].to_vec()), false),
        ("first change damaged", with(0, b"{\"change\":0,\"boot\":7}\n"), true),
        ("first value damaged", with(1, b"{\"made\":\n"), true),
        ("last change damaged", with(2, b"?\n"), true),
        ("first change lost", Some(lines[1..].concat()), true),
        ("last record is of none", with(3, b"{\"made\":9,\"value\":\"after\"}\n"), true),
        ("twice the same", Some([whole, whole].concat()), true),
        ("zeros", Some(vec![0; 300]), true),
        ("garbage behind it", Some([whole, b"\xff\x00garbage"].concat()), true),
        ("a folder", None, true),
    ]
}

#[test]
fn damage_of_one_journal_keeps_nothing_else_from_being_undone() {
    let machine = Machine::new();
    let whole = [0, 1].map(|journal| machine.bytes(journal));
    for (first_name, first, is_first_damaged) in conditions(&whole[0]) {
        for (second_name, second, is_second_damaged) in conditions(&whole[1]) {
            let what = format!("{first_name} and {second_name}");
            let undone = machine.undo([first.as_deref(), second.as_deref()]);
            let damaged = [is_first_damaged, is_second_damaged];
            for (journal, bytes) in [first.as_ref(), second.as_ref()].into_iter().enumerate() {
                machine.check_files(journal, bytes.map_or(&[][..], |bytes| bytes), &what);
                let path = machine.journal(journal);
                let unread = undone.unread.iter().find(|unread| unread.path == path);
                assert_eq!(unread.is_some(), damaged[journal], "{what}: {:?}", undone.unread);
                if let Some(unread) = unread {
                    let said = &unread.error.message;
                    let name = path.display().to_string();
                    assert!(said.starts_with(&name), "{what}: {said}");
                    assert!(bytes.is_none() || said.contains("line "), "{what}: {said}");
                }
                let kept = bytes.map(|bytes| if damaged[journal] { bytes.clone() } else { Vec::new() });
                assert_eq!(fs::read(&path).ok(), kept, "{what}: nothing is lost");
            }
        }
    }
}

/// After a crash, the change of an incomplete last line was not begun.
#[test]
fn a_journal_that_is_cut_off_anywhere_is_undone() {
    let machine = Machine::new();
    let whole = machine.bytes(0);
    for length in 0..=whole.len() {
        let what = format!("{length} bytes");
        let undone = machine.undo([Some(&whole[..length]), Some(&[])]);
        assert_eq!(undone.unread, [], "{what}");
        machine.check_files(0, &whole[..length], &what);
        assert_eq!(machine.bytes(0), b"", "{what}");
    }
}

#[test]
fn a_damaged_byte_anywhere_takes_no_more_than_its_line() {
    let machine = Machine::new();
    let whole = machine.bytes(0);
    for index in 0..whole.len() {
        let what = format!("byte {index}");
        let mut bytes = whole.clone();
        bytes[index] = 0xff;
        let undone = machine.undo([Some(&bytes), Some(&[])]);
        let line = whole[..index].iter().filter(|byte| **byte == b'\n').count() + 1;
        let [unread] = &undone.unread[..] else { panic!("{what}: {:?}", undone.unread) };
        assert!(unread.error.message.contains(&format!(": line {line}: ")), "{what}: {}", unread.error);
        machine.check_files(0, &bytes, &what);
        assert_eq!(machine.bytes(0), bytes, "{what}");
        // Nothing that is begun later is written behind it, and undoing again does no harm.
        assert!(experiment::open_journal(machine.folder.path()).is_err(), "{what}");
        assert_eq!(undo_journals(machine.folder.path(), BOOT).unread, undone.unread, "{what}");
        machine.check_files(0, &bytes, &what);
    }
}

#[test]
fn a_folder_that_cannot_be_had_is_named_once() {
    let folder = tempfile::tempdir().expect("a temporary folder can be made");
    let file = folder.path().join("file");
    fs::write(&file, "").expect("it is ours");
    let undone = undo_journals(Path::new(&file), BOOT);
    assert!(undone.changes.is_empty() && undone.unread.len() == 1, "{undone:?}");
}

//! The journal of what must be undone: one JSON object a line, appended before anything changes. Pure: bytes in, bytes out.
//!
//! What is set is thus always recorded: a record that is not complete (a crash, a full disk) stands for a change that was
//! never begun. A second record, behind the change, says what was read back. Until it is there, it is not known what came
//! of the change, and undoing restores what was before; afterwards, undoing leaves a setting alone that somebody else has
//! changed. Before it restores something, another record says that once more it is not known what is there: it may be cut
//! short. Without room for that record, a crash in the middle of a setting that takes several writes looks as if somebody
//! else had changed it. The journal has records of what is set at the moment only: when all is undone, it is empty.

use crate::setting::Setting;
use model::OperationError;
use serde::{Deserialize, Serialize};
use units::plural;

/// A change that was about to be made, or was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedChange {
    /// Where the value is that is changed.
    pub setting: Setting,
    /// What it was before the change.
    pub before: String,
    /// What this program has left there, as it was read back; `None`: it is not known what is there.
    pub made: Option<String>,
    /// Of which run of the machine: another boot has none of this.
    pub boot: String,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum JournalLine {
    Change { change: usize, boot: String, setting: Setting, before: String, after: String },
    Made { made: usize, value: Option<String> },
}

/// The changes that a journal has, in their order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Journal {
    changes: Vec<RecordedChange>,
}

/// A line of a journal that is no record, or whose place is not here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedLine {
    /// Its number, counted from one.
    pub line: usize,
    /// What was expected instead.
    pub why: String,
}

/// How many damaged lines are named.
const NAMED_MAX: usize = 3;

/// What is wrong with lines, in words.
pub(crate) fn damage_text(damaged: &[DamagedLine]) -> String {
    let named =
        damaged.iter().take(NAMED_MAX).map(|damaged| format!("line {}: {}", damaged.line, damaged.why));
    let mut text = named.collect::<Vec<String>>().join("; ");
    if damaged.len() > NAMED_MAX {
        text += &format!("; and {}", plural(damaged.len() - NAMED_MAX, "more line"));
    }
    text
}

/// Lines of a journal while they are read.
#[derive(Default)]
struct JournalReader {
    journal: Journal,
    /// The number of each change, ascending: where lines are damaged, some are missing.
    numbers: Vec<usize>,
    damaged: Vec<DamagedLine>,
}

impl JournalReader {
    fn take(&mut self, line: &[u8]) -> Result<(), String> {
        match serde_json::from_slice(line)
            .map_err(|error| format!("expected a record of a change: {error}"))?
        {
            JournalLine::Change { change, boot, setting, before, after: _ } => {
                let next = self.numbers.last().map_or(0, |last| last.saturating_add(1));
                if change < next {
                    return Err(format!("expected change {next}, found change {change}"));
                }
                self.numbers.push(change);
                self.journal.changes.push(RecordedChange { setting, before, made: None, boot });
                // A damaged line may be the record of the others.
                if change > next && self.damaged.is_empty() {
                    return Err(format!(
                        "expected change {next}, found change {change}: records are missing"
                    ));
                }
            }
            JournalLine::Made { made, value } => match self.numbers.binary_search(&made) {
                Ok(index) => self.journal.changes[index].made = value,
                Err(_) => return Err(format!("expected a record of change {made} before it")),
            },
        }
        Ok(())
    }
}

/// Whether a line without an end is the beginning of a record, or all of one.
fn is_cut_off(line: &[u8]) -> bool {
    serde_json::from_slice::<JournalLine>(line).map_or_else(|error| error.is_eof(), |_| true)
}

impl Journal {
    /// Reads a journal. A last line that is cut off is of a change that was not begun.
    ///
    /// # Errors
    /// When another line is not a record.
    pub fn parse(bytes: &[u8]) -> Result<Self, OperationError> {
        let (journal, damaged) = Self::salvage(bytes);
        if damaged.is_empty() {
            return Ok(journal);
        }
        Err(OperationError::machine(damage_text(&damaged)).hint(
            "`tailwright experiment --undo` undoes what the other lines say, and what to do about these",
        ))
    }

    /// Reads what is whole of a journal, and says which lines are not. Where there are such lines, the numbers of changes in
    /// memory are others than those in the file, and nothing may be appended to it.
    pub fn salvage(bytes: &[u8]) -> (Self, Vec<DamagedLine>) {
        let mut reader = JournalReader::default();
        let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        for (index, line) in lines.iter().enumerate() {
            // What is behind the last end of a line was not written to its end.
            if line.is_empty() || index + 1 == lines.len() && is_cut_off(line) {
                continue;
            }
            if let Err(why) = reader.take(line) {
                reader.damaged.push(DamagedLine { line: index + 1, why });
            }
        }
        (reader.journal, reader.damaged)
    }

    /// The changes in the order in which they were made.
    pub fn changes(&self) -> &[RecordedChange] {
        &self.changes
    }

    /// Notes that a change is about to be made, and gives the line that says so.
    pub fn begin(&mut self, setting: &Setting, before: &str, after: &str, boot: &str) -> Vec<u8> {
        let before = before.to_owned();
        let boot = boot.to_owned();
        let line = JournalLine::Change {
            change: self.changes.len(),
            boot: boot.clone(),
            setting: setting.clone(),
            before: before.clone(),
            after: after.to_owned(),
        };
        self.changes.push(RecordedChange { setting: setting.clone(), before, made: None, boot });
        as_line(&line)
    }

    /// Takes back the last note: its line could not be written, so that the change is not made.
    pub fn abandon(&mut self) {
        self.changes.pop();
    }

    /// Notes what was read back after the last change, and gives the line that says so.
    pub fn made(&mut self, value: &str) -> Vec<u8> {
        self.left(self.changes.len() - 1, Some(value))
    }

    /// Notes what this program has left in the place of a change, if that is known, and gives the line that says so.
    pub(crate) fn left(&mut self, change: usize, value: Option<&str>) -> Vec<u8> {
        let value = value.map(str::to_owned);
        self.changes[change].made.clone_from(&value);
        as_line(&JournalLine::Made { made: change, value })
    }
}

fn as_line(line: &JournalLine) -> Vec<u8> {
    let mut bytes = serde_json::to_vec(line).expect("a record has text keys");
    bytes.push(b'\n');
    bytes
}

/// What undoing a change takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UndoStep {
    /// What it belonged to is gone.
    Gone,
    /// It is as it was.
    Unchanged,
    /// What was before is written.
    Restore,
    /// Somebody else has changed it since, and it is left alone.
    Foreign,
}

/// What undoing takes, from what the setting is now.
pub(crate) fn undo_step(change: &RecordedChange, boot: &str, now: Option<&str>) -> UndoStep {
    let Some(now) = now.filter(|_| change.boot == boot) else { return UndoStep::Gone };
    if !change.setting.is_readable() {
        return UndoStep::Restore;
    }
    match &change.made {
        _ if now == change.before => UndoStep::Unchanged,
        Some(made) if now != made => UndoStep::Foreign,
        _ => UndoStep::Restore,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting() -> Setting {
        Setting::Command { apply: "true".into(), undo: "true".into() }
    }

    fn written() -> (Journal, Vec<u8>) {
        let mut journal = Journal::default();
        let mut bytes = journal.begin(&Setting::WakeupLatency, "5", "0", "boot");
        bytes.extend(journal.made("1"));
        bytes.extend(journal.begin(&setting(), "off", "on", "boot"));
        bytes.extend(journal.left(0, None));
        (journal, bytes)
    }

    #[test]
    fn what_is_written_is_read() {
        let (journal, bytes) = written();
        assert_eq!(Journal::parse(&bytes), Ok(journal));
        assert_eq!(Journal::parse(b""), Ok(Journal::default()));
    }

    #[test]
    fn a_cut_line_is_of_a_change_that_was_not_begun() {
        let (_, bytes) = written();
        let mut counts: Vec<usize> = (0..=bytes.len())
            .map(|length| Journal::parse(&bytes[..length]).expect("a cut is no damage").changes().len())
            .collect();
        counts.dedup();
        assert_eq!(counts, [0, 1, 2]);
    }

    #[test]
    fn damage_is_told() {
        let (_, mut bytes) = written();
        bytes[3] = b'?';
        let error = Journal::parse(&bytes).expect_err("the first line is damaged");
        assert!(error.message.starts_with("line 1:"), "{error}");
        let (_, bytes) = written();
        let second = bytes.iter().position(|byte| *byte == b'\n').expect("a line ends") + 1;
        assert!(Journal::parse(&bytes[second..]).is_err(), "a record without its change");
    }

    #[test]
    fn what_others_have_changed_is_left_alone() {
        let change = |made: Option<&str>| RecordedChange {
            setting: Setting::WakeupLatency,
            before: "5".into(),
            made: made.map(str::to_owned),
            boot: "boot".into(),
        };
        for (made, now, step) in [
            (Some("1"), Some("1"), UndoStep::Restore),
            (Some("1"), Some("5"), UndoStep::Unchanged),
            (Some("1"), Some("7"), UndoStep::Foreign),
            (Some("1"), None, UndoStep::Gone),
            (None, Some("7"), UndoStep::Restore),
            (None, Some("5"), UndoStep::Unchanged),
        ] {
            assert_eq!(undo_step(&change(made), "boot", now), step, "{made:?} {now:?}");
        }
        assert_eq!(undo_step(&change(None), "another", Some("1")), UndoStep::Gone);
        let command = RecordedChange { setting: setting(), ..change(Some("on")) };
        assert_eq!(undo_step(&command, "boot", Some("?")), UndoStep::Restore);
    }
}

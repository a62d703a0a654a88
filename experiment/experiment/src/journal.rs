//! Journal of changes to undo: one JSON object per line, appended before the change is made. Pure: bytes in,
//! bytes out.
//!
//! A change is recorded before it is made, so an incomplete record (a crash, a full disk) stands for a change
//! that was never begun. A second record holds the value read back afterwards. Without it the outcome of the
//! change is unknown, and undo restores the old value; with it, undo leaves a setting alone that another
//! program has changed since. Before undo writes, a third record marks the value as unknown again, because
//! the write may be cut short. If that record cannot be written, a crash in a setting that takes several
//! writes looks like a change by another program. The journal holds present changes only: it is empty when
//! all are undone.

use crate::setting::Setting;
use model::OperationError;
use serde::{Deserialize, Serialize};
use units::plural;

/// A change that was about to be made, or was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordedChange {
    pub setting: Setting,
    /// Value before the change.
    pub before: String,
    /// Value that this program left there, as read back; `None` if unknown.
    pub made: Option<String>,
    /// Boot identifier; no change survives a reboot.
    pub boot: String,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum JournalLine {
    Change { change: usize, boot: String, setting: Setting, before: String, after: String },
    Made { made: usize, value: Option<String> },
}

/// Recorded changes, in order.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Journal {
    changes: Vec<RecordedChange>,
}

/// A journal line that is not a record, or not in its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DamagedLine {
    /// Line number, from 1.
    pub line: usize,
    pub why: String,
}

/// Maximum number of damaged lines listed in a message.
const NAMED_MAX: usize = 3;

/// Describes damaged lines for a message.
pub(crate) fn damage_text(damaged: &[DamagedLine]) -> String {
    let named =
        damaged.iter().take(NAMED_MAX).map(|damaged| format!("line {}: {}", damaged.line, damaged.why));
    let mut text = named.collect::<Vec<String>>().join("; ");
    if damaged.len() > NAMED_MAX {
        text += &format!("; and {}", plural(damaged.len() - NAMED_MAX, "more line"));
    }
    text
}

/// State of reading a journal.
#[derive(Default)]
struct JournalReader {
    journal: Journal,
    /// Number of each change, ascending; has gaps where lines are damaged.
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
                // Only the first gap is reported: an earlier damaged line may be the missing record.
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

/// Returns true if a line without a newline is a prefix of a record, or a whole one.
fn is_cut_off(line: &[u8]) -> bool {
    serde_json::from_slice::<JournalLine>(line).map_or_else(|error| error.is_eof(), |_| true)
}

impl Journal {
    /// Reads a journal. A truncated last line is ignored: its change was never begun.
    ///
    /// # Errors
    /// If any other line is not a record.
    pub fn parse(bytes: &[u8]) -> Result<Self, OperationError> {
        let (journal, damaged) = Self::salvage(bytes);
        if damaged.is_empty() {
            return Ok(journal);
        }
        Err(OperationError::machine(damage_text(&damaged)).hint(
            "`tailwright experiment --undo` undoes what the other lines say, and what to do about these",
        ))
    }

    /// Reads the undamaged lines and lists the damaged ones. If there are any, changes are numbered
    /// differently than in the file, so nothing may be appended to it.
    pub(crate) fn salvage(bytes: &[u8]) -> (Self, Vec<DamagedLine>) {
        let mut reader = JournalReader::default();
        let lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
        for (index, line) in lines.iter().enumerate() {
            // A last line without newline was not written completely.
            if line.is_empty() || index + 1 == lines.len() && is_cut_off(line) {
                continue;
            }
            if let Err(why) = reader.take(line) {
                reader.damaged.push(DamagedLine { line: index + 1, why });
            }
        }
        (reader.journal, reader.damaged)
    }

    /// Returns the changes in the order in which they were made.
    pub fn changes(&self) -> &[RecordedChange] {
        &self.changes
    }

    /// Records that a change is about to be made, and returns the line to append.
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

    /// Drops the last change, whose line could not be written and which is therefore not made.
    pub(crate) fn abandon(&mut self) {
        self.changes.pop();
    }

    /// Records the value read back after the last change, and returns the line to append.
    pub fn made(&mut self, value: &str) -> Vec<u8> {
        self.left(self.changes.len() - 1, Some(value))
    }

    /// Records the value that this program left in place of a change (`None`: unknown), and returns the line
    /// to append.
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

/// Action that undoes a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UndoStep {
    /// None: the owner of the setting is gone.
    Gone,
    /// None: the setting has its old value.
    Unchanged,
    /// Writes the old value.
    Restore,
    /// None: another program has changed the setting since.
    Foreign,
}

/// Chooses the action from the current value of the setting.
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

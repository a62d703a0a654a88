//! Lists of knobs, and of undone changes.

use cli::terminal::{Align, TextTable};
use experiment::{
    Knob, KnobFlag, KnobObstacle, KnobTarget, SocketsTakenBack, UndoOutcome, UndoneChange, UndoneJournals,
    UnreadJournal,
};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::Path;
use units::plural;

/// Knobs, and if they can be tried here.
#[derive(Serialize, JsonSchema)]
pub(crate) struct KnobsDocument {
    knobs: Vec<ListedKnob>,
}

/// Result of undoing a killed experiment.
#[derive(Serialize, JsonSchema)]
pub(crate) struct UndoneKnobsDocument {
    changes: Vec<UndoneDocument>,
    /// Journals that could not be read completely, so that some changes are not undone.
    unread: Vec<UnreadJournalFields>,
}

#[derive(Serialize, JsonSchema)]
struct UnreadJournalFields {
    journal: String,
    /// Expected record, and its line.
    detail: String,
    remedy: Option<String>,
}

/// A knob, and whether the machine and the target have it.
#[derive(Serialize, JsonSchema)]
struct ListedKnob {
    #[serde(flatten)]
    knob: Knob,
    available: bool,
    /// Flags that the command lacks, if nothing else is missing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    missing_flags: Vec<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
}

#[derive(Serialize, JsonSchema)]
struct UndoneDocument {
    setting: String,
    before: String,
    made: Option<String>,
    #[schemars(extend("enum" = ["restored", "unchanged", "gone", "left_alone", "failed"]))]
    outcome: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    detail: Option<String>,
}

/// Returns the obstacle to a knob; this process stands in for that of --pid.
fn obstacle(knob: &Knob, target: &KnobTarget) -> Option<KnobObstacle> {
    knob.obstacle(target, experiment::identity(std::process::id()))
}

fn with_flags(flags: &[KnobFlag]) -> String {
    let names: Vec<&str> = flags.iter().map(|flag| flag.name()).collect();
    format!("with {}", names.join(", "))
}

/// Formats knobs as one JSON object.
pub(crate) fn json(knobs: &[&'static Knob], target: &KnobTarget) -> String {
    let document = |knob: &&'static Knob| {
        let obstacle = obstacle(knob, target);
        let missing_flags = match &obstacle {
            Some(KnobObstacle::Flags(flags)) => flags.iter().map(|flag| flag.name()).collect(),
            _ => Vec::new(),
        };
        let why_not = obstacle.map(|obstacle| obstacle.to_string());
        ListedKnob { knob: **knob, available: why_not.is_none(), missing_flags, why_not }
    };
    operation::document::document(&KnobsDocument { knobs: knobs.iter().map(document).collect() })
}

/// Formats knobs as a table.
pub(crate) fn table(knobs: &[&'static Knob], target: &KnobTarget) -> String {
    let mut table =
        TextTable::new(&[("knob", Align::Left), ("here", Align::Left), ("what it sets", Align::Left)]);
    let mut obstacles = String::new();
    for knob in knobs {
        let obstacle = obstacle(knob, target);
        let here = match &obstacle {
            None => "yes".to_owned(),
            Some(KnobObstacle::Flags(flags)) => with_flags(flags),
            Some(KnobObstacle::Machine(_)) => "no".to_owned(),
        };
        table.row(vec![knob.name.to_owned(), here, knob.sets.to_owned()]);
        if let Some(obstacle @ KnobObstacle::Machine(_)) = obstacle {
            obstacles += &format!("  {}: {obstacle}\n", knob.name);
        }
    }
    let mut text = table.answered_by(&["here"]).render();
    if !obstacles.is_empty() {
        text += &format!("\nnot here:\n{obstacles}");
    }
    text + "\n`tailwright experiment --list KNOB` says more; --pid, --device and --disk name what it is about\n"
}

/// Formats the full description of a knob.
pub(crate) fn details(knob: &Knob, target: &KnobTarget) -> String {
    let default = match knob.default {
        Some("") | None => String::new(),
        Some(default) => format!("; without one {default}"),
    };
    let stages = if knob.stages.is_empty() { "none of its own".to_owned() } else { knob.stages.join(", ") };
    let here = match obstacle(knob, target) {
        None => "available".to_owned(),
        Some(KnobObstacle::Flags(flags)) => with_flags(&flags),
        Some(KnobObstacle::Machine(lack)) => format!("no: {lack}"),
    };
    let rows = [
        ("sets", knob.sets.to_owned()),
        ("values", format!("{}{default}", knob.values)),
        ("stages", stages),
        ("cause", knob.cause.to_owned()),
        ("verified", knob.verified.to_owned()),
        ("undone", knob.undone.to_owned()),
        ("costs", knob.costs.to_owned()),
        ("here", here),
    ];
    let lines: Vec<String> = rows.iter().map(|(name, text)| format!("  {name:<9} {text}\n")).collect();
    format!("{}\n{}", knob.name, lines.concat())
}

/// Formats the result of undoing as one JSON object.
pub(crate) fn undone_json(undone: &UndoneJournals) -> String {
    let changes = undone.changes.iter().map(undone_document).collect();
    let unread = undone.unread.iter().map(unread_fields).collect();
    operation::document::document(&UndoneKnobsDocument { changes, unread })
}

fn unread_fields(unread: &UnreadJournal) -> UnreadJournalFields {
    let UnreadJournal { path, error } = unread;
    UnreadJournalFields {
        journal: path.display().to_string(),
        detail: error.message.clone(),
        remedy: error.hint.clone(),
    }
}

fn undone_document(undone: &UndoneChange) -> UndoneDocument {
    let (_, detail) = outcome(undone);
    let outcome = outcome_word(&undone.outcome);
    let change = &undone.change;
    let setting = change.setting.to_string();
    let before = change.before.clone();
    let made = change.made.clone();
    UndoneDocument { setting, before, made, outcome, detail }
}

/// Returns the outcome's name in JSON.
fn outcome_word(outcome: &UndoOutcome) -> &'static str {
    match outcome {
        UndoOutcome::Restored | UndoOutcome::SocketsTakenBack(_) => "restored",
        UndoOutcome::Unchanged => "unchanged",
        UndoOutcome::Gone => "gone",
        UndoOutcome::LeftAlone(_) => "left_alone",
        UndoOutcome::Failed(_) => "failed",
    }
}

fn outcome(undone: &UndoneChange) -> (&'static str, Option<String>) {
    match &undone.outcome {
        UndoOutcome::Restored => match &undone.change.setting {
            experiment::Setting::Load { .. } => ("ended", None),
            _ => ("restored", None),
        },
        UndoOutcome::SocketsTakenBack(taken) => ("restored", Some(sockets_taken_back(taken))),
        UndoOutcome::Unchanged => match &undone.change.setting {
            experiment::Setting::Load { .. } => ("gone", Some("it has ended".to_owned())),
            _ => ("as before", None),
        },
        UndoOutcome::Gone => match &undone.change.setting {
            experiment::Setting::Command { undo, .. } => (
                "another boot",
                Some(format!("`{undo}` was not run: do so if what it undoes outlives a boot")),
            ),
            experiment::Setting::Sockets { .. } => (
                "gone",
                Some(
                    "no record of a changed socket is left: they have been given back before, or closed, or none had been \
                     changed; if somebody has removed the records in /sys/fs/bpf, connections keep what was set"
                        .to_owned(),
                ),
            ),
            _ => ("gone", Some("what it belonged to has ended, or the machine was booted again".to_owned())),
        },
        UndoOutcome::LeftAlone(now) => ("not restored", Some(format!("another program changed it to {now}"))),
        UndoOutcome::Failed(error) => ("NOT UNDONE", Some(error.message.clone())),
    }
}

fn sockets_taken_back(taken: &SocketsTakenBack) -> String {
    let sockets = format!(
        "{} and {}",
        plural(taken.listening, "listening socket"),
        plural(taken.connected, "connected one")
    );
    match taken.of_server {
        0 => sockets,
        count => format!("{sockets}; {count} of them as the server has set them meanwhile"),
    }
}

/// Formats the result of undoing the journals in a folder, one line per change that had an effect.
pub(crate) fn undone_text(undone: &UndoneJournals, folder: &Path) -> String {
    match (undone.changes.is_empty(), undone.unread.is_empty()) {
        (true, true) => format!("there is nothing to undo by the journals in {}\n", folder.display()),
        (true, false) => "nothing was undone\n".to_owned(),
        _ => undone.changes.iter().map(undone_line).collect(),
    }
}

/// Formats the outcome of one change.
pub(crate) fn undone_line(undone: &UndoneChange) -> String {
    let (outcome, detail) = outcome(undone);
    let detail = detail.map_or(String::new(), |detail| format!(": {detail}"));
    format!("{outcome}: {}{detail}\n", undone.change.setting)
}

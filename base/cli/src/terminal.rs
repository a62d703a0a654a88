//! Output for people: text that fits the terminal on stdout, progress and messages on stderr. The whole
//! program prints through this module, so control characters in names never reach a terminal.

mod layout;
mod table;
mod visible;

pub use layout::{be_wide, columns};
pub use table::{Align, TextTable};
pub use visible::wrap;

use indicatif::{ProgressBar, ProgressStyle};
use operation::{Notice, ProgressObserver, TaskProgress};
use std::ffi::OsString;
use std::fmt::Display;
use std::io::{ErrorKind, IsTerminal, Write};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;
use visible::{visible, wrap_command};

static STARTED: OnceLock<Instant> = OnceLock::new();
/// Time from the start of the program to its first answer, seconds.
static ANSWERED_AFTER: OnceLock<f64> = OnceLock::new();

/// Records the start of the program.
pub fn start_clock() {
    STARTED.get_or_init(Instant::now);
}

/// Returns the wall time from the start of the program to its first answer, seconds. Measured once, so
/// that files and terminal show the same value.
pub fn answered_after_s() -> f64 {
    *ANSWERED_AFTER.get_or_init(|| STARTED.get_or_init(Instant::now).elapsed().as_secs_f64())
}

/// State of standard output.
static OUTPUT: AtomicU8 = AtomicU8::new(OPEN);
const OPEN: u8 = 0;
/// The reader has closed its end.
const CLOSED: u8 = 1;
const FAILED: u8 = 2;

/// Writes data to stdout. If the reader has closed its end (`| head`), further output is dropped
/// silently; any other error is reported once. Requested files are still written, and [`is_output_lost`]
/// determines the exit code.
pub fn print(text: &str) {
    write_out(&visible(text));
}

/// Returns the text without line ends and with control characters escaped.
pub(crate) fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\u000a")
}

/// Returns true if output was lost by an error other than a closed reader.
pub fn is_output_lost() -> bool {
    OUTPUT.load(Ordering::Relaxed) == FAILED
}

fn write_out(text: &str) {
    if text.is_empty() || OUTPUT.load(Ordering::Relaxed) != OPEN {
        return;
    }
    let written = machine::standard_output()
        .and_then(|mut stdout| stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()));
    match written {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => OUTPUT.store(CLOSED, Ordering::Relaxed),
        Err(error) => {
            OUTPUT.store(FAILED, Ordering::Relaxed);
            output_lost(&error);
        }
    }
}

/// Reports that output is lost.
pub(crate) fn output_lost(error: &std::io::Error) {
    talk(Talk::Error, format_args!("the standard output cannot be written: {error}"));
    talk(Talk::Hint, "check the space left, and where the output goes");
}

/// Writes text for people to stdout: sentences are wrapped at the width of the output, commands stay
/// pasteable, and verdicts are coloured where colours are on.
pub fn print_text(text: &str) {
    let Some(width) = layout::width() else { return print(text) };
    let mut broken = String::new();
    for line in visible(text).lines() {
        for piece in if is_command(line) { wrap_command(line, width) } else { wrap(line, width) } {
            broken.push_str(&piece);
            broken.push('\n');
        }
    }
    if layout::has_colours(&std::io::stdout()) {
        return print_coloured(&broken);
    }
    print(&broken);
}

/// Returns true if a line is a command to paste: it is indented. A sentence about the policy named
/// `tailwright` is not.
fn is_command(line: &str) -> bool {
    line.starts_with("  tailwright ")
}

/// Quotes a word for a shell if necessary.
pub fn pasted(word: impl AsRef<str>) -> String {
    let word = word.as_ref();
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Quotes a path for a shell, so that it is never taken for an option.
pub fn pasted_path(path: &Path) -> String {
    let path = path.display().to_string();
    pasted(if path.starts_with('-') { format!("./{path}") } else { path })
}

/// Returns a command line of this program, from its arguments without the program name, ready to paste
/// into a shell. Invalid UTF-8 becomes replacement characters.
pub fn pasted_command(args: impl Iterator<Item = OsString>) -> String {
    let words = args.map(|word| pasted(word.to_string_lossy()));
    ["tailwright".to_owned()].into_iter().chain(words).collect::<Vec<_>>().join(" ")
}

const RED: &str = "\u{1b}[31m";
const GREEN: &str = "\u{1b}[32m";
const YELLOW: &str = "\u{1b}[33m";
const PLAIN: &str = "\u{1b}[0m";

/// Table cells that contain a verdict.
const VERDICTS: [(&str, &str); 10] = [
    ("not met", RED),
    ("missed", RED),
    ("refused", RED),
    ("broken", RED),
    ("bound broken", RED),
    ("ENDED", RED),
    ("differ", RED),
    ("met", GREEN),
    ("agree", GREEN),
    ("running", GREEN),
];

/// Writes text with colours; the text itself contains no escapes.
fn print_coloured(text: &str) {
    let mut coloured = String::new();
    for line in text.lines() {
        let mut cells = Vec::new();
        for cell in line.split("  ") {
            let verdict = VERDICTS.iter().find(|(word, _)| cell.trim() == *word);
            cells.push(
                verdict.map_or_else(|| cell.to_owned(), |(_, colour)| format!("{colour}{cell}{PLAIN}")),
            );
        }
        coloured.push_str(&cells.join("  "));
        coloured.push('\n');
    }
    write_out(&coloured);
}

/// Kind of a line on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Talk {
    Error,
    Hint,
    Warning,
    Note,
    /// A line without a prefix.
    Plain,
}

/// Writes a line to stderr, wrapped at spaces on a terminal. Errors are ignored: there is nowhere to
/// report them.
pub fn talk(kind: Talk, text: impl Display) {
    let (name, colour) = match kind {
        Talk::Error => ("error: ", RED),
        Talk::Hint => ("  hint: ", ""),
        Talk::Warning => ("warning: ", YELLOW),
        Talk::Note => ("note: ", ""),
        Talk::Plain => ("", ""),
    };
    let line = visible(&format!("{name}{text}"));
    let lines: Vec<String> = match layout::talk_width() {
        Some(width) => line.lines().flat_map(|line| wrap(line, width)).collect(),
        None => vec![line],
    };
    let mut said = lines.join("\n") + "\n";
    if !colour.is_empty() && layout::has_colours(&std::io::stderr()) {
        said = said.replacen(name, &format!("{colour}{name}{PLAIN}"), 1);
    }
    let _ = std::io::stderr().write_all(said.as_bytes());
}

/// Returns a progress bar on stderr if that is a terminal, a hidden one otherwise. `unit` names the
/// counted things; a `total` of 0 means unknown.
pub fn progress(total: u64, what: &str, unit: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = if total == 0 {
        format!("{{msg:20}} {{spinner}} {{pos}} {unit}")
    } else {
        format!("{{msg:20}} [{{wide_bar}}] {{pos}}/{{len}} {unit}, {{eta}} left")
    };
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style.progress_chars("=> ")).with_message(visible(what))
}

/// Shows progress as bars and notices as lines, both on stderr.
#[derive(Debug, Clone, Copy)]
pub struct TerminalObserver;

impl ProgressObserver for TerminalObserver {
    fn begin(&self, task: &str, total: u64, unit: &str) -> Box<dyn TaskProgress + '_> {
        Box::new(TaskBar(progress(total, task, unit)))
    }

    fn notice(&self, notice: Notice) {
        match notice {
            Notice::Warning(text) => talk(Talk::Warning, text),
            Notice::Note(text) => talk(Talk::Note, text),
            Notice::Done(text) => talk(Talk::Plain, text),
        }
    }
}

/// A progress bar that disappears when its task ends.
struct TaskBar(ProgressBar);

impl TaskProgress for TaskBar {
    fn advance(&self) {
        self.0.inc(1);
    }

    fn update(&self, done: u64, total: u64) {
        self.0.set_length(total);
        self.0.set_position(done);
    }

    fn rename(&self, task: &str) {
        self.0.set_message(visible(task));
    }
}

impl Drop for TaskBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::is_command;

    #[test]
    fn a_sentence_about_the_policy_of_this_name_is_no_command() {
        assert!(is_command("  tailwright plan cluster.toml -o policy.json"));
        assert!(!is_command("tailwright meets all 3 SLOs that count."));
    }
}

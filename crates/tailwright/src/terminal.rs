//! Output that people want to read: aligned tables on stdout, progress with an estimate on stderr.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::{ErrorKind, IsTerminal, Write};
use workflow::{Notice, ProgressObserver, TaskProgress};

/// On which side the cells of a column line up: words on the left, numbers on the right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Align {
    Left,
    Right,
}

/// A table whose columns line up.
#[derive(Debug)]
pub(crate) struct TextTable {
    aligns: Vec<Align>,
    rows: Vec<Vec<String>>,
}

impl TextTable {
    /// Headings and how their columns are set.
    pub(crate) fn new(columns: &[(&str, Align)]) -> Self {
        Self {
            aligns: columns.iter().map(|(_, align)| *align).collect(),
            rows: vec![columns.iter().map(|(heading, _)| (*heading).to_owned()).collect()],
        }
    }

    /// A table of rows; the first `words` columns are words, the others numbers.
    pub(crate) fn of_rows(
        headings: &[&str],
        words: usize,
        rows: impl IntoIterator<Item = Vec<String>>,
    ) -> Self {
        let mut aligns = vec![Align::Left; words.min(headings.len())];
        aligns.resize(headings.len(), Align::Right);
        let headings = headings.iter().map(|heading| (*heading).to_owned()).collect();
        let mut table = Self { aligns, rows: vec![headings] };
        for row in rows {
            table.row(row);
        }
        table
    }

    /// Appends a row; it has one cell per column.
    pub(crate) fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.aligns.len(), "a row has one cell per column");
        self.rows.push(cells);
    }

    /// The table as text, one line per row, two spaces between columns, none at line ends.
    pub(crate) fn render(&self) -> String {
        let width =
            |column: usize| self.rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.aligns.len()).map(width).collect();
        let mut text = String::new();
        for row in &self.rows {
            let mut line = String::new();
            for ((cell, &width), align) in row.iter().zip(&widths).zip(&self.aligns) {
                let padding = " ".repeat(width - cell.chars().count());
                match align {
                    Align::Left => line.extend([cell, padding.as_str(), "  "]),
                    Align::Right => line.extend([padding.as_str(), cell, "  "]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

/// Writes data to stdout, whole. A reader that went away (`| head`) ends the program quietly, and any other error as
/// what the machine lacks.
pub(crate) fn print(text: &str) {
    let mut stdout = std::io::stdout();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        Ok(()) => {}
        Err(error) if error.kind() == ErrorKind::BrokenPipe => std::process::exit(0),
        Err(error) => {
            eprintln!("error: the standard output cannot be written: {error}");
            eprintln!("  hint: check the space left, and where the output goes");
            std::process::exit(3);
        }
    }
}

/// A progress bar on stderr when that is a terminal, nothing otherwise. `unit` names what is counted.
pub(crate) fn progress(total: u64, what: &str, unit: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let template = format!("{{msg:20}} [{{bar:30}}] {{pos}}/{{len}} {unit}, {{eta}} left");
    let style = ProgressStyle::with_template(&template).unwrap_or_else(|_| ProgressStyle::default_bar());
    ProgressBar::new(total).with_style(style.progress_chars("=> ")).with_message(what.to_owned())
}

/// Shows progress as bars and notices as lines, both on stderr.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TerminalObserver;

impl ProgressObserver for TerminalObserver {
    fn begin(&self, task: &str, total: u64, unit: &str) -> Box<dyn TaskProgress + '_> {
        Box::new(TaskBar(progress(total, task, unit)))
    }

    fn notice(&self, notice: Notice) {
        match notice {
            Notice::Warning(text) => eprintln!("warning: {text}"),
            Notice::Note(text) => eprintln!("note: {text}"),
            Notice::Done(text) => eprintln!("{text}"),
        }
    }
}

/// A progress bar that goes when its task ends.
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
        self.0.set_message(task.to_owned());
    }
}

impl Drop for TaskBar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up_and_lines_have_no_trailing_space() {
        let mut table = TextTable::new(&[("name", Align::Left), ("value", Align::Right)]);
        table.row(vec!["a".into(), "1".into()]);
        table.row(vec!["longer".into(), "12345678".into()]);
        assert_eq!(table.render(), "name       value\na              1\nlonger  12345678\n");
    }
}

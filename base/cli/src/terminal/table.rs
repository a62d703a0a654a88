//! Tables with aligned columns that fit into the width of the output. Too wide, a table first drops its
//! columns marked as details, then wraps words over several lines, then drops columns from the right. The
//! columns marked as the answer go last. Dropped columns are named; `--wide` keeps everything.

use crate::terminal::layout;
use crate::terminal::visible::{display_width, split, wrap};

/// Alignment of a column's cells: words on the left, numbers on the right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    Left,
    Right,
}

/// Minimum width of a column of words that is cut or wrapped.
const WORDS_MIN: usize = 12;

/// Minimum number of columns.
const COLUMNS_KEPT: usize = 2;

/// A table with aligned columns.
#[derive(Debug)]
pub struct TextTable {
    aligns: Vec<Align>,
    rows: Vec<Vec<String>>,
    /// Columns that may be dropped, in the order of dropping.
    details: Vec<usize>,
    /// Columns that are dropped after all others.
    answer: Vec<usize>,
}

/// A table as text.
#[derive(Debug)]
pub struct RenderedTable {
    /// Headings and rows; a wrapped row contains line ends.
    pub rows: Vec<String>,
    /// Line that names the dropped columns; empty if there are none.
    pub note: String,
}

impl RenderedTable {
    fn into_text(self) -> String {
        self.rows.concat() + &self.note
    }
}

impl TextTable {
    /// Creates a table from the headings and alignments of its columns.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        Self {
            aligns: columns.iter().map(|(_, align)| *align).collect(),
            rows: vec![columns.iter().map(|(heading, _)| (*heading).to_owned()).collect()],
            details: Vec::new(),
            answer: Vec::new(),
        }
    }

    /// Creates a table from rows; the first `words` columns are words, the others numbers.
    pub fn of_rows(headings: &[&str], words: usize, rows: impl IntoIterator<Item = Vec<String>>) -> Self {
        let align = |column| if column < words { Align::Left } else { Align::Right };
        let columns: Vec<(&str, Align)> =
            headings.iter().enumerate().map(|(column, heading)| (*heading, align(column))).collect();
        let mut table = Self::new(&columns);
        rows.into_iter().for_each(|row| table.row(row));
        table
    }

    /// Returns the table with these columns marked as details, dropped in this order where the table is
    /// too wide.
    #[must_use]
    pub fn without_first(mut self, headings: &[&str]) -> Self {
        self.details = self.columns_of(headings);
        self
    }

    /// Returns the table with these columns marked as its answer, the most important first. Where the table is
    /// too wide, all others but the first column are dropped before them.
    #[must_use]
    pub fn answered_by(mut self, headings: &[&str]) -> Self {
        self.answer = self.columns_of(headings);
        self
    }

    fn columns_of(&self, headings: &[&str]) -> Vec<usize> {
        let mut columns = Vec::new();
        for heading in headings {
            columns.extend((0..self.aligns.len()).filter(|column| self.rows[0][*column].trim() == *heading));
        }
        columns
    }

    /// Appends a row; it has one cell per column.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.aligns.len(), "a row has one cell per column");
        // A name with a line end could imitate a row.
        self.rows.push(cells.into_iter().map(|cell| cell.replace('\n', "\\u000a")).collect());
    }

    /// Returns the table as text: two spaces between columns, none at line ends; empty without rows.
    pub fn render(&self) -> String {
        self.render_within(layout::width()).into_text()
    }

    /// Returns the table as one text per row, for callers that print text between rows.
    pub fn render_rows(&self) -> RenderedTable {
        self.render_within(layout::width())
    }

    /// Returns the same within a width limit; without one, as wide as the cells.
    fn render_within(&self, limit: Option<usize>) -> RenderedTable {
        let mut shown: Vec<usize> = (0..self.aligns.len()).collect();
        let natural: Vec<usize> = shown.iter().map(|column| self.natural_width(*column)).collect();
        let total = |shown: &[usize]| shown.iter().map(|column| natural[*column] + 2).sum::<usize>();
        let limit = limit.unwrap_or(usize::MAX - 2);
        let mut left_out = Vec::new();
        for detail in &self.details {
            if total(&shown) > limit + 2 {
                shown.retain(|column| column != detail);
                left_out.push(self.rows[0][*detail].trim());
            }
        }
        let mut widths = self.fitting_widths(&shown, &natural, limit);
        // Words are at their minimum and it is still too wide: drop columns from the right.
        while widths.iter().sum::<usize>() + 2 * shown.len() > limit + 2 && shown.len() > COLUMNS_KEPT {
            let last = shown.remove(self.least_needed(&shown));
            left_out.push(self.rows[0][last].trim());
            widths = self.fitting_widths(&shown, &natural, limit);
        }
        if self.rows.len() == 1 {
            return RenderedTable { rows: Vec::new(), note: String::new() };
        }
        let rows = self.rows.iter().map(|row| self.render_row(row, &shown, &widths)).collect();
        let named: Vec<&str> = left_out.iter().copied().filter(|name| !name.is_empty()).collect();
        let note = match (left_out.as_slice(), named.as_slice()) {
            ([], _) => String::new(),
            (_, []) => "(--wide shows all columns)\n".into(),
            (_, some) => format!("(--wide also shows: {})\n", some.join(", ")),
        };
        RenderedTable { rows, note }
    }

    /// Returns the index of the shown column that is dropped next: the last that is neither the first nor of
    /// the answer, then the least important of the answer.
    fn least_needed(&self, shown: &[usize]) -> usize {
        let other = (1..shown.len()).rev().find(|at| !self.answer.contains(&shown[*at]));
        let least = || {
            let of_answer = self.answer.iter().rev();
            of_answer.filter_map(|column| shown.iter().position(|other| other == column)).find(|at| *at > 0)
        };
        other.or_else(least).unwrap_or(shown.len() - 1)
    }

    fn natural_width(&self, column: usize) -> usize {
        self.rows.iter().map(|row| display_width(&row[column])).max().unwrap_or(0)
    }

    /// Returns the widths of the shown columns. Columns of words shrink until the table fits, the widest
    /// first.
    fn fitting_widths(&self, shown: &[usize], natural: &[usize], limit: usize) -> Vec<usize> {
        let mut widths: Vec<usize> = shown.iter().map(|column| natural[*column]).collect();
        loop {
            let total: usize = widths.iter().map(|width| width + 2).sum();
            let excess = total.saturating_sub(limit.saturating_add(2));
            let is_word = |at: &usize| self.aligns[shown[*at]] == Align::Left && widths[*at] > WORDS_MIN;
            let widest = (0..widths.len()).filter(is_word).max_by_key(|at| widths[*at]);
            let (Some(widest), 1..) = (widest, excess) else { return widths };
            // Shrink to the width of the next widest, so that equally wide columns shrink together.
            let is_other = |at: &usize| *at != widest && self.aligns[shown[*at]] == Align::Left;
            let next = (0..widths.len()).filter(is_other).map(|at| widths[at]).max().unwrap_or(0);
            let floor = next.min(widths[widest] - 1).max(WORDS_MIN);
            widths[widest] = widths[widest].saturating_sub(excess).max(floor);
        }
    }

    /// Returns a row; its words take as many lines as they need.
    fn render_row(&self, row: &[String], shown: &[usize], widths: &[usize]) -> String {
        let mut cells = Vec::new();
        for (&column, &width) in shown.iter().zip(widths) {
            let pieces = wrap(&row[column], width).into_iter();
            cells.push(match self.aligns[column] {
                Align::Left => pieces.flat_map(|piece| split(&piece, width)).collect(),
                Align::Right => vec![row[column].clone()],
            });
        }
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        let mut text = String::new();
        for number in 0..height {
            let mut line = String::new();
            for ((cell, &width), &column) in cells.iter().zip(widths).zip(shown) {
                let piece = cell.get(number).map_or("", String::as_str);
                let padding = " ".repeat(width.saturating_sub(display_width(piece)));
                match self.aligns[column] {
                    Align::Left => line.extend([piece, padding.as_str(), "  "]),
                    Align::Right => line.extend([padding.as_str(), piece, "  "]),
                }
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> TextTable {
        let mut table =
            TextTable::new(&[("name", Align::Left), ("value", Align::Right), ("why", Align::Left)]);
        table.row(vec!["a".into(), "1".into(), "one two three four five".into()]);
        table.row(vec!["a longer name of a row".into(), "12345678".into(), String::new()]);
        table
    }

    #[test]
    fn columns_line_up_and_lines_have_no_trailing_space() {
        let mut table = TextTable::new(&[("name", Align::Left), ("value", Align::Right)]);
        table.row(vec!["a".into(), "1".into()]);
        table.row(vec!["longer".into(), "12345678".into()]);
        assert_eq!(
            table.render_within(None).into_text(),
            "name       value\na              1\nlonger  12345678\n"
        );
    }

    #[test]
    fn headings_of_nothing_are_not_shown() {
        let empty = TextTable::new(&[("name", Align::Left), ("value", Align::Right)]);
        assert_eq!(empty.render_within(Some(3)).into_text(), "");
    }

    #[test]
    fn no_line_is_wider_than_asked_for() {
        for width in 36..70 {
            let text = table().render_within(Some(width)).into_text();
            assert!(text.lines().all(|line| display_width(line) <= width), "{width}:\n{text}");
            assert!(text.contains("12345678") && text.contains("five"), "{width}:\n{text}");
        }
    }

    #[test]
    fn columns_of_the_answer_go_last() {
        let answered = table().answered_by(&["why"]).render_within(Some(35)).into_text();
        assert!(answered.contains("five") && !answered.contains("12345678"), "{answered}");
        assert_eq!(answered.lines().last(), Some("(--wide also shows: value)"));
    }

    #[test]
    fn columns_of_details_go_first_and_are_named() {
        let wide = table().without_first(&["why"]).render_within(Some(60)).into_text();
        assert!(wide.contains("five") && !wide.contains("--wide"), "{wide}");
        let narrow = table().without_first(&["why"]).render_within(Some(40)).into_text();
        assert_eq!(narrow.lines().nth(2), Some("a longer name of a row  12345678"));
        assert_eq!(narrow.lines().last(), Some("(--wide also shows: why)"));
    }
}

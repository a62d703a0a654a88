//! Tables of text cells.

use plot::{Cell, Column, Table};

/// Returns a table whose first `words` columns are left-aligned words and whose other columns are
/// numbers.
pub fn table(headings: &[&str], words: usize, rows: Vec<Vec<String>>) -> Table {
    let column = |(at, name): (usize, &&str)| {
        if at < words { Column::name(*name) } else { Column::number(*name) }
    };
    let mut table = Table::new(headings.iter().enumerate().map(column));
    rows.into_iter().for_each(|row| table.push(row.into_iter().map(Cell::from)));
    table
}

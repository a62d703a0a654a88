//! Compressed tables among the data of experiments.

use crate::context::FigureError;
use flate2::read::GzDecoder;
use model::OperationError;
use std::fmt::Display;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

/// Reads the rows of a gzip file with a heading. `name` stands for the file in errors, and `expected` says what `parse`
/// takes.
///
/// # Errors
/// When the file cannot be read, or `parse` does not take a row.
pub(crate) fn read_rows<T>(
    path: &Path,
    name: impl Display,
    expected: &str,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Vec<T>, FigureError> {
    let file = File::open(path).map_err(|error| data_error(&name, error))?;
    let mut rows = Vec::new();
    for (index, line) in BufReader::new(GzDecoder::new(file)).lines().enumerate().skip(1) {
        let line = line.map_err(|error| data_error(&name, error))?;
        let Some(row) = parse(&line) else {
            let number = index + 1;
            return Err(data_error(name, format_args!("line {number}: expected {expected}, found '{line}'")));
        };
        rows.push(row);
    }
    Ok(rows)
}

/// An error about the content of a data file.
pub(crate) fn data_error(name: impl Display, message: impl Display) -> FigureError {
    OperationError::input(format_args!("{name}: {message}"))
        .hint("--data gives the folder with the data that docs/reference/reproduce.md describes")
        .into()
}

//! CSV with a header that names the columns, in any order; quoted fields on one line.

use super::record::RecordError;
use std::io::BufRead;

/// Passes each record to `record` with its line number: its fields in the order of `columns`. A column
/// has one or several accepted names; one whose last name is empty may be absent.
pub(super) fn records<const N: usize>(
    mut from: impl BufRead,
    columns: [&[&str]; N],
    mut record: impl FnMut(u64, Result<[&str; N], RecordError>) -> Result<(), RecordError>,
) -> Result<(), RecordError> {
    let mut text = Vec::new();
    let mut line = 0;
    // Position of each column, and the number of fields in the header.
    let mut positions: Option<([Option<usize>; N], usize)> = None;
    while next_line(&mut from, &mut text, line)? {
        line += 1;
        let Ok(row) = std::str::from_utf8(&text) else {
            record(line, Err(RecordError { line, message: "expected UTF-8 text".to_owned() }))?;
            continue;
        };
        let row = row.trim_end_matches(['\n', '\r']);
        if row.is_empty() {
            continue;
        }
        let Some((columns_at, count)) = &positions else {
            let header = split_fields(row);
            positions = Some((column_positions(&header, columns, line)?, header.len()));
            continue;
        };
        let fields = split_fields(row);
        if fields.len() != *count {
            let message = format!("expected {count} fields as in the header, found {}", fields.len());
            record(line, Err(RecordError { line, message }))?;
            continue;
        }
        let field = |position: Option<usize>| position.map_or("", |position| unquoted(fields[position]));
        record(line, Ok(columns_at.map(field)))?;
    }
    match positions {
        Some(_) => Ok(()),
        None => Err(RecordError {
            line: 1,
            message: "expected a header with the names of columns, found nothing".to_owned(),
        }),
    }
}

fn next_line(from: &mut impl BufRead, text: &mut Vec<u8>, line: u64) -> Result<bool, RecordError> {
    text.clear();
    from.read_until(b'\n', text).map(|n| n > 0).map_err(|error| RecordError::io(line + 1, &error))
}

/// The position of each column in the header, by any of its names.
fn column_positions<const N: usize>(
    header: &[&str],
    columns: [&[&str]; N],
    line: u64,
) -> Result<[Option<usize>; N], RecordError> {
    let mut positions = [None; N];
    for (position, names) in positions.iter_mut().zip(columns) {
        *position = header.iter().position(|field| {
            let field = unquoted(field).trim_start_matches('\u{feff}');
            !field.is_empty() && names.iter().any(|name| field.eq_ignore_ascii_case(name))
        });
        if position.is_none() && !names.contains(&"") {
            return Err(RecordError::expected(
                line,
                &format!("a column {}", names.join(" or ")),
                &header.join(","),
            ));
        }
    }
    Ok(positions)
}

/// The fields of a row, which are separated by commas outside quotes.
fn split_fields(row: &str) -> Vec<&str> {
    let mut quoted = false;
    let split = |c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    };
    row.split(split).collect()
}

/// A field without blanks and quotes around it. Doubled quotes inside a field stay doubled: names are only compared.
fn unquoted(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(field)
}

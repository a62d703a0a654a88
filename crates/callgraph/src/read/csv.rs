//! CSV with a header that names the columns, in any order; quoted fields on one line.

use super::Wrong;
use std::io::BufRead;

/// Hands each record over with its line number.
pub(super) fn records<const N: usize>(
    mut from: impl BufRead,
    columns: [&[&str]; N],
    mut record: impl FnMut(u64, Result<[&str; N], Wrong>) -> Result<(), Wrong>,
) -> Result<(), Wrong> {
    let (mut text, mut line) = (Vec::new(), 0);
    let mut places: Option<([Option<usize>; N], usize)> = None;
    while next_line(&mut from, &mut text, line)? {
        line += 1;
        let Ok(row) = std::str::from_utf8(&text) else {
            record(line, Err(Wrong { line, message: "expected UTF-8 text".to_owned() }))?;
            continue;
        };
        let row = row.trim_end_matches(['\n', '\r']);
        if row.is_empty() {
            continue;
        }
        let Some((at, count)) = &places else {
            let header = fields(row);
            places = Some((header_places(&header, columns, line)?, header.len()));
            continue;
        };
        let fields = fields(row);
        if fields.len() != *count {
            let message = format!("expected {count} fields as in the header, found {}", fields.len());
            record(line, Err(Wrong { line, message }))?;
            continue;
        }
        record(line, Ok(at.map(|place| place.map_or("", |place| unquoted(fields[place])))))?;
    }
    match places {
        Some(_) => Ok(()),
        None => Err(Wrong {
            line: 1,
            message: "expected a header with the names of columns, found nothing".to_owned(),
        }),
    }
}

fn next_line(from: &mut impl BufRead, text: &mut Vec<u8>, line: u64) -> Result<bool, Wrong> {
    text.clear();
    from.read_until(b'\n', text).map(|n| n > 0).map_err(|error| Wrong::io(line + 1, &error))
}

/// Where each column is, by any of its names; a column whose last name is empty may be absent.
fn header_places<const N: usize>(
    header: &[&str],
    columns: [&[&str]; N],
    line: u64,
) -> Result<[Option<usize>; N], Wrong> {
    let mut places = [None; N];
    for (place, names) in places.iter_mut().zip(columns) {
        *place = header.iter().position(|field| {
            let field = unquoted(field).trim_start_matches('\u{feff}');
            !field.is_empty() && names.contains(&field)
        });
        if place.is_none() && !names.contains(&"") {
            return Err(Wrong::expected(
                line,
                &format!("a column {}", names.join(" or ")),
                &header.join(","),
            ));
        }
    }
    Ok(places)
}

/// At commas outside quotes.
fn fields(row: &str) -> Vec<&str> {
    let mut quoted = false;
    let split = |c: char| {
        quoted ^= c == '"';
        c == ',' && !quoted
    };
    row.split(split).collect()
}

/// Doubled quotes inside a field stay doubled: names are only compared.
fn unquoted(field: &str) -> &str {
    let field = field.trim();
    field.strip_prefix('"').and_then(|inner| inner.strip_suffix('"')).unwrap_or(field)
}

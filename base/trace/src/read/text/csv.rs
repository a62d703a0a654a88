//! CSV with a header. Columns are found by name, in any order; unknown columns are ignored.
//!
//! Besides the native names, common names of the same quantities are accepted, with their units, so that
//! an I/O log exported by another tool is often readable as it is. Fields are separated by commas,
//! semicolons or tabs. Values may be quoted, but must not contain separators: none of these needs one.

use crate::operation;
use crate::read::lines::{LineParser, ParsedLine};
use crate::scan::{DelimitedFields, decimal, fixed_point};
use model::{Op, Request};
use units::{Bytes, Nanos};

/// Content of a column. Times carry the number of decimal places from their unit down to nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CsvColumn {
    Arrival(usize),
    Size,
    Op,
    Offset,
    Response(usize),
    Unknown,
}

const COLUMNS: [(&str, CsvColumn); 22] = [
    ("arrival_ns", CsvColumn::Arrival(0)),
    ("arrival_us", CsvColumn::Arrival(3)),
    ("arrival_ms", CsvColumn::Arrival(6)),
    ("arrival_s", CsvColumn::Arrival(9)),
    ("t_init_s", CsvColumn::Arrival(9)),
    ("size_bytes", CsvColumn::Size),
    ("size", CsvColumn::Size),
    ("bytes", CsvColumn::Size),
    ("length", CsvColumn::Size),
    ("op", CsvColumn::Op),
    ("type", CsvColumn::Op),
    ("offset", CsvColumn::Offset),
    ("offset_bytes", CsvColumn::Offset),
    ("response_ns", CsvColumn::Response(0)),
    ("response_us", CsvColumn::Response(3)),
    ("response_ms", CsvColumn::Response(6)),
    ("response_s", CsvColumn::Response(9)),
    ("latency_ns", CsvColumn::Response(0)),
    ("latency_us", CsvColumn::Response(3)),
    ("latency_ms", CsvColumn::Response(6)),
    ("latency_s", CsvColumn::Response(9)),
    ("io_us", CsvColumn::Response(3)),
];

const EXPECTED_HEADER: &str =
    "a header that names arrival_ns, size_bytes and op, and may name offset and response_ns";

/// Returns true if `line` is a header that this format can read.
pub(crate) fn is_csv_header(line: &[u8]) -> bool {
    parse_header(line).is_some()
}

/// Separators of fields; the header tells which.
const SEPARATORS: [u8; 3] = [b',', b';', b'\t'];

/// Parses a header into its separator and columns.
fn parse_header(line: &[u8]) -> Option<(u8, Vec<CsvColumn>)> {
    SEPARATORS.into_iter().find_map(|separator| Some((separator, columns_of(line, separator)?)))
}

/// Parses the columns of a header; `None` unless it names each required column once and no column twice.
fn columns_of(line: &[u8], separator: u8) -> Option<Vec<CsvColumn>> {
    let columns: Vec<CsvColumn> =
        DelimitedFields::new(line.trim_ascii(), separator).map(column_named).collect();
    let is_complete = count(&columns, |c| matches!(c, CsvColumn::Arrival(_))) == 1
        && count(&columns, |c| matches!(c, CsvColumn::Size)) == 1
        && count(&columns, |c| matches!(c, CsvColumn::Op)) == 1
        && count(&columns, |c| matches!(c, CsvColumn::Offset)) <= 1
        && count(&columns, |c| matches!(c, CsvColumn::Response(_))) <= 1;
    is_complete.then_some(columns)
}

fn column_named(name: &[u8]) -> CsvColumn {
    let name = unquoted(name);
    let known = COLUMNS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
    known.map_or(CsvColumn::Unknown, |(_, column)| *column)
}

/// Returns a field without blanks and quotes around it.
#[inline]
fn unquoted(field: &[u8]) -> &[u8] {
    let field = field.trim_ascii();
    field.strip_prefix(b"\"").and_then(|inner| inner.strip_suffix(b"\"")).unwrap_or(field)
}

fn count(columns: &[CsvColumn], is_wanted: fn(&CsvColumn) -> bool) -> usize {
    columns.iter().filter(|column| is_wanted(column)).count()
}

#[derive(Debug, Default)]
pub(crate) struct Csv {
    /// Columns; empty until the header is read.
    columns: Vec<CsvColumn>,
    separator: u8,
}

impl LineParser for Csv {
    fn parse(&mut self, line: &[u8]) -> Result<ParsedLine, &'static str> {
        if line.trim_ascii().is_empty() {
            return Ok(ParsedLine::NoOperation);
        }
        if self.columns.is_empty() {
            (self.separator, self.columns) = parse_header(line).ok_or(EXPECTED_HEADER)?;
            return Ok(ParsedLine::NoOperation);
        }
        self.parse_row(line)
    }
}

impl Csv {
    #[inline]
    fn parse_row(&self, line: &[u8]) -> Result<ParsedLine, &'static str> {
        let mut arrival = 0;
        let mut size = 0;
        let mut op = None;
        let mut offset = None;
        let mut response = None;
        let mut fields = DelimitedFields::new(line, self.separator);
        for column in &self.columns {
            let field = fields.next().ok_or("as many fields as the header names").map(unquoted)?;
            match *column {
                CsvColumn::Arrival(places) => {
                    arrival = parse_time(field, places).ok_or("a time that is a non-negative number")?;
                }
                CsvColumn::Size => size = decimal(field).ok_or("a size in whole bytes")?,
                CsvColumn::Op => op = parse_operation(field)?,
                CsvColumn::Offset if field.is_empty() => {}
                CsvColumn::Offset => {
                    offset = Some(decimal(field).ok_or("an offset in whole bytes, or nothing")?);
                }
                CsvColumn::Response(_) if field.is_empty() => {}
                CsvColumn::Response(places) => {
                    response = Some(Nanos(parse_time(field, places).ok_or("a response time, or nothing")?));
                }
                CsvColumn::Unknown => {}
            }
        }
        if fields.next().is_some() {
            return Err("as many fields as the header names");
        }
        let Some(op) = op else { return Ok(ParsedLine::OtherOperation) };
        let arrival = Nanos(arrival);
        let size = Bytes(size);
        Ok(ParsedLine::Request(Request { arrival, size, op, offset, response }))
    }
}

#[inline]
fn parse_time(field: &[u8], places: usize) -> Option<u64> {
    if places == 0 { decimal(field) } else { fixed_point(field, places) }
}

/// Parses the operation; `None` if it is known to be neither a read nor a write.
#[inline]
fn parse_operation(field: &[u8]) -> Result<Option<Op>, &'static str> {
    const OTHERS: [&[u8]; 5] = [b"flush", b"trim", b"discard", b"f", b"t"];
    if let Some(op) = operation::from_name(field) {
        return Ok(Some(op));
    }
    let is_known = OTHERS.iter().any(|other| field.eq_ignore_ascii_case(other));
    if is_known { Ok(None) } else { Err("an operation, read or write") }
}

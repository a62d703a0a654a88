//! CSV with a header. Columns are found by name, in any order; unknown columns are passed over.
//!
//! Besides the native names, common names of the same quantities are understood, with their units, so
//! that an I/O log exported by another tool is often readable as it is. Quoting is not: none of these
//! values needs it.

use super::{op_of, request};
use crate::read::{LineParser, Parsed};
use crate::scan::{Fields, decimal, fixed, trim};
use model::Op;
use units::Nanos;

/// What a column holds. Times carry their decimal places down to nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Arrival(usize),
    Size,
    Op,
    Offset,
    Response(usize),
    Unknown,
}

const COLUMNS: [(&str, Column); 19] = [
    ("arrival_ns", Column::Arrival(0)),
    ("arrival_us", Column::Arrival(3)),
    ("arrival_ms", Column::Arrival(6)),
    ("arrival_s", Column::Arrival(9)),
    ("t_init_s", Column::Arrival(9)),
    ("size_bytes", Column::Size),
    ("size", Column::Size),
    ("bytes", Column::Size),
    ("length", Column::Size),
    ("op", Column::Op),
    ("type", Column::Op),
    ("offset", Column::Offset),
    ("offset_bytes", Column::Offset),
    ("response_ns", Column::Response(0)),
    ("response_us", Column::Response(3)),
    ("response_ms", Column::Response(6)),
    ("response_s", Column::Response(9)),
    ("latency_us", Column::Response(3)),
    ("io_us", Column::Response(3)),
];

const EXPECTED_HEADER: &str =
    "a header that names arrival_ns, size_bytes and op, and may name offset and response_ns";

/// Whether `line` is a header that this format can read.
pub(crate) fn is_header(line: &[u8]) -> bool {
    header(line).is_some()
}

fn header(line: &[u8]) -> Option<Vec<Column>> {
    let known = |name: &[u8]| COLUMNS.iter().find(|(known, _)| name.eq_ignore_ascii_case(known.as_bytes()));
    let columns: Vec<Column> = Fields::new(trim(line), b',')
        .map(|name| known(trim(name)).map_or(Column::Unknown, |(_, column)| *column))
        .collect();
    let count = |wanted: fn(&Column) -> bool| columns.iter().filter(|column| wanted(column)).count();
    let complete = count(|c| matches!(c, Column::Arrival(_))) == 1
        && count(|c| matches!(c, Column::Size)) == 1
        && count(|c| matches!(c, Column::Op)) == 1
        && count(|c| matches!(c, Column::Offset)) <= 1
        && count(|c| matches!(c, Column::Response(_))) <= 1;
    complete.then_some(columns)
}

#[derive(Debug, Default)]
pub(crate) struct Csv {
    /// Empty until the header is read.
    columns: Vec<Column>,
}

impl LineParser for Csv {
    fn parse(&mut self, line: &[u8]) -> Result<Parsed, &'static str> {
        let line = trim(line);
        if line.is_empty() {
            return Ok(Parsed::Nothing);
        }
        if self.columns.is_empty() {
            let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line);
            self.columns = header(line).ok_or(EXPECTED_HEADER)?;
            return Ok(Parsed::Nothing);
        }
        self.row(line)
    }
}

impl Csv {
    #[inline]
    fn row(&self, line: &[u8]) -> Result<Parsed, &'static str> {
        let (mut arrival, mut size, mut op) = (0, 0, None);
        let (mut offset, mut response) = (None, None);
        let mut fields = Fields::new(line, b',');
        for column in &self.columns {
            let field = fields.next().ok_or("as many fields as the header names")?;
            match *column {
                Column::Arrival(places) => {
                    arrival = time(field, places).ok_or("a time that is a non-negative number")?;
                }
                Column::Size => size = decimal(field).ok_or("a size in whole bytes")?,
                Column::Op => op = op_of(field).or(op_other(field)?),
                Column::Offset if field.is_empty() => {}
                Column::Offset => {
                    offset = Some(decimal(field).ok_or("an offset in whole bytes, or nothing")?);
                }
                Column::Response(_) if field.is_empty() => {}
                Column::Response(places) => {
                    response = Some(Nanos(time(field, places).ok_or("a response time, or nothing")?));
                }
                Column::Unknown => {}
            }
        }
        if fields.next().is_some() {
            return Err("as many fields as the header names");
        }
        Ok(op.map_or(Parsed::Other, |op| request(Nanos(arrival), size, op, offset, response)))
    }
}

#[inline]
fn time(field: &[u8], places: usize) -> Option<u64> {
    if places == 0 { decimal(field) } else { fixed(field, places) }
}

/// `None` for an operation that is known to be neither read nor write.
fn op_other(field: &[u8]) -> Result<Option<Op>, &'static str> {
    if op_of(field).is_some() {
        return Ok(None);
    }
    const OTHERS: [&[u8]; 5] = [b"flush", b"trim", b"discard", b"f", b"t"];
    let known = OTHERS.iter().any(|other| field.eq_ignore_ascii_case(other));
    if known { Ok(None) } else { Err("an operation, read or write") }
}

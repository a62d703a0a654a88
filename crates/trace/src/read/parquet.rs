//! The native format: flat columns `arrival_ns`, `size_bytes`, `op` ("read" or "write"), and optionally
//! `offset` and `response_ns`, which may hold nulls. Further columns are passed over.
//!
//! Read a batch of rows at a time from one row group after the other, so memory is a few pages.

use super::{Fault, Source};
use crate::columns::decode::{Checked, Values, guarded, is_placed, is_unsigned};
use crate::error::{ErrorKind, Place, TraceError};
use model::{Op, Request};
use parquet::basic::Type as Physical;
use parquet::column::reader::get_typed_column_reader;
use parquet::data_type::{ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, SerializedFileReader};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;
use units::{Bytes, Nanos};

/// How a Parquet file begins.
pub(crate) const MAGIC: &[u8] = b"PAR1";
/// Rows decoded at a time.
const BATCH_ROWS: usize = 1 << 13;
const EXPECTED_COLUMNS: &str = "flat columns arrival_ns and size_bytes (INT64) and op (STRING)";

/// Whether `file` begins as a Parquet file; leaves it at its beginning.
pub(crate) fn has_magic(file: &mut File) -> io::Result<bool> {
    let mut magic = [0; 4];
    let len = crate::source::read_up_to(file, &mut magic)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(&magic[..len] == MAGIC)
}

/// Where a column is and how its integers are to be taken.
#[derive(Debug, Clone, Copy)]
struct Column {
    index: usize,
    unsigned: bool,
}

pub(crate) struct ParquetSource<R: ChunkReader> {
    file: SerializedFileReader<Checked<R>>,
    columns: [Option<Column>; 5],
    next_group: usize,
    group: Option<Group>,
    rows: Vec<Row>,
    next_row: usize,
    record: u64,
    record_count: u64,
}

/// A decoded row, checked when it is given out so that a bad one can be named and skipped.
#[derive(Debug, Clone, Copy, Default)]
struct Row {
    arrival: Option<u64>,
    size: Option<u64>,
    op: Option<Op>,
    /// Outer: valid; inner: present.
    offset: Option<Option<u64>>,
    response: Option<Option<u64>>,
}

/// Puts a number into its place; as the fields of [`Row`], outer `None` is invalid and inner `None` null.
type SetNumber = fn(&mut Row, Option<Option<u64>>);

/// The open columns of one row group.
struct Group {
    numbers: [Option<Numbers>; 4],
    op: Strings,
    rows_left: usize,
}

impl<R: ChunkReader + 'static> ParquetSource<R> {
    /// Reads the file's description.
    pub(crate) fn open(input: R, name: &Path) -> Result<Self, TraceError> {
        let error = |kind| TraceError::new(name, Place::File, kind);
        let file = guarded(|| SerializedFileReader::new(Checked(input))).map_err(error)?;
        let metadata = file.metadata().file_metadata();
        let schema = metadata.schema_descr();
        let column = |name: &str, physical: Physical| -> Option<Column> {
            let (index, column) =
                schema.columns().iter().enumerate().find(|(_, c)| c.path().string() == name)?;
            (column.physical_type() == physical && column.max_rep_level() == 0 && column.max_def_level() <= 1)
                .then(|| Column { index, unsigned: is_unsigned(column) })
        };
        let columns = [
            column("arrival_ns", Physical::INT64),
            column("size_bytes", Physical::INT64),
            column("op", Physical::BYTE_ARRAY),
            column("offset", Physical::INT64),
            column("response_ns", Physical::INT64),
        ];
        if columns[..3].iter().any(Option::is_none) {
            let names: Vec<String> = schema.columns().iter().map(|c| c.path().string()).collect();
            let found = crate::error::excerpt(names.join(", ").as_bytes());
            return Err(error(ErrorKind::Malformed { expected: EXPECTED_COLUMNS, found }));
        }
        let record_count = u64::try_from(metadata.num_rows()).unwrap_or(0);
        Ok(Self {
            file,
            columns,
            next_group: 0,
            group: None,
            rows: Vec::new(),
            next_row: 0,
            record: 0,
            record_count,
        })
    }

    fn open_group(&self, index: usize) -> Result<Group, ErrorKind> {
        guarded(|| {
            let reader = self.file.get_row_group(index)?;
            is_placed(reader.metadata())?;
            let rows_left = usize::try_from(reader.metadata().num_rows())
                .map_err(|_| ParquetError::General("a negative number of rows".to_owned()))?;
            let numbers = |column: Option<Column>| -> Result<Option<Numbers>, ParquetError> {
                let Some(column) = column else { return Ok(None) };
                let typed = get_typed_column_reader::<Int64Type>(reader.get_column_reader(column.index)?);
                Ok(Some(Numbers { values: Values::new(typed), unsigned: column.unsigned }))
            };
            let [arrival, size, op, offset, response] = self.columns;
            let op = op.ok_or_else(|| ParquetError::General("no column op".to_owned()))?;
            let op = get_typed_column_reader::<ByteArrayType>(reader.get_column_reader(op.index)?);
            let numbers = [numbers(arrival)?, numbers(size)?, numbers(offset)?, numbers(response)?];
            Ok(Group { numbers, op: Values::new(op), rows_left })
        })
    }

    /// Decodes the next rows; `false` at the end of the file.
    fn refill(&mut self) -> Result<bool, ErrorKind> {
        loop {
            if let Some(group) = self.group.as_mut().filter(|group| group.rows_left > 0) {
                guarded(|| group.read(&mut self.rows))?;
                self.next_row = 0;
                return Ok(true);
            }
            if self.next_group >= self.file.num_row_groups() {
                return Ok(false);
            }
            self.group = Some(self.open_group(self.next_group)?);
            self.next_group += 1;
        }
    }
}

impl<R: ChunkReader + 'static> Source for ParquetSource<R> {
    fn next(&mut self) -> Result<Option<Request>, Fault> {
        if self.next_row == self.rows.len() {
            let refilled = self.refill();
            match refilled {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(kind) => {
                    let place = Place::Record(self.record + 1);
                    return Err(Fault { place, kind, resumes: false });
                }
            }
        }
        let row = self.rows[self.next_row];
        self.next_row += 1;
        self.record += 1;
        row.request().map(Some).ok_or_else(|| Fault {
            place: Place::Record(self.record),
            kind: ErrorKind::Malformed {
                expected: "non-negative arrival_ns and size_bytes, and op 'read' or 'write'",
                found: format!("{row:?}"),
            },
            resumes: true,
        })
    }

    fn place(&self) -> Place {
        Place::Record(self.record)
    }

    fn ignored(&self) -> u64 {
        0
    }

    fn fraction(&self) -> Option<f64> {
        (self.record_count > 0).then(|| (self.record as f64 / self.record_count as f64).min(1.0))
    }
}

impl Row {
    fn request(self) -> Option<Request> {
        Some(Request {
            arrival: Nanos(self.arrival?),
            size: Bytes(self.size?),
            op: self.op?,
            offset: self.offset?,
            response: self.response?.map(Nanos),
        })
    }
}

impl Group {
    /// Replaces `rows` by the next batch.
    fn read(&mut self, rows: &mut Vec<Row>) -> Result<(), ParquetError> {
        let count = self.rows_left.min(BATCH_ROWS);
        self.rows_left -= count;
        let absent = Row { offset: Some(None), response: Some(None), ..Row::default() };
        rows.clear();
        rows.resize(count, absent);
        let set: [SetNumber; 4] = [
            |row, value| row.arrival = value.flatten(),
            |row, value| row.size = value.flatten(),
            |row, value| row.offset = value,
            |row, value| row.response = value,
        ];
        for (numbers, set) in self.numbers.iter_mut().zip(set) {
            let Some(Numbers { values, unsigned }) = numbers else { continue };
            let valid = |&value: &i64| {
                if *unsigned { Some(value.cast_unsigned()) } else { u64::try_from(value).ok() }
            };
            values.read(count, |index, value| {
                set(
                    &mut rows[index],
                    match value {
                        None => Some(None),
                        Some(value) => valid(value).map(Some),
                    },
                );
            })?;
        }
        self.op.read(count, |index, value| {
            rows[index].op = value.and_then(|text| super::text::op_of(text.data()));
        })
    }
}

/// A column of integers.
struct Numbers {
    values: Values<Int64Type>,
    unsigned: bool,
}

type Strings = Values<ByteArrayType>;

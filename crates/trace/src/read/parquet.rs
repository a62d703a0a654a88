//! The native format: flat columns `arrival_ns`, `size_bytes`, `op` ("read" or "write"), and optionally
//! `offset` and `response_ns`, which may hold nulls. Further columns are ignored.
//!
//! Rows are decoded in batches, one row group after the other, so memory is a few pages whatever the file's size.

use super::source::{SourceError, TraceSource};
use crate::columns::decode::{
    BoundsCheckedInput, ColumnValues, catch_damage, find_flat_column, is_unsigned, malformed_columns,
    open_untrusted, row_count,
};
use crate::error::{TraceError, TraceErrorKind, TracePosition};
use crate::format::PARQUET_MAGIC;
use crate::operation;
use model::{Op, Request};
use parquet::basic::Type as PhysicalType;
use parquet::data_type::{ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;
use units::{Bytes, Nanos};

/// How many rows are decoded at a time.
const BATCH_ROWS: usize = 1 << 13;
const EXPECTED_COLUMNS: &str = "flat columns arrival_ns and size_bytes (INT64) and op (STRING)";

/// Whether `file` begins like a Parquet file; leaves it positioned at its beginning.
pub(super) fn has_magic(file: &mut File) -> io::Result<bool> {
    let mut magic = [0; 4];
    let len = crate::input::read_up_to(file, &mut magic)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(&magic[..len] == PARQUET_MAGIC)
}

pub(super) struct ParquetSource<R: ChunkReader> {
    file: SerializedFileReader<BoundsCheckedInput<R>>,
    columns: TraceColumns,
    next_group: usize,
    group: Option<OpenRowGroup>,
    rows: Vec<TraceRow>,
    next_row: usize,
    record: u64,
    record_count: u64,
}

impl<R: ChunkReader + 'static> ParquetSource<R> {
    /// Reads the file's metadata and finds the columns.
    pub(super) fn open(input: R, name: &Path) -> Result<Self, TraceError> {
        Self::open_columns(input).map_err(|kind| TraceError::new(name, TracePosition::File, kind))
    }

    fn open_columns(input: R) -> Result<Self, TraceErrorKind> {
        let file = open_untrusted(input)?;
        let metadata = file.metadata().file_metadata();
        let schema = metadata.schema_descr();
        let columns =
            TraceColumns::find(schema).ok_or_else(|| malformed_columns(schema, EXPECTED_COLUMNS))?;
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

    /// Decodes the next batch of rows; returns whether there was one.
    fn decode_batch(&mut self) -> Result<bool, TraceErrorKind> {
        loop {
            if let Some(group) = self.group.as_mut().filter(|group| group.rows_left > 0) {
                catch_damage(|| group.decode_batch(&mut self.rows))?;
                self.next_row = 0;
                return Ok(true);
            }
            if self.next_group >= self.file.num_row_groups() {
                return Ok(false);
            }
            let (file, columns, index) = (&self.file, &self.columns, self.next_group);
            self.group = Some(catch_damage(|| columns.open(&*file.get_row_group(index)?))?);
            self.next_group += 1;
        }
    }
}

impl<R: ChunkReader + 'static> TraceSource for ParquetSource<R> {
    fn next(&mut self) -> Result<Option<Request>, SourceError> {
        if self.next_row == self.rows.len() {
            match self.decode_batch() {
                Ok(true) => {}
                Ok(false) => return Ok(None),
                Err(kind) => return Err(SourceError::fatal(TracePosition::Record(self.record + 1), kind)),
            }
        }
        let row = self.rows[self.next_row];
        self.next_row += 1;
        self.record += 1;
        row.to_request().map(Some).ok_or_else(|| SourceError {
            position: TracePosition::Record(self.record),
            kind: TraceErrorKind::Malformed {
                expected: "non-negative arrival_ns and size_bytes, and op 'read' or 'write'",
                found: row.describe(),
            },
            is_recoverable: true,
        })
    }

    fn position(&self) -> TracePosition {
        TracePosition::Record(self.record)
    }

    fn ignored(&self) -> u64 {
        0
    }

    fn fraction(&self) -> Option<f64> {
        (self.record_count > 0).then(|| (self.record as f64 / self.record_count as f64).min(1.0))
    }
}

/// Where the columns of a trace are in a file.
struct TraceColumns {
    arrival: IntegerColumn,
    size: IntegerColumn,
    op: usize,
    offset: Option<IntegerColumn>,
    response: Option<IntegerColumn>,
}

impl TraceColumns {
    /// `None` when a required column is missing.
    fn find(schema: &SchemaDescriptor) -> Option<Self> {
        Some(Self {
            arrival: IntegerColumn::find(schema, "arrival_ns")?,
            size: IntegerColumn::find(schema, "size_bytes")?,
            op: find_flat_column(schema, "op", PhysicalType::BYTE_ARRAY)?,
            offset: IntegerColumn::find(schema, "offset"),
            response: IntegerColumn::find(schema, "response_ns"),
        })
    }

    fn open(&self, group: &dyn RowGroupReader) -> Result<OpenRowGroup, ParquetError> {
        let rows_left = row_count(group)?;
        let op = ColumnValues::open(group, self.op)?;
        Ok(OpenRowGroup {
            arrival: self.arrival.open(group)?,
            size: self.size.open(group)?,
            op,
            offset: self.offset.map(|column| column.open(group)).transpose()?,
            response: self.response.map(|column| column.open(group)).transpose()?,
            rows_left,
        })
    }
}

/// Where a column of integers is, and whether its highest bit is a sign.
#[derive(Debug, Clone, Copy)]
struct IntegerColumn {
    index: usize,
    unsigned: bool,
}

impl IntegerColumn {
    fn find(schema: &SchemaDescriptor, name: &str) -> Option<Self> {
        let index = find_flat_column(schema, name, PhysicalType::INT64)?;
        Some(Self { index, unsigned: is_unsigned(&schema.column(index)) })
    }

    fn open(self, group: &dyn RowGroupReader) -> Result<IntegerValues, ParquetError> {
        Ok(IntegerValues { values: ColumnValues::open(group, self.index)?, unsigned: self.unsigned })
    }
}

/// The columns of one row group, while it is decoded.
struct OpenRowGroup {
    arrival: IntegerValues,
    size: IntegerValues,
    op: ColumnValues<ByteArrayType>,
    offset: Option<IntegerValues>,
    response: Option<IntegerValues>,
    rows_left: usize,
}

impl OpenRowGroup {
    /// Replaces `rows` by the next batch.
    fn decode_batch(&mut self, rows: &mut Vec<TraceRow>) -> Result<(), ParquetError> {
        let count = self.rows_left.min(BATCH_ROWS);
        self.rows_left -= count;
        rows.clear();
        rows.resize(count, TraceRow::WITHOUT_OPTIONAL_VALUES);
        self.arrival.read(count, |index, value| rows[index].arrival = value.flatten())?;
        self.size.read(count, |index, value| rows[index].size = value.flatten())?;
        if let Some(offset) = &mut self.offset {
            offset.read(count, |index, value| rows[index].offset = value)?;
        }
        if let Some(response) = &mut self.response {
            response.read(count, |index, value| rows[index].response = value)?;
        }
        self.op.read(count, |index, value| {
            rows[index].op = value.and_then(|text| operation::from_name(text.data()));
        })
    }
}

/// A column of integers while it is decoded.
struct IntegerValues {
    values: ColumnValues<Int64Type>,
    unsigned: bool,
}

impl IntegerValues {
    /// Passes the next `count` values to `visit`: the outer `None` is a negative number, the inner one a null.
    fn read(
        &mut self,
        count: usize,
        mut visit: impl FnMut(usize, Option<Option<u64>>),
    ) -> Result<(), ParquetError> {
        let unsigned = self.unsigned;
        self.values.read(count, |index, value| match value {
            None => visit(index, Some(None)),
            Some(value) if unsigned => visit(index, Some(Some(value.cast_unsigned()))),
            Some(&value) => visit(index, u64::try_from(value).ok().map(Some)),
        })
    }
}

/// A decoded row. It is checked when it is returned, so that a malformed one can be named and skipped.
#[derive(Clone, Copy)]
struct TraceRow {
    arrival: Option<u64>,
    size: Option<u64>,
    op: Option<Op>,
    /// The outer `None` is a negative number, the inner one a null.
    offset: Option<Option<u64>>,
    /// The outer `None` is a negative number, the inner one a null.
    response: Option<Option<u64>>,
}

impl TraceRow {
    const WITHOUT_OPTIONAL_VALUES: Self =
        Self { arrival: None, size: None, op: None, offset: Some(None), response: Some(None) };

    /// The row as a request; `None` when a value is invalid or a required one is missing.
    fn to_request(self) -> Option<Request> {
        Some(Request {
            arrival: Nanos(self.arrival?),
            size: Bytes(self.size?),
            op: self.op?,
            offset: self.offset?,
            response: self.response?.map(Nanos),
        })
    }

    /// The row's values for an error message.
    fn describe(self) -> String {
        let Self { arrival, size, op, offset, response } = self;
        format!(
            "Row {{ arrival: {arrival:?}, size: {size:?}, op: {op:?}, offset: {offset:?}, response: {response:?} }}"
        )
    }
}

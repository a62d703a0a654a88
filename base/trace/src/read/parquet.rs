//! The native format: flat columns `arrival_ns`, `size_bytes`, `op` ("read" or "write"), and optionally
//! `offset` and `response_ns`, which may hold nulls. Further columns are ignored.
//!
//! A file of observations has `intended_ns` in place of `arrival_ns`, `end_ns` from which the response
//! time follows, and the `workload` of each request.
//!
//! Rows are decoded in batches, one row group after the other, so memory is a few pages for a file of any
//! size.

use super::source::{SourceError, TraceSource};
use crate::columns::decode::{
    BoundsCheckedInput, ColumnValues, catch_damage, find_flat_column, is_unsigned, malformed_columns,
    open_untrusted, row_count,
};
use crate::error::{TraceError, TraceErrorKind, TracePosition};
use crate::format::{PARQUET_MAGIC, TraceFormat};
use crate::operation;
use crate::selection::{RequestParties, RequestSelector, TraceSelection};
use model::{Op, Request};
use parquet::basic::Type as PhysicalType;
use parquet::data_type::{ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::reader::{ChunkReader, FileReader, RowGroupReader, SerializedFileReader};
use parquet::schema::types::SchemaDescriptor;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::path::Path;
use units::{Bytes, Nanos};

/// Number of rows that are decoded at a time.
const BATCH_ROWS: usize = 1 << 13;
const EXPECTED_COLUMNS: &str = "flat columns arrival_ns and size_bytes (INT64) and op (STRING)";

/// Returns true if `file` begins with Parquet's magic number; leaves it positioned at its beginning.
pub(super) fn has_magic(file: &mut File) -> io::Result<bool> {
    let mut magic = [0; 4];
    let len = crate::input::read_up_to(file, &mut magic)?;
    file.seek(SeekFrom::Start(0))?;
    Ok(&magic[..len] == PARQUET_MAGIC)
}

pub(super) struct ParquetSource<R: ChunkReader> {
    file: SerializedFileReader<BoundsCheckedInput<R>>,
    columns: TraceColumns,
    owners: RowOwners,
    next_group: usize,
    group: Option<OpenRowGroup>,
    rows: Vec<TraceRow>,
    next_row: usize,
    record: u64,
    record_count: u64,
}

impl<R: ChunkReader + 'static> ParquetSource<R> {
    /// Reads the file's metadata and finds the columns.
    pub(super) fn open(input: R, name: &Path, selection: &TraceSelection) -> Result<Self, TraceError> {
        Self::open_columns(input, selection).map_err(|kind| TraceError::new(name, TracePosition::File, kind))
    }

    fn open_columns(input: R, selection: &TraceSelection) -> Result<Self, TraceErrorKind> {
        let file = open_untrusted(input)?;
        let metadata = file.metadata().file_metadata();
        let schema = metadata.schema_descr();
        let columns =
            TraceColumns::find(schema).ok_or_else(|| malformed_columns(schema, EXPECTED_COLUMNS))?;
        let record_count = u64::try_from(metadata.num_rows()).unwrap_or(0);
        if columns.observed.is_none() && matches!(selection, TraceSelection::Named(..)) {
            return Err(TraceErrorKind::NotSplit(TraceFormat::Parquet));
        }
        Ok(Self {
            owners: RowOwners::new(selection),
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

    /// Decodes the next batch of rows; returns false at the end.
    fn decode_batch(&mut self) -> Result<bool, TraceErrorKind> {
        loop {
            if let Some(group) = self.group.as_mut().filter(|group| group.rows_left > 0) {
                catch_damage(|| group.decode_batch(&mut self.rows, &mut self.owners))?;
                self.next_row = 0;
                return Ok(true);
            }
            if self.next_group >= self.file.num_row_groups() {
                return Ok(false);
            }
            let file = &self.file;
            let columns = &self.columns;
            let index = self.next_group;
            self.group = Some(catch_damage(|| columns.open(&*file.get_row_group(index)?))?);
            self.next_group += 1;
        }
    }
}

impl<R: ChunkReader> ParquetSource<R> {
    fn fatal(&self, kind: TraceErrorKind) -> SourceError {
        SourceError::fatal(TracePosition::Record(self.record + 1), kind)
    }

    fn malformed(&self, row: TraceRow) -> SourceError {
        let expected = if self.columns.observed.is_some() {
            "non-negative intended_ns and size_bytes, an end_ns that is no earlier or null, and op 'read' or 'write'"
        } else {
            "non-negative arrival_ns and size_bytes, and op 'read' or 'write'"
        };
        let kind = TraceErrorKind::Malformed { expected, found: row.describe() };
        SourceError { position: TracePosition::Record(self.record), kind, is_recoverable: true, file: None }
    }
}

/// Workloads of a file of observations, numbered in the order of their first rows.
struct RowOwners {
    numbers: HashMap<Vec<u8>, u32>,
    names: Vec<String>,
    selector: RequestSelector,
}

impl RowOwners {
    fn new(selection: &TraceSelection) -> Self {
        Self { numbers: HashMap::new(), names: Vec::new(), selector: RequestSelector::new(selection) }
    }

    fn number_of(&mut self, name: &[u8]) -> u32 {
        if let Some(number) = self.numbers.get(name) {
            return *number;
        }
        let number = u32::try_from(self.names.len()).expect("fewer names than rows of a batch, and bounded");
        self.numbers.insert(name.to_vec(), number);
        self.names.push(String::from_utf8_lossy(name).into_owned());
        number
    }

    fn admits(&mut self, owner: u32) -> Result<bool, TraceErrorKind> {
        // The name of a null is empty.
        let name = self.names.get(owner as usize).map_or("", String::as_str);
        self.selector.admits(RequestParties { workload: name, client: "", server: "" })
    }

    fn finish(&self) -> Result<(), TraceErrorKind> {
        self.selector.finish()
    }
}

impl<R: ChunkReader + 'static> TraceSource for ParquetSource<R> {
    fn next(&mut self) -> Result<Option<Request>, SourceError> {
        loop {
            if self.next_row == self.rows.len() {
                match self.decode_batch() {
                    Ok(true) => {}
                    Ok(false) => {
                        return self.owners.finish().map(|()| None).map_err(|kind| self.fatal(kind));
                    }
                    Err(kind) => return Err(self.fatal(kind)),
                }
            }
            let row = self.rows[self.next_row];
            self.next_row += 1;
            self.record += 1;
            if self.columns.observed.is_some() {
                match self.owners.admits(row.owner) {
                    Ok(true) => {}
                    Ok(false) => continue,
                    Err(kind) => return Err(self.fatal(kind)),
                }
            }
            return row.to_request().map(Some).ok_or_else(|| self.malformed(row));
        }
    }

    fn position(&self) -> TracePosition {
        TracePosition::Record(self.record)
    }

    fn ignored(&self) -> u64 {
        0
    }

    fn owners(&self) -> Option<&BTreeMap<String, u64>> {
        self.columns.observed.is_some().then(|| self.owners.selector.counts())
    }

    fn fraction(&self) -> Option<f64> {
        (self.record_count > 0).then(|| (self.record as f64 / self.record_count as f64).min(1.0))
    }
}

/// Column positions of a trace in a file.
struct TraceColumns {
    arrival: IntegerColumn,
    size: IntegerColumn,
    op: usize,
    offset: Option<IntegerColumn>,
    response: Option<IntegerColumn>,
    /// Columns that only files of observations have.
    observed: Option<ObservedColumns>,
}

/// Columns of files of observations in place of the response time.
struct ObservedColumns {
    workload: usize,
    end: IntegerColumn,
}

impl ObservedColumns {
    fn find(schema: &SchemaDescriptor) -> Option<Self> {
        let workload = find_flat_column(schema, "workload", PhysicalType::BYTE_ARRAY)?;
        Some(Self { workload, end: IntegerColumn::find(schema, "end_ns")? })
    }
}

impl TraceColumns {
    /// Finds the columns; `None` if a required one is missing.
    fn find(schema: &SchemaDescriptor) -> Option<Self> {
        let (arrival, observed) = match IntegerColumn::find(schema, "arrival_ns") {
            Some(arrival) => (arrival, None),
            None => (IntegerColumn::find(schema, "intended_ns")?, Some(ObservedColumns::find(schema)?)),
        };
        Some(Self {
            arrival,
            observed,
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
            end: self.observed.as_ref().map(|columns| columns.end.open(group)).transpose()?,
            workload: self
                .observed
                .as_ref()
                .map(|columns| ColumnValues::open(group, columns.workload))
                .transpose()?,
            rows_left,
        })
    }
}

/// Position of a column of integers, and its signedness.
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
    end: Option<IntegerValues>,
    workload: Option<ColumnValues<ByteArrayType>>,
    rows_left: usize,
}

impl OpenRowGroup {
    /// Replaces `rows` by the next batch.
    fn decode_batch(&mut self, rows: &mut Vec<TraceRow>, owners: &mut RowOwners) -> Result<(), ParquetError> {
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
        if let Some(end) = &mut self.end {
            end.read(count, |index, value| rows[index].end(value))?;
        }
        if let Some(workload) = &mut self.workload {
            workload.read(count, |index, value| {
                rows[index].owner = value.map_or(u32::MAX, |name| owners.number_of(name.data()));
            })?;
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

/// A decoded row. Checked only when it is returned, so that a malformed one can be reported and skipped.
#[derive(Clone, Copy)]
struct TraceRow {
    arrival: Option<u64>,
    size: Option<u64>,
    op: Option<Op>,
    /// The outer `None` is a negative number, the inner one a null.
    offset: Option<Option<u64>>,
    /// The outer `None` is a negative number, the inner one a null.
    response: Option<Option<u64>>,
    /// Number of its workload, in files of observations.
    owner: u32,
}

impl TraceRow {
    const WITHOUT_OPTIONAL_VALUES: Self = Self {
        arrival: None,
        size: None,
        op: None,
        offset: Some(None),
        response: Some(None),
        owner: u32::MAX,
    };

    /// Takes the instant of the answer, null without one; called after the arrival is known.
    fn end(&mut self, end: Option<Option<u64>>) {
        self.response = match (end, self.arrival) {
            (Some(Some(end)), Some(arrival)) => end.checked_sub(arrival).map(Some),
            (end, _) => end,
        };
    }

    /// Converts the row into a request; `None` if a value is invalid or a required one is missing.
    fn to_request(self) -> Option<Request> {
        Some(Request {
            arrival: Nanos(self.arrival?),
            size: Bytes(self.size?),
            op: self.op?,
            offset: self.offset?,
            response: self.response?.map(Nanos),
        })
    }

    /// Formats the row's values for an error message.
    fn describe(self) -> String {
        let Self { arrival, size, op, offset, response, .. } = self;
        format!(
            "Row {{ arrival: {arrival:?}, size: {size:?}, op: {op:?}, offset: {offset:?}, response: {response:?} }}"
        )
    }
}

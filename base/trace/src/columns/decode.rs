//! Decodes flat Parquet columns of untrusted files.

use crate::error::{TraceErrorKind, excerpt};
use crate::input::damage;
use parquet::basic::{LogicalType, Type as PhysicalType};
use parquet::column::reader::{ColumnReaderImpl, get_typed_column_reader};
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length, RowGroupReader, SerializedFileReader};
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// Reads the metadata of a Parquet file.
pub(crate) fn open_untrusted<R: ChunkReader + 'static>(
    input: R,
) -> Result<SerializedFileReader<BoundsCheckedInput<R>>, TraceErrorKind> {
    catch_damage(|| SerializedFileReader::new(BoundsCheckedInput(input)))
}

/// Returns the index of the column with this name, if it has this type and is flat: one value or null in
/// every row.
pub(crate) fn find_flat_column(
    schema: &SchemaDescriptor,
    name: &str,
    physical: PhysicalType,
) -> Option<usize> {
    schema.columns().iter().position(|column| {
        let is_flat = column.max_rep_level() == 0 && column.max_def_level() <= 1;
        column.path().string() == name && column.physical_type() == physical && is_flat
    })
}

/// The error for a file that lacks a required column.
pub(crate) fn malformed_columns(schema: &SchemaDescriptor, expected: &'static str) -> TraceErrorKind {
    let names: Vec<String> = schema.columns().iter().map(|column| column.path().string()).collect();
    TraceErrorKind::Malformed { expected, found: excerpt(names.join(", ").as_bytes()) }
}

/// Returns true if the integers of a column are unsigned.
pub(crate) fn is_unsigned(column: &ColumnDescriptor) -> bool {
    matches!(column.logical_type_ref(), Some(LogicalType::Integer(int)) if !int.is_signed)
}

/// Returns the number of rows that a row group states, after checking assumptions of the decoder.
pub(crate) fn row_count(group: &dyn RowGroupReader) -> Result<usize, ParquetError> {
    check_positions(group.metadata())?;
    usize::try_from(group.metadata().num_rows())
        .map_err(|_| ParquetError::General("a negative number of rows".to_owned()))
}

fn check_positions(group: &RowGroupMetaData) -> Result<(), ParquetError> {
    if group.columns().iter().all(has_valid_position) {
        return Ok(());
    }
    Err(ParquetError::General("a column has a negative place".to_owned()))
}

fn has_valid_position(chunk: &ColumnChunkMetaData) -> bool {
    chunk.compressed_size() >= 0
        && chunk.data_page_offset() >= 0
        && chunk.dictionary_page_offset().is_none_or(|offset| offset >= 0)
}

/// A flat column of one row group, and the buffers of its current batch.
pub(crate) struct ColumnValues<T: DataType> {
    reader: ColumnReaderImpl<T>,
    levels: Vec<i16>,
    values: Vec<T::T>,
}

impl<T: DataType> ColumnValues<T> {
    /// Opens the column with this index, whose physical type must be `T`.
    pub(crate) fn open(group: &dyn RowGroupReader, index: usize) -> Result<Self, ParquetError> {
        let reader = get_typed_column_reader(group.get_column_reader(index)?);
        Ok(Self { reader, levels: Vec::new(), values: Vec::new() })
    }

    /// Passes the next `count` rows to `visit` with their index in the batch; `None` is a null.
    pub(crate) fn read(
        &mut self,
        count: usize,
        mut visit: impl FnMut(usize, Option<&T::T>),
    ) -> Result<(), ParquetError> {
        self.levels.clear();
        self.values.clear();
        let mut records = 0;
        while records < count {
            let (more, _, _) =
                self.reader.read_records(count - records, Some(&mut self.levels), None, &mut self.values)?;
            if more == 0 {
                return Err(ParquetError::EOF("a column is shorter than its row group".to_owned()));
            }
            records += more;
        }
        let mut values = self.values.iter();
        for index in 0..count {
            // A required column has no levels: every row has a value.
            let is_present = self.levels.get(index).is_none_or(|&level| level > 0);
            visit(index, if is_present { values.next() } else { None });
        }
        Ok(())
    }
}

/// An input that refuses reads beyond its end: a damaged file may ask for any position and any length,
/// which must neither panic nor allocate.
pub(crate) struct BoundsCheckedInput<R>(R);

impl<R: Length> BoundsCheckedInput<R> {
    fn check(&self, start: u64, length: u64) -> Result<(), ParquetError> {
        let fits = start.checked_add(length).is_some_and(|end| end <= self.0.len());
        fits.then_some(()).ok_or_else(|| ParquetError::EOF("it refers to places beyond its end".to_owned()))
    }
}

impl<R: Length> Length for BoundsCheckedInput<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for BoundsCheckedInput<R> {
    type T = R::T;

    fn get_read(&self, start: u64) -> Result<R::T, ParquetError> {
        self.check(start, 0)?;
        self.0.get_read(start)
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes, ParquetError> {
        self.check(start, length as u64)?;
        self.0.get_bytes(start, length)
    }
}

/// Runs a decoder over untrusted bytes. Its errors and panics both mean damaged data. What was being
/// decoded is dropped, so no half-decoded state is observed.
pub(crate) fn catch_damage<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, TraceErrorKind> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(ParquetError::External(error))) => match error.downcast::<io::Error>() {
            Ok(error) => Err(damage(*error)),
            Err(error) => Err(TraceErrorKind::Truncated(error.to_string())),
        },
        Ok(Err(error)) => Err(TraceErrorKind::Truncated(error.to_string())),
        Err(_) => Err(TraceErrorKind::Truncated("its structure contradicts itself".to_owned())),
    }
}

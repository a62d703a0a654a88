//! Flat columns from untrusted files.

use crate::error::ErrorKind;
use parquet::basic::LogicalType;
use parquet::column::reader::ColumnReaderImpl;
use parquet::data_type::DataType;
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, RowGroupMetaData};
use parquet::file::reader::{ChunkReader, Length};
use parquet::schema::types::ColumnDescriptor;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A flat column and the buffers of its current batch.
pub(crate) struct Values<T: DataType> {
    reader: ColumnReaderImpl<T>,
    levels: Vec<i16>,
    values: Vec<T::T>,
}

impl<T: DataType> Values<T> {
    pub(crate) fn new(reader: ColumnReaderImpl<T>) -> Self {
        Self { reader, levels: Vec::new(), values: Vec::new() }
    }

    /// Gives `each` the next `count` rows, `None` for null.
    pub(crate) fn read(
        &mut self,
        count: usize,
        mut each: impl FnMut(usize, Option<&T::T>),
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
            let present = self.levels.get(index).is_none_or(|&level| level > 0);
            each(index, if present { values.next() } else { None });
        }
        Ok(())
    }
}

/// An input that refuses what lies beyond its end: a damaged file may ask for any place and any length,
/// which must neither panic nor allocate.
pub(crate) struct Checked<R>(pub(crate) R);

impl<R: Length> Checked<R> {
    fn check(&self, start: u64, length: u64) -> Result<(), ParquetError> {
        let fits = start.checked_add(length).is_some_and(|end| end <= self.0.len());
        fits.then_some(()).ok_or_else(|| ParquetError::EOF("it refers to places beyond its end".to_owned()))
    }
}

impl<R: Length> Length for Checked<R> {
    fn len(&self) -> u64 {
        self.0.len()
    }
}

impl<R: ChunkReader> ChunkReader for Checked<R> {
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

/// How integers of a column are to be taken.
pub(crate) fn is_unsigned(column: &ColumnDescriptor) -> bool {
    matches!(column.logical_type_ref(), Some(LogicalType::Integer(int)) if !int.is_signed)
}

/// Runs a decoder over untrusted bytes. Its errors and its panics, which damaged files can cause, both
/// mean damage; nothing that was being decoded is used afterwards, so it cannot be seen half-done.
pub(crate) fn guarded<T>(decode: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ErrorKind> {
    match catch_unwind(AssertUnwindSafe(decode)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(ParquetError::External(error))) => match error.downcast::<io::Error>() {
            Ok(error) => Err(crate::source::damage(*error)),
            Err(error) => Err(ErrorKind::Truncated(error.to_string())),
        },
        Ok(Err(error)) => Err(ErrorKind::Truncated(error.to_string())),
        Err(_) => Err(ErrorKind::Truncated("its structure contradicts itself".to_owned())),
    }
}

/// What the decoder takes for granted.
pub(crate) fn is_placed(group: &RowGroupMetaData) -> Result<(), ParquetError> {
    let placed = |chunk: &ColumnChunkMetaData| {
        chunk.compressed_size() >= 0
            && chunk.data_page_offset() >= 0
            && chunk.dictionary_page_offset().is_none_or(|offset| offset >= 0)
    };
    if group.columns().iter().all(placed) {
        return Ok(());
    }
    Err(ParquetError::General("a column has a negative place".to_owned()))
}

//! Writes flat Parquet columns: text through dictionaries, times as differences, all under zstd.

use crate::error::TraceErrorKind;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as PhysicalType, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};
use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::Arc;

/// Rows of a row group. They bound the writer's memory (about 10 MB) and are the unit that a reader can
/// skip.
pub(crate) const GROUP_ROWS: usize = 1 << 17;

pub(crate) type FileWriter = SerializedFileWriter<BufWriter<File>>;
pub(crate) type RowGroupWriter<'a> = SerializedRowGroupWriter<'a, BufWriter<File>>;

/// Begins a file with these columns; the values of `time_column` never decrease.
pub(crate) fn begin_file(
    file: File,
    schema_name: &str,
    columns: Vec<Arc<Type>>,
    time_column: &str,
) -> Result<FileWriter, ParquetError> {
    let schema = Type::group_type_builder(schema_name).with_fields(columns).build()?;
    SerializedFileWriter::new(BufWriter::new(file), Arc::new(schema), Arc::new(properties(time_column)?))
}

/// Writes the file's metadata behind its row groups.
pub(crate) fn finish_file(writer: FileWriter) -> Result<(), ParquetError> {
    let mut file = writer.into_inner()?;
    io::Write::flush(&mut file).map_err(|error| ParquetError::External(Box::new(error)))
}

fn properties(time_column: &str) -> Result<WriterProperties, ParquetError> {
    let times = ColumnPath::from(time_column);
    Ok(WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by("tailwright".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_column_dictionary_enabled(times.clone(), false)
        .set_column_encoding(times, Encoding::DELTA_BINARY_PACKED)
        .build())
}

/// Returns the type of a column of unsigned integers.
pub(crate) fn integer_column(name: &str, repetition: Repetition) -> Result<Arc<Type>, ParquetError> {
    Type::primitive_type_builder(name, PhysicalType::INT64)
        .with_repetition(repetition)
        .with_logical_type(Some(LogicalType::integer(64, false)))
        .build()
        .map(Arc::new)
}

/// Returns the type of a column of text without nulls.
pub(crate) fn text_column(name: &str) -> Result<Arc<Type>, ParquetError> {
    Type::primitive_type_builder(name, PhysicalType::BYTE_ARRAY)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::String))
        .build()
        .map(Arc::new)
}

fn next_column<'a>(group: &'a mut RowGroupWriter<'_>) -> Result<SerializedColumnWriter<'a>, ParquetError> {
    group.next_column()?.ok_or_else(|| ParquetError::General("the schema has too few columns".to_owned()))
}

/// Writes the next column of a row group: integers without nulls.
pub(crate) fn write_integers(
    group: &mut RowGroupWriter<'_>,
    values: impl Iterator<Item = u64>,
) -> Result<(), ParquetError> {
    let values: Vec<i64> = values.map(u64::cast_signed).collect();
    let mut column = next_column(group)?;
    column.typed::<Int64Type>().write_batch(&values, None, None)?;
    column.close()
}

/// Writes the next column of a row group: integers, some of which are null.
pub(crate) fn write_optional_integers(
    group: &mut RowGroupWriter<'_>,
    values: impl Iterator<Item = Option<u64>>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<u64>> = values.collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let present: Vec<i64> = values.into_iter().flatten().map(u64::cast_signed).collect();
    let mut column = next_column(group)?;
    column.typed::<Int64Type>().write_batch(&present, Some(&levels), None)?;
    column.close()
}

/// Writes the next column of a row group: text with few different values.
pub(crate) fn write_texts<'a>(
    group: &mut RowGroupWriter<'_>,
    texts: impl Iterator<Item = &'a str>,
) -> Result<(), ParquetError> {
    let texts: Vec<ByteArray> = texts.map(ByteArray::from).collect();
    let mut column = next_column(group)?;
    column.typed::<ByteArrayType>().write_batch(&texts, None, None)?;
    column.close()
}

/// Converts a failure to write into an error of this crate.
pub(crate) fn write_error(error: ParquetError) -> TraceErrorKind {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => TraceErrorKind::Io(*error),
            Err(error) => TraceErrorKind::Io(io::Error::other(error)),
        },
        error => TraceErrorKind::Io(io::Error::other(error)),
    }
}

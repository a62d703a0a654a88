//! Flat columns into files: numbers as they are, text through dictionaries, times as differences, all under zstd.

use crate::error::ErrorKind;
use model::Op;
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedColumnWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};
use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::Arc;

/// A row group under way.
pub(crate) type Group<'a> = SerializedRowGroupWriter<'a, BufWriter<File>>;

fn next_column<'a>(group: &'a mut Group<'_>) -> Result<SerializedColumnWriter<'a>, ParquetError> {
    group.next_column()?.ok_or_else(|| ParquetError::General("the schema has too few columns".to_owned()))
}

/// The next column: numbers without nulls.
pub(crate) fn required(group: &mut Group<'_>, values: impl Iterator<Item = u64>) -> Result<(), ParquetError> {
    let values: Vec<i64> = values.map(u64::cast_signed).collect();
    let mut column = next_column(group)?;
    column.typed::<Int64Type>().write_batch(&values, None, None)?;
    column.close()
}

/// The next column: numbers and nulls.
pub(crate) fn optional(
    group: &mut Group<'_>,
    values: impl Iterator<Item = Option<u64>>,
) -> Result<(), ParquetError> {
    let values: Vec<Option<u64>> = values.collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let present: Vec<i64> = values.into_iter().flatten().map(u64::cast_signed).collect();
    let mut column = next_column(group)?;
    column.typed::<Int64Type>().write_batch(&present, Some(&levels), None)?;
    column.close()
}

/// The next column: words of which there are few.
pub(crate) fn texts<'a>(
    group: &mut Group<'_>,
    words: impl Iterator<Item = &'a str>,
) -> Result<(), ParquetError> {
    let words: Vec<ByteArray> = words.map(ByteArray::from).collect();
    let mut column = next_column(group)?;
    column.typed::<ByteArrayType>().write_batch(&words, None, None)?;
    column.close()
}

/// A direction as it is written.
pub(crate) fn op_text(op: Op) -> &'static str {
    match op {
        Op::Read => "read",
        Op::Write => "write",
    }
}

/// The type of a column of numbers.
pub(crate) fn number(name: &str, repetition: Repetition) -> Result<Arc<Type>, ParquetError> {
    Type::primitive_type_builder(name, Physical::INT64)
        .with_repetition(repetition)
        .with_logical_type(Some(LogicalType::integer(64, false)))
        .build()
        .map(Arc::new)
}

/// The type of a column of words.
pub(crate) fn text(name: &str) -> Result<Arc<Type>, ParquetError> {
    Type::primitive_type_builder(name, Physical::BYTE_ARRAY)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::String))
        .build()
        .map(Arc::new)
}

/// How files are written; `times` is a column that never decreases.
pub(crate) fn properties(times: &str) -> Result<WriterProperties, ParquetError> {
    let times = ColumnPath::from(times);
    Ok(WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by("tailwright".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_column_dictionary_enabled(times.clone(), false)
        .set_column_encoding(times, Encoding::DELTA_BINARY_PACKED)
        .build())
}

/// What went wrong, in the words of this crate.
pub(crate) fn error(error: ParquetError) -> ErrorKind {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => ErrorKind::Io(*error),
            Err(error) => ErrorKind::Io(io::Error::other(error)),
        },
        error => ErrorKind::Io(io::Error::other(error)),
    }
}

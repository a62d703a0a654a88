//! The native format, written a row group at a time.
//!
//! Arrivals are stored as differences, sizes and operations through dictionaries, all under zstd: real
//! block traces take 3 to 6 bytes a request.

use crate::error::ErrorKind;
use model::{Op, Request};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::{WriterProperties, WriterVersion};
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{ColumnPath, Type};
use std::fs::File;
use std::io::{self, BufWriter};
use std::sync::Arc;

/// Rows of a row group: what a writer holds in memory (about 10 MB), and what a reader can skip.
const GROUP_ROWS: usize = 1 << 17;

pub(crate) struct ParquetWriter {
    file: Option<SerializedFileWriter<BufWriter<File>>>,
    rows: Vec<Request>,
}

impl ParquetWriter {
    pub(crate) fn new(file: File) -> Result<Self, ErrorKind> {
        let file = schema()
            .and_then(|schema| {
                SerializedFileWriter::new(BufWriter::new(file), Arc::new(schema), Arc::new(properties()?))
            })
            .map_err(error)?;
        Ok(Self { file: Some(file), rows: Vec::with_capacity(GROUP_ROWS) })
    }

    pub(crate) fn write(&mut self, request: &Request) -> Result<(), ErrorKind> {
        self.rows.push(*request);
        if self.rows.len() == GROUP_ROWS { self.write_group().map_err(error) } else { Ok(()) }
    }

    pub(crate) fn finish(&mut self) -> Result<(), ErrorKind> {
        if !self.rows.is_empty() {
            self.write_group().map_err(error)?;
        }
        let file = self.file.take().expect("a writer finishes once");
        let mut inner = file.into_inner().map_err(error)?;
        io::Write::flush(&mut inner).map_err(ErrorKind::Io)
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let file = self.file.as_mut().expect("a finished writer takes no requests");
        let mut group = file.next_row_group()?;
        let rows = &self.rows;
        required(&mut group, rows.iter().map(|r| r.arrival.0))?;
        required(&mut group, rows.iter().map(|r| r.size.0))?;
        let (read, write) = (ByteArray::from("read"), ByteArray::from("write"));
        let ops: Vec<ByteArray> = rows
            .iter()
            .map(|r| match r.op {
                Op::Read => read.clone(),
                Op::Write => write.clone(),
            })
            .collect();
        let mut column = next_column(&mut group)?;
        column.typed::<ByteArrayType>().write_batch(&ops, None, None)?;
        column.close()?;
        optional(&mut group, rows.iter().map(|r| r.offset))?;
        optional(&mut group, rows.iter().map(|r| r.response.map(|response| response.0)))?;
        group.close()?;
        self.rows.clear();
        Ok(())
    }
}

type Group<'a> = SerializedRowGroupWriter<'a, BufWriter<File>>;

fn next_column<'a>(
    group: &'a mut Group<'_>,
) -> Result<parquet::file::writer::SerializedColumnWriter<'a>, ParquetError> {
    group.next_column()?.ok_or_else(|| ParquetError::General("the schema has too few columns".to_owned()))
}

fn required(group: &mut Group<'_>, values: impl Iterator<Item = u64>) -> Result<(), ParquetError> {
    let values: Vec<i64> = values.map(u64::cast_signed).collect();
    let mut column = next_column(group)?;
    column.typed::<Int64Type>().write_batch(&values, None, None)?;
    column.close()
}

fn optional(group: &mut Group<'_>, values: impl Iterator<Item = Option<u64>>) -> Result<(), ParquetError> {
    let values: Vec<Option<u64>> = values.collect();
    let levels: Vec<i16> = values.iter().map(|value| i16::from(value.is_some())).collect();
    let present: Vec<i64> = values.into_iter().flatten().map(u64::cast_signed).collect();
    let mut column = next_column(group)?;
    column.typed::<Int64Type>().write_batch(&present, Some(&levels), None)?;
    column.close()
}

fn schema() -> Result<Type, ParquetError> {
    let number = |name: &str, repetition| {
        Type::primitive_type_builder(name, Physical::INT64)
            .with_repetition(repetition)
            .with_logical_type(Some(LogicalType::integer(64, false)))
            .build()
            .map(Arc::new)
    };
    let op = Type::primitive_type_builder("op", Physical::BYTE_ARRAY)
        .with_repetition(Repetition::REQUIRED)
        .with_logical_type(Some(LogicalType::String))
        .build()?;
    let fields = vec![
        number("arrival_ns", Repetition::REQUIRED)?,
        number("size_bytes", Repetition::REQUIRED)?,
        Arc::new(op),
        number("offset", Repetition::OPTIONAL)?,
        number("response_ns", Repetition::OPTIONAL)?,
    ];
    Type::group_type_builder("trace").with_fields(fields).build()
}

fn properties() -> Result<WriterProperties, ParquetError> {
    let arrival = ColumnPath::from("arrival_ns");
    Ok(WriterProperties::builder()
        .set_writer_version(WriterVersion::PARQUET_2_0)
        .set_created_by("tailwright".to_owned())
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .set_column_dictionary_enabled(arrival.clone(), false)
        .set_column_encoding(arrival, Encoding::DELTA_BINARY_PACKED)
        .build())
}

fn error(error: ParquetError) -> ErrorKind {
    match error {
        ParquetError::External(error) => match error.downcast::<io::Error>() {
            Ok(error) => ErrorKind::Io(*error),
            Err(error) => ErrorKind::Io(io::Error::other(error)),
        },
        error => ErrorKind::Io(io::Error::other(error)),
    }
}

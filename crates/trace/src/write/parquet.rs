//! The native format, written a row group at a time.
//!
//! Arrivals are stored as differences, sizes and operations through dictionaries, all under zstd: real
//! block traces take 3 to 6 bytes a request.

use crate::columns::encode::{error, number, op_text, optional, properties, required, text, texts};
use crate::error::ErrorKind;
use model::Request;
use parquet::basic::Repetition;
use parquet::errors::ParquetError;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;
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
                SerializedFileWriter::new(
                    BufWriter::new(file),
                    Arc::new(schema),
                    Arc::new(properties("arrival_ns")?),
                )
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
        texts(&mut group, rows.iter().map(|r| op_text(r.op)))?;
        optional(&mut group, rows.iter().map(|r| r.offset))?;
        optional(&mut group, rows.iter().map(|r| r.response.map(|response| response.0)))?;
        group.close()?;
        self.rows.clear();
        Ok(())
    }
}

fn schema() -> Result<Type, ParquetError> {
    let fields = vec![
        number("arrival_ns", Repetition::REQUIRED)?,
        number("size_bytes", Repetition::REQUIRED)?,
        text("op")?,
        number("offset", Repetition::OPTIONAL)?,
        number("response_ns", Repetition::OPTIONAL)?,
    ];
    Type::group_type_builder("trace").with_fields(fields).build()
}

//! Writes the native format, one row group at a time.
//!
//! Arrivals are stored as differences, sizes and operations through dictionaries, all under zstd: real
//! block traces take 3 to 6 bytes a request.

use crate::columns::encode::{
    FileWriter, GROUP_ROWS, begin_file, finish_file, integer_column, text_column, write_error,
    write_integers, write_optional_integers, write_texts,
};
use crate::error::TraceErrorKind;
use crate::operation;
use model::Request;
use parquet::basic::Repetition;
use parquet::errors::ParquetError;
use std::fs::File;

pub(super) struct ParquetWriter {
    /// `None` once the file is finished.
    file: Option<FileWriter>,
    rows: Vec<Request>,
}

impl ParquetWriter {
    pub(super) fn new(file: File) -> Result<Self, TraceErrorKind> {
        let file = begin_trace(file).map_err(write_error)?;
        Ok(Self { file: Some(file), rows: Vec::with_capacity(GROUP_ROWS) })
    }

    pub(super) fn write(&mut self, request: &Request) -> Result<(), TraceErrorKind> {
        self.rows.push(*request);
        if self.rows.len() == GROUP_ROWS { self.write_group().map_err(write_error) } else { Ok(()) }
    }

    pub(super) fn finish(&mut self) -> Result<(), TraceErrorKind> {
        if !self.rows.is_empty() {
            self.write_group().map_err(write_error)?;
        }
        let file = self.file.take().expect("a writer finishes once");
        finish_file(file).map_err(write_error)
    }

    fn write_group(&mut self) -> Result<(), ParquetError> {
        let file = self.file.as_mut().expect("a finished writer takes no requests");
        let mut group = file.next_row_group()?;
        let rows = &self.rows;
        write_integers(&mut group, rows.iter().map(|r| r.arrival.0))?;
        write_integers(&mut group, rows.iter().map(|r| r.size.0))?;
        write_texts(&mut group, rows.iter().map(|r| operation::name(r.op)))?;
        write_optional_integers(&mut group, rows.iter().map(|r| r.offset))?;
        write_optional_integers(&mut group, rows.iter().map(|r| r.response.map(|response| response.0)))?;
        group.close()?;
        self.rows.clear();
        Ok(())
    }
}

fn begin_trace(file: File) -> Result<FileWriter, ParquetError> {
    let columns = vec![
        integer_column("arrival_ns", Repetition::REQUIRED)?,
        integer_column("size_bytes", Repetition::REQUIRED)?,
        text_column("op")?,
        integer_column("offset", Repetition::OPTIONAL)?,
        integer_column("response_ns", Repetition::OPTIONAL)?,
    ];
    begin_file(file, "trace", columns, "arrival_ns")
}

//! Writes a file of observations.

use crate::columns::encode::{
    GROUP_ROWS, begin_file, finish_file, integer_column, text_column, write_error, write_integers,
    write_optional_integers, write_texts,
};
use crate::error::{TraceError, TraceErrorKind, TracePosition};
use crate::operation;
use machine::whole_file::WholeFile;
use model::{Observation, Observations, RequestOutcome};
use parquet::basic::Repetition;
use parquet::errors::ParquetError;
use parquet::schema::types::Type;
use std::fs::File;
use std::path::Path;
use std::sync::Arc;

/// An additional column of a file, which [`read`](super::read) skips. Its name must differ from those of
/// observations.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FurtherColumn {
    pub name: &'static str,
    /// Values, one per request, in the order of the requests.
    pub values: ColumnValues,
}

/// The values of a [`FurtherColumn`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnValues {
    /// Unsigned integers.
    Integers(Vec<u64>),
    /// Text with few different values.
    Texts(Vec<String>),
}

/// Writes a file, whole or not at all.
///
/// # Errors
/// When the file cannot be written.
///
/// # Panics
/// When a workload has no name or stage times are missing.
pub fn write(path: &Path, observations: &Observations) -> Result<(), TraceError> {
    write_with(path, observations, &[])
}

/// Writes a file with further columns, whole or not at all.
///
/// # Errors
/// When the file cannot be written.
///
/// # Panics
/// As [`write()`], and when a further column does not have a value for each request.
pub fn write_with(
    path: &Path,
    observations: &Observations,
    further: &[FurtherColumn],
) -> Result<(), TraceError> {
    write_whole(path, observations, further).map_err(|kind| TraceError::new(path, TracePosition::File, kind))
}

fn write_whole(
    path: &Path,
    observations: &Observations,
    further: &[FurtherColumn],
) -> Result<(), TraceErrorKind> {
    let whole = WholeFile::create(path).map_err(TraceErrorKind::Io)?;
    let file = whole.file.try_clone().map_err(TraceErrorKind::Io)?;
    encode(file, observations, further).map_err(write_error)?;
    whole.keep().map_err(TraceErrorKind::Io)
}

fn encode(file: File, observations: &Observations, further: &[FurtherColumn]) -> Result<(), ParquetError> {
    for FurtherColumn { name, values } in further {
        let count = match values {
            ColumnValues::Integers(values) => values.len(),
            ColumnValues::Texts(values) => values.len(),
        };
        assert_eq!(count, observations.requests.len(), "a value of {name} per request");
    }
    let stages = observations.stages.len();
    assert_eq!(
        observations.stage_times.len(),
        stages * observations.requests.len(),
        "a time per request and stage"
    );
    let mut writer =
        begin_file(file, "observations", columns(&observations.stages, further)?, "intended_ns")?;
    for (index, rows) in observations.requests.chunks(GROUP_ROWS).enumerate() {
        let mut group = writer.next_row_group()?;
        write_texts(&mut group, rows.iter().map(|row| workload_name(observations, row)))?;
        write_texts(&mut group, rows.iter().map(|row| operation::name(row.op)))?;
        write_integers(&mut group, rows.iter().map(|row| row.size.0))?;
        write_integers(&mut group, rows.iter().map(|row| row.intended.0))?;
        write_integers(&mut group, rows.iter().map(|row| row.sent.0))?;
        write_texts(&mut group, rows.iter().map(|row| outcome_name(row.outcome)))?;
        write_optional_integers(&mut group, rows.iter().map(|row| end_ns(row.outcome)))?;
        let times = observations.stage_times.iter().skip(index * GROUP_ROWS * stages);
        for stage in 0..stages {
            let times_in_stage = times.clone().skip(stage).step_by(stages).take(rows.len());
            write_integers(&mut group, times_in_stage.map(|time| time.0))?;
        }
        let first = index * GROUP_ROWS;
        let placed = first..first + rows.len();
        for column in further {
            match &column.values {
                ColumnValues::Integers(values) => {
                    write_integers(&mut group, values[placed.clone()].iter().copied())?;
                }
                ColumnValues::Texts(values) => {
                    write_texts(&mut group, values[placed.clone()].iter().map(String::as_str))?;
                }
            }
        }
        group.close()?;
    }
    finish_file(writer)
}

fn columns(stages: &[String], further: &[FurtherColumn]) -> Result<Vec<Arc<Type>>, ParquetError> {
    let mut columns = vec![
        text_column("workload")?,
        text_column("op")?,
        integer_column("size_bytes", Repetition::REQUIRED)?,
        integer_column("intended_ns", Repetition::REQUIRED)?,
        integer_column("sent_ns", Repetition::REQUIRED)?,
        text_column("outcome")?,
        integer_column("end_ns", Repetition::OPTIONAL)?,
    ];
    for stage in stages {
        columns.push(integer_column(&format!("stage_{stage}_ns"), Repetition::REQUIRED)?);
    }
    for FurtherColumn { name, values } in further {
        columns.push(match values {
            ColumnValues::Integers(_) => integer_column(name, Repetition::REQUIRED)?,
            ColumnValues::Texts(_) => text_column(name)?,
        });
    }
    Ok(columns)
}

fn workload_name<'a>(observations: &'a Observations, row: &Observation) -> &'a str {
    &observations.workloads[row.workload as usize]
}

fn outcome_name(outcome: RequestOutcome) -> &'static str {
    match outcome {
        RequestOutcome::Done(_) => "done",
        RequestOutcome::Failed(_) => "failed",
        RequestOutcome::Lost => "lost",
    }
}

fn end_ns(outcome: RequestOutcome) -> Option<u64> {
    match outcome {
        RequestOutcome::Done(end) | RequestOutcome::Failed(end) => Some(end.0),
        RequestOutcome::Lost => None,
    }
}

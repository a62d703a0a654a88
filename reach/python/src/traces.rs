//! Trace files from columns.

use crate::call::unlocked;
use crate::columns::TimeColumn;
use crate::errors::{failed, input};
use model::{Op, OperationError, Request};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use std::path::PathBuf;
use trace::{TraceError, TraceFormat, TraceWriter};
use units::Bytes;

/// The reason for which a row, or the file, cannot be written.
enum Failure {
    Row(String),
    File(OperationError),
}

impl From<TraceError> for Failure {
    fn from(error: TraceError) -> Self {
        Self::File(OperationError::input(&error).hint(error.hint()))
    }
}

/// Returns the number of requests written.
#[pyfunction]
pub(crate) fn write_trace(
    py: Python<'_>,
    path: PathBuf,
    format: Option<&str>,
    time: TimeColumn<'_>,
    size: PyReadonlyArray1<'_, i64>,
    is_write: PyReadonlyArray1<'_, bool>,
    offset: Option<PyReadonlyArray1<'_, i64>>,
) -> PyResult<u64> {
    let format = match format {
        Some(name) => name.parse().map_err(|error| input(py, error))?,
        None => TraceFormat::from_file_name(&path.to_string_lossy()).ok_or_else(|| {
            let names = TraceFormat::names_written();
            let path = path.display();
            input(
                py,
                format_args!(
                    "{path}: the name does not say which format to write: expected one of {names} as format"
                ),
            )
        })?,
    };
    let times = time.view();
    let size = size.as_array();
    let is_write = is_write.as_array();
    let offset = offset.as_ref().map(|offset| offset.as_array());
    let written = unlocked(py, || {
        let mut writer = TraceWriter::create(&path, format)?;
        for row in 0..times.len() {
            let whole = |value: i64, name: &str| {
                let message =
                    || Failure::Row(format!("{name}[{row}] is {value}: expected bytes of at least 0"));
                u64::try_from(value).map_err(|_| message())
            };
            let request = Request {
                arrival: times.get(row, "time").map_err(Failure::Row)?,
                size: Bytes(whole(size[row], "size")?),
                op: if is_write[row] { Op::Write } else { Op::Read },
                offset: offset.map(|offset| whole(offset[row], "offset")).transpose()?,
                response: None,
            };
            writer.write(&request)?;
        }
        Ok(writer.finish()?)
    })?;
    written.map_err(|error| match error {
        Failure::Row(message) => input(py, message),
        Failure::File(error) => failed(py, &error),
    })
}

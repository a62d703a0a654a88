//! Observed requests as columns.

use crate::call::{call, unlocked};
use crate::columns::TimeColumn;
use crate::errors::input;
use measure::verification::read_observations;
use model::{NAME_EXPECTED, Observation, Op, OperationError, RequestOutcome, is_usable_name};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use units::{Bytes, Nanos};

/// Numbers of outcomes in columns.
const DONE: u8 = 0;
const FAILED: u8 = 1;
const LOST: u8 = 2;

/// Observations, which never change.
#[pyclass(frozen, module = "tailwright._tailwright")]
pub(crate) struct Observations(Arc<model::Observations>);

impl Observations {
    pub(crate) fn new(observations: model::Observations) -> Self {
        Self(Arc::new(observations))
    }

    pub(crate) fn shared(&self) -> Arc<model::Observations> {
        Arc::clone(&self.0)
    }
}

#[pymethods]
impl Observations {
    #[staticmethod]
    fn read(py: Python<'_>, paths: Vec<PathBuf>) -> PyResult<Self> {
        call(py, move |_| {
            let paths: Vec<&Path> = paths.iter().map(PathBuf::as_path).collect();
            read_observations(&paths)
        })
        .map(Self::new)
    }

    /// Columns of equal length; `workload` numbers the names, from 0.
    #[staticmethod]
    #[allow(clippy::too_many_arguments, reason = "the Python function names them")]
    fn from_columns(
        py: Python<'_>,
        workloads: Vec<String>,
        workload: PyReadonlyArray1<'_, i64>,
        is_write: PyReadonlyArray1<'_, bool>,
        size: PyReadonlyArray1<'_, i64>,
        intended: TimeColumn<'_>,
        sent: TimeColumn<'_>,
        end: TimeColumn<'_>,
        outcome: PyReadonlyArray1<'_, u8>,
    ) -> PyResult<Self> {
        if let Some(name) = workloads.iter().find(|name| !is_usable_name(name)) {
            return Err(input(py, format_args!("there is a workload {name:?}: {NAME_EXPECTED}")));
        }
        let workload = workload.as_array();
        let is_write = is_write.as_array();
        let size = size.as_array();
        let intended = intended.view();
        let sent = sent.view();
        let end = end.view();
        let outcome = outcome.as_array();
        let requests = unlocked(py, || {
            let mut requests = Vec::with_capacity(intended.len());
            for row in 0..intended.len() {
                let size = u64::try_from(size[row])
                    .map_err(|_| format!("size[{row}] is {}: expected bytes of at least 0", size[row]))?;
                let intended = intended.get(row, "intended")?;
                let sent = sent.get(row, "sent")?;
                let outcome = match outcome[row] {
                    LOST => RequestOutcome::Lost,
                    FAILED => RequestOutcome::Failed(end.get(row, "end")?),
                    _ => RequestOutcome::Done(end.get(row, "end")?),
                };
                if let RequestOutcome::Done(at) | RequestOutcome::Failed(at) = outcome
                    && at < intended
                {
                    return Err(format!("end[{row}] is before intended[{row}]"));
                }
                let op = if is_write[row] { Op::Write } else { Op::Read };
                let workload =
                    u32::try_from(workload[row]).map_err(|_| format!("workload[{row}] is missing"))?;
                requests.push(Observation { workload, op, size: Bytes(size), intended, sent, outcome });
            }
            requests.sort_by_key(|request| request.intended);
            Ok(requests)
        })?;
        let requests = requests.map_err(|message| input(py, message))?;
        let stages = Vec::new();
        Ok(Self::new(model::Observations { workloads, stages, requests, stage_times: Vec::new() }))
    }

    fn write(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let observations = self.shared();
        call(py, move |_| {
            trace::observations::write(&path, &observations)
                .map_err(|error| OperationError::machine(&error).hint(error.hint()))
        })
    }

    #[getter]
    fn workloads(&self) -> Vec<String> {
        self.0.workloads.clone()
    }

    fn __len__(&self) -> usize {
        self.0.requests.len()
    }

    /// The columns that [`Self::from_columns`] takes, with times in nanoseconds, and those of stages.
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let requests = &self.0.requests;
        let columns = PyDict::new(py);
        let column = |value: &dyn Fn(&Observation) -> u64| {
            PyArray1::from_vec(py, requests.iter().map(|request| value(request).cast_signed()).collect())
        };
        columns.set_item("workload", column(&|request| u64::from(request.workload)))?;
        let is_write: Vec<bool> = requests.iter().map(|request| request.op == Op::Write).collect();
        columns.set_item("is_write", PyArray1::from_vec(py, is_write))?;
        columns.set_item("size", column(&|request| request.size.0))?;
        columns.set_item("intended", column(&|request| request.intended.0))?;
        columns.set_item("sent", column(&|request| request.sent.0))?;
        let end = |request: &Observation| match request.outcome {
            RequestOutcome::Done(Nanos(at)) | RequestOutcome::Failed(Nanos(at)) => at,
            RequestOutcome::Lost => 0,
        };
        columns.set_item("end", column(&end))?;
        let outcome = |request: &Observation| match request.outcome {
            RequestOutcome::Done(_) => DONE,
            RequestOutcome::Failed(_) => FAILED,
            RequestOutcome::Lost => LOST,
        };
        let outcomes: Vec<u8> = requests.iter().map(outcome).collect();
        columns.set_item("outcome", PyArray1::from_vec(py, outcomes))?;
        let width = self.0.stages.len();
        for (stage, name) in self.0.stages.iter().enumerate() {
            let times = self.0.stage_times.iter().skip(stage).step_by(width);
            let times: Vec<i64> = times.map(|time| time.0.cast_signed()).collect();
            columns.set_item(format!("stage_{name}"), PyArray1::from_vec(py, times))?;
        }
        Ok(columns)
    }
}

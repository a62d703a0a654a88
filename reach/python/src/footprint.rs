//! Footprints of parts of a trace, as Python's class.

use crate::call::unlocked;
use crate::columns::TimeColumn;
use crate::curve::BurstCurve;
use crate::errors::input;
use model::{Op, Request, Stage};
use numpy::PyReadonlyArray1;
use numpy::ndarray::ArrayView1;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use units::Bytes;
use workload::StoredFootprint;
use workload::device::StorageProfile;

/// A device profile that was read.
#[pyclass(frozen, module = "tailwright._tailwright")]
pub(crate) struct Device(StorageProfile);

#[pymethods]
impl Device {
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        StorageProfile::from_json(text).map(Self).map_err(|error| input(py, error))
    }
}

/// The work of requests at every stage, which never changes.
#[pyclass(frozen, module = "tailwright._tailwright")]
pub(crate) struct Footprint(StoredFootprint);

#[pymethods]
impl Footprint {
    /// The footprint of requests in order of time, of which at least one is needed.
    #[staticmethod]
    fn from_columns(
        py: Python<'_>,
        time: TimeColumn<'_>,
        size: PyReadonlyArray1<'_, i64>,
        is_write: PyReadonlyArray1<'_, bool>,
        device: &Device,
    ) -> PyResult<Self> {
        let times = time.view();
        let size = size.as_array();
        let is_write = is_write.as_array();
        let made = unlocked(py, || {
            let mut requests = Vec::with_capacity(times.len());
            for row in 0..times.len() {
                requests.push(Request {
                    arrival: times.get(row, "time")?,
                    size: bytes(size, row)?,
                    op: if is_write[row] { Op::Write } else { Op::Read },
                    offset: None,
                    response: None,
                });
            }
            StoredFootprint::from_requests(&device.0, requests).map_err(|error| error.to_string())
        })?;
        made.map(Self).map_err(|message: String| input(py, message))
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        StoredFootprint::from_bytes(bytes).map(Self).map_err(|error| input(py, error))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    fn merge(&self, py: Python<'_>, later: &Self) -> PyResult<Self> {
        let merged = unlocked(py, || self.0.merge(&later.0))?;
        merged.map(Self).map_err(|error| input(py, error))
    }

    /// The curves at network-in, storage and network-out.
    fn curves(&self) -> (BurstCurve, BurstCurve, BurstCurve) {
        let of = |stage| BurstCurve(self.0.curve(stage).clone());
        (of(Stage::NetworkIn), of(Stage::Storage), of(Stage::NetworkOut))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// Returns the size in a row.
fn bytes(size: ArrayView1<'_, i64>, row: usize) -> Result<Bytes, String> {
    let message = |_| format!("size[{row}] is {}: expected bytes of at least 0", size[row]);
    u64::try_from(size[row]).map(Bytes).map_err(message)
}

/// Returns the sum of the squares of the times between consecutive requests, in 16 bytes, the lowest first.
#[pyfunction]
pub(crate) fn gaps_squared<'py>(py: Python<'py>, time: TimeColumn<'_>) -> PyResult<Bound<'py, PyBytes>> {
    let times = time.view();
    let sum = unlocked(py, || {
        let mut sum = 0_u128;
        for row in 1..times.len() {
            let earlier = times.get(row - 1, "time")?;
            let later = times.get(row, "time")?;
            let gap = later.0.checked_sub(earlier.0).ok_or_else(|| {
                format!("arrival {row} (counted from 0) is earlier than the one before it: sort the requests first")
            })?;
            // At most the square of the time between the first and the last.
            sum += u128::from(gap) * u128::from(gap);
        }
        Ok(sum)
    })?;
    let sum = sum.map_err(|message: String| input(py, message))?;
    Ok(PyBytes::new(py, &sum.to_le_bytes()))
}

//! Burst curves of columns, as Python's class.

use crate::call::unlocked;
use crate::columns::{TimeColumn, Times, WorkColumn, Works};
use crate::errors::input;
use calculus::{ArrivalCurve, CurveVertex};
use numpy::{PyArray1, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use std::num::NonZeroUsize;
use std::ops::Range;
use units::Nanos;
use workload::burst::{BurstBuilder, BurstEnvelope, StageArrival};

/// Requests between two questions for a signal: some ten milliseconds.
const PART: usize = 1 << 20;
/// Requests that are converted at a time, few enough for the cache.
const CHUNK: usize = 4096;

/// Two columns of equal length.
type ArrayPair<'py> = (Bound<'py, PyArray1<f64>>, Bound<'py, PyArray1<f64>>);

/// A burst curve, which never changes.
#[pyclass(frozen, module = "tailwright._tailwright")]
pub(crate) struct BurstCurve(pub(crate) workload::burst::BurstCurve);

#[pymethods]
impl BurstCurve {
    /// The curve of requests in order of time, of which at least one is needed.
    #[staticmethod]
    fn from_columns(py: Python<'_>, time: TimeColumn<'_>, work: WorkColumn<'_>) -> PyResult<Self> {
        let times = time.view();
        let works = work.view();
        let mut builder = BurstBuilder::new();
        let count = times.len();
        let mut begin = 0;
        while begin < count {
            let end = count.min(begin + PART);
            let added = unlocked(py, || add(&mut builder, times, works, begin..end))?;
            added.map_err(|message| input(py, message))?;
            py.check_signals()?;
            begin = end;
        }
        let curve = unlocked(py, || builder.finish())?;
        curve.map(Self).map_err(|error| input(py, error))
    }

    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        let curve = serde_json::from_str(text);
        curve.map(Self).map_err(|error| input(py, format_args!("not a stored burst curve: {error}")))
    }

    fn to_json(&self) -> String {
        operation::document::pretty(&self.0)
    }

    #[staticmethod]
    fn from_bytes(py: Python<'_>, bytes: &[u8]) -> PyResult<Self> {
        workload::burst::BurstCurve::from_bytes(bytes).map(Self).map_err(|error| input(py, error))
    }

    fn to_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.0.to_bytes())
    }

    fn merge(&self, py: Python<'_>, later: &Self) -> PyResult<Self> {
        let merged = unlocked(py, || self.0.merge(&later.0))?;
        merged.map(Self).map_err(|error| input(py, error))
    }

    fn shifted(&self, py: Python<'_>, by_ns: u64) -> PyResult<Self> {
        self.0.shifted(Nanos(by_ns)).map(Self).map_err(|error| input(py, error))
    }

    #[getter]
    fn count(&self) -> u64 {
        self.0.count()
    }

    #[getter]
    fn first_ns(&self) -> u64 {
        self.0.first().0
    }

    #[getter]
    fn last_ns(&self) -> u64 {
        self.0.last().0
    }

    #[getter]
    fn total(&self) -> f64 {
        self.0.total().base_units()
    }

    fn vertices<'py>(&self, py: Python<'py>) -> ArrayPair<'py> {
        let vertices = self.0.envelope().vertices();
        let durations = vertices.iter().map(|vertex| vertex.duration.as_secs()).collect();
        let works = vertices.iter().map(|vertex| vertex.work.base_units()).collect();
        (PyArray1::from_vec(py, durations), PyArray1::from_vec(py, works))
    }

    /// The bursts at rates that are not negative.
    fn burst<'py>(
        &self,
        py: Python<'py>,
        rates: PyReadonlyArray1<'_, f64>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let mut bursts = Vec::with_capacity(rates.as_array().len());
        for &rate in rates.as_array() {
            if rate.is_nan() || rate < 0.0 {
                return Err(input(py, format_args!("a rate is {rate:?}: expected a number of at least 0")));
            }
            bursts.push(self.0.envelope().burst(rate));
        }
        Ok(PyArray1::from_vec(py, bursts))
    }

    fn work_within<'py>(
        &self,
        py: Python<'py>,
        durations: TimeColumn<'_>,
    ) -> PyResult<Bound<'py, PyArray1<f64>>> {
        let durations = durations.view().collect("duration").map_err(|message| input(py, message))?;
        let work = durations.into_iter().map(|duration| self.0.envelope().work_within(duration).base_units());
        Ok(PyArray1::from_vec(py, work.collect()))
    }

    #[pyo3(signature = (count=None))]
    fn limits<'py>(&self, py: Python<'py>, count: Option<NonZeroUsize>) -> ArrayPair<'py> {
        let envelope = self.0.envelope();
        let limits = match count {
            Some(count) => limits_of(&envelope.reduce(count)),
            None => limits_of(envelope),
        };
        let (rates, bursts) = limits.into_iter().unzip();
        (PyArray1::from_vec(py, rates), PyArray1::from_vec(py, bursts))
    }

    fn __eq__(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

/// Adds the requests of some rows.
fn add(builder: &mut BurstBuilder, times: Times, works: Works, rows: Range<usize>) -> Result<(), String> {
    let mut arrivals = Vec::with_capacity(CHUNK);
    let mut begin = rows.start;
    while begin < rows.end {
        let end = rows.end.min(begin + CHUNK);
        arrivals.clear();
        for row in begin..end {
            arrivals.push(StageArrival { at: times.get(row, "time")?, work: works.get(row, "work")? });
        }
        builder.extend(&arrivals).map_err(|error| error.to_string())?;
        begin = end;
    }
    Ok(())
}

/// The token buckets (rate, burst) of which the envelope is the least.
fn limits_of(envelope: &BurstEnvelope) -> Vec<(f64, f64)> {
    let mut vertices = Vec::new();
    for vertex in envelope.vertices() {
        vertices.push(CurveVertex { duration: vertex.duration.as_secs(), work: vertex.work.base_units() });
    }
    let curve = ArrivalCurve::new(vertices, 0.0);
    curve.expect("an envelope is concave and starts at duration 0").limits()
}

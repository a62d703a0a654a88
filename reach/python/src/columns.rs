//! Columns of numbers in NumPy arrays, read in place, whatever their stride.

use numpy::PyReadonlyArray1;
use numpy::ndarray::ArrayView1;
use pyo3::prelude::*;
use units::{MILLI, Nanos, Work};

/// The most seconds that 64 bits of nanoseconds hold.
const SECONDS_MAX: f64 = 1.8e10;
/// The most work of one request in base units, so that it fits in thousandths.
const WORK_MAX: f64 = 1.8e16;

/// A column of times: seconds as real numbers, or whole nanoseconds.
#[derive(FromPyObject)]
pub(crate) enum TimeColumn<'py> {
    #[pyo3(transparent)]
    Seconds(PyReadonlyArray1<'py, f64>),
    #[pyo3(transparent)]
    Nanos(PyReadonlyArray1<'py, i64>),
}

/// A column of amounts of work, real or whole.
#[derive(FromPyObject)]
pub(crate) enum WorkColumn<'py> {
    #[pyo3(transparent)]
    Real(PyReadonlyArray1<'py, f64>),
    #[pyo3(transparent)]
    Whole(PyReadonlyArray1<'py, i64>),
}

/// A view of a column of times, which threads without Python can read.
#[derive(Clone, Copy)]
pub(crate) enum Times<'a> {
    Seconds(ArrayView1<'a, f64>),
    Nanos(ArrayView1<'a, i64>),
}

#[derive(Clone, Copy)]
pub(crate) enum Works<'a> {
    Real(ArrayView1<'a, f64>),
    Whole(ArrayView1<'a, i64>),
}

impl TimeColumn<'_> {
    pub(crate) fn view(&self) -> Times<'_> {
        match self {
            Self::Seconds(column) => Times::Seconds(column.as_array()),
            Self::Nanos(column) => Times::Nanos(column.as_array()),
        }
    }
}

impl WorkColumn<'_> {
    pub(crate) fn view(&self) -> Works<'_> {
        match self {
            Self::Real(column) => Works::Real(column.as_array()),
            Self::Whole(column) => Works::Whole(column.as_array()),
        }
    }
}

impl Times<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Seconds(column) => column.len(),
            Self::Nanos(column) => column.len(),
        }
    }

    /// Returns the time in a row; `name` names the column in the error.
    pub(crate) fn get(&self, row: usize, name: &str) -> Result<Nanos, String> {
        match self {
            Self::Seconds(column) => {
                let seconds = column[row];
                let time =
                    (0.0..=SECONDS_MAX).contains(&seconds).then(|| Nanos::from_secs(seconds)).flatten();
                time.ok_or_else(|| {
                    format!("{name}[{row}] is {seconds:?}: expected seconds from 0 to {SECONDS_MAX:e}")
                })
            }
            Self::Nanos(column) => u64::try_from(column[row])
                .map(Nanos)
                .map_err(|_| format!("{name}[{row}] is {}: expected nanoseconds of at least 0", column[row])),
        }
    }

    /// Returns all times.
    pub(crate) fn collect(&self, name: &str) -> Result<Vec<Nanos>, String> {
        (0..self.len()).map(|row| self.get(row, name)).collect()
    }
}

impl Works<'_> {
    /// Returns the work in a row, rounded up to thousandths; `name` names the column in the error.
    pub(crate) fn get(&self, row: usize, name: &str) -> Result<Work, String> {
        match self {
            Self::Real(column) => {
                let units = column[row];
                let work = (0.0..=WORK_MAX).contains(&units).then(|| Work::from_base_units(units));
                work.ok_or_else(|| {
                    format!("{name}[{row}] is {units:?}: expected a number from 0 to {WORK_MAX:e}")
                })
            }
            Self::Whole(column) => {
                let work =
                    u64::try_from(column[row]).ok().and_then(|units| units.checked_mul(MILLI)).map(Work);
                work.ok_or_else(|| {
                    format!("{name}[{row}] is {}: expected a number from 0 to {WORK_MAX:e}", column[row])
                })
            }
        }
    }
}

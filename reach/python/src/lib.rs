//! `tailwright._tailwright`, the native half of the Python package: arrays and documents in, documents and arrays out.
//!
//! The package in `python/tailwright` is what users see; it checks and converts arguments, and gives answers their
//! types. This half calls the facades that the command line calls, without Python's global lock, and returns the same
//! documents. Errors become exceptions of `tailwright._errors`, and so do panics.

#![allow(clippy::needless_pass_by_value, reason = "Python's arguments are values that are made for the call")]

mod call;
mod columns;
mod curve;
mod errors;
mod footprint;
mod inputs;
mod judging;
mod observations;
mod planning;
mod queueing;
mod traces;

use pyo3::prelude::*;

#[pymodule]
mod _tailwright {
    #[pymodule_export]
    use crate::curve::BurstCurve;
    #[pymodule_export]
    use crate::footprint::{Device, Footprint, gaps_squared};
    #[pymodule_export]
    use crate::inputs::time_ns;
    #[pymodule_export]
    use crate::judging::verify;
    #[pymodule_export]
    use crate::observations::Observations;
    #[pymodule_export]
    use crate::planning::{admit, bound, explain, explain_prediction, guaranteed_plan, plan_by_model};
    #[pymodule_export]
    use crate::queueing::{ideal, ideal_latencies, simulate_policy, simulate_requests, simulate_scenario};
    #[pymodule_export]
    use crate::traces::write_trace;

    /// The version of the workspace.
    #[pymodule_export]
    #[allow(non_upper_case_globals, reason = "Python's name for it")]
    const __version__: &str = env!("CARGO_PKG_VERSION");
}

//! `verify`.

use crate::call::call;
use crate::inputs::policy;
use crate::observations::Observations;
use measure::verification::{FindingsDocument, JudgementSettings, judge};
use model::OperationError;
use operation::document::document;
use pyo3::prelude::*;
use std::path::PathBuf;
use units::Nanos;

#[pyfunction]
#[allow(clippy::too_many_arguments, reason = "the Python function names them")]
pub(crate) fn verify(
    py: Python<'_>,
    observations: &Observations,
    text: Option<String>,
    slos: Vec<String>,
    storage: Vec<PathBuf>,
    hosts: Option<PathBuf>,
    without_bounds: bool,
    confidence: f64,
    window_ns: u64,
) -> PyResult<String> {
    let observations = observations.shared();
    call(py, move |call| {
        let policy = text.as_deref().map(policy).transpose()?;
        if !(0.5..1.0).contains(&confidence) {
            return Err(OperationError::input(format_args!(
                "confidence is {confidence:?}: expected a share from 0.5 to below 1, such as 0.95"
            )));
        }
        if window_ns == 0 {
            return Err(OperationError::input("window is 0: expected a time above zero, such as '3min'"));
        }
        if policy.is_none() && !storage.is_empty() {
            return Err(OperationError::input("storage is for the limits of a policy, and none is given"));
        }
        let window = Nanos(window_ns);
        let settings = JudgementSettings { slos, storage, hosts, without_bounds, confidence, window };
        let judged = judge(policy.as_ref(), &observations, &settings, call)?;
        let name = policy.as_ref().map(|policy| policy.policy_name.as_str());
        Ok(document(&FindingsDocument::new(name, &judged.findings, judged.broken_bounds.as_deref())))
    })
}

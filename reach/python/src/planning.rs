//! `plan`, `bound`, `admit` and `explain`.

use crate::call::call;
use crate::inputs::{ClusterInput, MethodInput, PredictionInput, model, percentile, policy, procedure};
use model::OperationError;
use operation::document::{document, pretty};
use plan::admission::{AdmissionQuestion, admission_policy};
use plan::cluster::find_workload;
use plan::planning::{GuaranteeExplanation, PlanningQuestion, plan_cluster, recipe_of_policy};
use plan::prediction::{
    BoundsDocument, ModelName, PredictionProblem, calibrate_slos, derive, place, predict_bounds,
    report_calibration,
};
use pyo3::prelude::*;
use std::path::PathBuf;

#[pyfunction(name = "plan")]
pub(crate) fn guaranteed_plan(
    py: Python<'_>,
    cluster: ClusterInput,
    method: MethodInput,
    keep: Option<String>,
    compare: bool,
) -> PyResult<String> {
    call(py, move |call| {
        let source = cluster.source()?;
        let recipe = method.recipe()?;
        let keep = keep.as_deref().map(policy).transpose()?;
        let question = PlanningQuestion {
            source: &source,
            recipe: &recipe,
            keep: keep.as_ref(),
            survive: false,
            compare,
        };
        let run = plan_cluster(&question, call)?;
        Ok(pretty(&run.document(call.elapsed_s())))
    })
}

#[pyfunction]
pub(crate) fn plan_by_model(py: Python<'_>, prediction: PredictionInput, name: String) -> PyResult<String> {
    call(py, move |call| {
        let model = model(&name)?;
        let problem = PredictionProblem::read(&prediction.source()?, call)?;
        problem.check_without_rules()?;
        let interrupted = || call.is_stopped();
        if model == ModelName::Calibrated && !calibrate_slos(&problem, &interrupted, call) {
            return Err(OperationError::machine("interrupted"));
        }
        let placed = place(&problem, model, &interrupted, call);
        Ok(pretty(&placed.document(&problem, || call.elapsed_s())))
    })
}

#[pyfunction]
pub(crate) fn bound(
    py: Python<'_>,
    prediction: PredictionInput,
    models: Vec<String>,
    percent: Option<f64>,
) -> PyResult<String> {
    call(py, move |call| {
        let models = models.iter().map(|name| model(name)).collect::<Result<Vec<_>, _>>()?;
        let percentile = percentile(percent)?;
        let problem = PredictionProblem::read(&prediction.source()?, call)?;
        let everybody: Vec<usize> = (0..problem.cluster.workloads.len()).collect();
        let bounds = predict_bounds(&problem, &everybody, &models, percentile, call);
        let is_calibrated = models.contains(&ModelName::Calibrated);
        let calibration = is_calibrated.then(|| report_calibration(&problem, percentile, call));
        Ok(document(&BoundsDocument::new(&problem, &bounds, calibration.as_ref())))
    })
}

/// Returns the decisions, and the policy that follows from them.
#[pyfunction]
pub(crate) fn admit(
    py: Python<'_>,
    prediction: PredictionInput,
    name: String,
    events: Option<PathBuf>,
) -> PyResult<(String, String)> {
    call(py, move |call| {
        let question =
            AdmissionQuestion { source: prediction.source()?, procedure: procedure(&name)?, events };
        let (problem, outcome) = plan::admission::admit(&question, call)?;
        let policy = pretty(&admission_policy(&problem, &outcome));
        Ok((document(&outcome.document(&problem, || call.elapsed_s())), policy))
    })
}

#[pyfunction]
pub(crate) fn explain(
    py: Python<'_>,
    workload: String,
    cluster: ClusterInput,
    method: MethodInput,
    kept: Option<String>,
) -> PyResult<String> {
    call(py, move |call| {
        let kept = kept.as_deref().map(policy).transpose()?;
        let recipe = match &kept {
            Some(policy) => recipe_of_policy(policy)?,
            None => method.recipe()?,
        };
        let source = cluster.source()?;
        Ok(match plan::planning::explain(&workload, &source, &recipe, kept.as_ref(), call)? {
            GuaranteeExplanation::Admitted(derivation) => document(&*derivation),
            GuaranteeExplanation::Refused(refusal) => document(&*refusal),
        })
    })
}

#[pyfunction]
pub(crate) fn explain_prediction(
    py: Python<'_>,
    workload: String,
    prediction: PredictionInput,
    name: String,
    percent: Option<f64>,
) -> PyResult<String> {
    call(py, move |call| {
        let model = model(&name)?;
        let percentile = percentile(percent)?;
        let problem = PredictionProblem::read(&prediction.source()?, call)?;
        let names: Vec<&str> =
            problem.cluster.workloads.iter().map(|workload| workload.spec.name.as_str()).collect();
        let workload = find_workload(&workload, &names)?;
        Ok(document(&derive(&problem, workload, model, percentile, call)))
    })
}

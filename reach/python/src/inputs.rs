//! Arguments of Python as the settings of the facades. Names are read as the command line reads them.

use crate::errors::input;
use model::{OperationError, Policy};
use operation::text::meant_word;
use plan::cluster::{ClusterDescription, ClusterSource, ClusterText};
use plan::planning::{Placing, PlanningRecipe, RecipeSettings, parse_method};
use plan::prediction::{
    CalibrationGoal, CalibrationScope, ModelName, PROCEDURES, PredictionSource, ProcedureName,
};
use pyo3::prelude::*;
use std::path::PathBuf;
use trace::OpenOptions;
use units::{Nanos, Percentile};

/// A `tailwright.Cluster`.
#[derive(FromPyObject)]
pub(crate) struct ClusterInput {
    /// The cluster file, unless `text` describes the cluster.
    path: PathBuf,
    text: Option<String>,
    safety_margin: Option<f64>,
    trace_format: Option<String>,
    lenient: bool,
    sort_window: usize,
    cache: bool,
}

impl ClusterInput {
    pub(crate) fn source(self) -> Result<ClusterSource, OperationError> {
        let description = match self.text {
            None => ClusterDescription::File(self.path),
            Some(text) => {
                let origin = PathBuf::from("cluster");
                ClusterDescription::Json(ClusterText { origin, text, folder: self.path })
            }
        };
        let format = self.trace_format.as_deref().map(str::parse).transpose();
        let format = format.map_err(OperationError::input)?;
        let options = OpenOptions { format, lenient: self.lenient, sort_window: self.sort_window };
        let safety_margin = self.safety_margin;
        Ok(ClusterSource { safety_margin, options, cached: self.cache, ..ClusterSource::new(description) })
    }
}

/// A `tailwright._calls.Method`: the choices that decide a plan.
#[derive(FromPyObject)]
pub(crate) struct MethodInput {
    name: String,
    order: Option<String>,
    effort: Option<u64>,
    preemptive: bool,
}

impl MethodInput {
    pub(crate) fn recipe(&self) -> Result<PlanningRecipe, OperationError> {
        let placing = match self.order.as_deref() {
            None => None,
            Some("given") => Some(Placing::FirstFit),
            Some("best") => Some(Placing::FewestServers),
            Some(other) => {
                return Err(OperationError::input(format_args!(
                    "there is no order '{other}': expected given or best"
                )));
            }
        };
        let settings = RecipeSettings {
            method: parse_method(&self.name).map_err(OperationError::input)?,
            placing,
            skip_full: false,
            segments: None,
            effort: self.effort,
            time_budget: None,
            preemptive: self.preemptive,
        };
        PlanningRecipe::with(&settings).map_err(OperationError::input)
    }
}

/// A `tailwright._calls.Prediction`: what a prediction is about.
#[derive(FromPyObject)]
pub(crate) struct PredictionInput {
    cluster: ClusterInput,
    server_class: Option<String>,
    link_only: bool,
    groups: Option<PathBuf>,
    preemptive: bool,
    coverage: f64,
    horizon_ns: Option<u64>,
    coverage_of: String,
}

impl PredictionInput {
    pub(crate) fn source(self) -> Result<PredictionSource, OperationError> {
        let calibration = self.calibration()?;
        Ok(PredictionSource {
            class: self.server_class,
            link_only: self.link_only,
            groups: self.groups,
            preemptive: self.preemptive,
            calibration,
            ..PredictionSource::new(self.cluster.source()?)
        })
    }

    fn calibration(&self) -> Result<CalibrationGoal, OperationError> {
        if !(0.5..1.0).contains(&self.coverage) {
            let said = self.coverage;
            return Err(OperationError::input(format_args!(
                "coverage is {said:?}: expected a share from 0.5 to below 1"
            )));
        }
        let scope = match self.coverage_of.as_str() {
            "workload" => CalibrationScope::Workload,
            "server" => CalibrationScope::Server,
            "plan" => CalibrationScope::Plan,
            other => {
                return Err(OperationError::input(format_args!(
                    "coverage_of is '{other}': expected workload, server or plan"
                )));
            }
        };
        Ok(CalibrationGoal { coverage: self.coverage, window: self.horizon_ns.map(Nanos), scope })
    }
}

/// Returns the admission procedure of this name.
pub(crate) fn procedure(name: &str) -> Result<ProcedureName, OperationError> {
    let row = PROCEDURES.iter().find(|row| row.name == name);
    row.map(|row| row.procedure).ok_or_else(|| unknown(name, &mut PROCEDURES.iter().map(|row| row.name)))
}

/// Returns the latency model of this name.
pub(crate) fn model(name: &str) -> Result<ModelName, OperationError> {
    let mut found = None;
    let mut names = Vec::new();
    for row in &PROCEDURES {
        if let ProcedureName::ByModel(model) = row.procedure {
            names.push(row.name);
            found = found.or((row.name == name).then_some(model));
        }
    }
    found.ok_or_else(|| unknown(name, &mut names.into_iter()))
}

fn unknown(name: &str, names: &mut dyn Iterator<Item = &'static str>) -> OperationError {
    let names: Vec<&str> = names.collect();
    let meant = meant_word(name, names.iter().copied());
    OperationError::input(format_args!(
        "there is no model '{name}': expected one of {}{meant}",
        names.join(", ")
    ))
}

/// Returns a percentile between 0 and 100 %.
pub(crate) fn percentile(percent: Option<f64>) -> Result<Option<Percentile>, OperationError> {
    let read = |percent: f64| {
        Percentile::new(percent).ok_or_else(|| {
            OperationError::input(format_args!(
                "percentile is {percent:?}: expected a percentage such as 99.9"
            ))
        })
    };
    percent.map(read).transpose()
}

/// Reads and checks a policy.
pub(crate) fn policy(text: &str) -> Result<Policy, OperationError> {
    Policy::from_json(text).map_err(|error| OperationError::input(format_args!("the policy: {error}")))
}

/// Parses a time such as `150ms`, nanoseconds.
#[pyfunction]
pub(crate) fn time_ns(py: Python<'_>, text: &str) -> PyResult<u64> {
    let time: Result<Nanos, _> = text.parse();
    time.map(|time| time.0).map_err(|error| input(py, error))
}

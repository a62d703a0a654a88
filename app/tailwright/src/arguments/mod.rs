//! Arguments that several verbs share, and what they ask of the library.

mod calibration;
mod cluster;
mod judgement;
mod method;
mod model;
mod policy_inputs;
mod prediction;
mod quantities;

pub(crate) use calibration::CalibrationArgs;
pub(crate) use cluster::{ClusterArgs, MayLack, at_least_one};
pub(crate) use judgement::{JudgementArgs, confidence};
pub(crate) use method::MethodArgs;
pub(crate) use model::{ModelChoice, ProcedureChoice};
pub(crate) use policy_inputs::PolicyInputArgs;
pub(crate) use prediction::{PredictionArgs, prediction_source};
pub(crate) use quantities::{percentage, request_rate, share};

use std::path::PathBuf;

/// The results that were asked for.
pub(crate) fn results<const N: usize>(asked: [&Option<PathBuf>; N]) -> Vec<PathBuf> {
    asked.into_iter().flatten().cloned().collect()
}

//! Arguments that several verbs share.

mod calibration;
mod cluster;
mod method;
mod model;
mod prediction;

pub(crate) use calibration::CalibrationArgs;
pub use cluster::{ClusterArgs, MayLack};
pub(crate) use method::MethodArgs;
pub(crate) use model::{model, procedure};
pub(crate) use prediction::{PredictionArgs, prediction_source};

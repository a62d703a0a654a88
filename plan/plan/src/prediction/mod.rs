//! Predicted latencies, by model: on one shared server, or on as few servers as keep every SLO.

mod applicant;
mod assignment;
mod bounds;
mod bounds_document;
mod calibration;
mod derivation;
mod enforced_models;
mod forecast;
mod model_name;
mod placement;
mod placement_document;
mod problem;
mod procedure_name;
mod slo_calibration;

pub(crate) use applicant::{admission_host, applicants};
pub(crate) use assignment::WorkloadAssignment;
pub(crate) use assignment::assignment_policy;
pub(crate) use assignment::describe_prediction_refusal;
pub use assignment::server_name;
pub use bounds::{WorkloadBound, predict_bounds};
pub use bounds_document::BoundsDocument;
pub use calibration::{CalibrationReport, WorkloadCalibration, report_calibration};
pub use derivation::{PredictionDerivation, PredictionStep, ServedBefore, derive};
pub use forecast::WorkloadForecast;
pub use model_name::ModelName;
pub use placement::{ModelPlacement, by_priority, place, placement_policy};
pub use placement_document::PlacementDocument;
pub use predict::{CalibrationGoal, CalibrationScope};
pub use problem::{PredictionProblem, PredictionSource, TracedWorkload};
pub(crate) use procedure_name::ProcedureVisitor;
pub use procedure_name::{PROCEDURES, ProcedureName, ProcedureRow};
pub(crate) use slo_calibration::promised_slo;
pub use slo_calibration::{SloCalibrationReport, calibrate_slos, report_slo_calibration};

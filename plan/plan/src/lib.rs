//! Plans, predictions and admission: cluster file in, answer out.
//!
//! Reads what a question is about: a [`cluster::ClusterProblem`], and of its traces [`footprints`] for limits or the
//! requests themselves for a [`prediction::PredictionProblem`]. Calls the crates that know the answers, and returns them
//! as plain data. Callers need no terminal.

pub mod admission;
pub mod assumptions;
mod call_graph;
pub mod cluster;
pub mod demo;
pub mod footprints;
pub mod planning;
pub mod prediction;
mod refusal;
pub mod standing;
pub mod trace_files;

pub use call_graph::read_call_graph;
pub use refusal::{RefusedWorkload, Remedy};

operation::documents! {
    admission::AdmissionDocument<'_>: "admission", 2;
    prediction::BoundsDocument<'_>: "bounds", 1;
    planning::GuaranteeDerivation: "guarantee-derivation", 1;
    prediction::PredictionDerivation: "prediction-derivation", 1;
    planning::MigrationPlan: "migration", 1;
    planning::RefusalExplanation: "refusal", 1;
    trace_files::TraceCurves: "trace-curves", 1;
}

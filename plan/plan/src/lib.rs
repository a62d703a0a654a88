//! Plans, predictions and admission: cluster file in, answer out.
//!
//! Reads what a question is about ([`cluster`], [`footprints`], [`prediction::PredictionProblem`]), calls the crates that know
//! the answers, and returns them as plain data. Callers need no terminal.

pub mod admission;
pub mod assumptions;
mod call_graph;
pub mod cluster;
pub mod demo;
pub mod footprints;
pub mod planning;
pub mod prediction;
pub mod trace_files;

pub use call_graph::read_call_graph;

operation::documents! {
    planning::GuaranteeDerivation: "guarantee-derivation", 1;
    prediction::PredictionDerivation: "prediction-derivation", 1;
}

//! What users ask for, as functions: from files and settings to plans, predictions, simulations and verdicts.
//!
//! This crate stands between files and algorithms. It reads what a question is about ([`cluster`], [`footprints`],
//! [`prediction::PredictionProblem`]), calls the crates that know the answers, and returns the answers as plain
//! data. It neither prints nor ends the process: whoever wants to know how a long call is getting on, or what it
//! noticed, hands over a [`ProgressObserver`]. The command line is one caller; a service can be another.

pub mod admission;
pub mod assumptions;
mod bound_conditions;
mod call_graph;
pub mod cluster;
pub mod demo;
pub mod enforcement;
pub mod files;
pub mod footprints;
pub mod ideal;
pub mod load;
mod marks;
pub mod observation;
mod observer;
mod parallel;
pub mod planning;
pub mod prediction;
pub mod profiling;
pub mod recording;
pub mod simulation;
pub mod text;
pub mod trace_files;
pub mod verification;

pub use bound_conditions::{ServerRun, check_conditions};
pub use call_graph::read_call_graph;
pub use observer::{Notice, ProgressObserver, Silent, TaskProgress};

//! Scenario files: systems to simulate, variations, and the length of the run.
//!
//! ```text
//! file ──▶ ScenarioDocument ──set, vary──▶ one per combination ──▶ SimulationCase ──▶ ScenarioRun
//! ```
//!
//! A [`ScenarioDocument`] is the file as text with values that can be replaced by path;
//! [`ScenarioDocument::variants`] returns one document for each combination of values in its `[[vary]]`
//! sections. A [`SimulationCase`] is a document whose names have become indices, ready to run. Errors
//! give the position in the file and what was expected.
//!
//! Every field is described in `docs/reference/scenario.md`.

mod classes;
mod discipline_text;
mod document;
mod entry_load;
mod error;
mod file;
mod named_files;
mod recorded_calls;
mod request_kinds;
mod scenario_network;
mod scenario_run;
pub mod server;
mod simulation_case;
mod simulation_plan;
mod step_service;
mod text_field;
mod times_source;
mod trace_arrivals;
mod unique_names;
mod vary;

pub use document::{ScenarioDocument, Variant};
pub use scenario_run::ScenarioRun;
pub use simulation_case::SimulationCase;
pub use trace_arrivals::{empty_trace_error, read_trace_arrivals, trace_arrivals};
pub use vary::AxisChoice;

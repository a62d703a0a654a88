//! Scenario files: systems to simulate as people write them, what is varied, and how long to run.
//!
//! ```text
//! file ──▶ Document ──set, vary──▶ Document per combination ──▶ Case ──▶ Run
//! ```
//!
//! A [`Document`] is the file as text with values that can be replaced by path; [`Document::variants`] gives one
//! document for each combination of what its `[[vary]]` sections list. A [`Case`] is a document whose names have
//! become indices, ready to run. Faults say where in the file and what was expected.
//!
//! Every field is described in `docs/simulate.md`.

mod case;
mod classes;
mod discipline;
mod document;
mod file;
mod kinds;
pub mod path;
mod replay;
mod run;
pub mod server;
mod source;
mod text;
mod times;
mod vary;

pub use case::Case;
pub use document::{Document, Variant};
pub use run::Run;
pub use source::{arrivals, arrivals_of, empty};
pub use vary::Choice;

use model::OperationError;

/// What is wrong with the scenario that came from `origin`.
fn scenario_error(origin: &str, message: &str) -> OperationError {
    OperationError::input(format_args!("{origin}: {}", message.trim_end()))
        .hint("docs/simulate.md describes a scenario; `tailwright simulate --help` shows one")
}

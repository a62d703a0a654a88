//! Shared parts of long-running operations: progress and notices for the caller, files of users, JSON
//! documents, words for quantities.
//!
//! Nothing here prints or ends the process. A caller passes a [`ProgressObserver`]; the command line is one caller, a service
//! can be another.

mod bound_conditions;
pub mod document;
pub mod files;
pub mod marks;
mod observer;
pub mod own_files;
pub mod parallel;
pub mod policy_file;
pub mod text;
pub mod toml_path;

pub use bound_conditions::{BrokenBounds, ServerRun, check_conditions, outdated_bounds};
pub use observer::{Notice, ProgressObserver, Silent, TaskProgress};

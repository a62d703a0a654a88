//! A lab that stays until it is taken down: hosts, a switch and servers, which later commands find by a state file.
//!
//! The state file is checked against the machine: a server counts as running only if the process that was
//! started still runs. Taking down goes by the names of namespaces, so that it also removes the remains
//! of a crash. Bringing up a lab that is up changes nothing.

mod lifecycle;
mod state;

pub use lifecycle::{LabSpecification, STORE, bring_up, take_down};
pub use state::{LabFolder, LabState, RecordedHost, RecordedServer, read_state};

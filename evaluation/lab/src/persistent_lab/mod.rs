//! A lab that stays until it is taken down: hosts, a switch and servers, which later commands find by a state file.
//!
//! The state file is checked against the machine, not believed: a server counts as running when the very process that
//! was started does, and taking down goes by the names of namespaces, so that it also removes what a crash left.
//! Bringing up a lab that is up changes nothing.

mod lifecycle;
mod state;

pub use lifecycle::{LabSpecification, STORE, bring_up, take_down};
pub use state::{LabFolder, LabState, RecordedHost, RecordedServer, STATE_FORMAT, read_state};

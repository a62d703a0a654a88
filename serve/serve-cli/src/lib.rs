//! The verbs `controller`, `agent` and `ctl`: arguments and text.

// `cli::terminal` is the only place that prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod agent;
mod client;
pub mod controller;
pub mod ctl;

/// Returns the description of the controller's interface, an OpenAPI document.
pub fn interface_description() -> &'static str {
    api::description()
}

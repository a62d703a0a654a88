//! The verbs `controller`, `agent` and `ctl`: arguments and text.

// `cli::terminal` is the only place that prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod agent;
mod client;
pub mod controller;
pub mod ctl;

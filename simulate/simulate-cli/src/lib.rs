//! The verbs `simulate` and `ideal`: arguments, text and pages.

// `cli::terminal` is the only place that prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod ideal;
pub mod simulate;

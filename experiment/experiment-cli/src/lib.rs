//! The verb `experiment`: arguments and text.

// `cli::terminal` is the only place that prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod experiment;

operation::documents! {
    experiment::knobs::KnobsDocument: "knobs", 1;
    experiment::knobs::UndoneKnobsDocument: "undone", 1;
    experiment::text::TriedDocument<'_>: "experiment", 1;
}

//! The verb `schedule`: arguments and text.

// `cli::terminal` is the only place that prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod schedule;

operation::documents! {
    schedule::kernel_text::KernelSchedulerDocument: "schedule-kernel", 1;
    schedule::text::ScheduledDocument<'_>: "schedule", 1;
}

//! The verbs `lab` and `reproduce`: arguments, text and pages.

// `cli::terminal` is the only place that prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod experiments;
pub mod lab;
pub mod reproduce;

operation::documents! {
    experiments::ReproductionsDocument<'_>: "reproductions", 1;
    experiments::LabExperimentsDocument: "lab-experiments", 1;
    lab::experiment_text::LabPlanDocument<'_>: "lab-plan", 1;
    lab::LabDocument<'_>: "lab", 1;
    lab::RemovedLabDocument<'_>: "lab-removed", 1;
    lab::LabRunDocument<'_>: "lab-run", 1;
    reproduce::text::ReproductionDocument<'_>: "reproduction", 1;
}

//! The verbs `simulate` and `ideal`: arguments, text and pages.

// `cli::terminal` is the only place that prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod ideal;
pub mod simulate;

operation::documents! {
    ideal::text::IdealDocument<'_>: "ideal", 2;
    simulate::policy::PolicySimulationDocument<'_>: "policy-simulation", 1;
    simulate::text::VariantDocument<'_>: "simulation", 2;
    simulate::varied::VariedDocument<'_>: "simulation-variants", 2;
}

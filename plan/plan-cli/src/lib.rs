//! The verbs `plan`, `admit`, `bound`, `explain`, `migrate`, `demo` and `trace`: arguments, text and pages.

// `cli::terminal` is the only place that prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod admit;
pub mod arguments;
pub mod bound;
pub mod demo;
pub mod explain;
pub mod migrate;
pub mod plan;
pub mod trace;

operation::documents! {
    trace::assumptions_text::AssumptionsDocument<'_>: "assumptions", 1;
    trace::callgraph_text::CallGraphDocument<'_>: "call-graph", 1;
    trace::info_text::TraceDocument<'_>: "trace", 1;
}

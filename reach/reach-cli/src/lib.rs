//! The verbs `import` and `export`: arguments, text and pages.

// `cli::terminal` is the only place that prints.
#![deny(clippy::print_stdout, clippy::print_stderr)]

pub mod export;
pub mod import;

operation::documents! {
    export::text::ExportDocument<'_>: "export", 1;
    import::text::AuditDocument<'_>: "audit", 1;
}

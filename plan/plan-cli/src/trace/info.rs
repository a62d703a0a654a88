//! `tailwright trace info`: rates, sizes and burstiness of traces.

use crate::trace::arguments::TraceInputArgs;
use crate::trace::info_text as inspected;
use cli::terminal::{Talk, TerminalObserver, print, print_text, talk};
use model::OperationError;
use operation::files::write_result;
use plan::trace_files::{TraceFileError, inspect_trace};
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Burstiness, for reading the table: a Poisson stream has squared variation 1, dispersion 1 at \
    every scale and a Hurst parameter of 0.5; larger is burstier.\n\nExamples:\n  \
    tailwright trace info tailwright-demo/traces/*.csv.gz\n  \
    tailwright trace info web.csv.gz\n  tailwright trace info web.csv.gz --report web.html\n  \
    tailwright trace info traces/*.csv.gz\n  zcat web.csv.gz | tailwright trace info - --json\n\n\
    Exit codes: 0 done; 2 bad input; 3 the page cannot be written."
)]
pub(super) struct InfoArgs {
    /// Traces; several are listed one per line
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Print JSON: one object per trace, in a line
    #[arg(long)]
    json: bool,
    /// Write a page with charts for a browser, of one trace
    #[arg(long, value_name = "PAGE.html")]
    report: Option<PathBuf>,
    #[command(flatten)]
    input: TraceInputArgs,
}

pub(super) fn run(args: &InfoArgs) -> Result<(), TraceFileError> {
    if args.report.is_some() && args.files.len() > 1 {
        let error = OperationError::input("--report describes one trace");
        return Err(error.hint("run it once per trace").into());
    }
    let mut overview = inspected::overview_table();
    for file in &args.files {
        let trace = inspect_trace(file, &args.input.options(), &TerminalObserver)?;
        if let Some(path) = &args.report {
            write_result(path, &crate::trace::page::html(&trace), "report")?;
            talk(Talk::Plain, format_args!("wrote {}", path.display()));
        }
        if args.json {
            print(&inspected::json(&trace));
        } else if args.files.len() == 1 {
            print_text(&inspected::text(&trace));
        } else {
            overview.row(inspected::overview_row(&trace));
        }
    }
    if !args.json && args.files.len() > 1 {
        print_text(&overview.render());
    }
    Ok(())
}

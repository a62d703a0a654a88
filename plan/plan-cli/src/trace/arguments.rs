//! Arguments that several verbs of traces share.

use plan::trace_files::TraceOutput;
use std::path::PathBuf;
use trace::{OpenOptions, TraceFormat};

/// Options of reading traces.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct TraceInputArgs {
    /// Format of the traces that are read (default: detected)
    #[arg(long, value_name = "FORMAT")]
    format: Option<TraceFormat>,
    /// Skip and count malformed and out-of-order requests of traces
    #[arg(long)]
    lenient: bool,
    /// Restore the order of nearly sorted traces: a request may come N requests late
    #[arg(long, value_name = "N", default_value_t = 0)]
    sort_window: usize,
}

/// Destination of a trace.
#[derive(Debug, Clone, clap::Args)]
pub(super) struct TraceOutputArgs {
    /// Write the trace; .gz and .zst compress the text formats, and - is standard output
    #[arg(short, long, value_name = "TRACE")]
    output: PathBuf,
    /// Format to write, instead of the one that the file name says
    #[arg(long = "as", value_name = "FORMAT")]
    as_format: Option<TraceFormat>,
}

impl TraceInputArgs {
    /// Returns the options of reading traces.
    pub(super) fn options(&self) -> OpenOptions {
        OpenOptions { format: self.format, lenient: self.lenient, sort_window: self.sort_window }
    }
}

impl TraceOutputArgs {
    /// The file that these flags describe.
    pub(super) fn output(&self) -> TraceOutput {
        TraceOutput { path: self.output.clone(), format: self.as_format }
    }
}

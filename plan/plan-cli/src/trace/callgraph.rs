//! `tailwright trace callgraph`: services, operations and their times in a file of spans.

use crate::trace::callgraph_text as call_graph;
use callgraph::{BadRecords, Outliving, SpanFormat};
use cli::exit::VerbAnswer;
use cli::terminal::{print, print_text};
use model::OperationError;
use plan::read_call_graph;
use std::path::PathBuf;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Formats, detected from content: span CSV (trace_id,span_id,parent_id,service,operation,start_us,\
    duration_us), JSON of Jaeger, OpenTelemetry, Tempo or Zipkin, CSV of Alibaba's call graphs; gzip is transparent.\n\n\
    self time is what a span takes without the calls that it waits for. A scenario replays such a file: \
    [call_graph] in docs/reference/scenario.md.\n\nExamples:\n  tailwright trace callgraph spans.csv.gz\n  \
    tailwright trace callgraph traces.json --json\n\nExit codes: 0 done; 2 bad input."
)]
pub(super) struct CallGraphArgs {
    /// Spans of many requests
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Format of the input, instead of detecting it
    #[arg(long = "span-format", alias = "format", value_name = "spans|jaeger|otlp|zipkin|alibaba")]
    format: Option<SpanFormat>,
    /// Skip and count malformed records, instead of failing
    #[arg(long)]
    lenient: bool,
    /// Children that end after their parents were not waited for, instead of cut at their parents' ends
    #[arg(long)]
    outliving_are_asynchronous: bool,
    /// Print JSON: the figures
    #[arg(long)]
    json: bool,
}

pub(super) fn run(args: &CallGraphArgs) -> Result<VerbAnswer, OperationError> {
    let outliving =
        if args.outliving_are_asynchronous { Outliving::Asynchronous } else { Outliving::Clipped };
    let errors = if args.lenient { BadRecords::Counted } else { BadRecords::Fatal };
    let graph = read_call_graph(&args.file, args.format, errors, outliving)?;
    if args.json {
        print(&call_graph::json(&graph));
    } else {
        print_text(&call_graph::text(&graph));
    }
    Ok(VerbAnswer::Yes)
}

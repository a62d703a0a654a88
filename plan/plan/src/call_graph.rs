//! The call graph of services, from a file of spans.

use callgraph::{BadRecords, CallGraph, CallGraphBuilder, Outliving, SpanFormat};
use model::OperationError;
use std::path::Path;

/// Reads the spans of many requests into a call graph with at least one request.
///
/// # BadRecords
///
/// When the file cannot be read, or no trace in it has an entry span.
pub fn read_call_graph(
    path: &Path,
    format: Option<SpanFormat>,
    errors: BadRecords,
    outliving: Outliving,
) -> Result<CallGraph, OperationError> {
    let mut builder = CallGraphBuilder::new(outliving);
    let unreadable =
        callgraph::traces(path, format, errors, |spans| drop(builder.push(spans))).map_err(|error| {
            let hint = match path.is_file() || path == Path::new("-") {
                true => "name the format with --span-format, or leave bad records out with --lenient",
                false => "name a file with the spans of requests",
            };
            OperationError::input(error).hint(hint)
        })?;
    let graph = builder.finish(unreadable);
    if graph.entry.latency.count == 0 {
        let message = format_args!("{}: no trace has an entry span", path.display());
        return Err(OperationError::input(message).hint("an entry span has no parent; give whole traces"));
    }
    Ok(graph)
}

//! `tailwright trace callgraph`: services, operations and their times in a file of spans.

use crate::exit::Answer;
use crate::output::json::pretty;
use crate::terminal::{Align, Table, print};
use callgraph::{BadRecords, CallGraph, CallGraphBuilder, Outliving, RuleCounts, SpanFormat};
use callgraph::{MeasuredTimes, ServiceOperation};
use model::OperationError;
use serde::Serialize;
use std::path::PathBuf;
use workflow::text::time;

#[derive(Debug, clap::Args)]
#[command(
    after_help = "Formats, detected from content: span CSV (trace_id,span_id,parent_id,service,operation,start_us,\
    duration_us), JSON of\nJaeger or of OpenTelemetry, CSV of Alibaba's call graphs; gzip is transparent.\n\n\
    self time is what a span takes without the calls that it waits for. A scenario replays such a file:\n\
    [call_graph] in docs/simulate.md.\n\nExamples:\n  tailwright trace callgraph spans.csv.gz\n  \
    tailwright trace callgraph traces.json --json"
)]
pub(super) struct CallGraphArgs {
    /// Spans of many requests
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// SpanFormat of the input, instead of detecting it
    #[arg(long, value_name = "spans|jaeger|otlp|alibaba")]
    format: Option<SpanFormat>,
    /// Leave out and count records that cannot be read instead of failing
    #[arg(long)]
    lenient: bool,
    /// Children that end after their parents were not waited for, instead of cut at their parents' ends
    #[arg(long)]
    outliving_are_asynchronous: bool,
    /// Print the figures as JSON
    #[arg(long)]
    json: bool,
}

/// Percentiles of measured times, seconds.
#[derive(Debug, Serialize)]
struct Times {
    mean_s: f64,
    p50_s: f64,
    p90_s: f64,
    p99_s: f64,
    /// Squared coefficient of variation.
    c2: f64,
}

#[derive(Debug, Serialize)]
struct Document<'a> {
    requests: u64,
    rate_per_s: f64,
    latency: Times,
    in_progress: f64,
    in_progress_max: u64,
    services: Vec<Service<'a>>,
    operations: Vec<One<'a>>,
    counts: RuleCounts,
}

#[derive(Debug, Serialize)]
struct Service<'a> {
    name: &'a str,
    /// Spans in progress on average.
    in_progress: f64,
    /// Of those, how many work themselves.
    busy: f64,
}

#[derive(Debug, Serialize)]
struct One<'a> {
    service: &'a str,
    name: &'a str,
    /// A caller's view of a call.
    is_client: bool,
    per_request: f64,
    own: Times,
    duration: Times,
    /// Share of all latency that its self time on the critical path makes up.
    critical_share: f64,
    /// Different ways in which it calls others.
    patterns: usize,
    /// Most calls that overlap, in any of those.
    calls_at_once_max: usize,
}

pub(super) fn run(args: &CallGraphArgs) -> Result<Answer, OperationError> {
    let reading = if args.outliving_are_asynchronous { Outliving::Asynchronous } else { Outliving::Clipped };
    let errors = if args.lenient { BadRecords::Counted } else { BadRecords::Fatal };
    let mut builder = CallGraphBuilder::new(reading);
    let unreadable = callgraph::traces(&args.file, args.format, errors, |spans| drop(builder.push(spans)))
        .map_err(|error| {
            OperationError::input(error)
                .hint("name the format with --format, or leave bad records out with --lenient")
        })?;
    let graph = builder.finish(unreadable);
    if graph.entry.latency.count == 0 {
        return Err(OperationError::input(format_args!(
            "{}: no trace has an entry span",
            args.file.display()
        ))
        .hint("an entry span has no parent; give whole traces"));
    }
    let found = document(&graph);
    print(&if args.json { pretty(&found) } else { text(&found) });
    Ok(Answer::Yes)
}

fn document(graph: &CallGraph) -> Document<'_> {
    let requests = graph.entry.latency.count;
    let services = graph.services.iter();
    Document {
        requests,
        rate_per_s: graph.entry.rate_per_s,
        latency: times(&graph.entry.latency),
        in_progress: graph.entry.in_progress,
        in_progress_max: graph.entry.in_progress_max,
        services: services
            .map(|at| Service { name: &at.name, in_progress: at.in_progress, busy: at.busy })
            .collect(),
        operations: graph.operations.iter().map(|operation| one(graph, operation, requests)).collect(),
        counts: graph.counts,
    }
}

fn one<'a>(graph: &'a CallGraph, operation: &'a ServiceOperation, requests: u64) -> One<'a> {
    let groups = operation.patterns.iter().flat_map(|pattern| &pattern.groups);
    One {
        service: &graph.services[operation.service].name,
        name: &operation.name,
        is_client: operation.is_client,
        per_request: operation.own.count as f64 / requests as f64,
        own: times(&operation.own),
        duration: times(&operation.duration),
        critical_share: operation.critical_share,
        patterns: operation.patterns.len(),
        calls_at_once_max: groups.map(Vec::len).max().unwrap_or(0),
    }
}

fn times(law: &MeasuredTimes) -> Times {
    // Of the nearest rank, as everywhere.
    let at = |percent: usize| {
        let rank = (law.sample_ns.len() * percent).div_ceil(100);
        law.sample_ns.get(rank.saturating_sub(1)).map_or(0.0, |ns| *ns as f64 / 1e9)
    };
    Times { mean_s: law.mean_s, p50_s: at(50), p90_s: at(90), p99_s: at(99), c2: law.c2 }
}

fn text(found: &Document) -> String {
    let latency = &found.latency;
    format!(
        "{} requests, {:.1}/s; latency mean {}, p50 {}, p90 {}, p99 {}; in progress {:.2}, at most {}.\n\n{}\n{}",
        found.requests,
        found.rate_per_s,
        time(latency.mean_s),
        time(latency.p50_s),
        time(latency.p90_s),
        time(latency.p99_s),
        found.in_progress,
        found.in_progress_max,
        services(found),
        operations(found),
    )
}

fn services(found: &Document) -> String {
    let mut table =
        Table::new(&[("service", Align::Left), ("in progress", Align::Right), ("working", Align::Right)]);
    for service in &found.services {
        let number = |value: f64| format!("{value:.3}");
        table.row(vec![service.name.to_owned(), number(service.in_progress), number(service.busy)]);
    }
    table.render()
}

fn operations(found: &Document) -> String {
    let headings = ["per request", "self mean", "p50", "p90", "p99", "critical", "patterns", "at once"];
    let mut columns = vec![("operation", Align::Left)];
    columns.extend(headings.map(|heading| (heading, Align::Right)));
    let mut table = Table::new(&columns);
    for operation in &found.operations {
        let role = if operation.is_client { " (caller's view)" } else { "" };
        let own = &operation.own;
        let mut cells = vec![format!("{} {}{role}", operation.service, operation.name)];
        cells.push(format!("{:.2}", operation.per_request));
        cells.extend([own.mean_s, own.p50_s, own.p90_s, own.p99_s].map(time));
        cells.push(format!("{:.1} %", 100.0 * operation.critical_share));
        cells.extend([operation.patterns.to_string(), operation.calls_at_once_max.to_string()]);
        table.row(cells);
    }
    table.render()
}

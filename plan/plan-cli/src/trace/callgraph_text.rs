//! The call graph of services: tables and JSON.

use cli::terminal::{Align, TextTable};

use callgraph::{CallGraph, MeasuredTimes, ObservedService, RuleCounts, ServiceOperation};
use operation::text::time;
use schemars::JsonSchema;
use serde::Serialize;
use units::plural;

/// Percentiles of measured times, seconds.
#[derive(Debug, Serialize, JsonSchema)]
struct TimesDocument {
    mean_s: f64,
    p50_s: f64,
    p90_s: f64,
    p99_s: f64,
    /// Squared coefficient of variation; null where the mean is 0.
    c2: Option<f64>,
}

#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct CallGraphDocument<'a> {
    requests: u64,
    rate_per_s: f64,
    latency: TimesDocument,
    in_progress: f64,
    in_progress_max: u64,
    services: &'a [ObservedService],
    operations: Vec<OperationDocument<'a>>,
    counts: RuleCounts,
}

#[derive(Debug, Serialize, JsonSchema)]
struct OperationDocument<'a> {
    service: &'a str,
    name: &'a str,
    /// A caller's view of a call.
    is_client: bool,
    /// Null where no request entered.
    per_request: Option<f64>,
    own: TimesDocument,
    duration: TimesDocument,
    /// Share of all latency that its self time on the critical path makes up.
    critical_share: f64,
    /// Different ways in which it calls others.
    patterns: usize,
    /// Most calls that overlap, in any of those.
    calls_at_once_max: usize,
}

/// One object: requests, services and operations.
pub(crate) fn json(graph: &CallGraph) -> String {
    operation::document::document(&document(graph))
}

fn document(graph: &CallGraph) -> CallGraphDocument<'_> {
    let requests = graph.entry.latency.count;
    CallGraphDocument {
        requests,
        rate_per_s: graph.entry.rate_per_s,
        latency: times(&graph.entry.latency),
        in_progress: graph.entry.in_progress,
        in_progress_max: graph.entry.in_progress_max,
        services: &graph.services,
        operations: graph.operations.iter().map(|at| operation(graph, at, requests)).collect(),
        counts: graph.counts,
    }
}

fn operation<'a>(
    graph: &'a CallGraph,
    operation: &'a ServiceOperation,
    requests: u64,
) -> OperationDocument<'a> {
    let groups = operation.patterns.iter().flat_map(|pattern| &pattern.groups);
    OperationDocument {
        service: &graph.services[operation.service].name,
        name: &operation.name,
        is_client: operation.is_client,
        per_request: (requests > 0).then(|| operation.own.count as f64 / requests as f64),
        own: times(&operation.own),
        duration: times(&operation.duration),
        critical_share: operation.critical_share,
        patterns: operation.patterns.len(),
        calls_at_once_max: groups.map(Vec::len).max().unwrap_or(0),
    }
}

fn times(law: &MeasuredTimes) -> TimesDocument {
    // By the nearest rank, as everywhere.
    let at = |percent: usize| {
        let rank = (law.sample_ns.len() * percent).div_ceil(100);
        law.sample_ns.get(rank.saturating_sub(1)).map_or(0.0, |ns| *ns as f64 / 1e9)
    };
    TimesDocument {
        mean_s: law.mean_s,
        p50_s: at(50),
        p90_s: at(90),
        p99_s: at(99),
        c2: Some(law.c2).filter(|c2| c2.is_finite()),
    }
}

/// The tables for people: services, then operations.
pub(crate) fn text(graph: &CallGraph) -> String {
    let found = &document(graph);
    let latency = &found.latency;
    format!(
        "{}, {:.1}/s; latency mean {}, p50 {}, p90 {}, p99 {}; in progress {:.2}, at most {}.\n{}\n{}\n{}",
        plural(found.requests, "request"),
        found.rate_per_s,
        time(latency.mean_s),
        time(latency.p50_s),
        time(latency.p90_s),
        time(latency.p99_s),
        found.in_progress,
        found.in_progress_max,
        irregularities(&found.counts),
        services(found),
        operations(found),
    )
}

/// A line for each irregularity that changes what the tables count.
fn irregularities(counts: &RuleCounts) -> String {
    let RuleCounts { traces, spans, unreadable, without_entry, missing_parents, cycles, duplicates, .. } =
        *counts;
    let all_traces = plural(traces, "trace");
    let all_spans = plural(spans, "span");
    let lines = [
        (unreadable, format!("{} left out: malformed, or without times.", plural(unreadable, "record"))),
        (
            without_entry,
            format!("{without_entry} of {all_traces} left out: no span without a parent is in them."),
        ),
        (
            missing_parents,
            format!("{missing_parents} of {all_spans} name a parent that is not in their trace."),
        ),
        (cycles, format!("{} of parents cut at the earliest span.", plural(cycles, "cycle"))),
        (duplicates, format!("{duplicates} of {all_spans} left out: an earlier one has the same id.")),
    ];
    lines.into_iter().filter(|&(count, _)| count > 0).map(|(_, line)| line + "\n").collect()
}

fn services(found: &CallGraphDocument) -> String {
    let mut table =
        TextTable::new(&[("service", Align::Left), ("in progress", Align::Right), ("working", Align::Right)]);
    for service in found.services {
        let number = |value: f64| format!("{value:.3}");
        table.row(vec![service.name.clone(), number(service.in_progress), number(service.busy)]);
    }
    table.answered_by(&["working"]).render()
}

fn operations(found: &CallGraphDocument) -> String {
    let headings = ["per request", "self mean", "p50", "p90", "p99", "critical", "patterns", "at once"];
    let mut columns = vec![("operation", Align::Left)];
    columns.extend(headings.map(|heading| (heading, Align::Right)));
    let mut table = TextTable::new(&columns);
    for operation in &found.operations {
        let role = if operation.is_client { " (caller's view)" } else { "" };
        let own = &operation.own;
        let mut cells = vec![format!("{} {}{role}", operation.service, operation.name)];
        cells.push(operation.per_request.map_or_else(|| "-".to_owned(), |count| format!("{count:.2}")));
        cells.extend([own.mean_s, own.p50_s, own.p90_s, own.p99_s].map(time));
        cells.push(format!("{:.1} %", 100.0 * operation.critical_share));
        cells.extend([operation.patterns.to_string(), operation.calls_at_once_max.to_string()]);
        table.row(cells);
    }
    table.answered_by(&["p99", "critical", "self mean"]).render()
}

//! A call graph from traces, one trace at a time.

use crate::graph::{CallGraph, CallPattern, GraphEntry, ObservedService, OperationCall, ServiceOperation};
use crate::rule_counts::RuleCounts;
use crate::span::{Span, SpanKind};
use crate::times_collector::TimesCollector;
use crate::trace::{Outliving, Trace, TraceNode};
use crate::trace_timeline::TraceTimeline;
use std::collections::BTreeMap;
use units::Nanos;

/// Values that are kept of each distribution of times.
const SAMPLE_MAX: usize = 10_000;
/// Different call patterns that are kept of an operation.
const PATTERNS_MAX: usize = 1000;

/// Accumulates traces into a call graph.
#[derive(Debug, Default)]
pub struct CallGraphBuilder {
    outliving: Outliving,
    counts: RuleCounts,
    /// Index of each operation, by service, name, and true for a client's view.
    numbers: BTreeMap<(Box<str>, Box<str>, bool), usize>,
    /// The operations by number, in the order in which they were seen first.
    operations: Vec<OperationTotals>,
    /// Start, end and operation number of each request.
    requests: Vec<(Nanos, Nanos, usize)>,
    /// Earliest start and latest end of any span.
    observed: Option<(Nanos, Nanos)>,
}

/// Totals of one operation over the traces so far.
#[derive(Debug)]
struct OperationTotals {
    own: TimesCollector,
    duration: TimesCollector,
    /// Self time on the critical path, nanoseconds.
    critical: u128,
    /// Number of spans with each pattern of calls.
    patterns: BTreeMap<Vec<Vec<OperationCall>>, u64>,
    /// Number of spans with patterns beyond the maximum that is kept.
    other_patterns: u64,
}

impl CallGraphBuilder {
    /// A builder with this reading of children that end after their parents.
    pub fn new(outliving: Outliving) -> Self {
        Self { outliving, ..Self::default() }
    }

    /// Adds the spans of one trace, which are counted and left out if none of them is an entry: calls are
    /// counted per request, and a fragment is no request. Returns the trace as it was understood.
    pub fn push(&mut self, spans: Vec<Span>) -> (Trace, TraceTimeline) {
        let trace = Trace::new(spans, self.outliving, &mut self.counts);
        let timeline = TraceTimeline::new(&trace);
        let Some(entry) = trace.entry() else { return (trace, timeline) };
        let numbers: Vec<usize> =
            trace.nodes().iter().map(|node| self.operation_number(&node.span)).collect();
        for (index, node) in trace.nodes().iter().enumerate() {
            let (from, to) = self.observed.unwrap_or((node.start, node.end));
            self.observed = Some((from.min(node.start), to.max(node.end)));
            let groups = call_groups(trace.nodes(), index, &numbers);
            self.counts.repeated += repeated_calls(&groups);
            let operation = &mut self.operations[numbers[index]];
            operation.own.push(timeline.own[index]);
            operation.duration.push(node.end - node.start);
            operation.critical += u128::from(timeline.critical[index].0);
            operation.count_pattern(groups);
        }
        let node = &trace.nodes()[entry];
        self.requests.push((node.start, node.end, numbers[entry]));
        (trace, timeline)
    }

    /// The number of the operation of a span, a new one if it is seen first.
    fn operation_number(&mut self, span: &Span) -> usize {
        let key = (span.service.clone(), span.operation.clone(), span.kind == SpanKind::Client);
        let next = self.operations.len();
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.operations.push(OperationTotals::new(next as u64));
        }
        number
    }

    /// Returns the number of times that each rule about irregular traces has applied so far.
    pub fn counts(&self) -> &RuleCounts {
        &self.counts
    }

    /// The call graph; `unreadable` records were left out while reading.
    pub fn finish(mut self, unreadable: u64) -> CallGraph {
        self.counts.unreadable = unreadable;
        self.counts.other_patterns = self.operations.iter().map(|operation| operation.other_patterns).sum();
        // The graph has the operations in the order of names.
        let mut renamed = vec![0; self.operations.len()];
        for (new, old) in self.numbers.values().enumerate() {
            renamed[*old] = new;
        }
        let observed_s = self.observed.map_or(0.0, |(from, to)| (to - from).as_secs());
        let entry = graph_entry(&mut self.requests, &renamed);
        let total = entry.latency.mean_s * entry.latency.count as f64;
        let mut operations: Vec<Option<OperationTotals>> = self.operations.into_iter().map(Some).collect();
        let mut graph = CallGraph { services: vec![], operations: vec![], entry, counts: self.counts };
        for ((service, name, is_client), old) in self.numbers {
            let operation = operations[old].take().expect("each number is there once");
            let service = service_index(&mut graph, &service);
            if observed_s > 0.0 {
                graph.services[service].in_progress += operation.duration.sum_s() / observed_s;
                // The time of a client's view that its callee does not cover is network and queue, not work.
                let busy_s = if is_client { 0.0 } else { operation.own.sum_s() };
                graph.services[service].busy += busy_s / observed_s;
            }
            graph.operations.push(operation.finish(service, &name, is_client, total, &renamed));
        }
        graph
    }
}

/// The index of a service that is the last of the graph, or is added there.
fn service_index(graph: &mut CallGraph, name: &str) -> usize {
    if graph.services.last().is_none_or(|last| last.name != name) {
        graph.services.push(ObservedService { name: name.to_owned(), in_progress: 0.0, busy: 0.0 });
    }
    graph.services.len() - 1
}

impl OperationTotals {
    fn new(number: u64) -> Self {
        let own = TimesCollector::new(SAMPLE_MAX, 2 * number);
        let duration = TimesCollector::new(SAMPLE_MAX, 2 * number + 1);
        Self { own, duration, critical: 0, patterns: BTreeMap::new(), other_patterns: 0 }
    }

    fn count_pattern(&mut self, groups: Vec<Vec<OperationCall>>) {
        if let Some(count) = self.patterns.get_mut(&groups) {
            *count += 1;
        } else if self.patterns.len() < PATTERNS_MAX {
            self.patterns.insert(groups, 1);
        } else {
            self.other_patterns += 1;
        }
    }

    fn finish(
        self,
        service: usize,
        name: &str,
        is_client: bool,
        total_s: f64,
        renamed: &[usize],
    ) -> ServiceOperation {
        let spans = (self.patterns.values().sum::<u64>() + self.other_patterns) as f64;
        let mut patterns = Vec::with_capacity(self.patterns.len());
        for (mut groups, count) in self.patterns {
            for group in &mut groups {
                group.iter_mut().for_each(|call| call.operation = renamed[call.operation]);
                group.sort_unstable();
            }
            patterns.push(CallPattern { share: count as f64 / spans, groups });
        }
        patterns.sort_by(|a, b| b.share.total_cmp(&a.share).then_with(|| a.groups.cmp(&b.groups)));
        ServiceOperation {
            service,
            name: name.to_owned(),
            is_client,
            own: self.own.finish(),
            duration: self.duration.finish(),
            critical_share: if total_s > 0.0 { self.critical as f64 / 1e9 / total_s } else { 0.0 },
            patterns,
            other_patterns: self.other_patterns as f64 / spans,
        }
    }
}

/// The calls of a span in groups. A child belongs to the group of those before it if it starts before the last of them
/// ends. A child that is not waited for is in the group in which it starts, and does not prolong it.
fn call_groups(nodes: &[TraceNode], index: usize, numbers: &[usize]) -> Vec<Vec<OperationCall>> {
    let mut groups: Vec<Vec<OperationCall>> = Vec::new();
    let mut open_until: Option<Nanos> = None;
    for &child in &nodes[index].children {
        let node = &nodes[child];
        let call = OperationCall { operation: numbers[child], asynchronous: !node.is_waited_for };
        match groups.last_mut() {
            Some(group) if open_until.is_some_and(|end| node.start < end) => group.push(call),
            _ => groups.push(vec![call]),
        }
        let end = if node.is_waited_for { node.end } else { node.start };
        open_until = open_until.max(Some(end));
    }
    groups.iter_mut().for_each(|group| group.sort_unstable());
    groups
}

/// Returns the number of calls to an operation that an earlier call already called.
fn repeated_calls(groups: &[Vec<OperationCall>]) -> u64 {
    let mut calls: Vec<usize> = groups.iter().flatten().map(|call| call.operation).collect();
    let all = calls.len();
    calls.sort_unstable();
    calls.dedup();
    (all - calls.len()) as u64
}

/// Arrivals, latencies and concurrency of requests, each with its start, end and operation number.
fn graph_entry(requests: &mut [(Nanos, Nanos, usize)], renamed: &[usize]) -> GraphEntry {
    requests.sort_unstable();
    let mut by_operation: BTreeMap<usize, u64> = BTreeMap::new();
    let mut gaps = TimesCollector::new(SAMPLE_MAX, 1);
    let mut latency = TimesCollector::new(SAMPLE_MAX, 2);
    for (start, end, number) in requests.iter() {
        *by_operation.entry(renamed[*number]).or_default() += 1;
        latency.push(*end - *start);
    }
    requests.windows(2).for_each(|pair| gaps.push(pair[1].0 - pair[0].0));
    let last_end = requests.iter().map(|request| request.1).max().unwrap_or_default();
    let observed_s = requests.first().map_or(0.0, |first| (last_end - first.0).as_secs());
    let in_progress = if observed_s > 0.0 { latency.sum_s() / observed_s } else { 0.0 };
    let gaps = gaps.finish();
    let shares = by_operation.into_iter();
    let shares = shares.map(|(operation, count)| (operation, count as f64 / requests.len() as f64));
    GraphEntry {
        operations: shares.collect(),
        rate_per_s: if gaps.mean_s > 0.0 { 1.0 / gaps.mean_s } else { 0.0 },
        gaps,
        latency: latency.finish(),
        in_progress,
        in_progress_max: most_at_once(requests),
    }
}

/// Returns the maximum number of requests in progress at once. Intervals are half-open: a request that
/// begins when another ends does not overlap it.
fn most_at_once(requests: &[(Nanos, Nanos, usize)]) -> u64 {
    let ends = requests.iter().map(|request| (request.1, -1i64));
    let mut events: Vec<(Nanos, i64)> = requests.iter().map(|request| (request.0, 1)).chain(ends).collect();
    events.sort_unstable();
    let mut now = 0i64;
    let mut most = 0i64;
    for (_, step) in events {
        now += step;
        most = most.max(now);
    }
    most.unsigned_abs()
}

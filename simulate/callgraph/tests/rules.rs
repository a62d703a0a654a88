//! Reading of one trace: rules for odd spans, and times against arithmetic instant by instant.

use callgraph::{CallGraphBuilder, Outliving, RuleCounts, Span, SpanKind, Trace, TraceTimeline};
use proptest::prelude::*;
use units::Nanos;

/// `id < parent @ service: start + duration`, in nanoseconds.
fn span(id: &str, parent: &str, service: &str, start: u64, duration: u64) -> Span {
    Span {
        trace: "t".into(),
        id: id.into(),
        parent: (!parent.is_empty()).then(|| parent.into()),
        service: service.into(),
        operation: id.trim_end_matches(char::is_numeric).into(),
        kind: SpanKind::Internal,
        follows: false,
        start: Nanos(start),
        duration: Nanos(duration),
    }
}

fn timed(spans: Vec<Span>, outliving: Outliving) -> (Trace, TraceTimeline, RuleCounts) {
    let mut counts = RuleCounts::default();
    let trace = Trace::new(spans, outliving, &mut counts);
    let timeline = TraceTimeline::new(&trace);
    (trace, timeline, counts)
}

fn ns(times: &[Nanos]) -> Vec<u64> {
    times.iter().map(|time| time.0).collect()
}

#[test]
fn children_cover_their_parent_once() {
    let spans = vec![
        span("root", "", "a", 0, 100),
        span("one", "root", "b", 10, 30),
        span("two", "root", "c", 20, 40),
        span("three", "root", "d", 80, 10),
        span("leaf", "two", "e", 25, 10),
    ];
    let (trace, times, counts) = timed(spans, Outliving::Clipped);
    assert_eq!(ns(&times.own), [40, 30, 30, 10, 10]);
    assert_eq!(ns(&times.waiting), [60, 0, 10, 0, 0]);
    // Back from 100: root, three, root, two (without its leaf), one up to the start of two, root.
    assert_eq!(ns(&times.critical), [40, 10, 30, 10, 10]);
    assert_eq!(trace.entry(), Some(0));
    assert_eq!(counts, RuleCounts { traces: 1, spans: 5, ..RuleCounts::default() });
}

#[test]
fn a_child_that_outlives_its_parent_is_clipped_or_asynchronous() {
    let spans = || vec![span("root", "", "a", 0, 100), span("late", "root", "b", 50, 500)];
    let (_, times, counts) = timed(spans(), Outliving::Clipped);
    assert_eq!((ns(&times.own), ns(&times.critical), counts.outliving), (vec![50, 500], vec![50, 50], 1));
    let (_, times, counts) = timed(spans(), Outliving::Asynchronous);
    assert_eq!((ns(&times.own), ns(&times.critical), counts.outliving), (vec![100, 500], vec![100, 0], 1));
    let mut sent = spans();
    sent[1].kind = SpanKind::Producer;
    let (_, times, counts) = timed(sent, Outliving::Clipped);
    assert_eq!((ns(&times.own), counts.asynchronous, counts.outliving), (vec![100, 500], 1, 0));
    let mut follows = spans();
    follows[1].follows = true;
    assert_eq!(ns(&timed(follows, Outliving::Clipped).1.own), [100, 500]);
}

#[test]
fn a_skewed_clock_moves_a_child_and_all_below_it() {
    let spans = |service| {
        vec![
            span("root", "", "a", 1000, 100),
            span("early", "root", service, 980, 50),
            span("leaf", "early", service, 990, 20),
        ]
    };
    let (trace, times, counts) = timed(spans("b"), Outliving::Clipped);
    assert_eq!((trace.nodes()[1].start, trace.nodes()[2].start), (Nanos(1000), Nanos(1010)));
    assert_eq!((ns(&times.own), counts.skewed, counts.early), (vec![50, 30, 20], 1, 0));
    // Within a service there is one clock, so time before the parent's start does not count for the
    // parent.
    let (_, times, counts) = timed(spans("a"), Outliving::Clipped);
    assert_eq!((ns(&times.own), counts.skewed, counts.early), (vec![70, 30, 20], 0, 1));
}

#[test]
fn fragments_duplicates_and_cycles_are_counted() {
    let spans = vec![
        span("lost", "gone", "a", 5, 10),
        span("below", "lost", "a", 6, 4),
        span("lost", "gone", "a", 5, 10),
    ];
    let (trace, times, counts) = timed(spans, Outliving::Clipped);
    assert_eq!((trace.entry(), ns(&times.own), ns(&times.critical)), (None, vec![6, 4], vec![0, 0]));
    assert_eq!((counts.without_entry, counts.missing_parents, counts.duplicates), (1, 1, 1));

    let cycle = vec![
        span("x", "z", "a", 3, 9),
        span("y", "x", "a", 2, 9),
        span("z", "y", "a", 1, 9),
        span("self", "self", "a", 0, 1),
    ];
    let (trace, times, counts) = timed(cycle, Outliving::Clipped);
    assert_eq!((counts.cycles, counts.without_entry, trace.nodes()[2].parent), (2, 1, None));
    assert_eq!(times.own.len(), 4);
}

#[test]
fn a_shared_id_is_a_call_and_its_service() {
    let mut client = span("1", "0", "caller", 10, 60);
    client.kind = SpanKind::Client;
    let mut server = span("1", "0", "callee", 30, 20);
    server.kind = SpanKind::Server;
    let spans = vec![span("0", "", "caller", 0, 100), server, client, span("2", "1", "db", 35, 5)];
    let (trace, times, counts) = timed(spans, Outliving::Clipped);
    let parents: Vec<_> = trace.nodes().iter().map(|node| node.parent).collect();
    assert_eq!(parents, [None, Some(2), Some(0), Some(1)]);
    assert_eq!(ns(&times.own), [40, 15, 40, 5]);
    assert_eq!(counts, RuleCounts { traces: 1, spans: 4, ..RuleCounts::default() });
}

#[test]
fn patterns_are_groups_in_sequence_with_their_shares() {
    let mut builder = CallGraphBuilder::new(Outliving::Clipped);
    for index in 0..4u64 {
        let at = index * 1000;
        let mut spans = vec![
            span("root", "", "a", at, 100),
            span("one", "root", "b", at + 10, 30),
            span("two", "root", "b", at + 20, 40),
            span("three", "root", "b", at + 60, 10),
        ];
        if index == 3 {
            // A second call of the same operation, after the first: a retry or a loop.
            spans.push(span("three1", "root", "b", at + 80, 10));
        }
        builder.push(spans);
    }
    let graph = builder.finish(7);
    assert_eq!(graph.services.iter().map(|s| &*s.name).collect::<Vec<_>>(), ["a", "b"]);
    let name = |place: usize| graph.operations[place].name.as_str();
    let root = &graph.operations[graph.entry.operations[0].0];
    assert_eq!((root.name.as_str(), graph.entry.operations[0].1), ("root", 1.0));
    let shown: Vec<(f64, Vec<Vec<&str>>)> = root
        .patterns
        .iter()
        .map(|pattern| {
            let names = |group: &Vec<_>| {
                group.iter().map(|call: &callgraph::OperationCall| name(call.operation)).collect()
            };
            (pattern.share, pattern.groups.iter().map(names).collect())
        })
        .collect();
    assert_eq!(
        shown,
        [
            (0.75, vec![vec!["one", "two"], vec!["three"]]),
            (0.25, vec![vec!["one", "two"], vec!["three"], vec!["three"]])
        ]
    );
    assert_eq!((graph.counts.repeated, graph.counts.unreadable, graph.counts.traces), (1, 7, 4));
    assert_eq!((graph.entry.rate_per_s, graph.entry.gaps.c2, graph.entry.in_progress_max), (1e6, 0.0, 1));
    let busy: f64 = graph.services.iter().map(|service| service.busy).sum();
    assert!((busy - (4.0 * (40.0 + 80.0) + 0.0) / 3100.0).abs() < 1e-9, "{busy}");
    let json = serde_json::to_string(&graph).unwrap();
    assert_eq!(serde_json::from_str::<callgraph::CallGraph>(&json).unwrap(), graph);
}

#[test]
fn nothing_gives_an_empty_graph() {
    let graph = CallGraphBuilder::new(Outliving::Clipped).finish(0);
    assert!(
        graph.operations.is_empty() && graph.entry.rate_per_s == 0.0 && graph.entry.latency.mean_s == 0.0
    );
}

/// Any parents, times, services and kinds, cycles and strangers among them.
fn traces() -> impl Strategy<Value = Vec<Span>> {
    let one = (0usize..14, 0u64..60, 0u64..40, 0usize..3, 0usize..8);
    proptest::collection::vec(one, 1..12).prop_map(|list| {
        let make =
            |(index, (parent, start, duration, service, kind)): (usize, (usize, u64, u64, usize, usize))| {
                let parent = if parent >= 12 { String::new() } else { parent.to_string() };
                let mut span = span(&index.to_string(), &parent, ["a", "b", "c"][service], start, duration);
                span.kind = [SpanKind::Internal, SpanKind::Client, SpanKind::Producer]
                    .get(kind)
                    .copied()
                    .unwrap_or_default();
                span
            };
        list.into_iter().enumerate().map(make).collect()
    })
}

/// Attributes the instants before `at`, from `span` down, given that each span was entered at its own
/// end. The child that ends last among the open ones is due; among equals the later one.
fn due(trace: &Trace, span: usize, from: u64, to: u64, due_to: &mut [u64]) {
    let nodes = trace.nodes();
    let mut at = to;
    let mut used = Vec::new();
    while at > from {
        let open = nodes[span].children.iter().copied().enumerate().filter(|(_, child)| {
            let node = &nodes[*child];
            node.is_waited_for
                && !used.contains(child)
                && node.start.0.max(from) < at
                && node.end.0.min(to) >= at
        });
        match open.max_by_key(|(place, child)| (nodes[*child].end.0.min(to), *place)) {
            None => {
                at -= 1;
                due_to[span] += 1;
            }
            Some((_, child)) => {
                used.push(child);
                let start = nodes[child].start.0.max(from);
                due(trace, child, start, at, due_to);
                at = start;
            }
        }
    }
}

proptest! {
    #[test]
    fn times_are_what_counting_instants_gives(spans in traces(), clipped in any::<bool>()) {
        let outliving = if clipped { Outliving::Clipped } else { Outliving::Asynchronous };
        let (trace, times, counts) = timed(spans, outliving);
        let nodes = trace.nodes();
        prop_assert_eq!(counts.spans, nodes.len() as u64 + counts.duplicates);
        for (index, node) in nodes.iter().enumerate() {
            let waits = |at: u64| node.children.iter().any(|child| {
                let child = &nodes[*child];
                child.is_waited_for && (child.start.0..child.end.0).contains(&at)
            });
            let own = (node.start.0..node.end.0).filter(|at| !waits(*at)).count() as u64;
            prop_assert_eq!(times.own[index].0, own);
            prop_assert_eq!(times.own[index] + times.waiting[index], node.span.duration);
        }
        let mut expected = vec![0; nodes.len()];
        if let Some(entry) = trace.entry() {
            due(&trace, entry, nodes[entry].start.0, nodes[entry].end.0, &mut expected);
            prop_assert_eq!(expected.iter().sum::<u64>(), nodes[entry].span.duration.0);
        }
        prop_assert_eq!(ns(&times.critical), expected);
    }

    #[test]
    fn the_order_of_a_file_does_not_matter(mut spans in traces(), by in 0usize..12) {
        // Distinct starts, so that no tie is decided by the order.
        for (index, span) in spans.iter_mut().enumerate() {
            span.start = Nanos(span.start.0 * 100 + index as u64);
            span.duration = Nanos(span.duration.0 * 100 + 13 * index as u64);
        }
        let graph = |spans: Vec<Span>| {
            let mut builder = CallGraphBuilder::new(Outliving::Clipped);
            builder.push(spans);
            builder.finish(0)
        };
        let straight = graph(spans.clone());
        let middle = by.min(spans.len());
        spans.rotate_left(middle);
        prop_assert_eq!(graph(spans), straight);
    }
}

//! The published runs of a microservice application.

use callgraph::{
    BadRecords, CallGraph, CallGraphBuilder, Outliving, Span, SpanFormat, Trace, TraceAssembler,
    TraceTimeline, read,
};
use flate2::read::GzDecoder;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufReader;
use std::process::{Command, Stdio};

const TRACES: [(u32, u64); 4] = [(25, 1000), (50, 1000), (75, 1500), (125, 1000)];

fn csv(load: u32) -> Option<Vec<Vec<Span>>> {
    let path = testkit::shared(&format!("data/microservices/media_load{load}.spans.csv.gz"))?;
    let from = BufReader::new(GzDecoder::new(File::open(path).expect("it exists")));
    Some(traces(SpanFormat::Spans, from))
}

/// The archive through `tar`.
fn jaeger() -> Option<Vec<Vec<Span>>> {
    let path = testkit::shared("data/microservices/media_load50.jaeger.tar.xz")?;
    let mut command = Command::new("tar");
    command.args(["-xJO", "--wildcards", "*.json", "-f"]).arg(path).stdout(Stdio::piped());
    let Ok(mut tar) = command.spawn() else {
        testkit::skip("there is no tar to open the archive with");
        return None;
    };
    let traces = traces(SpanFormat::Jaeger, BufReader::new(tar.stdout.take().expect("piped")));
    assert!(tar.wait().expect("it runs").success());
    Some(traces)
}

fn traces(format: SpanFormat, from: impl std::io::BufRead) -> Vec<Vec<Span>> {
    let mut assembler = TraceAssembler::new(64);
    let mut traces = Vec::new();
    read("data", format, BadRecords::Fatal, from, |span| traces.extend(assembler.push(span)))
        .expect("published");
    traces.extend(assembler.finish());
    traces
}

fn graph(traces: &[Vec<Span>], mut look: impl FnMut(&Trace, &TraceTimeline)) -> CallGraph {
    let mut builder = CallGraphBuilder::new(Outliving::Clipped);
    for spans in traces {
        let (trace, timeline) = builder.push(spans.clone());
        look(&trace, &timeline);
    }
    builder.finish(0)
}

/// Self time by the union of closed cells between all starts and ends.
fn own_by_cells(trace: &Trace, index: usize) -> u64 {
    let node = &trace.nodes()[index];
    let children: Vec<_> =
        node.children.iter().map(|child| &trace.nodes()[*child]).filter(|c| c.is_waited_for).collect();
    let mut cuts: Vec<u64> = children.iter().flat_map(|child| [child.start.0, child.end.0]).collect();
    cuts.extend([node.start.0, node.end.0]);
    cuts.sort_unstable();
    let inside = |cell: &&[u64]| cell[0] >= node.start.0 && cell[1] <= node.end.0;
    let free =
        |cell: &&[u64]| !children.iter().any(|child| child.start.0 <= cell[0] && cell[1] <= child.end.0);
    cuts.windows(2).filter(inside).filter(free).map(|cell| cell[1] - cell[0]).sum()
}

#[test]
fn every_latency_is_accounted_for() {
    for (load, expected) in TRACES {
        let Some(traces) = csv(load) else { return };
        let graph = graph(&traces, |trace, times| {
            let entry = &trace.nodes()[trace.entry().expect("whole traces")];
            assert_eq!(times.critical.iter().map(|ns| ns.0).sum::<u64>(), entry.span.duration.0);
            for (index, node) in trace.nodes().iter().enumerate() {
                assert_eq!(times.own[index] + times.waiting[index], node.span.duration);
                assert_eq!(times.own[index].0, own_by_cells(trace, index));
            }
        });
        let counts = graph.counts;
        assert_eq!((counts.traces, counts.spans, counts.without_entry), (expected, 27 * expected, 0));
        assert_eq!((counts.missing_parents, counts.cycles, counts.duplicates, counts.skewed), (0, 0, 0, 0));
        let shares: f64 = graph.operations.iter().map(|operation| operation.critical_share).sum();
        assert!((shares - 1.0).abs() < 1e-9, "{shares}");
        let offered = graph.entry.rate_per_s / f64::from(load);
        // A thousand Poisson arrivals are within four standard deviations of their rate.
        assert!((offered - 1.0).abs() < 4.0 / (expected as f64).sqrt(), "{load}: {}", graph.entry.rate_per_s);
    }
}

/// By name, without the order in which places were found.
fn by_name(graph: &CallGraph) -> BTreeMap<(String, String), (Vec<u64>, Vec<u64>)> {
    let named = graph.operations.iter().map(|operation| {
        let name = (graph.services[operation.service].name.clone(), operation.name.clone());
        (name, (operation.own.sample_ns.clone(), operation.duration.sample_ns.clone()))
    });
    named.collect()
}

#[test]
fn both_forms_of_one_run_agree() {
    let (Some(csv), Some(jaeger)) = (csv(50), jaeger()) else { return };
    let mut csv = graph(&csv, |_, _| {});
    let jaeger = graph(&jaeger, |_, _| {});
    assert_eq!(by_name(&csv), by_name(&jaeger));
    assert_eq!((csv.entry.clone(), csv.counts), (jaeger.entry.clone(), jaeger.counts));
    // Sums of doubles depend on the order of traces; everything else does not.
    for (ours, theirs) in csv.operations.iter_mut().zip(&jaeger.operations) {
        assert!(
            (ours.own.c2 - theirs.own.c2).abs() < 1e-9
                && (ours.duration.c2 - theirs.duration.c2).abs() < 1e-9
        );
        ours.own.c2 = theirs.own.c2;
        ours.duration.c2 = theirs.duration.c2;
    }
    assert_eq!(csv.operations, jaeger.operations);
}

//! Cost of reading a run in both of its forms, with a summary of the resulting call graph.
//!
//! `cargo bench -p callgraph`

use callgraph::{BadRecords, CallGraph, CallGraphBuilder, Outliving, SpanFormat, TraceAssembler, read};
use flate2::read::GzDecoder;
use std::fs::File;
use std::io::Read as _;
use std::process::Command;
use std::time::Instant;

fn main() {
    let Some(path) = testkit::shared("data/microservices/media_load50.spans.csv.gz") else { return };
    let mut csv = Vec::new();
    GzDecoder::new(File::open(path).expect("it exists")).read_to_end(&mut csv).expect("gzip");
    println!("{:<10}{:>12}{:>12}{:>9}", "format", "spans/s", "MB/s", "ratio");
    let base = speed(SpanFormat::Spans, &csv, None);
    let archive = testkit::shared("data/microservices/media_load50.jaeger.tar.xz").expect("beside the other");
    let tar = Command::new("tar").args(["-xJO", "--wildcards", "*.json", "-f"]).arg(archive).output();
    match tar {
        Ok(tar) => drop(speed(SpanFormat::Jaeger, &tar.stdout, Some(base))),
        Err(error) => testkit::skip(&format!("tar cannot be run: {error}")),
    }
    for outliving in [Outliving::Clipped, Outliving::Asynchronous] {
        println!("\nchildren that end after their parents: {outliving:?}");
        table(&graph(SpanFormat::Spans, &csv, outliving));
    }
}

fn graph(format: SpanFormat, bytes: &[u8], outliving: Outliving) -> CallGraph {
    let mut assembler = TraceAssembler::new(1000);
    let mut builder = CallGraphBuilder::new(outliving);
    let unreadable = read("data", format, BadRecords::Fatal, bytes, |span| {
        assembler.push(span).into_iter().for_each(|spans| drop(builder.push(spans)));
    });
    assembler.finish().for_each(|spans| drop(builder.push(spans)));
    builder.finish(unreadable.expect("published"))
}

fn speed(format: SpanFormat, bytes: &[u8], base: Option<f64>) -> f64 {
    let begin = Instant::now();
    let graph = graph(format, bytes, Outliving::Clipped);
    let seconds = begin.elapsed().as_secs_f64();
    let rate = graph.counts.spans as f64 / seconds;
    let volume = bytes.len() as f64 / 1e6 / seconds;
    let ratio = rate / base.unwrap_or(rate);
    println!("{:<10}{rate:>12.0}{volume:>12.1}{ratio:>9.2}", format.to_string());
    rate
}

fn table(graph: &CallGraph) {
    let entry = &graph.entry;
    println!(
        "{} requests, {:.1}/s, C² of gaps {:.2}, mean latency {:.2} ms, in progress {:.2} (at most {})",
        entry.latency.count,
        entry.rate_per_s,
        entry.gaps.c2,
        entry.latency.mean_s * 1e3,
        entry.in_progress,
        entry.in_progress_max
    );
    println!(
        "{:<24}{:<26}{:>10}{:>7}{:>10}{:>9}",
        "service", "operation", "own ms", "C²", "critical", "patterns"
    );
    for operation in &graph.operations {
        let service = &graph.services[operation.service].name;
        let mean = operation.own.mean_s * 1e3;
        let c2 = operation.own.c2;
        let share = operation.critical_share * 100.0;
        let patterns = operation.patterns.len();
        println!("{service:<24}{:<26}{mean:>10.3}{c2:>7.2}{share:>9.1}%{patterns:>9}", operation.name);
    }
    println!("{:?}", graph.counts);
}

//! Call graphs and service times of services, from distributed traces.
//!
//! ```text
//! files ──read──▶ Span ──assemble──▶ Trace ──▶ TraceTimeline ──▶ CallGraph (plain data, JSON)
//! ```
//!
//! 1. [`read()`] turns span CSV, Jaeger and OpenTelemetry JSON and Alibaba's call-graph CSV into [`Span`]s, one at a
//!    time, with file and line of errors. [`traces()`] does so for a file, whatever its format, and hands over trace by
//!    trace.
//! 2. [`TraceAssembler`] groups spans by trace, with a bounded number of traces open, and [`Trace`] joins
//!    them into trees. Its rules handle shared ids, missing parents, clock skew and asynchronous
//!    children.
//! 3. [`TraceTimeline`] computes the self time of each span, and attributes every instant of the
//!    request's latency to one span; both add up exactly.
//! 4. [`CallGraphBuilder`] accumulates traces into a [`CallGraph`]: distributions of self times, call patterns, arrivals and
//!    concurrency, from which a simulation can be built.
//!
//! ```
//! use callgraph::{BadRecords, CallGraphBuilder, Outliving, SpanFormat, TraceAssembler, read};
//!
//! let csv = "trace_id,span_id,parent_id,service,operation,start_us,duration_us\n\
//!            t,r,,front,get,0,100\nt,c,r,store,read,20,50\n";
//! let mut assembler = TraceAssembler::new(1000);
//! let mut builder = CallGraphBuilder::new(Outliving::Clipped);
//! let unreadable = read("spans.csv", SpanFormat::Spans, BadRecords::Fatal, csv.as_bytes(), |span| {
//!     assembler.push(span).map(|trace| builder.push(trace));
//! })?;
//! assembler.finish().for_each(|trace| drop(builder.push(trace)));
//! let graph = builder.finish(unreadable);
//! assert_eq!(graph.operations[0].own.sample_ns, [50_000]);
//! # Ok::<(), callgraph::SpanReadError>(())
//! ```
//!
//! Times are integer nanoseconds. Memory grows with the operations and with 24 bytes per trace, not with spans.
//!
//! Not covered: causes that no span shows (locks, queues, garbage collection, waiting for a worker). They
//! count as self time of the span in which they occur.

mod graph;
mod graph_builder;
pub mod read;
mod rule_counts;
mod span;
mod span_file;
mod times_collector;
mod trace;
mod trace_assembler;
mod trace_timeline;

pub use graph::{
    CallGraph, CallPattern, GraphEntry, MeasuredTimes, ObservedService, OperationCall, ServiceOperation,
};
pub use graph_builder::CallGraphBuilder;
pub use read::{BadRecords, SpanFormat, SpanReadError, read};
pub use rule_counts::RuleCounts;
pub use span::{Span, SpanKind};
pub use span_file::traces;
pub use trace::{Outliving, Trace, TraceNode};
pub use trace_assembler::TraceAssembler;
pub use trace_timeline::TraceTimeline;

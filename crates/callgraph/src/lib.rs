//! Call graphs and service times of services, from distributed traces.
//!
//! ```text
//! files ──read──▶ Span ──assemble──▶ Trace ──▶ Timeline ──▶ model::CallGraph (plain data, JSON)
//! ```
//!
//! 1. [`read()`] turns span CSV, Jaeger and OpenTelemetry JSON and Alibaba's call-graph CSV into [`Span`]s, one at a
//!    time, with file and line of whatever is wrong.
//!    [`traces()`] does so for a file, whatever its format, and hands over trace by trace.
//! 2. [`Assembler`] groups spans by trace, with a bounded number of traces open, and [`Trace`] joins them into
//!    trees: shared ids, missing parents, clock skew and asynchronous children have their rules there.
//! 3. [`Timeline`] says how long each span worked itself, and which span every instant of the request's latency is
//!    due to; both add up exactly.
//! 4. [`Builder`] accumulates traces into a [`CallGraph`]: laws of self times, call patterns, arrivals and
//!    concurrency, from which a simulation can be built.
//!
//! ```
//! use tailwright_callgraph::{Assembler, Builder, Errors, Format, Outliving, read};
//!
//! let csv = "trace_id,span_id,parent_id,service,operation,start_us,duration_us\n\
//!            t,r,,front,get,0,100\nt,c,r,store,read,20,50\n";
//! let (mut assembler, mut builder) = (Assembler::new(1000), Builder::new(Outliving::Clipped));
//! let unreadable = read("spans.csv", Format::Spans, Errors::Fatal, csv.as_bytes(), |span| {
//!     assembler.push(span).map(|trace| builder.push(trace));
//! })?;
//! assembler.finish().for_each(|trace| drop(builder.push(trace)));
//! let graph = builder.finish(unreadable);
//! assert_eq!(graph.operations[0].own.sample_ns, [50_000]);
//! # Ok::<(), tailwright_callgraph::ReadError>(())
//! ```
//!
//! Times are integer nanoseconds. Memory grows with the operations and with 24 bytes per trace, not with spans.
//!
//! Not covered: causes that no span shows (locks, queues, garbage collection): they are self time of the span in
//! which they happen, and so is a wait for a worker.

mod assemble;
mod build;
mod counts;
mod law;
pub mod model;
mod open;
pub mod read;
mod span;
mod timeline;
mod trace;

pub use assemble::Assembler;
pub use build::Builder;
pub use counts::Counts;
pub use model::CallGraph;
pub use open::traces;
pub use read::{Errors, Format, ReadError, read};
pub use span::{Kind, Span};
pub use timeline::Timeline;
pub use trace::{Node, Outliving, Trace};

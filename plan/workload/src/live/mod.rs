//! Burst curves of traffic without end, in chunks that another process merges.
//!
//! A proxy learns the work of a request from its reply, and curves take arrivals in order. [`LiveCurves`] therefore holds
//! an answered request until earlier ones have had a second to be answered, and adds it then. Every ten seconds of a
//! workload's traffic become a chunk: the [`StageCurves`] of its requests. Chunks are numbered and kept for two minutes,
//! so that a report that was lost is made up for by the next, and one that comes twice adds nothing.
//!
//! **What a chunk is.** The exact curves of its requests while their hulls have at most [`CORNERS_MAX`] corners, and
//! otherwise curves that dominate them. A request that is answered more than a second after it came, or after 4,096
//! later ones, is added as if it had come when the latest before it was added.
//!
//! **Memory** of a workload: 128 KiB for requests that are held, and in chunks at most 9 KiB each, usually 2.

mod recorder;
mod stages;

pub use recorder::{CurveChunk, CurveMark, CurveReport, LiveArrival, LiveCurves};
pub use stages::{LargestRequest, StageCurves};

use std::num::NonZeroUsize;

/// Maximum number of corners of each hull of a curve that is kept or sent.
pub const CORNERS_MAX: NonZeroUsize = NonZeroUsize::new(64).expect("not zero");
/// Length of a chunk, nanoseconds.
pub const CHUNK_NS: u64 = 10_000_000_000;
/// Maximum number of chunks of a proxy in one report.
pub const CHUNKS_MAX: usize = 256;

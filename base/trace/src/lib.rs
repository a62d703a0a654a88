//! Request streams: reading of common formats, writing, cutting, merging, generating and summarising.
//!
//! Everything streams. A [`TraceReader`] is an iterator of [`model::Request`] whose memory does not grow
//! with the file. [`TraceWriter`] takes the same requests one at a time, and [`stats`] summarises in one
//! pass. Times are integer nanoseconds, and arrivals never decrease: for a file that is out of order, a
//! reader reports an error.
//!
//! ```
//! use trace::generate::{RateProcess, SizeMix, Synthetic};
//! use trace::{OpenOptions, TraceFormat, TraceWriter, open, stats};
//! use units::{Bytes, Nanos};
//!
//! let synthetic = Synthetic {
//!     process: RateProcess::OnOff { sources: 20, rate_on: 100.0, on_s: 0.1, off_s: 0.9, shape: 1.4 },
//!     sizes: SizeMix::fixed(Bytes(4096)),
//!     read_share: 0.7,
//!     duration: Nanos(60_000_000_000),
//!     seed: 1,
//! };
//! let folder = tempfile::tempdir()?;
//! let path = folder.path().join("trace.parquet");
//! let mut writer = TraceWriter::create(&path, TraceFormat::Parquet)?;
//! for request in synthetic.requests()? {
//!     writer.write(&request)?;
//! }
//! let count = writer.finish()?;
//! let stats = stats::collect(open(&path, &OpenOptions::default())?)?.expect("not empty");
//! assert_eq!(stats.count, count);
//! assert!(stats.interarrival_scv.expect("many requests") > 1.0, "burstier than Poisson");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A file may hold requests of several workloads; a [`TracePlace`] names the file and selects a trace in
//! it. The module [`recording`] records the requests of a running server. The module [`observations`]
//! reads and writes files of requests with their outcomes.
//!
//! This crate knows nothing about SLOs, burst curves or policies, and prints nothing.

mod columns;
mod error;
mod format;
pub mod generate;
mod input;
mod observation_files;
pub mod observations;
mod operation;
mod read;
pub mod recorder;
pub mod recording;
mod scan;
mod selection;
mod split;
pub mod stats;
mod transform;
mod write;

pub use error::{TraceError, TraceErrorKind, TracePosition};
pub use format::TraceFormat;
pub use observation_files::check_observations;
pub use read::{OpenOptions, TraceReader, open, open_place, read_bytes};
pub use selection::{SplitKey, TracePlace, TraceSelection};
pub use split::{TraceOwners, files_of, owners_of, server_of};
pub use transform::{MergedTraces, SliceOrigin, merge, scale_time, slice};
pub use write::TraceWriter;

//! Request streams: read from the formats people have, written, cut, merged, generated and summarised.
//!
//! Everything streams. A [`TraceReader`] is an iterator of [`model::Request`] whose memory does not
//! grow with the file, [`Writer`] takes the same requests one at a time, and [`stats`] summarises in one
//! pass. Times are integer nanoseconds and arrivals never decrease: a reader reports a file that breaks
//! this instead of passing the disorder on.
//!
//! ```
//! use tailwright_trace::generate::{RateProcess, SizeMix, Synthetic};
//! use tailwright_trace::{Format, OpenOptions, Writer, open, stats};
//! use units::{Bytes, Nanos};
//!
//! let synthetic = Synthetic {
//!     process: RateProcess::OnOff { sources: 20, rate_on: 100.0, on_s: 0.1, off_s: 0.9, shape: 1.4 },
//!     sizes: SizeMix::fixed(Bytes(4096)),
//!     read_share: 0.7,
//!     duration: Nanos(60_000_000_000),
//!     seed: 1,
//! };
//! let path = std::env::temp_dir().join(format!("doc-{}.parquet", std::process::id()));
//! let mut writer = Writer::create(&path, Format::Parquet)?;
//! for request in synthetic.requests()? {
//!     writer.write(&request)?;
//! }
//! let count = writer.finish()?;
//! let stats = stats::collect(open(&path, &OpenOptions::default())?)?.expect("not empty");
//! assert_eq!(stats.count, count);
//! assert!(stats.gap_scv.expect("many requests") > 1.0, "burstier than Poisson");
//! # std::fs::remove_file(&path)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [`observations`] are requests with what became of them, in files of their own.
//!
//! This crate knows nothing of SLOs, burst curves or policies, and prints nothing.

mod columns;
mod cut;
mod error;
mod format;
pub mod generate;
pub mod observations;
mod read;
mod scan;
mod source;
pub mod stats;
mod write;

pub use cut::{Merge, Origin, merge, scale_time, slice};
pub use error::{ErrorKind, Place, TraceError};
pub use format::Format;
pub use read::{OpenOptions, TraceReader, open, read_bytes, read_from};
pub use write::Writer;

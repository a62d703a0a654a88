//! Request streams: read from the formats people have, written, cut, merged, generated and summarised.
//!
//! Everything streams. A [`TraceReader`] is an iterator of [`model::Request`] whose memory does not
//! grow with the file, [`Writer`] takes the same requests one at a time, and [`stats`] summarises in one
//! pass. Times are integer nanoseconds and arrivals never decrease: a reader reports a file that breaks
//! this instead of passing the disorder on.
//!
//! This crate knows nothing of SLOs, burst curves or policies, and prints nothing.

mod cut;
mod error;
mod format;
pub mod generate;
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

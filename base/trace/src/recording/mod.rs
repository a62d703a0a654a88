//! Recordings: a folder of segments that grows while a server runs, in bounded disk space, and that outlives a kill.
//!
//! A segment is CSV, `00000001.csv.zst`, of independent zstd frames: each has whole lines and was written at once, so that
//! whatever a killed process leaves behind is readable up to its last whole frame, by `zstdcat` as well. A segment begins
//! with the header
//!
//! `arrival_unix_ns,size_bytes,op,offset,response_ns,waited_ns,workload,client`
//!
//! and has a line per request, in the order in which they were **answered**, not that of arrival: nothing waits in memory for
//! requests that take long. Who reads restores the order of arrival, within [`ORDER_WINDOW`]. Arrivals count from 1970, so
//! that a recording goes on in the same folder after a restart. `waited_ns` is the part of the response time before the
//! request was sent on, by the proxy; `offset` and `client` may be empty. In `workload` and `client`, a comma, a percent
//! sign and control characters are written as `%` and two hexadecimal digits.

mod line;
mod observed;
mod order;
mod rows;
mod segments;
mod writer;

pub(crate) use line::is_header;
pub(crate) use observed::read_observations;
pub(crate) use order::ArrivalOrder;
pub(crate) use rows::{RecordingRows, RowError};
pub use segments::{RecordingSettings, segment_files};
pub use writer::RecordingWriter;

use model::Op;
use std::net::IpAddr;
use units::{Bytes, Nanos};

/// How much later than a request that arrived after it a request may be answered: those that took longer stand at a later
/// arrival than they had, and are counted.
pub const ORDER_WINDOW: Nanos = Nanos(10_000_000_000);

/// An answered request, as it is recorded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordableRequest<'a> {
    /// When it arrived, in nanoseconds since 1970.
    pub arrival: Nanos,
    /// The number of bytes read or written.
    pub size: Bytes,
    /// Direction of the payload.
    pub op: Op,
    /// Position on the device in bytes, where it is known.
    pub offset: Option<u64>,
    /// The time from its arrival to its answer.
    pub response: Nanos,
    /// The part of that before it was sent on to the server.
    pub waited: Nanos,
    /// The workload that it belongs to.
    pub workload: &'a str,
    /// The address of its client, where it is known.
    pub client: Option<IpAddr>,
}

/// Whether a recording is to be written at this path: a name without the ending of a file is that of a folder.
pub fn is_recording_name(path: &std::path::Path) -> bool {
    path.is_dir() || (!path.exists() && path.extension().is_none())
}

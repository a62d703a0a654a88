//! Recordings: a folder of segments that grows while a server runs, within bounded disk space, and
//! survives a kill.
//!
//! A segment is CSV, `00000001.csv.zst`, of independent zstd frames. Each frame contains whole lines and
//! is written at once, so that the file of a killed process is readable up to its last whole frame, also
//! by `zstdcat`. A segment begins with the header
//!
//! `arrival_unix_ns,size_bytes,op,offset,response_ns,waited_ns,workload,client`
//!
//! and has a line per request, in the order of **answers**, not of arrivals: no request has to wait in
//! memory for a slower one. Readers restore the order of arrival, within `ORDER_WINDOW`. Arrivals count
//! from 1970, so that a recording continues in the same folder after a restart. `waited_ns` is the part
//! of the response time before the proxy sent the request on; `offset` and `client` may be empty. In
//! `workload` and `client`, a comma, a percent sign and control characters are written as `%` and two
//! hexadecimal digits.

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

/// Response time up to which readers restore the exact order of arrival. Slower requests may be moved to
/// a later arrival, and are counted.
pub(crate) const ORDER_WINDOW: Nanos = Nanos(10_000_000_000);

/// An answered request to record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecordableRequest<'a> {
    /// Arrival, in nanoseconds since 1970.
    pub arrival: Nanos,
    /// The number of bytes read or written.
    pub size: Bytes,
    /// Direction of the payload.
    pub op: Op,
    /// Position on the device in bytes, if known.
    pub offset: Option<u64>,
    /// Time from arrival to answer.
    pub response: Nanos,
    /// Part of the response time before it was sent on to the server.
    pub waited: Nanos,
    /// Name of its workload.
    pub workload: &'a str,
    /// Address of its client, if known.
    pub client: Option<IpAddr>,
}

/// Returns true if a recording, not a file, is meant by this path: an existing folder, or a new name
/// without an extension.
pub fn is_recording_name(path: &std::path::Path) -> bool {
    path.is_dir() || (!path.exists() && path.extension().is_none())
}

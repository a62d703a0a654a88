//! Requests as traces record them.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use units::{Bytes, Nanos};

/// Direction of a request's payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Data flows from the server to the client.
    Read,
    /// Data flows from the client to the server.
    Write,
}

/// One request of a stream, as traces record it and generators make it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Request {
    /// Arrival, counted from the trace's origin.
    pub arrival: Nanos,
    /// The number of bytes read or written.
    pub size: Bytes,
    /// Direction of the payload.
    pub op: Op,
    /// Position on the device in bytes, where the source recorded it.
    pub offset: Option<u64>,
    /// Measured response time, where the source recorded it.
    pub response: Option<Nanos>,
}

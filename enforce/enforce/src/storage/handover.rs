//! The document that a proxy hands to the next one. The sockets come beside it.
//!
//! Another version may read it: fields are added with a default, and a change of meaning takes another
//! [`VERSION`].

use super::statistics::WorkloadRecord;
use serde::{Deserialize, Serialize};
use std::net::SocketAddr;
use wire::nbd::Framing;

/// Version of the document and of the conversation around it.
pub(super) const VERSION: u32 = 1;

/// State of a proxy that sends nothing any more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct HandOverDocument {
    pub version: u32,
    /// Process that hands over; 0 if unknown.
    #[serde(default)]
    pub process: u32,
    /// Number of hand-overs since a proxy was started without one, this one included.
    #[serde(default)]
    pub take_overs: u64,
    pub(super) sessions: Vec<SessionRecord>,
    pub(super) limits: Vec<LimitRecord>,
    /// Root handles of NFS exports, by path.
    #[serde(default)]
    pub(super) exports: Vec<(Vec<u8>, Vec<u8>)>,
    #[serde(default)]
    pub(super) workloads: Vec<WorkloadRecord>,
    /// Counters of the proxy: cut, turned away, released, changes.
    #[serde(default)]
    pub(super) counters: [u64; 4],
    /// Identity of all counters; empty from a version without it.
    #[serde(default)]
    pub(super) counters_identity: String,
}

impl HandOverDocument {
    /// Returns the front of each connection beside the document, and true for those to the server.
    pub(super) fn places(&self) -> Vec<(usize, bool)> {
        let places = self.sessions.iter().flat_map(|record| {
            let server = record.has_server.then_some((record.front, true));
            [(record.front, false)].into_iter().chain(server)
        });
        places.collect()
    }
}

/// A session between two requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct SessionRecord {
    /// Index of the front.
    pub(super) front: usize,
    pub(super) peer: SocketAddr,
    /// Its own connection to the server comes with it, behind that to the client.
    pub(super) has_server: bool,
    pub(super) is_binary: Option<bool>,
    pub(super) framing: FramingRecord,
    pub(super) export: Option<Vec<u8>>,
    pub(super) has_been_served: bool,
    /// Bytes of the client that the server has not seen.
    pub(super) unsent: Vec<u8>,
    /// Bytes of replies that the client has not read.
    pub(super) unread: Vec<u8>,
}

/// [`Framing`] in the document.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum FramingRecord {
    Simple,
    Structured,
    Extended,
}

impl From<Framing> for FramingRecord {
    fn from(framing: Framing) -> Self {
        match framing {
            Framing::Simple => Self::Simple,
            Framing::Structured => Self::Structured,
            Framing::Extended => Self::Extended,
        }
    }
}

impl From<FramingRecord> for Framing {
    fn from(record: FramingRecord) -> Self {
        match record {
            FramingRecord::Simple => Self::Simple,
            FramingRecord::Structured => Self::Structured,
            FramingRecord::Extended => Self::Extended,
        }
    }
}

/// Token buckets of a workload that are not full.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LimitRecord {
    pub(super) workload: String,
    pub(super) buckets: Vec<BucketRecord>,
}

/// A token bucket, in nanoseconds of device time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct BucketRecord {
    pub(super) rate: u64,
    pub(super) burst: u64,
    pub(super) missing: u64,
}

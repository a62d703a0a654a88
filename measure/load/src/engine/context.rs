//! State that all connections of a run share.

use super::clock::RunClock;
use super::request_log::RequestLog;
use crate::progress::ProgressGauges;

/// The state of a run that does not belong to one workload or connection.
pub(super) struct RunContext<'a> {
    pub(super) clock: RunClock,
    pub(super) log: RequestLog,
    pub(super) gauges: &'a ProgressGauges,
    /// The payload of the write that is being encoded, kept to reuse its memory.
    pub(super) payload: Vec<u8>,
    /// Bytes of one read from a socket, kept to reuse their memory.
    pub(super) received: Vec<u8>,
    /// Bytes before they are encrypted, or after, kept to reuse their memory.
    pub(super) plain: Vec<u8>,
}

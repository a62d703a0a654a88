//! The request that a session is receiving from its client, and the bounds on what it buffers.

/// How many requests of a session may wait in the queue: enough for any client that limits itself.
pub(super) const QUEUED_MAX: u32 = 256;
/// How many bytes of requests a session may buffer: the largest write that NFS clients usually send.
pub(super) const BUFFERED_MAX: usize = 1 << 20;
/// How many bytes every session may buffer, however much others do.
pub(super) const BUFFERED_GUARANTEED: usize = 64 << 10;
/// How many requests of a session may wait or be in flight: below what the codecs take for hostile.
pub(super) const UNANSWERED_MAX: usize = 3072;

/// The request that is being received. A request comes as one piece, or as several fragments.
#[derive(Debug)]
pub(super) struct IncomingRequest {
    /// The number of the request.
    pub(super) number: u32,
    /// How many bytes of the present piece have not come yet.
    pub(super) missing: u64,
    /// Whether the request ends with the present piece.
    pub(super) is_last_piece: bool,
}

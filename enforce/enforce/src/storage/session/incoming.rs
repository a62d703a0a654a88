//! The request that a session is receiving.

/// A request being received. It arrives as one piece, or as several fragments.
#[derive(Debug)]
pub(super) struct IncomingRequest {
    pub(super) number: u32,
    /// Number of bytes of the present piece that have not arrived.
    pub(super) missing: u64,
    /// True if the request ends with the present piece.
    pub(super) is_last_piece: bool,
    /// True if its beginning was already sent to the server, because it exceeds the buffer.
    pub(super) is_ahead: bool,
    /// Number of bytes that are not sent, because others were sent in their place.
    pub(super) skip: u64,
    /// Request to send behind it; the server's answer shows that it has processed this one.
    pub(super) barrier: &'static [u8],
}

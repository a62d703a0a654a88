//! The request that a session is receiving.

/// The request that is being received. A request comes as one piece, or as several fragments.
#[derive(Debug)]
pub(super) struct IncomingRequest {
    /// The number of the request.
    pub(super) number: u32,
    /// How many bytes of the present piece have not come yet.
    pub(super) missing: u64,
    /// Whether the request ends with the present piece.
    pub(super) is_last_piece: bool,
    /// Whether its beginning was sent to the server already, because it is larger than what may be buffered.
    pub(super) is_ahead: bool,
    /// What follows it: a request by which the server tells that it is done with it.
    pub(super) barrier: &'static [u8],
}

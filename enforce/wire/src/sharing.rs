//! Connections to a server that clients of a proxy share.

/// Beginning of a connection to a server that several clients of a proxy share.
#[derive(Debug, Clone, Copy)]
pub struct SharedConnections {
    /// Bytes to send first.
    pub greeting: &'static [u8],
    /// Reads the answer to the greeting: returns its length in bytes, and true if the server serves clients without
    /// knowing who they are; `None` if the answer is incomplete.
    pub read_welcome: fn(&[u8]) -> Option<(usize, bool)>,
}

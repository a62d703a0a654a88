//! How far the two connections of a session have come.

/// How far the client's connection has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientPhase {
    /// The client may send requests.
    Open,
    /// The client has ended its stream, and still takes replies.
    Ended,
    /// Nothing is read from the client or written to it any more, since this instant.
    Closed { since: u64 },
}

impl ClientPhase {
    pub(super) fn is_closed(self) -> bool {
        matches!(self, Self::Closed { .. })
    }
}

/// How far the connection to the server has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerPhase {
    /// It is being made.
    Connecting { since: u64 },
    /// Both directions are open.
    Open,
    /// The server was told at this instant that the client sends nothing more.
    Told { since: u64 },
    /// The server will send nothing more, or nothing that it sends is waited for.
    Ended,
}

impl ServerPhase {
    pub(super) fn is_ended(self) -> bool {
        self == Self::Ended
    }

    pub(super) fn is_connected(self) -> bool {
        matches!(self, Self::Open | Self::Told { .. })
    }
}

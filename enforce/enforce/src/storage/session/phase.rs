//! Phases of the two connections of a session.

/// Phase of the client's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ClientPhase {
    /// The client may send requests.
    Open,
    /// The client has ended its stream, but still reads replies.
    Ended,
    /// Neither read nor written since this instant.
    Closed { since: u64 },
}

impl ClientPhase {
    pub(super) fn is_closed(self) -> bool {
        matches!(self, Self::Closed { .. })
    }
}

/// Phase of the connection to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ServerPhase {
    /// The session has no connection of its own: its requests go over shared ones.
    Shared,
    /// Being established.
    Connecting { since: u64 },
    /// Both directions are open.
    Open,
    /// The stream to the server was ended at this instant, because the client sends nothing more.
    Told { since: u64 },
    /// The server will send nothing more, or its replies are no longer needed.
    Ended,
}

impl ServerPhase {
    pub(super) fn is_ended(self) -> bool {
        self == Self::Ended
    }

    /// Returns true while the server may be told that the client sends nothing more.
    pub(super) fn can_be_told(self) -> bool {
        matches!(self, Self::Open | Self::Shared)
    }

    pub(super) fn is_connected(self) -> bool {
        matches!(self, Self::Open | Self::Told { .. })
    }
}

//! Reasons for the end of a session, with their log messages.

use std::fmt;
use wire::ProtocolError;

/// A side of a session: the client's connection or the one to the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in super::super) enum ProxySide {
    Client,
    Server,
}

impl fmt::Display for ProxySide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Client => "client",
            Self::Server => "server",
        })
    }
}

/// Reason for the end of a session.
#[derive(Debug)]
pub(in super::super) enum CloseReason {
    /// Both sides have closed, or the proxy drains, and everything is answered.
    Finished,
    /// A side sends bytes that its protocol does not allow.
    Malformed(ProxySide, ProtocolError),
    /// A socket of a side failed.
    SocketFailed(ProxySide, std::io::Error),
    /// A side closed in the middle of a request or of a reply.
    ClosedEarly(ProxySide),
    /// The hosts file no longer allows the client's address.
    Forbidden,
    /// The client reads too slowly, and replies to others wait behind its own on a shared connection.
    HoldsUpOthers,
    /// The client neither read replies nor sent the rest of a request for too long.
    ClientStalled,
    /// The server left a request unanswered for too long, possibly after its client had gone.
    ServerSilent,
}

impl CloseReason {
    /// Returns true if only the client can have caused it.
    pub(in super::super) fn is_caused_by_client(&self) -> bool {
        match self {
            Self::Malformed(side, _) | Self::SocketFailed(side, _) | Self::ClosedEarly(side) => {
                *side == ProxySide::Client
            }
            Self::ClientStalled | Self::HoldsUpOthers | Self::Forbidden => true,
            Self::Finished | Self::ServerSilent => false,
        }
    }
}

impl fmt::Display for CloseReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Finished => write!(f, "closed"),
            Self::Malformed(side, error) => write!(f, "the {side} breaks the protocol: {error}"),
            Self::SocketFailed(side, error) => write!(f, "the connection to the {side} failed: {error}"),
            Self::ClosedEarly(side) => write!(f, "the {side} closed with requests unanswered"),
            Self::Forbidden => write!(f, "its address is not allowed any more"),
            Self::HoldsUpOthers => {
                write!(f, "the client reads too slowly, and others wait behind its replies")
            }
            Self::ClientStalled => write!(f, "the client took or sent nothing for a minute"),
            Self::ServerSilent => write!(f, "the server did not answer"),
        }
    }
}

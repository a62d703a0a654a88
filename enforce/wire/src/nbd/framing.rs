//! The forms that messages have after the handshake.

/// The form of requests and replies in the transmission phase, which client and server negotiate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// Requests have headers of 28 bytes, and replies headers of 16 bytes that the data of a read follow.
    #[default]
    Simple,
    /// As with [`Self::Simple`], but the data of a read come in chunks with headers of 20 bytes.
    Structured,
    /// Requests and chunks of replies have headers of 32 bytes, with lengths of 64 bits.
    Extended,
}

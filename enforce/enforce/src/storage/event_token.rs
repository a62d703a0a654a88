//! Source of an epoll event, encoded in the 64 bits that the kernel keeps with a watched descriptor and
//! returns.
//!
//! ```text
//! bit  63 … 62  61 … 30        29 … 0
//!      kind     serial number  slot of the session or shared connection, or number of the listener
//! ```
//! The waker has all bits set, which no shared connection has: there are fewer than 2³⁰.
//!
//! Events come in batches, and handling one may close the session of a later one in the batch. Its slot
//! may then hold a new session, which the serial number distinguishes from the old one. Serial numbers
//! wrap after 2³² connections, far more than one batch opens.

/// Token of the descriptor that wakes the engine for commands.
pub(super) const WAKER: u64 = u64::MAX;

const KIND_SHIFT: u32 = 62;
const CLIENT: u64 = 0;
const SERVER: u64 = 1;
const LISTENER: u64 = 2;
const SHARED: u64 = 3;
const SERIAL_SHIFT: u32 = 30;
const SLOT_MASK: u64 = (1 << SERIAL_SHIFT) - 1;

use super::system::{StreamRole, StreamToken};

/// Source of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventSource {
    Waker,
    /// Listener with this number.
    Listener(usize),
    /// Connection of a session, or shared by several.
    Stream(StreamToken),
}

impl EventSource {
    pub(super) fn from_token(token: u64) -> Self {
        if token == WAKER {
            return Self::Waker;
        }
        // The casts discard the bits of the kind.
        #[allow(clippy::cast_possible_truncation, reason = "30 and 32 bits are wanted")]
        let slot = (token & SLOT_MASK) as u32;
        #[allow(clippy::cast_possible_truncation, reason = "32 bits are wanted")]
        let serial = (token >> SERIAL_SHIFT) as u32;
        let role = match token >> KIND_SHIFT {
            LISTENER => return Self::Listener(slot as usize),
            CLIENT => StreamRole::Client,
            SERVER => StreamRole::Server,
            _ => StreamRole::Shared,
        };
        Self::Stream(StreamToken { role, slot, serial })
    }
}

/// Returns the token of the listener with this number.
pub(super) fn listener_token(number: usize) -> u64 {
    LISTENER << KIND_SHIFT | number as u64
}

/// Returns the token of a connection of a session, or of a shared one.
pub(super) fn stream_token(token: StreamToken) -> u64 {
    let StreamToken { role, slot, serial } = token;
    let kind = match role {
        StreamRole::Client => CLIENT,
        StreamRole::Server => SERVER,
        StreamRole::Shared => SHARED,
    };
    u64::from(slot) | u64::from(serial) << SERIAL_SHIFT | kind << KIND_SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_say_what_they_were_made_for() {
        assert_eq!(EventSource::from_token(WAKER), EventSource::Waker);
        assert_eq!(EventSource::from_token(listener_token(3)), EventSource::Listener(3));
        for (slot, serial) in [(0, 0), (7, 1), ((1 << 30) - 2, u32::MAX)] {
            for role in [StreamRole::Client, StreamRole::Server, StreamRole::Shared] {
                let token = StreamToken { role, slot, serial };
                assert_eq!(EventSource::from_token(stream_token(token)), EventSource::Stream(token));
            }
        }
    }
}

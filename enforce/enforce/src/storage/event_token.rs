//! Source of an epoll event, encoded in the 64 bits that the kernel keeps with a watched descriptor and
//! returns.
//!
//! ```text
//! bit  63        62           61 … 30        29 … 0
//!      listener  server side  serial number  slot of the session, or number of the listener
//! ```
//! The waker has all bits set, which no listener has: there are fewer than 2³⁰ listeners.
//!
//! Events come in batches, and handling one may close the session of a later one in the batch. Its slot
//! may then hold a new session, which the serial number distinguishes from the old one. Serial numbers
//! wrap after 2³² connections, far more than one batch opens.

/// Token of the descriptor that wakes the engine for commands.
pub(super) const WAKER: u64 = u64::MAX;

const LISTENER_BIT: u64 = 1 << 63;
const SERVER_BIT: u64 = 1 << 62;
const SERIAL_SHIFT: u32 = 30;
const SLOT_MASK: u64 = (1 << SERIAL_SHIFT) - 1;

use super::system::StreamToken;

/// Source of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EventSource {
    Waker,
    /// Listener with this number.
    Listener(usize),
    /// Connection of a session.
    Stream(StreamToken),
}

impl EventSource {
    pub(super) fn from_token(token: u64) -> Self {
        // The casts discard the bits of listener and side.
        #[allow(clippy::cast_possible_truncation, reason = "30 and 32 bits are wanted")]
        let index = (token & SLOT_MASK) as u32;
        #[allow(clippy::cast_possible_truncation, reason = "32 bits are wanted")]
        let serial = (token >> SERIAL_SHIFT) as u32;
        if token == WAKER {
            Self::Waker
        } else if token & LISTENER_BIT != 0 {
            Self::Listener(index as usize)
        } else {
            Self::Stream(StreamToken { slot: index, serial, is_server_side: token & SERVER_BIT != 0 })
        }
    }
}

/// Returns the token of the listener with this number.
pub(super) fn listener_token(number: usize) -> u64 {
    LISTENER_BIT | number as u64
}

/// Returns the token of a connection of a session.
pub(super) fn stream_token(token: StreamToken) -> u64 {
    let StreamToken { slot, serial, is_server_side } = token;
    let side = if is_server_side { SERVER_BIT } else { 0 };
    u64::from(slot) | u64::from(serial) << SERIAL_SHIFT | side
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_say_what_they_were_made_for() {
        assert_eq!(EventSource::from_token(WAKER), EventSource::Waker);
        assert_eq!(EventSource::from_token(listener_token(3)), EventSource::Listener(3));
        for (slot, serial) in [(0, 0), (7, 1), ((1 << 30) - 1, u32::MAX)] {
            for is_server_side in [false, true] {
                let token = StreamToken { slot, serial, is_server_side };
                assert_eq!(EventSource::from_token(stream_token(token)), EventSource::Stream(token));
            }
        }
    }
}

//! The bytes from the server to the client. They are passed on as they come, and parsed where they lie.

use super::super::buffer::ReadBuffer;
use std::io::{self, Write};
use wire::ReplyHead;

/// How many bytes may wait for the client; beyond them the server is not read.
const UNWRITTEN_MAX: usize = 256 << 10;

/// The bytes from the server that the client has not taken, or that were not parsed.
///
/// Both progress independently: `written` and `parsed` count from the start of the buffer, and bytes that are both are
/// removed.
#[derive(Debug, Default)]
pub(super) struct ReplyStream {
    pub(super) buffer: ReadBuffer,
    /// How many bytes of the buffer are written to the client.
    written: usize,
    /// How many bytes of the buffer belong to messages that were recognised.
    parsed: usize,
    /// How many bytes of the latest message, or part of one, have not come yet.
    pub(super) missing: u64,
    /// The message of which further parts follow.
    pub(super) partial: Option<ReplyHead>,
    /// Whether bytes are dropped instead of written, because the client has gone.
    is_discarding: bool,
}

impl ReplyStream {
    fn unwritten(&self) -> usize {
        self.buffer.len() - self.written
    }

    pub(super) fn is_written(&self) -> bool {
        self.unwritten() == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.unwritten() >= UNWRITTEN_MAX
    }

    /// The bytes that were not parsed yet.
    pub(super) fn unparsed(&self) -> &[u8] {
        &self.buffer.bytes()[self.parsed..]
    }

    /// Drops what is not written, and everything that comes from now on.
    pub(super) fn discard(&mut self) {
        self.is_discarding = true;
        self.drop_unwritten();
        self.remove_finished();
    }

    pub(super) fn is_discarding(&self) -> bool {
        self.is_discarding
    }

    pub(super) fn drop_unwritten(&mut self) {
        self.written = self.buffer.len();
    }

    /// Writes until the client takes no more, and returns how many bytes it took. An error is one of its connection.
    pub(super) fn write(&mut self, client: &mut impl Write) -> io::Result<usize> {
        let mut taken = 0;
        while self.unwritten() > 0 {
            match client.write(&self.buffer.bytes()[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.written += count;
                    taken += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.remove_finished();
        Ok(taken)
    }

    /// Removes bytes that are written and parsed.
    pub(super) fn remove_finished(&mut self) {
        let finished = self.written.min(self.parsed);
        self.buffer.consume(finished);
        (self.written, self.parsed) = (self.written - finished, self.parsed - finished);
    }

    /// Marks as parsed what has come of the latest message; whether all of it has.
    pub(super) fn skip_message(&mut self) -> bool {
        let available = self.buffer.len() - self.parsed;
        let count = available.min(usize::try_from(self.missing).unwrap_or(usize::MAX));
        self.parsed += count;
        self.missing -= count as u64;
        self.missing == 0
    }
}

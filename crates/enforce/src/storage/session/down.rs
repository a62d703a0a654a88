//! From the server: replies passed on, and what they answer.

use super::super::buffer::{Inbox, Moved};
use super::super::shared::Shared;
use super::{Cut, Session};
use crate::deployment::FrontProtocol;
use std::io::{self, Write};
use wire::{Extent, ParseStep, ReplyHead};

/// Read at once.
const ROOM: usize = 64 << 10;
/// Bytes that may wait for the client; beyond them the server is not read.
const DOWN_MAX: usize = 256 << 10;

/// What comes from the server. Bytes are passed on as they come, and looked at where they lie.
#[derive(Debug, Default)]
pub(super) struct Down {
    /// From the first byte that is not written or not looked at.
    inbox: Inbox,
    /// Bytes of the inbox that are written.
    written: usize,
    /// Bytes of it that belong to messages that were recognised.
    framed: usize,
    /// Bytes of the last message that have not come yet.
    missing: u64,
    /// The message of which further parts follow.
    reply: Option<ReplyHead>,
    /// Nobody wants to have it.
    discards: bool,
    /// The request that asked for an export.
    mount: Option<u64>,
}

impl Down {
    fn unwritten(&self) -> usize {
        self.inbox.len() - self.written
    }

    pub(super) fn is_written(&self) -> bool {
        self.unwritten() == 0
    }

    pub(super) fn is_full(&self) -> bool {
        self.unwritten() >= DOWN_MAX
    }

    /// From now on nothing is written.
    pub(super) fn discard(&mut self) {
        self.discards = true;
        self.written = self.inbox.len();
        self.forget();
    }

    pub(super) fn asks_for(&mut self, id: u64) {
        self.mount = Some(id);
    }

    /// Writes what goes, and says how much. An error is one of the client's connection.
    pub(super) fn write(&mut self, client: &mut impl Write) -> io::Result<usize> {
        let mut moved = 0;
        while self.unwritten() > 0 {
            match client.write(&self.inbox.bytes()[self.written..]) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    self.written += count;
                    moved += count;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        self.forget();
        Ok(moved)
    }

    /// Bytes that are written and looked at.
    fn forget(&mut self) {
        let done = self.written.min(self.framed);
        self.inbox.take(done);
        (self.written, self.framed) = (self.written - done, self.framed - done);
    }

    /// Skips what has come of the last message; whether all of it has.
    fn skip(&mut self) -> bool {
        let there = self.inbox.len() - self.framed;
        let count = there.min(usize::try_from(self.missing).unwrap_or(usize::MAX));
        self.framed += count;
        self.missing -= count as u64;
        self.missing == 0
    }
}

impl Session {
    /// Reads what the server sends, and passes it on.
    pub(in super::super) fn server_readable(&mut self, shared: &mut Shared) -> Result<(), Cut> {
        match self.down.inbox.read(&mut self.server, ROOM) {
            Ok(Moved::Bytes(_)) => {}
            Ok(Moved::Blocked) => return Ok(()),
            Ok(Moved::End) => self.server_end = true,
            Err(error) => return Err(Cut::Broken("server", error)),
        }
        if self.down.discards {
            self.down.written = self.down.inbox.len();
        } else if self.down.write(&mut self.client).is_err() {
            self.client_gone(shared);
        }
        self.recognise(shared)?;
        self.down.forget();
        Ok(())
    }

    fn recognise(&mut self, shared: &mut Shared) -> Result<(), Cut> {
        while self.down.skip() && self.down.framed < self.down.inbox.len() {
            let there = &self.down.inbox.bytes()[self.down.framed..];
            let step = self.wire.next_reply(there).map_err(|bad| Cut::Malformed("server", bad))?;
            let Extent { len, last, .. } = match step {
                ParseStep::NeedMore { .. } => return Ok(()),
                ParseStep::Message { message, extent } => {
                    self.down.reply = Some(message);
                    extent
                }
                ParseStep::Continued { extent } => extent,
            };
            self.down.missing = len.0;
            if last && let Some(reply) = self.down.reply.take() {
                self.answered(&reply, shared);
            }
        }
        Ok(())
    }

    /// The device has done what the reply is about.
    fn answered(&mut self, reply: &ReplyHead, shared: &mut Shared) {
        if self.down.mount == Some(reply.id) {
            self.down.mount = None;
            self.granted(reply, shared);
        }
        if !reply.is_solicited {
            return;
        }
        let Some(position) = self.asked.iter().position(|(id, _)| *id == reply.id) else { return };
        // memcached answers in order: what stands before it is over, too.
        let first = if self.front == FrontProtocol::Memcached { 0 } else { position };
        for index in (first..=position).rev() {
            if let Some((_, number)) = self.asked.remove(index) {
                self.finish(number, shared);
            }
        }
    }

    /// An export was asked for, and the server has answered.
    fn granted(&self, reply: &ReplyHead, shared: &mut Shared) {
        if let Some(path) =
            self.wire.export_name().filter(|_| !reply.is_error && self.front == FrontProtocol::Nfs)
        {
            shared.mounted(self.peer.ip(), path);
        }
    }
}

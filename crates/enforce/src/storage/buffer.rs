//! Bytes between two sockets: what was read and is not yet taken, and what is to be written.
//!
//! Both keep their memory while they are in use and give it back when they are empty and large, so that a thousand
//! idle connections cost little.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};

/// Kept by an empty buffer.
const KEPT: usize = 64 << 10;
/// Small messages are joined up to this size, so that they leave in one piece.
const JOINED: usize = 16 << 10;
/// Most pieces per system call.
const PIECES: usize = 64;

/// What a non-blocking system call brought.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Moved {
    /// So many bytes.
    Bytes(usize),
    /// The other end has closed.
    End,
    /// Nothing now.
    Blocked,
}

fn moved(result: io::Result<usize>) -> io::Result<Moved> {
    match result {
        Ok(0) => Ok(Moved::End),
        Ok(count) => Ok(Moved::Bytes(count)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(Moved::Blocked),
            _ => Err(error),
        },
    }
}

/// Bytes that were read, from the first that is not taken.
#[derive(Debug, Default)]
pub(super) struct Inbox {
    /// Zeroed once; `start..end` is what is there.
    data: Vec<u8>,
    start: usize,
    end: usize,
}

impl Inbox {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.data[self.start..self.end]
    }

    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// The first `count` bytes are done with.
    pub(super) fn take(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end, "no more is taken than is there");
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
            if self.data.len() > KEPT {
                self.data = Vec::new();
            }
        }
    }

    /// Reads once, at most `room` bytes.
    pub(super) fn read(&mut self, from: &mut impl Read, room: usize) -> io::Result<Moved> {
        if self.start > 0 && self.data.len() - self.end < room {
            self.data.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let wanted = self.end + room;
        if self.data.len() < wanted {
            self.data.resize(wanted, 0);
        }
        let result = moved(from.read(&mut self.data[self.end..wanted]))?;
        if let Moved::Bytes(count) = result {
            self.end += count;
        }
        Ok(result)
    }
}

/// Bytes to be written, in pieces.
#[derive(Debug, Default)]
pub(super) struct Outbox {
    pieces: VecDeque<Vec<u8>>,
    /// Of the first piece, so much is written.
    written: usize,
    len: usize,
}

impl Outbox {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn push(&mut self, piece: Vec<u8>) {
        self.len += piece.len();
        match self.pieces.back_mut() {
            Some(last) if last.len() + piece.len() <= JOINED => last.extend_from_slice(&piece),
            _ if piece.is_empty() => {}
            _ => self.pieces.push_back(piece),
        }
    }

    /// Writes what goes; whether something is left. An error is one of the connection.
    pub(super) fn write(&mut self, to: &mut impl Write) -> io::Result<bool> {
        while !self.is_empty() {
            let pieces = self.pieces.iter().enumerate().take(PIECES);
            let slices: Vec<IoSlice<'_>> = pieces
                .map(|(index, piece)| IoSlice::new(&piece[if index == 0 { self.written } else { 0 }..]))
                .collect();
            match moved(to.write_vectored(&slices))? {
                Moved::Bytes(count) => self.advance(count),
                Moved::End => return Err(io::ErrorKind::WriteZero.into()),
                Moved::Blocked => return Ok(true),
            }
        }
        Ok(false)
    }

    fn advance(&mut self, mut count: usize) {
        self.len -= count;
        while count > 0 {
            let left = self.pieces[0].len() - self.written;
            if count < left {
                self.written += count;
                return;
            }
            count -= left;
            self.written = 0;
            self.pieces.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Takes at most so many bytes at a time, then blocks once.
    struct Slow(Vec<u8>, usize, bool);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.2 = !self.2;
            if self.2 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let count = bytes.len().min(self.1);
            self.0.extend_from_slice(&bytes[..count]);
            Ok(count)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn all_is_written_in_order(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20), at_once in 1usize..40,
        ) {
            let (mut outbox, mut slow) = (Outbox::default(), Slow(vec![], at_once, false));
            for piece in &pieces {
                outbox.push(piece.clone());
                outbox.write(&mut slow).unwrap();
            }
            while outbox.write(&mut slow).unwrap() {}
            prop_assert!(outbox.is_empty());
            prop_assert_eq!(slow.0, pieces.concat());
        }

        #[test]
        fn all_is_read_in_order(
            data in prop::collection::vec(any::<u8>(), 0..300), steps in prop::collection::vec((1usize..50, 0usize..60), 1..50),
        ) {
            let (mut inbox, mut rest, mut taken) = (Inbox::default(), data.as_slice(), Vec::new());
            for (room, take) in steps {
                inbox.read(&mut rest, room).unwrap();
                let take = take.min(inbox.len());
                taken.extend_from_slice(&inbox.bytes()[..take]);
                inbox.take(take);
            }
            taken.extend_from_slice(inbox.bytes());
            prop_assert_eq!(&taken[..], &data[..data.len() - rest.len()]);
        }
    }
}

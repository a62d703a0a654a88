//! Buffers between two sockets: for bytes that were read and are not yet consumed, and for bytes that are to be written.
//!
//! Both keep their memory while they are in use and give it back when they are empty and large, so that a thousand
//! idle connections cost little.

use std::collections::VecDeque;
use std::io::{self, IoSlice, Read, Write};

/// The memory that an empty buffer keeps: one usual read. A buffer that had to grow beyond gives it back.
const CAPACITY_KEPT: usize = 64 << 10;
/// Small messages are copied together up to this size, so that they leave in one piece.
const JOINED_MAX: usize = 16 << 10;
/// The most pieces that one system call writes; the kernel allows 1024.
const PIECES_PER_WRITE: usize = 64;

/// The result of a non-blocking system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IoProgress {
    /// This number of bytes was read or written.
    Bytes(usize),
    /// The other end has closed the connection.
    EndOfFile,
    /// Nothing can be read or written now.
    WouldBlock,
}

fn progress(result: io::Result<usize>) -> io::Result<IoProgress> {
    match result {
        Ok(0) => Ok(IoProgress::EndOfFile),
        Ok(count) => Ok(IoProgress::Bytes(count)),
        Err(error) => match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => Ok(IoProgress::WouldBlock),
            _ => Err(error),
        },
    }
}

/// Bytes that were read and are not consumed yet.
#[derive(Debug, Default)]
pub(super) struct ReadBuffer {
    /// Zeroed once, when it grows; the bytes are at `start..end`.
    data: Vec<u8>,
    start: usize,
    end: usize,
}

impl ReadBuffer {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.data[self.start..self.end]
    }

    pub(super) fn len(&self) -> usize {
        self.end - self.start
    }

    pub(super) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Removes the first `count` bytes.
    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.end, "no more is consumed than was read");
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
            if self.data.len() > CAPACITY_KEPT {
                self.data = Vec::new();
            }
        }
    }

    /// Reads at most `room` bytes with one system call.
    pub(super) fn read(&mut self, from: &mut impl Read, room: usize) -> io::Result<IoProgress> {
        if self.start > 0 && self.data.len() - self.end < room {
            self.data.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        let needed = self.end + room;
        if self.data.len() < needed {
            self.data.resize(needed, 0);
        }
        let result = progress(from.read(&mut self.data[self.end..needed]))?;
        if let IoProgress::Bytes(count) = result {
            self.end += count;
        }
        Ok(result)
    }
}

/// A queue of bytes that are to be written, in pieces.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    pieces: VecDeque<Vec<u8>>,
    /// How many bytes of the first piece are written.
    written: usize,
    len: usize,
}

impl WriteQueue {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(super) fn push(&mut self, piece: Vec<u8>) {
        self.len += piece.len();
        match self.pieces.back_mut() {
            Some(last) if last.len() + piece.len() <= JOINED_MAX => last.extend_from_slice(&piece),
            _ if piece.is_empty() => {}
            _ => self.pieces.push_back(piece),
        }
    }

    /// Writes until the socket takes no more; whether bytes are left. An error is one of the connection.
    pub(super) fn write(&mut self, to: &mut impl Write) -> io::Result<bool> {
        while !self.is_empty() {
            let pieces = self.pieces.iter().enumerate().take(PIECES_PER_WRITE);
            let slices: Vec<IoSlice<'_>> = pieces
                .map(|(index, piece)| IoSlice::new(&piece[if index == 0 { self.written } else { 0 }..]))
                .collect();
            match progress(to.write_vectored(&slices))? {
                IoProgress::Bytes(count) => self.advance(count),
                IoProgress::EndOfFile => return Err(io::ErrorKind::WriteZero.into()),
                IoProgress::WouldBlock => return Ok(true),
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

    /// A writer that takes a few bytes at a time, and blocks before each.
    struct SlowWriter(Vec<u8>, usize, bool);

    impl Write for SlowWriter {
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
        fn all_bytes_are_written_in_order(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20), at_once in 1usize..40,
        ) {
            let (mut queue, mut slow) = (WriteQueue::default(), SlowWriter(vec![], at_once, false));
            for piece in &pieces {
                queue.push(piece.clone());
                queue.write(&mut slow).unwrap();
            }
            while queue.write(&mut slow).unwrap() {}
            prop_assert!(queue.is_empty());
            prop_assert_eq!(slow.0, pieces.concat());
        }

        #[test]
        fn all_bytes_are_read_in_order(
            data in prop::collection::vec(any::<u8>(), 0..300), steps in prop::collection::vec((1usize..50, 0usize..60), 1..50),
        ) {
            let (mut buffer, mut rest, mut taken) = (ReadBuffer::default(), data.as_slice(), Vec::new());
            for (room, take) in steps {
                buffer.read(&mut rest, room).unwrap();
                let take = take.min(buffer.len());
                taken.extend_from_slice(&buffer.bytes()[..take]);
                buffer.consume(take);
            }
            taken.extend_from_slice(buffer.bytes());
            prop_assert_eq!(&taken[..], &data[..data.len() - rest.len()]);
        }
    }
}

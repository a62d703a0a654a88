//! Buffers between two sockets: read bytes that are not yet consumed, and bytes to write.
//!
//! Both free their memory when empty, so that a thousand idle connections cost little.

use super::system::ProxyStream;
use std::collections::VecDeque;
use std::io::{self, IoSlice};

/// Memory that an empty buffer keeps, enough for small messages.
const CAPACITY_KEPT: usize = 4 << 10;
/// Size up to which small messages are copied together, so that they leave in one piece.
const JOINED_MAX: usize = 16 << 10;
/// Maximum number of pieces of one system call; the kernel allows 1024.
const PIECES_PER_WRITE: usize = 64;

/// Bytes written to a connection in one round of the engine: the rest waits for the other connections.
pub(super) const WRITTEN_MAX: usize = 128 << 10;

/// Bytes that were read and are not yet consumed.
#[derive(Debug, Default)]
pub(super) struct ReadBuffer {
    data: Vec<u8>,
    /// Offset of the first byte that is not consumed.
    start: usize,
}

impl ReadBuffer {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.data[self.start..]
    }

    pub(super) fn len(&self) -> usize {
        self.data.len() - self.start
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Removes the first `count` bytes.
    pub(super) fn consume(&mut self, count: usize) {
        self.start += count;
        debug_assert!(self.start <= self.data.len(), "no more is consumed than was read");
        if self.is_empty() {
            self.clear();
        }
    }

    /// Removes all bytes that it has.
    pub(super) fn clear(&mut self) {
        self.data.clear();
        self.start = 0;
        if self.data.capacity() > CAPACITY_KEPT {
            self.data = Vec::new();
        }
    }

    /// Appends bytes.
    pub(super) fn extend(&mut self, bytes: &[u8]) {
        // Compacts only when at least half of the memory is free, so that a byte is moved a bounded
        // number of times.
        if self.start > 0 && self.start >= self.len() && self.data.len() + bytes.len() > self.data.capacity()
        {
            self.data.drain(..self.start);
            self.start = 0;
        }
        self.data.extend_from_slice(bytes);
    }

    /// Writes until the stream accepts no more, or [`WRITTEN_MAX`] bytes are written. Returns their number.
    ///
    /// # Errors
    /// The failure of the connection.
    pub(super) fn write_to(&mut self, stream: &mut impl ProxyStream) -> io::Result<usize> {
        let mut taken = 0;
        while !self.is_empty() && taken < WRITTEN_MAX {
            let piece = &self.bytes()[..self.len().min(WRITTEN_MAX - taken)];
            match write_pieces(stream, &[IoSlice::new(piece)])? {
                0 => break,
                count => {
                    self.consume(count);
                    taken += count;
                }
            }
        }
        Ok(taken)
    }
}

/// A queue of bytes to write, in pieces.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    pieces: VecDeque<Vec<u8>>,
    /// Number of bytes of the first piece already written.
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

    /// Takes all bytes.
    pub(super) fn take(&mut self) -> Vec<u8> {
        debug_assert_eq!(self.written, 0, "no piece is written in part");
        let mut pieces = std::mem::take(self).pieces.into_iter();
        let first = pieces.next().unwrap_or_default();
        pieces.fold(first, |mut all, piece| {
            all.extend(piece);
            all
        })
    }

    /// Writes until the stream accepts no more, or at least [`WRITTEN_MAX`] bytes are written. Returns their
    /// number.
    ///
    /// # Errors
    /// The failure of the connection.
    pub(super) fn write_to(&mut self, stream: &mut impl ProxyStream) -> io::Result<usize> {
        let mut taken = 0;
        while !self.is_empty() && taken < WRITTEN_MAX {
            let pieces = self.pieces.iter().enumerate().take(PIECES_PER_WRITE);
            let slices: Vec<IoSlice<'_>> = pieces
                .map(|(index, piece)| IoSlice::new(&piece[if index == 0 { self.written } else { 0 }..]))
                .collect();
            match write_pieces(stream, &slices)? {
                0 => break,
                count => {
                    self.advance(count);
                    taken += count;
                }
            }
        }
        Ok(taken)
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
        if self.pieces.is_empty() {
            self.pieces = VecDeque::new();
        }
    }
}

/// Writes once; 0 if the stream would block.
fn write_pieces(stream: &mut impl ProxyStream, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
    loop {
        match stream.write_vectored(pieces) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(count) => return Ok(count),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(0),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A stream that accepts a few bytes at a time, and blocks before each.
    #[derive(Debug)]
    struct SlowStream(Vec<u8>, usize, bool);

    impl ProxyStream for SlowStream {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Ok(0)
        }
        fn write_vectored(&mut self, pieces: &[IoSlice<'_>]) -> io::Result<usize> {
            self.2 = !self.2;
            if self.2 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            let all: Vec<u8> = pieces.iter().flat_map(|piece| piece.iter().copied()).collect();
            let count = all.len().min(self.1);
            self.0.extend_from_slice(&all[..count]);
            Ok(count)
        }
        fn shutdown_write(&mut self) -> io::Result<()> {
            Ok(())
        }
        fn finish_connecting(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    proptest! {
        #[test]
        fn all_bytes_are_written_in_order(
            pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..50), 0..20), at_once in 1usize..40,
        ) {
            let mut queue = WriteQueue::default();
            let mut slow = SlowStream(vec![], at_once, false);
            let mut taken = 0;
            for piece in &pieces {
                queue.push(piece.clone());
                taken += queue.write_to(&mut slow).unwrap();
            }
            while !queue.is_empty() {
                taken += queue.write_to(&mut slow).unwrap();
            }
            prop_assert_eq!(taken, slow.0.len());
            prop_assert_eq!(slow.0, pieces.concat());
        }

        #[test]
        fn what_was_added_is_consumed_in_order(
            steps in prop::collection::vec((prop::collection::vec(any::<u8>(), 0..9000), 0usize..9000), 1..30),
        ) {
            let mut buffer = ReadBuffer::default();
            let mut taken = Vec::new();
            for (bytes, take) in &steps {
                buffer.extend(bytes);
                let take = (*take).min(buffer.len());
                taken.extend_from_slice(&buffer.bytes()[..take]);
                buffer.consume(take);
            }
            taken.extend_from_slice(buffer.bytes());
            let added: Vec<u8> = steps.into_iter().flat_map(|(bytes, _)| bytes).collect();
            prop_assert_eq!(taken, added);
        }
    }
}

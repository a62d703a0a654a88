//! One direction of a connection: a bounded number of bytes in flight, and the end of the stream behind
//! them.

use std::collections::VecDeque;

/// Bytes in flight, or waiting to be read.
#[derive(Debug, Default)]
pub struct BytePipe {
    /// Pieces with the time from which their reader can see them, and the number of bytes already read.
    pieces: VecDeque<(u64, Vec<u8>, usize)>,
    held: usize,
    capacity: usize,
    /// Time at which the reader sees the end of the stream, behind all bytes.
    end_at: Option<u64>,
    newest: u64,
}

impl BytePipe {
    /// Creates a pipe with this capacity in bytes.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// Returns the number of bytes that can be written.
    pub fn room(&self) -> usize {
        if self.end_at.is_some() { 0 } else { self.capacity.saturating_sub(self.held) }
    }

    /// Returns the number of bytes in flight or unread.
    pub fn len(&self) -> usize {
        self.held
    }

    /// Returns true if it is empty.
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Writes bytes that become visible at an instant, or when those before them do; returns that
    /// instant.
    pub fn push(&mut self, bytes: &[u8], visible_at: u64) -> u64 {
        self.newest = self.newest.max(visible_at);
        self.held += bytes.len();
        self.pieces.push_back((self.newest, bytes.to_vec(), 0));
        self.newest
    }

    /// Ends the stream. Returns the time at which the reader can see it.
    pub fn end(&mut self, visible_at: u64) -> u64 {
        self.newest = self.newest.max(visible_at);
        *self.end_at.get_or_insert(self.newest)
    }

    /// Returns true if the writer has ended the stream.
    pub fn is_ended(&self) -> bool {
        self.end_at.is_some()
    }

    /// Returns true if a reader finds bytes.
    pub fn has_bytes(&self, now: u64) -> bool {
        self.pieces.front().is_some_and(|(visible_at, ..)| *visible_at <= now)
    }

    /// Returns true if a reader finds the end of the stream.
    pub fn is_at_end(&self, now: u64) -> bool {
        self.pieces.is_empty() && self.end_at.is_some_and(|at| at <= now)
    }

    /// Returns true if the end of the stream has arrived, with or without bytes before it.
    pub fn is_end_visible(&self, now: u64) -> bool {
        self.end_at.is_some_and(|at| at <= now)
    }

    /// Takes at most this many visible bytes.
    pub fn pop(&mut self, most: usize, now: u64) -> Vec<u8> {
        let mut taken = Vec::new();
        while taken.len() < most
            && let Some((visible_at, bytes, read)) = self.pieces.front_mut()
            && *visible_at <= now
        {
            let count = (bytes.len() - *read).min(most - taken.len());
            taken.extend_from_slice(&bytes[*read..*read + count]);
            *read += count;
            if *read == bytes.len() {
                self.pieces.pop_front();
            }
        }
        self.held -= taken.len();
        taken
    }

    /// Drops all unread bytes.
    pub fn lose(&mut self) {
        self.pieces.clear();
        self.held = 0;
    }
}

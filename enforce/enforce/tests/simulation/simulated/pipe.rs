//! One direction of a connection: bytes on their way, a bounded number of them, and the end of the stream behind them.

use std::collections::VecDeque;

/// Bytes that are on their way or wait to be read.
#[derive(Debug, Default)]
pub struct BytePipe {
    /// Pieces with the instant at which their reader can see them, and how much of each was read.
    pieces: VecDeque<(u64, Vec<u8>, usize)>,
    held: usize,
    capacity: usize,
    /// When the reader sees the end of the stream, behind all bytes.
    end_at: Option<u64>,
    newest: u64,
}

impl BytePipe {
    /// A pipe that holds so many bytes.
    pub fn new(capacity: usize) -> Self {
        Self { capacity, ..Self::default() }
    }

    /// How many bytes can be written.
    pub fn room(&self) -> usize {
        if self.end_at.is_some() { 0 } else { self.capacity.saturating_sub(self.held) }
    }

    /// Whether nothing is in it.
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Writes bytes that become visible at an instant, or when those before them do; returns that instant.
    pub fn push(&mut self, bytes: &[u8], visible_at: u64) -> u64 {
        self.newest = self.newest.max(visible_at);
        self.held += bytes.len();
        self.pieces.push_back((self.newest, bytes.to_vec(), 0));
        self.newest
    }

    /// Ends the stream; returns when the reader can see it.
    pub fn end(&mut self, visible_at: u64) -> u64 {
        self.newest = self.newest.max(visible_at);
        *self.end_at.get_or_insert(self.newest)
    }

    /// Whether the writer has ended the stream.
    pub fn is_ended(&self) -> bool {
        self.end_at.is_some()
    }

    /// Whether a reader finds bytes.
    pub fn has_bytes(&self, now: u64) -> bool {
        self.pieces.front().is_some_and(|(visible_at, ..)| *visible_at <= now)
    }

    /// Whether a reader finds the end of the stream.
    pub fn is_at_end(&self, now: u64) -> bool {
        self.pieces.is_empty() && self.end_at.is_some_and(|at| at <= now)
    }

    /// Whether the end of the stream has come, with bytes before it or without.
    pub fn is_end_visible(&self, now: u64) -> bool {
        self.end_at.is_some_and(|at| at <= now)
    }

    /// Takes at most so many visible bytes.
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

    /// Loses everything that was not read.
    pub fn lose(&mut self) {
        self.pieces.clear();
        self.held = 0;
    }
}

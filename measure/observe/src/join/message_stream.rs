//! One direction of a connection as messages, from those of its bytes that were seen.
//!
//! The kernel reports how far the stream has come, and only the first bytes of each read or write. So there are holes;
//! they do no harm inside of bodies, whose lengths the heads say. A head in a hole ends it: where the next message
//! begins cannot be known.

use super::sizes::TableMemory;
use super::tcp_segments::before;
use std::collections::VecDeque;
use wire::{ParseStep, ProtocolError};

/// The most pieces that wait behind a hole, each of which has at most 4 KiB.
const PIECES_MAX: usize = 64;

/// Why messages cannot be told apart any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct MessagesUntold;

impl From<ProtocolError> for MessagesUntold {
    fn from(_: ProtocolError) -> Self {
        Self
    }
}

/// What was found in a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FoundMessage<M> {
    /// A head, of a message or of a part of one, whose first byte is at `begin`.
    Begins { message: M, begin: u32 },
    /// The end of a part of this message, and with the last one the end of the message, before `end`.
    Ends { message: M, end: u32, is_last: bool },
}

/// A direction of a connection; positions are sequence numbers of TCP, which wrap.
#[derive(Debug)]
pub(super) struct MessageStream<M> {
    /// Up to where messages were told apart.
    at: Option<u32>,
    /// Bytes from there on that belong to the last part that was found.
    ahead: u64,
    /// The message that `ahead` is of, and whether it ends there.
    part: Option<(M, bool)>,
    /// Bytes that were seen, from `at` on, without a hole.
    seen: Vec<u8>,
    /// What was seen behind a hole, in order.
    behind: VecDeque<(u32, Box<[u8]>)>,
}

impl<M: Copy> MessageStream<M> {
    /// A stream whose position is not known yet.
    pub(super) fn new() -> Self {
        Self { at: None, ahead: 0, part: None, seen: Vec::new(), behind: VecDeque::new() }
    }

    /// The messages begin here, unless that was known.
    pub(super) fn begin_at(&mut self, position: u32) {
        self.at.get_or_insert(position);
    }

    /// Up to where messages were told apart.
    pub(super) fn position(&self) -> Option<u32> {
        self.at
    }

    /// The memory of what was seen in bytes.
    pub(super) fn bytes(&self) -> usize {
        let behind = self.behind.iter().map(|(_, bytes)| bytes.len()).sum::<usize>();
        self.seen.bytes() + self.behind.bytes() + behind
    }

    /// Takes bytes that were seen, some of them perhaps again.
    pub(super) fn see(&mut self, begin: u32, bytes: &[u8]) {
        if self.behind.len() == PIECES_MAX {
            self.behind.pop_front();
        }
        self.behind.push_back((begin, bytes.into()));
    }

    /// The stream has come to `end`: appends the messages that are found until there.
    pub(super) fn advance(
        &mut self,
        end: u32,
        mut parse: impl FnMut(&[u8]) -> Result<ParseStep<M>, ProtocolError>,
        found: &mut Vec<FoundMessage<M>>,
    ) -> Result<(), MessagesUntold> {
        loop {
            let Some(at) = self.at.filter(|at| !before(end, *at)) else { return Ok(()) };
            let left = end.wrapping_sub(at);
            if self.ahead > 0 && !self.pass(left, found) {
                return Ok(());
            }
            let at = self.at.unwrap_or(end);
            let left = end.wrapping_sub(at) as usize;
            if left == 0 {
                return Ok(());
            }
            self.join_pieces(at);
            let known = &self.seen[..self.seen.len().min(left)];
            if known.is_empty() {
                return Err(MessagesUntold);
            }
            let (message, extent) = match parse(known)? {
                ParseStep::NeedMore { .. } if known.len() == left => return Ok(()),
                ParseStep::NeedMore { .. } => return Err(MessagesUntold),
                ParseStep::Message { message, extent } => {
                    found.push(FoundMessage::Begins { message, begin: at });
                    (message, extent)
                }
                ParseStep::Continued { extent } => (self.part.ok_or(MessagesUntold)?.0, extent),
            };
            self.part = Some((message, extent.last));
            self.ahead = extent.len.0;
        }
    }

    /// Passes over bytes of the last part, of which there are so many now. Whether its end was reached.
    fn pass(&mut self, left: u32, found: &mut Vec<FoundMessage<M>>) -> bool {
        let count = u32::try_from(self.ahead).unwrap_or(u32::MAX).min(left);
        let end = self.at.map_or(0, |at| at.wrapping_add(count));
        self.at = Some(end);
        self.ahead -= u64::from(count);
        self.seen.drain(..self.seen.len().min(count as usize));
        if self.ahead > 0 {
            return false;
        }
        if let Some((message, is_last)) = self.part {
            found.push(FoundMessage::Ends { message, end, is_last });
        }
        true
    }

    /// Moves pieces to the bytes that were seen, as far as there is no hole before them.
    fn join_pieces(&mut self, at: u32) {
        let mut end = at.wrapping_add(u32::try_from(self.seen.len()).unwrap_or(u32::MAX));
        while let Some((begin, bytes)) = self.behind.front() {
            if before(end, *begin) {
                break;
            }
            let known = end.wrapping_sub(*begin) as usize;
            if known < bytes.len() {
                self.seen.extend(&bytes[known..]);
                end = at.wrapping_add(u32::try_from(self.seen.len()).unwrap_or(u32::MAX));
            }
            self.behind.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use units::Bytes;
    use wire::Extent;

    /// Messages that begin with their length, of which 0 is no length.
    fn parse(buffer: &[u8]) -> Result<ParseStep<u8>, ProtocolError> {
        let length = buffer[0];
        if length == 0 {
            return Err(ProtocolError::Line { field: "length", expected: "one" });
        }
        let extent = Extent { head: 1, len: Bytes(length.into()), last: true };
        Ok(ParseStep::Message { message: length, extent })
    }

    fn ends(found: &[FoundMessage<u8>]) -> Vec<u32> {
        let end = |found: &FoundMessage<u8>| match found {
            FoundMessage::Ends { end, .. } => Some(*end),
            FoundMessage::Begins { .. } => None,
        };
        found.iter().filter_map(end).collect()
    }

    #[test]
    fn holes_in_bodies_do_no_harm_and_holes_in_heads_do() {
        let begin = u32::MAX - 3;
        let at = |offset: u32| begin.wrapping_add(offset);
        let mut stream = MessageStream::new();
        let mut found = Vec::new();
        stream.begin_at(begin);
        stream.see(begin, &[2, 9, 5]);
        stream.see(at(7), &[3, 9]);
        assert_eq!(stream.advance(at(10), parse, &mut found), Ok(()));
        assert_eq!(ends(&found), [at(2), at(7), at(10)]);
        assert_eq!(stream.advance(at(11), parse, &mut found), Err(MessagesUntold));
    }

    #[test]
    fn what_is_seen_twice_counts_once() {
        let mut stream = MessageStream::new();
        let mut found = Vec::new();
        stream.begin_at(0);
        for (begin, bytes) in [(0, &[4, 1][..]), (1, &[1, 1]), (0, &[4]), (3, &[1, 1]), (5, &[0])] {
            stream.see(begin, bytes);
        }
        assert_eq!(stream.advance(3, parse, &mut found), Ok(()));
        assert!(ends(&found).is_empty());
        assert_eq!(stream.advance(5, parse, &mut found), Ok(()));
        assert_eq!(stream.advance(2, parse, &mut found), Ok(()));
        assert_eq!(ends(&found), [4, 5]);
        assert_eq!(stream.advance(6, parse, &mut found), Err(MessagesUntold));
    }
}

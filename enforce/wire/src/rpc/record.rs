//! Record marking (RFC 5531, section 11): a record is a sequence of fragments, each behind a mark of four bytes that
//! holds its length and whether it is the last. [`RecordReader`] reads XDR across fragments without joining them.
//!
//! Ordinary clients send a record as one fragment. A head that is spread over many is read again from its start
//! whenever bytes arrive; [`crate::ParserLimits::head`] bounds that work.

use super::handle::NamedHandle;
use crate::fields::{HeadError, check_at_most, to_index, u32_at};
use crate::hash::Fnv1a;
use crate::{Extent, ParserLimits, ProtocolError};
use units::Bytes;

/// The bit of a record mark that says that the fragment is the last; the others are its length.
pub(super) const LAST_FRAGMENT: u32 = 1 << 31;
/// Length of a record mark in bytes.
pub(super) const MARK_LEN: usize = 4;

/// The name under which a head that is too long is reported.
pub(super) const HEAD_FIELD: &str = "RPC head in bytes";

/// The size of a record as far as its marks have been read.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RecordSize {
    /// The bytes of its fragments, without marks.
    bytes: u64,
    fragments: u32,
}

impl RecordSize {
    /// Adds the fragment behind this mark; returns its length and whether it is the last.
    pub(super) fn add_fragment(
        &mut self,
        mark: u32,
        limits: &ParserLimits,
    ) -> Result<(u32, bool), ProtocolError> {
        let len = mark & !LAST_FRAGMENT;
        let last = mark & LAST_FRAGMENT != 0;
        self.bytes = check_at_most("RPC record in bytes", limits.message.0, self.bytes + u64::from(len))?;
        self.fragments += 1;
        check_at_most("fragments of an RPC record", limits.fragments.into(), self.fragments.into())?;
        Ok((len, last))
    }
}

/// Reads the record at the start of a buffer, front to back.
pub(super) struct RecordReader<'a> {
    buffer: &'a [u8],
    limits: &'a ParserLimits,
    /// The offset of the next byte to read.
    offset: usize,
    /// Where the present fragment ends; the buffer may end before it.
    fragment_end: usize,
    /// Whether the present fragment is the last.
    is_last: bool,
    size: RecordSize,
}

impl<'a> RecordReader<'a> {
    /// Begins with the first fragment, once its mark is in the buffer.
    pub(super) fn open(buffer: &'a [u8], limits: &'a ParserLimits) -> Result<Self, HeadError> {
        let size = RecordSize::default();
        let mut record = Self { buffer, limits, offset: 0, fragment_end: 0, is_last: false, size };
        record.read_mark()?;
        Ok(record)
    }

    /// Checks that the bytes up to `end` may be read and are in the buffer.
    fn require(&self, end: usize) -> Result<(), HeadError> {
        if end > self.limits.head {
            check_at_most(HEAD_FIELD, self.limits.head as u64, end as u64)?;
        }
        if end > self.buffer.len() { Err(HeadError::NeedMore(end)) } else { Ok(()) }
    }

    fn read_mark(&mut self) -> Result<(), HeadError> {
        self.require(self.offset + MARK_LEN)?;
        let (len, last) = self.size.add_fragment(u32_at(self.buffer, self.offset), self.limits)?;
        self.offset += MARK_LEN;
        self.fragment_end = self.offset + to_index(len);
        self.is_last = last;
        Ok(())
    }

    fn byte(&mut self, field: &'static str) -> Result<u8, HeadError> {
        while self.offset == self.fragment_end {
            if self.is_last {
                return Err(ProtocolError::TooShort { field, needed: 1, left: 0 }.into());
            }
            self.read_mark()?;
        }
        self.require(self.offset + 1)?;
        self.offset += 1;
        Ok(self.buffer[self.offset - 1])
    }

    pub(super) fn u32(&mut self, field: &'static str) -> Result<u32, HeadError> {
        if self.fragment_end - self.offset >= 4 {
            self.require(self.offset + 4)?;
            self.offset += 4;
            return Ok(u32_at(self.buffer, self.offset - 4));
        }
        self.check_left(field, 4)?;
        let mut value = 0;
        for _ in 0..4 {
            value = value << 8 | u32::from(self.byte(field)?);
        }
        Ok(value)
    }

    pub(super) fn u64(&mut self, field: &'static str) -> Result<u64, HeadError> {
        Ok(u64::from(self.u32(field)?) << 32 | u64::from(self.u32(field)?))
    }

    /// Checks that a last fragment holds `needed` more bytes.
    fn check_left(&self, field: &'static str, needed: u64) -> Result<(), ProtocolError> {
        let left = self.left_in_fragment();
        if self.is_last && left < needed {
            return Err(ProtocolError::TooShort { field, needed, left });
        }
        Ok(())
    }

    /// Skips so many bytes, which may lie in several fragments.
    pub(super) fn skip(&mut self, field: &'static str, count: u32) -> Result<(), HeadError> {
        self.for_each_byte(field, count, |_| ())
    }

    fn for_each_byte(
        &mut self,
        field: &'static str,
        count: u32,
        mut visit: impl FnMut(u8),
    ) -> Result<(), HeadError> {
        self.check_left(field, count.into())?;
        let count = to_index(count);
        if self.fragment_end - self.offset >= count {
            self.require(self.offset + count)?;
            self.buffer[self.offset..self.offset + count].iter().for_each(|&byte| visit(byte));
            self.offset += count;
            return Ok(());
        }
        for _ in 0..count {
            visit(self.byte(field)?);
        }
        Ok(())
    }

    /// Reads variable-length opaque data of at most `max` bytes with its padding; `visit` gets the data alone.
    fn opaque(&mut self, field: &'static str, max: u32, visit: impl FnMut(u8)) -> Result<(), HeadError> {
        let count = self.u32(field)?;
        check_at_most(field, max.into(), count.into())?;
        self.for_each_byte(field, count, visit)?;
        self.skip(field, count.wrapping_neg() % 4)
    }

    pub(super) fn skip_opaque(&mut self, field: &'static str, max: u32) -> Result<(), HeadError> {
        self.opaque(field, max, |_| ())
    }

    /// Reads a file handle of variable length; returns its hash, and names it if it is the first.
    pub(super) fn handle(
        &mut self,
        field: &'static str,
        max: u32,
        handle: &mut NamedHandle,
    ) -> Result<u64, HeadError> {
        let mut hash = Fnv1a::new();
        self.opaque(field, max, |byte| {
            hash = hash.with(byte);
            handle.push(byte);
        })?;
        handle.complete();
        Ok(hash.value())
    }

    /// The same for a file handle of fixed length.
    pub(super) fn fixed_handle(
        &mut self,
        field: &'static str,
        count: u32,
        handle: &mut NamedHandle,
    ) -> Result<u64, HeadError> {
        let mut hash = Fnv1a::new();
        self.for_each_byte(field, count, |byte| {
            hash = hash.with(byte);
            handle.push(byte);
        })?;
        handle.complete();
        Ok(hash.value())
    }

    pub(super) fn copy_fixed(&mut self, field: &'static str, count: u32) -> Result<Vec<u8>, HeadError> {
        let mut copy = Vec::new();
        self.for_each_byte(field, count, |byte| copy.push(byte))?;
        Ok(copy)
    }

    pub(super) fn copy_opaque(&mut self, field: &'static str, max: u32) -> Result<Vec<u8>, HeadError> {
        let mut copy = Vec::new();
        self.opaque(field, max, |byte| copy.push(byte))?;
        Ok(copy)
    }

    /// Reads the length of opaque data, which must fit into the record and are not read.
    pub(super) fn payload_len(&mut self, field: &'static str) -> Result<u32, HeadError> {
        let count = self.u32(field)?;
        check_at_most(field, self.limits.message.0, count.into())?;
        self.check_left(field, count.into())?;
        Ok(count)
    }

    /// Whether so many further bytes of the present fragment belong to the head that may be read.
    pub(super) fn is_in_head(&self, count: u32) -> bool {
        self.offset + to_index(count) <= self.fragment_end.min(self.limits.head)
    }

    /// The number of bytes of the present fragment that have not been read.
    pub(super) fn left_in_fragment(&self) -> u64 {
        (self.fragment_end - self.offset) as u64
    }

    /// The fragments that have been read from, up to the end of the last of them.
    pub(super) fn extent(&self) -> Extent {
        Extent { head: self.offset, len: Bytes(self.fragment_end as u64), last: self.is_last }
    }

    /// The size of the record so far, to which further fragments are added.
    pub(super) fn size(&self) -> RecordSize {
        self.size
    }
}

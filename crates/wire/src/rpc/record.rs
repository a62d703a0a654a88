//! Record marking (RFC 5531, section 11): a record is a row of fragments, each behind four bytes that hold its
//! length and whether it is the last. [`Record`] reads XDR across fragments without joining them.
//!
//! Ordinary clients send a record as one fragment. Heads that are spread over many are read again from the start
//! whenever bytes arrive; [`crate::Limits::head`] bounds that work.

use crate::read::{Hash, Stop, at_most, index, u32_at};
use crate::{Extent, Limits, Malformed};
use units::Bytes;

const LAST: u32 = 1 << 31;
/// Bytes of a record mark.
pub(super) const MARK: usize = 4;

/// The name under which a head that is too long is reported.
pub(super) const HEAD: &str = "RPC head in bytes";

/// What has been seen of a record: its bytes without marks, its fragments.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Seen {
    bytes: u64,
    fragments: u32,
}

impl Seen {
    /// Counts the fragment that `mark` announces; gives its length and whether it is the last.
    pub(super) fn fragment(&mut self, mark: u32, limits: &Limits) -> Result<(u32, bool), Malformed> {
        let (len, last) = (mark & !LAST, mark & LAST != 0);
        self.bytes = at_most("RPC record in bytes", limits.message.0, self.bytes + u64::from(len))?;
        self.fragments += 1;
        at_most("fragments of an RPC record", limits.fragments.into(), self.fragments.into())?;
        Ok((len, last))
    }
}

/// The record at the start of a buffer, read front to back.
pub(super) struct Record<'a> {
    buffer: &'a [u8],
    limits: &'a Limits,
    /// The next byte.
    at: usize,
    /// Where the present fragment ends; the buffer may end before it.
    end: usize,
    last: bool,
    seen: Seen,
}

impl<'a> Record<'a> {
    pub(super) fn open(buffer: &'a [u8], limits: &'a Limits) -> Result<Self, Stop> {
        let mut record = Self { buffer, limits, at: 0, end: 0, last: false, seen: Seen::default() };
        record.mark()?;
        Ok(record)
    }

    /// The bytes up to `until` must be there and may be looked at.
    fn need(&self, until: usize) -> Result<(), Stop> {
        if until > self.limits.head {
            at_most(HEAD, self.limits.head as u64, until as u64)?;
        }
        if until > self.buffer.len() { Err(Stop::More(until)) } else { Ok(()) }
    }

    fn mark(&mut self) -> Result<(), Stop> {
        self.need(self.at + MARK)?;
        let (len, last) = self.seen.fragment(u32_at(self.buffer, self.at), self.limits)?;
        self.at += MARK;
        self.end = self.at + index(len);
        self.last = last;
        Ok(())
    }

    fn byte(&mut self, field: &'static str) -> Result<u8, Stop> {
        while self.at == self.end {
            if self.last {
                return Err(Malformed::Short { field, needed: 1, left: 0 }.into());
            }
            self.mark()?;
        }
        self.need(self.at + 1)?;
        self.at += 1;
        Ok(self.buffer[self.at - 1])
    }

    pub(super) fn u32(&mut self, field: &'static str) -> Result<u32, Stop> {
        if self.end - self.at >= 4 {
            self.need(self.at + 4)?;
            self.at += 4;
            return Ok(u32_at(self.buffer, self.at - 4));
        }
        self.enough(field, 4)?;
        let mut value = 0;
        for _ in 0..4 {
            value = value << 8 | u32::from(self.byte(field)?);
        }
        Ok(value)
    }

    pub(super) fn u64(&mut self, field: &'static str) -> Result<u64, Stop> {
        Ok(u64::from(self.u32(field)?) << 32 | u64::from(self.u32(field)?))
    }

    /// A last fragment must hold `needed` more bytes.
    fn enough(&self, field: &'static str, needed: u64) -> Result<(), Malformed> {
        let left = (self.end - self.at) as u64;
        if self.last && left < needed { Err(Malformed::Short { field, needed, left }) } else { Ok(()) }
    }

    /// Passes over bytes.
    pub(super) fn skip(&mut self, field: &'static str, count: u32) -> Result<(), Stop> {
        self.each(field, count, |_| ())
    }

    fn each(&mut self, field: &'static str, count: u32, mut look: impl FnMut(u8)) -> Result<(), Stop> {
        self.enough(field, count.into())?;
        let count = index(count);
        if self.end - self.at >= count {
            self.need(self.at + count)?;
            self.buffer[self.at..self.at + count].iter().for_each(|&byte| look(byte));
            self.at += count;
            return Ok(());
        }
        for _ in 0..count {
            look(self.byte(field)?);
        }
        Ok(())
    }

    /// Variable-length opaque data of at most `max` bytes with its padding; `look` sees the data.
    fn opaque(&mut self, field: &'static str, max: u32, look: impl FnMut(u8)) -> Result<(), Stop> {
        let count = self.u32(field)?;
        at_most(field, max.into(), count.into())?;
        self.each(field, count, look)?;
        self.skip(field, count.wrapping_neg() % 4)
    }

    pub(super) fn skip_opaque(&mut self, field: &'static str, max: u32) -> Result<(), Stop> {
        self.opaque(field, max, |_| ())
    }

    pub(super) fn hash_opaque(&mut self, field: &'static str, max: u32) -> Result<u64, Stop> {
        let mut hash = Hash::new();
        self.opaque(field, max, |byte| hash = hash.with(byte))?;
        Ok(hash.value())
    }

    /// A fixed-length handle.
    pub(super) fn hash_fixed(&mut self, field: &'static str, count: u32) -> Result<u64, Stop> {
        let mut hash = Hash::new();
        self.each(field, count, |byte| hash = hash.with(byte))?;
        Ok(hash.value())
    }

    pub(super) fn copy_opaque(&mut self, field: &'static str, max: u32) -> Result<Vec<u8>, Stop> {
        let mut copy = Vec::new();
        self.opaque(field, max, |byte| copy.push(byte))?;
        Ok(copy)
    }

    /// The length of opaque data that must fit into the record, which is not read.
    pub(super) fn payload(&mut self, field: &'static str) -> Result<u32, Stop> {
        let count = self.u32(field)?;
        at_most(field, self.limits.message.0, count.into())?;
        self.enough(field, count.into())?;
        Ok(count)
    }

    /// Bytes of the present fragment that have not been read.
    pub(super) fn left_in_fragment(&self) -> u64 {
        (self.end - self.at) as u64
    }

    /// The fragments that were read from, to the end of the last of them.
    pub(super) fn extent(&self) -> Extent {
        Extent { head: self.at, len: Bytes(self.end as u64), last: self.last }
    }

    /// What further fragments of the record are counted on.
    pub(super) fn seen(&self) -> Seen {
        self.seen
    }
}

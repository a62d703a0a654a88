//! Reads and writes in an NFSv4 COMPOUND.
//!
//! Operations have no length, so those before a read or write must be known to be passed: the ones that clients put
//! there are. An unknown one ends the search: what was found so far counts, and a compound in which nothing was
//! found is control. The search ends as well behind a WRITE (its data would have to be waited for) and where
//! [`crate::Limits::head`] does. To keep data from hiding there, what follows a WRITE's data in its fragment counts
//! as written if it is longer than the attribute requests that clients put there.

use super::call::{CONTROL, Work};
use super::protocol::{
    OP_ACCESS, OP_CLOSE, OP_COMMIT, OP_GETATTR, OP_GETFH, OP_LOOKUP, OP_PUTFH, OP_PUTPUBFH, OP_PUTROOTFH,
    OP_READ, OP_RENEW, OP_RESTOREFH, OP_SAVEFH, OP_SEQUENCE, OP_WRITE,
};
use super::record::{HEAD, Record};
use crate::read::Stop;
use crate::{Class, Malformed, Position};
use units::Bytes;

const HANDLE_MAX: u32 = 128;
const TAG_MAX: u32 = 1024;
const NAME_MAX: u32 = 1024;
const STATE_ID: u32 = 16;
const BITMAP_WORDS_MAX: u32 = 8;
/// Behind a WRITE a fragment holds an attribute request or two.
const TAIL_MAX: u64 = 512;

pub(super) fn read(record: &mut Record<'_>) -> Result<Work, Stop> {
    record.skip_opaque("COMPOUND tag", TAG_MAX)?;
    record.u32("COMPOUND minor version")?;
    let count = record.u32("COMPOUND operations")?;
    let mut search = Search { object: 0, work: CONTROL };
    for _ in 0..count {
        match search.operation(record) {
            Ok(true) => {}
            Ok(false) | Err(Stop::Bad(Malformed::Above { field: HEAD, .. })) => break,
            Err(stop) => return Err(stop),
        }
    }
    Ok(search.work)
}

struct Search {
    /// The current file handle.
    object: u64,
    work: Work,
}

impl Search {
    /// Whether the search goes on behind the next operation.
    fn operation(&mut self, record: &mut Record<'_>) -> Result<bool, Stop> {
        match record.u32("NFSv4 operation")? {
            OP_PUTFH => self.object = record.hash_opaque("NFSv4 file handle", HANDLE_MAX)?,
            OP_PUTPUBFH | OP_PUTROOTFH | OP_GETFH | OP_RESTOREFH | OP_SAVEFH => self.object = 0,
            OP_SEQUENCE => record.skip("SEQUENCE", 32)?,
            OP_ACCESS => record.skip("ACCESS", 4)?,
            OP_RENEW => record.skip("RENEW", 8)?,
            OP_CLOSE => record.skip("CLOSE", 4 + STATE_ID)?,
            OP_COMMIT => record.skip("COMMIT", 12)?,
            OP_LOOKUP => {
                record.skip_opaque("LOOKUP name", NAME_MAX)?;
                self.object = 0;
            }
            OP_GETATTR => bitmap(record)?,
            OP_READ => self.reads(record)?,
            OP_WRITE => {
                self.writes(record)?;
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn reads(&mut self, record: &mut Record<'_>) -> Result<(), Stop> {
        record.skip("READ state id", STATE_ID)?;
        let offset = record.u64("NFSv4 READ offset")?;
        let count = u64::from(record.u32("NFSv4 READ count")?);
        match &mut self.work.class {
            Class::Read(bytes) => bytes.0 += count,
            _ => self.work = self.first(Class::Read(Bytes(count)), offset),
        }
        Ok(())
    }

    fn writes(&mut self, record: &mut Record<'_>) -> Result<(), Stop> {
        record.skip("WRITE state id", STATE_ID)?;
        let offset = record.u64("NFSv4 WRITE offset")?;
        record.u32("NFSv4 WRITE stable")?;
        let data = u64::from(record.payload("NFSv4 WRITE data in bytes")?);
        let left = record.left_in_fragment();
        let bytes = if left > data + TAIL_MAX { left } else { data };
        self.work = self.first(Class::Write(Bytes(bytes)), offset);
        Ok(())
    }

    fn first(&self, class: Class, offset: u64) -> Work {
        Work { class, position: Some(Position { object: self.object, offset }) }
    }
}

fn bitmap(record: &mut Record<'_>) -> Result<(), Stop> {
    let words = record.u32("GETATTR bitmap in words")?;
    crate::read::at_most("GETATTR bitmap in words", BITMAP_WORDS_MAX.into(), words.into())?;
    record.skip("GETATTR bitmap", words * 4)
}

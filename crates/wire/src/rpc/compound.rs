//! Reads and writes in an NFSv4 COMPOUND.
//!
//! Operations carry no length, so those in front of a read or write can only be skipped if they are known: the ones
//! that clients put there are. An unknown operation ends the search. What was found so far counts, and a compound in
//! which nothing was found is control. The search also ends behind a WRITE (its data would have to be waited for) and
//! where [`crate::ParserLimits::head`] ends. To keep data from hiding there, what follows a WRITE's data in its fragment
//! counts as written if it is longer than the attribute requests that clients put there.

use super::access::Access;
use super::handle::{HANDLE_LEN_MAX, NamedHandle};
use super::protocol::{
    OP_ACCESS, OP_CLOSE, OP_COMMIT, OP_GETATTR, OP_GETFH, OP_LOOKUP, OP_PUTFH, OP_PUTPUBFH, OP_PUTROOTFH,
    OP_READ, OP_RENEW, OP_RESTOREFH, OP_SAVEFH, OP_SEQUENCE, OP_WRITE,
};
use super::record::{HEAD_FIELD, RecordReader};
use crate::fields::{HeadError, check_at_most};
use crate::{Position, ProtocolError, RequestClass};

const TAG_LEN_MAX: u32 = 1024;
const NAME_LEN_MAX: u32 = 1024;
const STATE_ID_LEN: u32 = 16;
const BITMAP_WORDS_MAX: u32 = 8;
/// The most bytes of an attribute request or two, as clients put them behind a WRITE in its fragment.
const ATTRIBUTE_REQUESTS_LEN_MAX: u64 = 512;

/// What a COMPOUND asks for: the bytes of all its reads that the search reaches, or of its first write.
pub(super) fn read(record: &mut RecordReader<'_>, handle: &mut NamedHandle) -> Result<Access, HeadError> {
    record.skip_opaque("COMPOUND tag", TAG_LEN_MAX)?;
    record.u32("COMPOUND minor version")?;
    let count = record.u32("COMPOUND operations")?;
    let mut search = CompoundSearch { object: 0, access: Access::CONTROL };
    for _ in 0..count {
        match search.next_operation(record, handle) {
            Ok(true) => {}
            Ok(false) | Err(HeadError::Invalid(ProtocolError::AboveLimit { field: HEAD_FIELD, .. })) => break,
            Err(error) => return Err(error),
        }
    }
    Ok(search.access)
}

struct CompoundSearch {
    /// The hash of the current file handle; zero where the client does not know it.
    object: u64,
    access: Access,
}

impl CompoundSearch {
    /// Reads the next operation, and returns whether the search goes on behind it.
    fn next_operation(
        &mut self,
        record: &mut RecordReader<'_>,
        handle: &mut NamedHandle,
    ) -> Result<bool, HeadError> {
        match record.u32("NFSv4 operation")? {
            OP_PUTFH => self.object = record.handle("NFSv4 file handle", HANDLE_LEN_MAX, handle)?,
            OP_PUTPUBFH | OP_PUTROOTFH | OP_GETFH | OP_RESTOREFH | OP_SAVEFH => self.object = 0,
            OP_SEQUENCE => record.skip("SEQUENCE", 32)?,
            OP_ACCESS => record.skip("ACCESS", 4)?,
            OP_RENEW => record.skip("RENEW", 8)?,
            OP_CLOSE => record.skip("CLOSE", 4 + STATE_ID_LEN)?,
            OP_COMMIT => record.skip("COMMIT", 12)?,
            OP_LOOKUP => {
                record.skip_opaque("LOOKUP name", NAME_LEN_MAX)?;
                self.object = 0;
            }
            OP_GETATTR => skip_bitmap(record)?,
            OP_READ => self.add_read(record)?,
            OP_WRITE => {
                self.set_write(record)?;
                return Ok(false);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn add_read(&mut self, record: &mut RecordReader<'_>) -> Result<(), HeadError> {
        record.skip("READ state id", STATE_ID_LEN)?;
        let offset = record.u64("NFSv4 READ offset")?;
        let count = u64::from(record.u32("NFSv4 READ count")?);
        match &mut self.access.class {
            RequestClass::Read(bytes) => bytes.0 += count,
            _ => self.access = Access::read(Position { object: self.object, offset }, count),
        }
        Ok(())
    }

    fn set_write(&mut self, record: &mut RecordReader<'_>) -> Result<(), HeadError> {
        record.skip("WRITE state id", STATE_ID_LEN)?;
        let offset = record.u64("NFSv4 WRITE offset")?;
        record.u32("NFSv4 WRITE stable")?;
        let data = u64::from(record.payload_len("NFSv4 WRITE data in bytes")?);
        let left = record.left_in_fragment();
        let bytes = if left > data + ATTRIBUTE_REQUESTS_LEN_MAX { left } else { data };
        self.access = Access::write(Position { object: self.object, offset }, bytes);
        Ok(())
    }
}

fn skip_bitmap(record: &mut RecordReader<'_>) -> Result<(), HeadError> {
    let words = record.u32("GETATTR bitmap in words")?;
    check_at_most("GETATTR bitmap in words", BITMAP_WORDS_MAX.into(), words.into())?;
    record.skip("GETATTR bitmap", words * 4)
}

//! Reads and writes in an NFSv4 COMPOUND.
//!
//! Operations have no length field: `operations` knows the arguments by which each is skipped. An operation that is in
//! no RFC ends the search, since servers refuse it and execute nothing after it. Earlier operations count.
//!
//! The bytes of all reads and writes are added up. The sum counts as a write if any operation writes, because a server
//! gets the COMPOUND as a whole or not at all. COPY, CLONE, ALLOCATE, DEALLOCATE and WRITE_SAME are writes of the length that they
//! claim; a COPY or CLONE of length zero goes to the end of the file, and counts as none.
//!
//! The search also ends where [`crate::ParserLimits::head`] does, and after a WRITE whose data reach beyond it. So that
//! no data can hide there, the rest of the fragment counts as written if there was a write. A rest that is no longer
//! than the attribute requests that clients send after a WRITE does not count.

use super::access::Access;
use super::handle::{HANDLE_LEN_MAX, NamedHandle};
use super::operations;
use super::protocol::{
    OP_ALLOCATE, OP_CLONE, OP_COPY, OP_CREATE, OP_DEALLOCATE, OP_LOOKUP, OP_LOOKUPP, OP_OPEN, OP_OPENATTR,
    OP_PUTFH, OP_PUTPUBFH, OP_PUTROOTFH, OP_READ, OP_READ_PLUS, OP_RESTOREFH, OP_SAVEFH, OP_WRITE,
    OP_WRITE_SAME,
};
use super::record::{HEAD_FIELD, RecordReader};
use crate::fields::HeadError;
use crate::{Position, ProtocolError};

const TAG_LEN_MAX: u32 = 1024;
/// The most operations that a COMPOUND of an ordinary client has. Each further one counts as a key.
const USUAL_OPERATIONS: u32 = 16;
const STATE_ID_LEN: u32 = 16;
/// Maximum bytes of the one or two attribute requests that clients send after a WRITE.
const ATTRIBUTE_REQUESTS_LEN_MAX: u64 = 512;

/// Returns the access that a COMPOUND asks for, and stores the handle of the file whose data it concerns in `handle`;
/// without data, the handle of its last PUTFH. A COMPOUND that concerns data of several files stores an empty handle,
/// which belongs to no file.
pub(super) fn read(record: &mut RecordReader<'_>, handle: &mut NamedHandle) -> Result<Access, HeadError> {
    record.skip_opaque("COMPOUND tag", TAG_LEN_MAX)?;
    record.u32("COMPOUND minor version")?;
    let count = record.u32("COMPOUND operations")?;
    let mut search = CompoundSearch::default();
    for _ in 0..count {
        match search.next_operation(record, handle) {
            Ok(true) => {}
            Ok(false) | Err(HeadError::Invalid(ProtocolError::AboveLimit { field: HEAD_FIELD, .. })) => break,
            Err(error) => return Err(error),
        }
    }
    let behind = record.left_in_fragment().saturating_sub(search.unread_data);
    if search.write.is_some() && behind > ATTRIBUTE_REQUESTS_LEN_MAX {
        search.bytes = search.bytes.saturating_add(behind);
    }
    let keys = count.saturating_sub(USUAL_OPERATIONS - 1).max(1);
    Ok(Access { keys, ..search.access() })
}

#[derive(Default)]
struct CompoundSearch {
    /// The hash of the current file handle; zero where the client does not know it.
    object: u64,
    /// The hash of the saved file handle.
    saved_object: u64,
    /// The hash of the file handle of the first read or write.
    data_object: Option<u64>,
    /// The bytes of all reads and writes.
    bytes: u64,
    /// Position of the first read.
    read: Option<Position>,
    /// Position of the first write.
    write: Option<Position>,
    /// The bytes of data of a WRITE that ended the search.
    unread_data: u64,
}

impl CompoundSearch {
    fn access(&self) -> Access {
        match (self.write, self.read) {
            (Some(position), _) => Access::write(position, self.bytes),
            (None, Some(position)) => Access::read(position, self.bytes),
            (None, None) => Access::CONTROL,
        }
    }

    /// Reads the next operation; returns true if the search continues after it.
    fn next_operation(
        &mut self,
        record: &mut RecordReader<'_>,
        handle: &mut NamedHandle,
    ) -> Result<bool, HeadError> {
        let operation = record.u32("NFSv4 operation")?;
        match operation {
            OP_PUTFH => {
                if self.data_object.is_none() {
                    handle.forget();
                }
                self.object = record.handle("NFSv4 file handle", HANDLE_LEN_MAX, handle)?;
            }
            OP_SAVEFH => self.saved_object = self.object,
            OP_RESTOREFH => self.object = self.saved_object,
            OP_READ | OP_READ_PLUS => {
                record.skip("READ state id", STATE_ID_LEN)?;
                let offset = record.u64("NFSv4 READ offset")?;
                let count = record.u32("NFSv4 READ count")?;
                self.read.get_or_insert(Position { object: self.object, offset });
                self.bytes = self.bytes.saturating_add(count.into());
            }
            OP_WRITE => {
                self.check_object(handle);
                return self.write(record);
            }
            OP_ALLOCATE | OP_DEALLOCATE => {
                record.skip("ALLOCATE state id", STATE_ID_LEN)?;
                let offset = record.u64("ALLOCATE offset")?;
                let length = record.u64("ALLOCATE length")?;
                self.add_write(offset, length);
            }
            OP_COPY | OP_CLONE => self.copy(record, operation)?,
            OP_WRITE_SAME => self.write_same(record)?,
            _ => {
                let Some(arguments) = operations::arguments(operation) else { return Ok(false) };
                operations::skip(record, arguments)?;
            }
        }
        if let OP_READ | OP_READ_PLUS | OP_ALLOCATE | OP_DEALLOCATE | OP_COPY | OP_CLONE | OP_WRITE_SAME =
            operation
        {
            self.check_object(handle);
        }
        if let OP_PUTPUBFH | OP_PUTROOTFH | OP_LOOKUP | OP_LOOKUPP | OP_OPEN | OP_OPENATTR | OP_CREATE =
            operation
        {
            self.object = 0;
        }
        Ok(true)
    }

    /// Records that an operation concerns data of the current file.
    fn check_object(&mut self, handle: &mut NamedHandle) {
        if *self.data_object.get_or_insert(self.object) != self.object {
            handle.make_ambiguous();
        }
    }

    fn add_write(&mut self, offset: u64, bytes: u64) {
        self.write.get_or_insert(Position { object: self.object, offset });
        self.bytes = self.bytes.saturating_add(bytes);
    }

    /// Reads a WRITE; returns true if the search continues after it.
    fn write(&mut self, record: &mut RecordReader<'_>) -> Result<bool, HeadError> {
        record.skip("WRITE state id", STATE_ID_LEN)?;
        let offset = record.u64("NFSv4 WRITE offset")?;
        record.u32("NFSv4 WRITE stable")?;
        let data = record.payload_len("NFSv4 WRITE data in bytes")?;
        self.add_write(offset, data.into());
        let padded = data.saturating_add(data.wrapping_neg() % 4);
        let is_in_head = record.is_in_head(padded);
        if is_in_head {
            record.skip("NFSv4 WRITE data", padded)?;
        } else {
            self.unread_data = data.into();
        }
        Ok(is_in_head)
    }

    /// Reads a COPY or CLONE.
    fn copy(&mut self, record: &mut RecordReader<'_>, operation: u32) -> Result<(), HeadError> {
        record.skip("state ids of a copy", 2 * STATE_ID_LEN)?;
        record.u64("source offset of a copy")?;
        let offset = record.u64("destination offset of a copy")?;
        let length = record.u64("length of a copy")?;
        self.add_write(offset, length);
        if operation == OP_COPY { operations::skip(record, operations::END_OF_COPY) } else { Ok(()) }
    }

    fn write_same(&mut self, record: &mut RecordReader<'_>) -> Result<(), HeadError> {
        record.skip("WRITE_SAME state id and stable", STATE_ID_LEN + 4)?;
        let offset = record.u64("WRITE_SAME offset")?;
        let block_size = record.u64("WRITE_SAME block size")?;
        let blocks = record.u64("WRITE_SAME block count")?;
        self.add_write(offset, block_size.saturating_mul(blocks));
        operations::skip(record, operations::END_OF_WRITE_SAME)
    }
}

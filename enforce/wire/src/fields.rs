//! What parsers of heads share: big-endian numbers at known offsets, checks of values, and the two reasons for which
//! parsing a head stops.

use crate::{ParseStep, ProtocolError};

/// Why the head of a message has no meaning (yet). Parsers return it, so that `?` serves both reasons.
#[derive(Debug)]
pub(crate) enum HeadError {
    /// The buffer must have this length before more can be said.
    NeedMore(usize),
    /// The head breaks the protocol.
    Invalid(ProtocolError),
}

impl From<ProtocolError> for HeadError {
    fn from(error: ProtocolError) -> Self {
        Self::Invalid(error)
    }
}

/// A parser's result as callers of the crate see it: to need more bytes is no error.
pub(crate) fn into_parse_step<T>(
    step: Result<ParseStep<T>, HeadError>,
) -> Result<ParseStep<T>, ProtocolError> {
    match step {
        Ok(step) => Ok(step),
        Err(HeadError::NeedMore(at_least)) => Ok(ParseStep::NeedMore { at_least }),
        Err(HeadError::Invalid(error)) => Err(error),
    }
}

/// The first `N` bytes of the buffer, once they are there.
pub(crate) fn first_bytes<const N: usize>(buffer: &[u8]) -> Result<&[u8; N], HeadError> {
    buffer.first_chunk().ok_or(HeadError::NeedMore(N))
}

fn array<const N: usize>(bytes: &[u8], offset: usize) -> [u8; N] {
    let mut array = [0; N];
    array.copy_from_slice(&bytes[offset..offset + N]);
    array
}

/// The big-endian number at an offset, which the caller has checked to be inside.
pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> u16 {
    u16::from_be_bytes(array(bytes, offset))
}

/// The same as [`u16_at`] for 32 bits.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    u32::from_be_bytes(array(bytes, offset))
}

/// The same as [`u16_at`] for 64 bits.
pub(crate) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    u64::from_be_bytes(array(bytes, offset))
}

/// A length on the wire as an index into memory.
pub(crate) fn to_index(length: u32) -> usize {
    usize::try_from(length).expect("32-bit lengths fit an index on every supported platform")
}

/// Returns `found` unless it is above `max`.
pub(crate) fn check_at_most(field: &'static str, max: u64, found: u64) -> Result<u64, ProtocolError> {
    if found > max { Err(ProtocolError::AboveLimit { field, max, found }) } else { Ok(found) }
}

/// Checks that `found` is the `required` number, which `expected` says in words.
pub(crate) fn check_equal(
    field: &'static str,
    expected: &'static str,
    required: u64,
    found: u64,
) -> Result<(), ProtocolError> {
    if found == required { Ok(()) } else { Err(ProtocolError::Value { field, expected, found }) }
}

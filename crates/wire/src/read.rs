//! Big-endian numbers at known places, and the two ways in which reading stops early.

use crate::{Malformed, Step};

/// Why a head could not be read.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Undecided before the buffer has this length.
    More(usize),
    Bad(Malformed),
}

impl From<Malformed> for Stop {
    fn from(bad: Malformed) -> Self {
        Self::Bad(bad)
    }
}

/// What parsers return inside, as callers see it.
pub(crate) fn settle<T>(step: Result<Step<T>, Stop>) -> Result<Step<T>, Malformed> {
    match step {
        Ok(step) => Ok(step),
        Err(Stop::More(at_least)) => Ok(Step::NeedMore { at_least }),
        Err(Stop::Bad(bad)) => Err(bad),
    }
}

/// The first `N` bytes.
pub(crate) fn first<const N: usize>(buffer: &[u8]) -> Result<&[u8; N], Stop> {
    buffer.first_chunk().ok_or(Stop::More(N))
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

/// The number at `at`, which the caller has made sure is there.
pub(crate) fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes(array(bytes, at))
}

/// As [`u16_at`].
pub(crate) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(array(bytes, at))
}

/// As [`u16_at`].
pub(crate) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(array(bytes, at))
}

/// A wire length as an index.
pub(crate) fn index(length: u32) -> usize {
    usize::try_from(length).expect("32-bit lengths fit an index on every supported platform")
}

/// `found`, unless it is above `max`.
pub(crate) fn at_most(field: &'static str, max: u64, found: u64) -> Result<u64, Malformed> {
    if found > max { Err(Malformed::Above { field, max, found }) } else { Ok(found) }
}

/// `found` must be `wanted`.
pub(crate) fn exactly(
    field: &'static str,
    expected: &'static str,
    wanted: u64,
    found: u64,
) -> Result<(), Malformed> {
    if found == wanted { Ok(()) } else { Err(Malformed::Value { field, expected, found }) }
}

/// FNV-1a over 64 bits: the same in every run, and quick on the short keys that it is for.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Hash(u64);

impl Hash {
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) fn with(self, byte: u8) -> Self {
        Self((self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    }

    pub(crate) fn of(bytes: &[u8]) -> u64 {
        bytes.iter().fold(Self::new(), |hash, &byte| hash.with(byte)).0
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }
}

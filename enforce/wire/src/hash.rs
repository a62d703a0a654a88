//! A hash of short keys that is the same in every run.

/// The hash FNV-1a with 64 bits, byte by byte. It is quick on file handles and opaque values, and not collision-proof.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Fnv1a(u64);

impl Fnv1a {
    /// The hash of no bytes: the offset basis of FNV.
    pub(crate) fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// The hash of the bytes so far and one more.
    pub(crate) fn with(self, byte: u8) -> Self {
        Self((self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
    }

    pub(crate) fn hash_of(bytes: &[u8]) -> u64 {
        bytes.iter().fold(Self::new(), |hash, &byte| hash.with(byte)).0
    }

    pub(crate) fn value(self) -> u64 {
        self.0
    }
}

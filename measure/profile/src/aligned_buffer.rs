//! Memory that the kernel accepts for direct I/O.

use rand::Rng;
use rand::rngs::StdRng;

/// The alignment of memory that direct I/O accepts everywhere, in bytes.
pub(crate) const ALIGNMENT: usize = 4096;

/// A buffer that begins at a multiple of [`ALIGNMENT`], inside of an allocation that is larger by as much.
#[derive(Debug)]
pub(crate) struct AlignedBuffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl AlignedBuffer {
    /// A buffer of `len` bytes of seeded random data, which neither compresses nor deduplicates.
    pub(crate) fn random(len: usize, rng: &mut StdRng) -> Self {
        let mut memory = vec![0; len + ALIGNMENT];
        let start = memory.as_ptr().addr().next_multiple_of(ALIGNMENT) - memory.as_ptr().addr();
        rng.fill_bytes(&mut memory[start..start + len]);
        Self { memory, start, len }
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

//! The file handle that a request names, in a fixed place of the parser.

/// The longest file handle: that of NFSv4. NFSv3 has up to 64 bytes, NFSv2 has 32.
pub(super) const HANDLE_LEN_MAX: u32 = 128;

/// A copy of the file handle that a request is about.
#[derive(Debug, Clone, Copy)]
pub(super) struct NamedHandle {
    bytes: [u8; HANDLE_LEN_MAX as usize],
    /// How many of the bytes are the handle.
    len: usize,
    /// Whether the request names a handle at all.
    is_named: bool,
}

impl NamedHandle {
    /// Of a request that names no handle.
    pub(super) const NONE: Self = Self { bytes: [0; HANDLE_LEN_MAX as usize], len: 0, is_named: false };

    /// Forgets the handle for a request that begins.
    pub(super) fn forget(&mut self) {
        (self.len, self.is_named) = (0, false);
    }

    /// Appends a byte to a handle that is not named yet. Bytes beyond the longest handle do not count.
    pub(super) fn push(&mut self, byte: u8) {
        if let Some(place) = self.bytes.get_mut(self.len).filter(|_| !self.is_named) {
            *place = byte;
            self.len += 1;
        }
    }

    /// The handle is complete. What is pushed behind it belongs to further handles, and does not count.
    pub(super) fn complete(&mut self) {
        self.is_named = true;
    }

    /// The request concerns several files: it names an empty handle.
    pub(super) fn make_ambiguous(&mut self) {
        (self.len, self.is_named) = (0, true);
    }

    pub(super) fn get(&self) -> Option<&[u8]> {
        self.is_named.then(|| &self.bytes[..self.len])
    }
}

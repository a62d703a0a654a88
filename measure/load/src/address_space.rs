//! The addresses that requests of a workload can use on its server.

/// The addresses that a server offers: an offset in bytes, the number of a key, or nothing to choose from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddressSpace {
    /// A file or device of `len` bytes, which is read and written in multiples of `block`.
    Bytes {
        len: u64,
        block: u64,
        is_writable: bool,
        /// True if the server promises that a write on one connection is visible at once to reads on all
        /// others.
        is_coherent: bool,
    },
    /// The number of keys that exist for each size of values.
    Keys(u32),
    /// Nothing: a single HTTP path, or bytes that are sent back.
    Nothing,
}

//! Requests of a proxy's own, whose replies say that everything before them is done.

/// The barrier of the text protocol. Every version answers it, in order, with a line that answers nothing else.
pub(super) const TEXT_BARRIER: &[u8] = b"version\r\n";

/// The opcode of the binary protocol's no-op.
pub(super) const BINARY_NOOP: u8 = 0x0a;

/// The opaque value of [`BINARY_BARRIER`].
pub(super) const BARRIER_OPAQUE: u32 = u32::from_be_bytes(*b"twir");

/// A no-op with an opaque value of the parser's own.
pub(super) const BINARY_BARRIER: [u8; 24] = *b"\x80\x0a\0\0\0\0\0\0\0\0\0\0twir\0\0\0\0\0\0\0\0";

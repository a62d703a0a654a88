//! Requests of a proxy's own, whose replies say that everything before them is done.

/// The barrier of the text protocol. Every version answers it, in order, with a line that answers nothing else.
pub(super) const TEXT_BARRIER: &[u8] = b"version\r\n";

/// Returns the number of bytes of the answer to [`TEXT_BARRIER`], and true if it is the version: a server that wants
/// clients to authenticate refuses to tell it. `None` before the end of the line.
pub(super) fn read_welcome(answer: &[u8]) -> Option<(usize, bool)> {
    let end = answer.iter().position(|&byte| byte == b'\n')?;
    Some((end + 1, answer.starts_with(b"VERSION ")))
}

/// The opcode of the binary protocol's no-op.
pub(super) const BINARY_NOOP: u8 = 0x0a;

/// The opaque value of [`BINARY_BARRIER`].
pub(super) const BARRIER_OPAQUE: u32 = u32::from_be_bytes(*b"twir");

/// A no-op with an opaque value of the parser's own.
pub(super) const BINARY_BARRIER: [u8; 24] = *b"\x80\x0a\0\0\0\0\0\0\0\0\0\0twir\0\0\0\0\0\0\0\0";

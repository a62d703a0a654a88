//! Bodies: how long they are, and bodies in chunks (RFC 9112, section 7.1).

use crate::fields::{HeadError, check_at_most};
use crate::{Extent, ParserLimits, ProtocolError};
use units::Bytes;

/// The longest line with the size of a chunk, its extensions included, and the longest line of a trailer, in bytes.
const LINE_MAX: usize = 4096;

/// How long a body is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyLength {
    /// So many bytes as its head says.
    Bytes(u64),
    /// Chunks, the last of which is empty.
    Chunked,
    /// Everything until the connection is closed.
    UntilClose,
}

/// A body in chunks as far as it was read: a piece is a chunk, or a line of the trailer behind the last one.
#[derive(Debug, Default)]
pub(super) struct ChunkedBody {
    is_trailer: bool,
    /// The bytes of the line that were searched for its end.
    searched: usize,
    pieces: u64,
    bytes: u64,
}

impl ChunkedBody {
    /// The extent of the next chunk or line.
    pub(super) fn next(&mut self, buffer: &[u8], limits: &ParserLimits) -> Result<Extent, HeadError> {
        let until = buffer.len().min(LINE_MAX.min(limits.head));
        let from = self.searched.min(until);
        let Some(place) = buffer[from..until].iter().position(|&byte| byte == b'\n') else {
            self.searched = until;
            let max = LINE_MAX.min(limits.head);
            check_at_most("line of a chunked HTTP body in bytes", max as u64, buffer.len() as u64 + 1)?;
            return Err(HeadError::NeedMore(buffer.len() + 1));
        };
        let line = &buffer[..=from + place];
        self.searched = 0;
        self.pieces += 1;
        check_at_most("chunks of an HTTP body", limits.fragments.into(), self.pieces)?;
        let head = line.len();
        let words = line.trim_ascii();
        if self.is_trailer {
            return Ok(Extent { head, len: Bytes(head as u64), last: words.is_empty() });
        }
        let size = chunk_size(words)?;
        self.bytes = check_at_most("HTTP body in bytes", limits.message.0, self.bytes.saturating_add(size))?;
        self.is_trailer = size == 0;
        // Behind the data of a chunk is an end of line.
        let data = if size == 0 { 0 } else { size + 2 };
        Ok(Extent { head, len: Bytes(head as u64 + data), last: false })
    }
}

/// The hexadecimal number in front of the extensions.
fn chunk_size(line: &[u8]) -> Result<u64, ProtocolError> {
    let digits = line.split(|&byte| byte == b';').next().unwrap_or(b"").trim_ascii();
    let text = std::str::from_utf8(digits).ok().filter(|text| !text.is_empty() && text.len() <= 15);
    let is_plain = digits.iter().all(u8::is_ascii_hexdigit);
    let size = text.filter(|_| is_plain).and_then(|text| u64::from_str_radix(text, 16).ok());
    size.ok_or(ProtocolError::Line { field: "size of an HTTP chunk", expected: "a hexadecimal number" })
}

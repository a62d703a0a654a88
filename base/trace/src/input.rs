//! The bytes of a file, decompressed and buffered: the layer between the operating system and the parsers.

use crate::error::TraceErrorKind;
use flate2::read::MultiGzDecoder;
use std::io::{self, BufReader, Cursor, Read};

const GZIP_MAGIC: &[u8] = &[0x1f, 0x8b];
const ZSTD_MAGIC: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// Maximum length of a line: far longer than in any text format, so a longer one means a wrong format.
pub(crate) const LINE_BYTES_MAX: usize = 1 << 16;
const BUFFER_BYTES: usize = 1 << 18;

/// Decompresses `raw` if it begins with the magic number of gzip or zstd, and passes it through otherwise.
pub(crate) fn decompress(mut raw: Box<dyn Read + Send>) -> io::Result<Box<dyn Read + Send>> {
    let mut magic = [0u8; 4];
    let len = read_up_to(&mut raw, &mut magic)?;
    let whole = Cursor::new(magic[..len].to_vec()).chain(raw);
    if magic[..len].starts_with(GZIP_MAGIC) {
        Ok(Box::new(MultiGzDecoder::new(BufReader::with_capacity(BUFFER_BYTES, whole))))
    } else if magic[..len].starts_with(ZSTD_MAGIC) {
        Ok(Box::new(zstd::stream::read::Decoder::new(whole)?))
    } else {
        Ok(Box::new(whole))
    }
}

/// Fills `buffer` as far as the input reaches, and returns the number of bytes read.
pub(crate) fn read_up_to(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match input.read(&mut buffer[filled..]) {
            Ok(0) => break,
            Ok(n) => filled += n,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(filled)
}

/// Classifies a read failure: damaged file, or an error of the operating system.
pub(crate) fn damage(error: io::Error) -> TraceErrorKind {
    if is_damage(&error) { TraceErrorKind::Truncated(error.to_string()) } else { TraceErrorKind::Io(error) }
}

/// Decoders report data that was cut off or damaged with these kinds; every other error comes from the operating
/// system, and carries its code.
fn is_damage(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput
    ) || (error.kind() == io::ErrorKind::Other && error.raw_os_error().is_none())
}

/// A large buffer over the input; lines and records are taken from it without copying.
pub(crate) struct BufferedInput {
    input: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    at_end: bool,
    /// Error that occurred while peeking, to be returned once the bytes before it have been consumed.
    deferred: Option<io::Error>,
}

/// A line could not be read: it is longer than [`LINE_BYTES_MAX`], or reading failed.
pub(crate) enum ReadLineError {
    TooLong,
    Io(io::Error),
}

impl BufferedInput {
    pub(crate) fn new(input: Box<dyn Read + Send>) -> Self {
        Self { input, buffer: vec![0; BUFFER_BYTES], start: 0, end: 0, at_end: false, deferred: None }
    }

    /// Returns up to `len` bytes from the current position without consuming them.
    pub(crate) fn peek(&mut self, len: usize) -> io::Result<&[u8]> {
        assert!(len <= self.buffer.len());
        while self.end - self.start < len && !self.at_end {
            self.refill()?;
        }
        Ok(&self.buffer[self.start..self.end.min(self.start + len)])
    }

    /// Like [`Self::peek`], but damage ends the result instead of being an error; it is reported when reading
    /// reaches it.
    pub(crate) fn peek_lossy(&mut self, len: usize) -> io::Result<&[u8]> {
        match self.peek(len) {
            Ok(_) => {}
            Err(error) if is_damage(&error) => self.deferred = Some(error),
            Err(error) => return Err(error),
        }
        Ok(&self.buffer[self.start..self.end.min(self.start + len)])
    }

    /// Returns the next line without its end (`
    /// ` or `\r
    /// `), or `None` at the end of the input.
    #[inline]
    pub(crate) fn line(&mut self) -> Result<Option<&[u8]>, ReadLineError> {
        let mut searched = 0;
        loop {
            let unread = &self.buffer[self.start..self.end];
            if let Some(at) = memchr::memchr(b'\n', &unread[searched..]) {
                let from = self.start;
                let len = searched + at;
                self.start += len + 1;
                return Ok(Some(without_cr(&self.buffer[from..from + len])));
            }
            if self.at_end {
                let from = std::mem::replace(&mut self.start, self.end);
                return Ok((from < self.end).then(|| without_cr(&self.buffer[from..self.end])));
            }
            searched = unread.len();
            if searched > LINE_BYTES_MAX {
                return Err(ReadLineError::TooLong);
            }
            self.refill().map_err(ReadLineError::Io)?;
        }
    }

    /// Skips the byte-order mark of UTF-8, which some editors and exports write, at the current position.
    pub(crate) fn skip_byte_order_mark(&mut self) -> io::Result<()> {
        if self.peek_lossy(BYTE_ORDER_MARK.len())? == BYTE_ORDER_MARK {
            self.start += BYTE_ORDER_MARK.len();
        }
        Ok(())
    }

    /// Returns the next `len` bytes, fewer at the end of the input.
    pub(crate) fn record(&mut self, len: usize) -> io::Result<&[u8]> {
        let available = self.peek(len)?.len();
        let from = self.start;
        self.start += available;
        Ok(&self.buffer[from..self.start])
    }

    /// Skips everything up to the end of the current line.
    pub(crate) fn skip_line(&mut self) -> io::Result<()> {
        loop {
            if let Some(at) = memchr::memchr(b'\n', &self.buffer[self.start..self.end]) {
                self.start += at + 1;
                return Ok(());
            }
            self.start = self.end;
            if self.at_end {
                return Ok(());
            }
            self.refill()?;
        }
    }

    fn refill(&mut self) -> io::Result<()> {
        if let Some(error) = self.deferred.take() {
            return Err(error);
        }
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        let read = read_once(&mut self.input, &mut self.buffer[self.end..])?;
        self.end += read;
        self.at_end = read == 0;
        Ok(())
    }
}

fn read_once(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    loop {
        match input.read(buffer) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

#[inline]
fn without_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

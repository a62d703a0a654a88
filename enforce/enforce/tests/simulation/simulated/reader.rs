//! Parser of requests in a byte stream that shares no code with the proxy's. It returns the device work
//! and the server's answer. The simulated servers keep no data: an answer is a function of its request.

use super::dice::Dice;
use super::memcached_reader::read_memcached;
use super::nbd_reader::{NbdDialect, read_nbd};
use super::resp_reader::read_resp;
use super::rpc_reader::read_rpc;
use wire::Protocol;

/// Work of a request at the simulated device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceWork {
    /// A read of this many bytes.
    Read(u64),
    /// A write of this many bytes.
    Write(u64),
    /// A moment of the device: metadata and others.
    Control,
    /// None: handshakes, no-ops, goodbyes, answers of clients.
    Nothing,
}

impl DeviceWork {
    /// Returns the number of bytes that the device moves.
    pub fn bytes(self) -> u64 {
        match self {
            Self::Read(bytes) | Self::Write(bytes) => bytes,
            Self::Control | Self::Nothing => 0,
        }
    }

    /// Returns true if it reads or writes data.
    pub fn is_data(self) -> bool {
        matches!(self, Self::Read(_) | Self::Write(_))
    }
}

/// A parsed request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SeenRequest {
    /// Length of the whole request, bytes.
    pub len: usize,
    /// Hash of all its bytes.
    pub hash: u64,
    /// Identifier in its answer, if answers may come in any order.
    pub id: Option<u64>,
    pub work: DeviceWork,
    /// Answer of the server; empty if it is silent.
    pub reply: Vec<u8>,
    /// True if the server closes the connection behind the answer.
    pub closes: bool,
    /// True if it is a no-op, which a proxy may add.
    pub is_noop: bool,
    /// True if a proxy answers it in place of the server.
    pub is_refused: bool,
    /// True if a proxy may send it over a connection that clients share.
    pub is_independent: bool,
    /// Bytes that a proxy sends in its place.
    pub sent_as: Option<Vec<u8>>,
    /// Identifier of the server's call that it answers.
    pub answers_call: Option<u32>,
}

impl SeenRequest {
    /// Creates a request of this length without work and answer.
    pub fn silent(len: usize) -> Self {
        Self {
            len,
            hash: 0,
            id: None,
            work: DeviceWork::Nothing,
            reply: Vec::new(),
            closes: false,
            is_noop: false,
            is_refused: false,
            is_independent: false,
            sent_as: None,
            answers_call: None,
        }
    }
}

/// Reason why no request could be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unread {
    /// More bytes are needed.
    Incomplete,
    /// The bytes are not a request of the protocol, and the rest of the stream cannot be parsed.
    Garbage,
}

/// Parser of the requests in one stream.
#[derive(Debug)]
pub struct RequestReader {
    protocol: Protocol,
    pub(super) nbd: NbdDialect,
    is_binary: Option<bool>,
    buffer: Vec<u8>,
    begin: usize,
    /// Minimum length at which the request can be complete.
    needed: usize,
    /// True if unparseable bytes have arrived.
    pub is_lost: bool,
}

impl RequestReader {
    /// Creates a parser at the start of a connection.
    pub fn new(protocol: Protocol, nbd: NbdDialect) -> Self {
        Self { protocol, nbd, is_binary: None, buffer: Vec::new(), begin: 0, needed: 1, is_lost: false }
    }

    /// Appends bytes of the stream.
    pub fn feed(&mut self, bytes: &[u8]) {
        if !self.is_lost {
            self.buffer.extend_from_slice(bytes);
        }
    }

    /// Returns true if the buffer contains no partial request.
    pub fn is_between(&self) -> bool {
        self.begin == self.buffer.len()
    }

    /// Returns the bytes of the incomplete request.
    pub fn rest(&self) -> &[u8] {
        &self.buffer[self.begin..]
    }

    /// Returns the next complete request.
    pub fn next_request(&mut self) -> Option<SeenRequest> {
        self.next_with_bytes().map(|(request, _)| request)
    }

    /// Returns the next complete request with its bytes.
    pub fn next_with_bytes(&mut self) -> Option<(SeenRequest, Vec<u8>)> {
        let rest = &self.buffer[self.begin..];
        if self.is_lost || rest.len() < self.needed {
            return None;
        }
        let is_binary = *self.is_binary.get_or_insert(rest[0] == 0x80);
        let read = match self.protocol {
            Protocol::Memcached => read_memcached(rest, is_binary, &mut self.needed),
            Protocol::Nbd => read_nbd(rest, &mut self.nbd, &mut self.needed),
            Protocol::Nfs => read_rpc(rest, &mut self.needed),
            Protocol::Resp => read_resp(rest, &mut self.needed),
            Protocol::Http1 => unreachable!("no front has this protocol"),
        };
        match read {
            Ok(mut request) => {
                let bytes = rest[..request.len].to_vec();
                request.hash = hash_of(request.sent_as.as_deref().unwrap_or(&bytes));
                (self.begin, self.needed) = (self.begin + request.len, 1);
                if self.begin == self.buffer.len() || self.begin > 1 << 16 {
                    self.buffer.drain(..self.begin);
                    self.begin = 0;
                }
                Some((request, bytes))
            }
            Err(Unread::Incomplete) => None,
            Err(Unread::Garbage) => {
                self.is_lost = true;
                None
            }
        }
    }
}

/// Returns the bytes from an offset; if they have not arrived, notes the number needed.
pub fn take<'a>(bytes: &'a [u8], from: usize, count: usize, needed: &mut usize) -> Result<&'a [u8], Unread> {
    let end = from.checked_add(count).ok_or(Unread::Garbage)?;
    if bytes.len() < end {
        *needed = end;
        return Err(Unread::Incomplete);
    }
    Ok(&bytes[from..end])
}

/// Returns a big-endian number of at most eight bytes.
pub fn number(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Returns a hash of bytes, eight at a time.
pub fn hash_of(bytes: &[u8]) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325 ^ bytes.len() as u64;
    for piece in bytes.chunks(8) {
        hash = (hash ^ number(piece)).wrapping_mul(0x0000_0100_0000_01B3).rotate_left(23);
    }
    hash
}

/// Returns the data stored under a name at the simulated servers.
pub fn pattern(name: u64, len: u64) -> Vec<u8> {
    let mut dice = Dice::new(name, len);
    let mut bytes = vec![0; usize::try_from(len).expect("patterns are short")];
    // Large data repeat a block, which is enough to distinguish them.
    let block: Vec<u8> = (0..32).flat_map(|_| dice.next().to_le_bytes()).collect();
    for piece in bytes.chunks_mut(block.len()) {
        piece.copy_from_slice(&block[..piece.len()]);
    }
    bytes
}

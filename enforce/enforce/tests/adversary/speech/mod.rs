//! The server side of the protocols: ends of requests, their cost, and their answers.
//!
//! Written independently of crate `wire`, so that the server does not repeat its mistakes.

pub mod memcached;
pub mod nbd;
pub mod nfs;

/// A reply: its first bytes, filling of a given length, and its last bytes.
#[derive(Debug, Default)]
pub struct ReplyBytes {
    pub head: Vec<u8>,
    pub filling: usize,
    pub tail: Vec<u8>,
}

impl ReplyBytes {
    pub fn short(head: Vec<u8>) -> Self {
        Self { head, ..Self::default() }
    }
}

/// A request that the device serves.
#[derive(Debug)]
pub struct DeviceRequest {
    /// Owner of the request; clients encode it in names, handles and keys.
    pub tag: u8,
    /// Place among the requests of its tag, from 1; 0 for none.
    pub place: u64,
    /// Number of accesses, with their bytes; a request without any is answered at once.
    pub accesses: u64,
    pub bytes: u64,
    pub reply: ReplyBytes,
}

/// Meaning of received bytes.
#[derive(Debug)]
pub enum Heard {
    Incomplete,
    /// A message that is answered at once and is not a request.
    Answer(usize, Vec<u8>),
    Request(usize, DeviceRequest),
    /// The answer to a call of the server.
    CallbackAnswered(usize),
    /// A request that makes the server call the client from time to time.
    CallbackWanted(usize, Vec<u8>),
    Over,
}

/// One connection of a protocol.
pub trait ServerSpeech: Send {
    fn hear(&mut self, input: &[u8]) -> Heard;
    /// Returns true if requests are served one after the other.
    fn is_serial(&self) -> bool {
        false
    }
    /// Returns a call of the server, if the protocol has any.
    fn callback(&mut self) -> Vec<u8> {
        Vec::new()
    }
}

pub fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

pub fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from_be_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

pub fn put(out: &mut Vec<u8>, words: &[u32]) {
    out.extend(words.iter().flat_map(|word| word.to_be_bytes()));
}

/// Returns the data of a read: its first eight bytes encode the offset.
pub fn data_head(offset: u64, len: usize) -> Vec<u8> {
    offset.to_be_bytes()[..len.min(8)].to_vec()
}

/// Returns the place of a request of 4 KiB by its offset.
pub fn place(tag: u8, offset: u64) -> u64 {
    if tag == b'p' { offset / 4096 } else { 0 }
}

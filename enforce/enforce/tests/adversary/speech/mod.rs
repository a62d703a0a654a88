//! The protocols as a server hears them: where a request ends, what it takes, what is answered.
//!
//! They are written apart from crate `wire`, so that the server does not repeat its mistakes.

pub mod memcached;
pub mod nbd;
pub mod nfs;

/// A reply: its first bytes, so many bytes of no meaning, and its last bytes.
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
    /// Whose it is: clients say so in names, handles and keys.
    pub tag: u8,
    /// Its place among those of its tag, from 1; 0 for none.
    pub place: u64,
    /// How many accesses it makes, and the bytes of them; without any, it is answered at once.
    pub accesses: u64,
    pub bytes: u64,
    pub reply: ReplyBytes,
}

/// What a server makes of the bytes that have come.
#[derive(Debug)]
pub enum Heard {
    Incomplete,
    /// Something that is answered at once and is no request.
    Answer(usize, Vec<u8>),
    Request(usize, DeviceRequest),
    /// The answer to a call of the server.
    CallbackAnswered(usize),
    /// The server calls the client from now on, now and then.
    CallbackWanted(usize, Vec<u8>),
    Over,
}

/// One connection of a protocol.
pub trait ServerSpeech: Send {
    fn hear(&mut self, input: &[u8]) -> Heard;
    /// Whether requests are served one after the other.
    fn is_serial(&self) -> bool {
        false
    }
    /// A call of the server, where the protocol has any.
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

/// Data of a read: its first eight bytes say where it stands.
pub fn data_head(offset: u64, len: usize) -> Vec<u8> {
    offset.to_be_bytes()[..len.min(8)].to_vec()
}

/// The place of a request of 4 KiB by its offset.
pub fn place(tag: u8, offset: u64) -> u64 {
    if tag == b'p' { offset / 4096 } else { 0 }
}

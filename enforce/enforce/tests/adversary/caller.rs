//! A client of each protocol that sends requests of a tag and reads replies.

use crate::ground::ProxyFronts;
use crate::speech::{data_head, word};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, TcpStream};
use testkit::connect_from;
use wire::Protocol;
use wire::nbd::client::{ClientHandshake, ExportOption, HandshakeStep};
use wire::rpc::client::{CallEncoder, Credentials, StableHow};

/// Bytes of an ordinary request.
pub const BLOCK: u32 = 4096;

/// The parts of a reply that clients check.
#[derive(Debug)]
pub struct ReplySeen {
    /// Place of the request, or 0 with memcached.
    pub place: u64,
    /// First bytes of the data.
    pub data: Vec<u8>,
}

/// A connection after its handshake.
pub struct Caller {
    pub stream: TcpStream,
    pub protocol: Protocol,
    tag: u8,
    /// Handle of the NFS file.
    pub handle: Vec<u8>,
    /// Place of the latest request.
    pub place: u64,
    pub out: Vec<u8>,
    input: Vec<u8>,
    used: usize,
}

fn ended() -> io::Error {
    ErrorKind::UnexpectedEof.into()
}

impl Caller {
    pub fn connect(fronts: &ProxyFronts, protocol: Protocol, from: Ipv4Addr, tag: u8) -> io::Result<Self> {
        let mut stream = connect_from(from, fronts.of(protocol))?;
        if protocol == Protocol::Nbd {
            shake_hands(&mut stream, &[tag])?;
        }
        Ok(Self {
            stream,
            protocol,
            tag,
            handle: vec![tag],
            place: 0,
            out: Vec::new(),
            input: Vec::new(),
            used: 0,
        })
    }

    fn xid(&self) -> u32 {
        u32::try_from(self.place).expect("a connection has fewer calls than 2^32")
    }

    /// Appends a read to the output.
    pub fn read(&mut self, len: u32) {
        self.place += 1;
        let offset = self.place * u64::from(BLOCK);
        let xid = self.xid();
        match self.protocol {
            Protocol::Nbd => {
                wire::nbd::client::read(&mut self.out, self.place << 32 | u64::from(len), offset, len);
            }
            Protocol::Nfs => self.call(|calls, handle| calls.read(xid, handle, offset, len)),
            Protocol::Memcached => {
                let key = format!("{}{}.{len}", char::from(self.tag), self.place);
                wire::memcached::client::get(&mut self.out, &[key.as_bytes()]);
            }
            Protocol::Http1 | Protocol::Resp => unreachable!("no script speaks it"),
        }
    }

    pub fn write(&mut self, data: &[u8]) {
        self.place += 1;
        let offset = self.place * u64::from(BLOCK);
        let xid = self.xid();
        match self.protocol {
            Protocol::Nbd => {
                wire::nbd::client::write(&mut self.out, self.place << 32, offset, data);
            }
            Protocol::Nfs => {
                self.call(|calls, handle| calls.write(xid, handle, offset, StableHow::Unstable, data));
            }
            Protocol::Memcached => {
                let key = format!("{}{}.{}", char::from(self.tag), self.place, data.len());
                let confirm = wire::memcached::client::Confirmation::Reply;
                wire::memcached::client::set(&mut self.out, key.as_bytes(), 0, 0, data, confirm);
            }
            Protocol::Http1 | Protocol::Resp => unreachable!("no script speaks it"),
        }
    }

    /// Appends a request that moves no data: FLUSH, GETATTR, or a get of a missing key.
    pub fn sync(&mut self) {
        self.place += 1;
        let xid = self.xid();
        match self.protocol {
            Protocol::Nbd => wire::nbd::client::flush(&mut self.out, self.place << 32),
            Protocol::Nfs => self.call(|calls, handle| calls.getattr(xid, handle)),
            Protocol::Memcached => {
                wire::memcached::client::get(&mut self.out, &[&[self.tag, b'-']]);
            }
            Protocol::Http1 | Protocol::Resp => unreachable!("no script speaks it"),
        }
    }

    /// Appends an NFS call with the handle of this connection.
    pub fn call(&mut self, encode: impl FnOnce(&mut CallEncoder<'_>, &[u8])) {
        encode(&mut CallEncoder::new(&mut self.out, Credentials::None), &self.handle);
    }

    /// Appends an NBD command without data, of any kind and length.
    pub fn command(&mut self, kind: u16, len: u32) {
        self.place += 1;
        self.out.extend(wire::nbd::protocol::REQUEST_MAGIC.to_be_bytes());
        self.out.extend([0, 0]);
        self.out.extend(kind.to_be_bytes());
        self.out.extend((self.place << 32).to_be_bytes());
        self.out.extend(0u64.to_be_bytes());
        self.out.extend(len.to_be_bytes());
    }

    pub fn send(&mut self) -> io::Result<()> {
        let sent = self.stream.write_all(&self.out);
        self.out.clear();
        sent
    }

    /// Returns the next reply; answers calls of the server on the way.
    pub fn reply(&mut self) -> io::Result<ReplySeen> {
        loop {
            if let Some((len, reply)) = self.frame() {
                self.used += len;
                match reply {
                    Some(reply) => return Ok(reply),
                    None => self.send()?,
                }
                continue;
            }
            self.input.drain(..std::mem::take(&mut self.used));
            let at = self.input.len();
            self.input.resize(at + (256 << 10), 0);
            let count = self.stream.read(&mut self.input[at..]);
            self.input.truncate(at + count.as_ref().map_or(0, |count| *count));
            if count? == 0 {
                return Err(ended());
            }
        }
    }

    /// Returns the length of the first message, and the reply. There is none for a call of the server,
    /// whose answer is then appended.
    fn frame(&mut self) -> Option<(usize, Option<ReplySeen>)> {
        let input = &self.input[self.used..];
        let front = |from: usize| input[from.min(input.len())..].iter().take(8).copied().collect();
        match self.protocol {
            Protocol::Nbd => {
                let head = input.get(..16)?;
                let failed = word(head, 4) != 0;
                let len = if failed { 16 } else { 16 + word(head, 12) as usize };
                let place = u64::from(word(head, 8));
                (input.len() >= len).then(|| (len, Some(ReplySeen { place, data: front(16) })))
            }
            Protocol::Nfs => {
                let len = 4 + (word(input.get(..4)?, 0) & 0x7fff_ffff) as usize;
                let message = input.get(..len)?;
                let place = u64::from(word(message, 4));
                if word(message, 8) == 1 {
                    // Behind mark, xid, kind, four words of acceptance, status, attributes, count, end,
                    // length.
                    return Some((len, Some(ReplySeen { place, data: front(28 + 20) })));
                }
                let words = [24 | 1 << 31, word(message, 4), 1, 0, 0, 0, 0];
                self.out.extend(words.iter().flat_map(|word: &u32| word.to_be_bytes()));
                Some((len, None))
            }
            Protocol::Memcached => memcached_reply(input)
                .map(|(len, data)| (len, Some(ReplySeen { place: 0, data: front(data) }))),
            Protocol::Http1 | Protocol::Resp => unreachable!("no script speaks it"),
        }
    }

    /// Returns true if the reply to a read has the expected data.
    pub fn is_right(&self, reply: &ReplySeen, place: u64) -> bool {
        let named = self.protocol == Protocol::Memcached || reply.place == place;
        named && reply.data == data_head(place * u64::from(BLOCK), 8)
    }
}

/// Returns the length of a reply, and the offset of the data of its first value.
fn memcached_reply(input: &[u8]) -> Option<(usize, usize)> {
    let mut at = 0;
    let mut data = 0;
    loop {
        let end = at + input[at..].iter().position(|byte| *byte == b'\n')? + 1;
        let line = std::str::from_utf8(&input[at..end]).unwrap_or_default();
        let mut words = line.split_whitespace();
        let name = words.next();
        let Some("VALUE" | "VA") = name else { return Some((end, data)) };
        let size = if name == Some("VA") { words.next() } else { words.nth(2) };
        let size: usize = size.and_then(|size| size.parse().ok()).unwrap_or(0);
        data = if data == 0 { end } else { data };
        at = end + size + 2;
        if input.len() < at {
            return None;
        }
        if name == Some("VA") {
            return Some((at, data));
        }
    }
}

/// Opens an export.
pub fn shake_hands(stream: &mut TcpStream, export: &[u8]) -> io::Result<()> {
    let mut handshake = ClientHandshake::new(export, ExportOption::Go);
    let mut input = Vec::new();
    let mut out = Vec::new();
    loop {
        match handshake.advance(&input, &mut out).map_err(|bad| io::Error::other(bad.to_string()))? {
            HandshakeStep::NeedMore { at_least } => {
                stream.write_all(&out)?;
                out.clear();
                let start = input.len();
                input.resize(at_least.max(start + 1), 0);
                stream.read_exact(&mut input[start..])?;
            }
            HandshakeStep::Used(used) => drop(input.drain(..used)),
            HandshakeStep::Done { .. } => return Ok(()),
        }
    }
}

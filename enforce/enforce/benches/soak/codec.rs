//! The client side of the three protocols: crate `wire` encodes and frames; contents are checked
//! elsewhere.

use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::TcpStream;
use wire::rpc::client::{CallEncoder, Credentials, StableHow};
use wire::rpc::decode;
use wire::{Extent, ParseStep, ParserLimits, ProtocolParser, memcached, nbd, rpc};

/// Bytes of a block of a volume or file.
pub const BLOCK: usize = 4096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Protocol {
    Nbd,
    Memcached,
    Nfs,
}

impl Protocol {
    pub fn name(self) -> &'static str {
        ["nbd", "memcached", "nfs"][self as usize]
    }
}

/// A complete reply.
#[derive(Debug)]
pub struct Answer {
    pub id: u64,
    pub error: bool,
    /// Data of a read.
    pub data: Option<Vec<u8>>,
}

/// One connection, after its handshake.
pub struct ClientCodec {
    pub protocol: Protocol,
    wire: Box<dyn ProtocolParser>,
    /// Handle of the file (NFS).
    handle: Vec<u8>,
    /// Prefix of keys (memcached).
    owner: u32,
    /// First byte of the blocks in the volume.
    base: u64,
    ids: u64,
    input: Vec<u8>,
    /// Incomplete replies: heads and their bytes so far.
    parts: HashMap<u64, Vec<(usize, Vec<u8>)>>,
    /// Request of the latest part.
    begun: (u64, bool),
    /// Extent of the incoming part.
    pending: Option<Extent>,
}

fn broken(text: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, text.to_owned())
}

impl ClientCodec {
    fn new(protocol: Protocol, wire: Box<dyn ProtocolParser>, owner: u32, base: u64) -> Self {
        Self {
            protocol,
            wire,
            handle: Vec::new(),
            owner,
            base,
            ids: 100,
            input: Vec::new(),
            parts: HashMap::new(),
            begun: (0, false),
            pending: None,
        }
    }

    /// Creates a codec for memcached, which has no handshake.
    pub fn memcached(owner: u32) -> Self {
        let mut codec = Self::new(
            Protocol::Memcached,
            Box::new(memcached::MemcachedParser::new(ParserLimits::MEMCACHED)),
            owner,
            0,
        );
        codec.ids = 0;
        codec
    }

    /// Opens an export; `stream` blocks for answers.
    pub fn nbd(stream: &mut TcpStream, base: u64, structured: bool) -> io::Result<Self> {
        let mut handshake = nbd::client::ClientHandshake::new(b"", nbd::client::ExportOption::Go);
        if structured {
            handshake = handshake.with_structured_replies();
        }
        let mut input = Vec::new();
        let mut out = Vec::new();
        loop {
            match handshake.advance(&input, &mut out).map_err(|bad| broken(&bad.to_string()))? {
                nbd::client::HandshakeStep::NeedMore { at_least } => {
                    stream.write_all(&out)?;
                    out.clear();
                    let start = input.len();
                    input.resize(at_least, 0);
                    stream.read_exact(&mut input[start..])?;
                }
                nbd::client::HandshakeStep::Used(used) => drop(input.drain(..used)),
                nbd::client::HandshakeStep::Done { export, .. } => {
                    let wire = nbd::NbdParser::after_handshake(ParserLimits::NBD, export.framing);
                    return Ok(Self::new(Protocol::Nbd, Box::new(wire), 0, base));
                }
            }
        }
    }

    /// Mounts `path` over `mount` and opens a file over `stream`.
    pub fn nfs(path: &str, mount: &mut TcpStream, stream: &mut TcpStream, owner: u32) -> io::Result<Self> {
        let fresh = || Self::new(Protocol::Nfs, Box::new(rpc::RpcParser::new(ParserLimits::RPC)), owner, 0);
        let reply = fresh().call(mount, |calls, xid| calls.mount(xid, path.as_bytes()))?;
        let root = decode::mount(&reply).map_err(|bad| broken(&bad.to_string()))?;
        let mut codec = fresh();
        let name = format!("file{owner}");
        let create =
            |calls: &mut CallEncoder<'_>, xid| calls.create(xid, &root, name.as_bytes(), 0o644, None);
        let reply = codec.call(stream, create)?;
        codec.handle = decode::create(&reply).map_err(|bad| broken(&bad.to_string()))?.handle;
        Ok(codec)
    }

    /// Makes one call, and returns the body of its reply.
    fn call(
        &mut self,
        stream: &mut TcpStream,
        encode: impl FnOnce(&mut CallEncoder<'_>, u32),
    ) -> io::Result<Vec<u8>> {
        let mut out = Vec::new();
        self.ids += 1;
        encode(&mut CallEncoder::new(&mut out, auth()), xid(self.ids));
        self.watch(&out);
        stream.write_all(&out)?;
        let mut piece = [0; 4096];
        loop {
            let read = stream.read(&mut piece)?;
            if read == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.input.extend_from_slice(&piece[..read]);
            if let Some((_, parts)) = self.complete()? {
                let record: Vec<u8> = parts.into_iter().flat_map(|(_, bytes)| bytes).collect();
                return Ok(decode::record_body(&record)
                    .map_err(|bad| broken(&bad.to_string()))?
                    .into_owned());
            }
        }
    }

    /// Parses sent bytes, so that replies can be framed.
    fn watch(&mut self, out: &[u8]) -> u64 {
        match self.wire.next_request(out).expect("what this client says is well-formed") {
            ParseStep::Message { message, .. } => message.id,
            _ => unreachable!("requests are watched whole"),
        }
    }

    /// Appends a write of blocks from `first` on; returns the id that the answer will carry.
    pub fn write(&mut self, out: &mut Vec<u8>, first: usize, data: &[u8]) -> u64 {
        let start = out.len();
        let offset = self.base + (first * BLOCK) as u64;
        self.ids += 1;
        match self.protocol {
            Protocol::Nbd => nbd::client::write(out, self.ids, offset, data),
            Protocol::Nfs => {
                let mut calls = CallEncoder::new(out, auth());
                calls.write(xid(self.ids), &self.handle, offset, StableHow::Unstable, data);
            }
            Protocol::Memcached => {
                let key = key(self.owner, first);
                match first % 3 {
                    0 => memcached::client::meta_set(out, &key, data, &[]),
                    _ => {
                        memcached::client::set(out, &key, 0, 0, data, memcached::client::Confirmation::Reply);
                    }
                }
            }
        }
        self.watch(&out[start..])
    }

    /// Appends a read of `len` bytes from block `first` on; returns its id.
    pub fn read(&mut self, out: &mut Vec<u8>, first: usize, len: usize) -> u64 {
        let start = out.len();
        let offset = self.base + (first * BLOCK) as u64;
        self.ids += 1;
        let len = u32::try_from(len).expect("requests are short");
        match self.protocol {
            Protocol::Nbd => nbd::client::read(out, self.ids, offset, len),
            Protocol::Nfs => CallEncoder::new(out, auth()).read(xid(self.ids), &self.handle, offset, len),
            Protocol::Memcached => {
                let key = key(self.owner, first);
                match first % 2 {
                    0 => memcached::client::meta_get(out, &key, &["v"]),
                    _ => memcached::client::get(out, &[&key]),
                }
            }
        }
        self.watch(&out[start..])
    }

    /// Takes bytes from the server.
    pub fn feed(&mut self, bytes: &[u8]) {
        self.input.extend_from_slice(bytes);
    }

    /// Returns the next complete answer.
    pub fn answer(&mut self) -> io::Result<Option<Answer>> {
        let Some(((id, error), parts)) = self.complete()? else { return Ok(None) };
        match self.protocol {
            Protocol::Nbd => {
                let data = parts.iter().flat_map(|(head, bytes)| &bytes[*head..]).copied().collect();
                Ok(Some(Answer { id, error, data: Some(data) }))
            }
            Protocol::Memcached => {
                let value = |(head, bytes): &(usize, Vec<u8>)| match bytes.get(..2) {
                    Some(b"VA") => Some(bytes[*head..bytes.len() - 2].to_vec()),
                    _ => None,
                };
                Ok(Some(Answer { id, error, data: parts.iter().find_map(value) }))
            }
            Protocol::Nfs => {
                let record: Vec<u8> = parts.into_iter().flat_map(|(_, bytes)| bytes).collect();
                let body = decode::record_body(&record).map_err(|bad| broken(&bad.to_string()))?;
                // Results of WRITE do not decode as those of READ, and are not needed.
                let data = decode::read(&body).ok().map(|read| read.data.to_vec());
                Ok(Some(Answer { id, error, data }))
            }
        }
    }

    /// Returns a complete reply: its request, a flag for failure, and its parts with their heads.
    #[allow(clippy::type_complexity, reason = "one caller takes it apart at once")]
    fn complete(&mut self) -> io::Result<Option<((u64, bool), Vec<(usize, Vec<u8>)>)>> {
        loop {
            if self.pending.is_none() && !self.next()? {
                return Ok(None);
            }
            let Some(extent) = self.pending else { return Ok(None) };
            let len = usize::try_from(extent.len.0).expect("replies are short");
            if self.input.len() < len {
                return Ok(None);
            }
            self.pending = None;
            let bytes = self.input.drain(..len).collect();
            let (id, error) = self.begun;
            self.parts.entry(id).or_default().push((extent.head, bytes));
            if extent.last {
                return Ok(self.parts.remove(&id).map(|parts| ((id, error), parts)));
            }
        }
    }

    /// Parses the head of the next part. Returns false if it is incomplete.
    fn next(&mut self) -> io::Result<bool> {
        if self.input.is_empty() {
            return Ok(false);
        }
        let extent = match self.wire.next_reply(&self.input).map_err(|bad| broken(&bad.to_string()))? {
            ParseStep::NeedMore { .. } => return Ok(false),
            ParseStep::Continued { extent } => extent,
            ParseStep::Message { message, extent } => {
                self.begun = (message.id, message.is_error);
                extent
            }
        };
        self.pending = Some(extent);
        Ok(true)
    }
}

fn auth() -> Credentials<'static> {
    Credentials::Unix { machine: "soak", uid: 0, gid: 0 }
}

fn xid(id: u64) -> u32 {
    u32::try_from(id).expect("a connection has fewer calls than 2^32")
}

fn key(owner: u32, block: usize) -> Vec<u8> {
    format!("w{owner}-b{block}").into_bytes()
}

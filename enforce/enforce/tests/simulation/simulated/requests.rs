//! Requests of simulated clients: ordinary ones, and invalid or abusive ones.

use super::dice::Dice;
use super::nbd_reader::EXPORT_SIZE;
use super::reader::pattern;
use super::resp_reader::array;
use super::rpc_reader::{record_of, words};
use wire::Protocol;
use wire::memcached::client::{Confirmation, get, meta_get, meta_set, noop, set};
use wire::rpc::client::{CallEncoder, Credentials, StableHow};

/// Common state of the requests of one connection.
#[derive(Debug)]
pub struct RequestSource {
    protocol: Protocol,
    sizes: (u64, u64),
    /// True if a memcached client uses the binary protocol.
    is_binary: bool,
    /// True if an NBD client requested extended headers, and the server agreed.
    is_extended: bool,
    /// Options that an NBD client still has to send; the handshake is over behind the last.
    options: Vec<u32>,
    /// Number of answers in the handshake, including the greeting.
    pub handshake_answers: u64,
    is_new: bool,
    next_id: u32,
}

impl RequestSource {
    /// Creates the requests of a new connection; `nbd` are the forms of replies that the server supports.
    pub fn new(protocol: Protocol, sizes: (u64, u64), nbd: (bool, bool), dice: &mut Dice) -> Self {
        let mut options = Vec::new();
        let mut is_extended = false;
        if protocol == Protocol::Nbd {
            options.push(dice.pick(&[7, 7, 1]));
            if dice.one_in(4) {
                options.push(3);
            }
            if dice.one_in(2) {
                options.push(8);
            }
            if dice.one_in(3) {
                options.push(11);
                is_extended = nbd.1;
            }
        }
        let is_binary = dice.one_in(3);
        let handshake_answers = if options.is_empty() { 0 } else { options.len() as u64 + 1 };
        Self { protocol, sizes, is_binary, is_extended, options, handshake_answers, is_new: true, next_id: 1 }
    }

    /// Returns true during the handshake.
    pub fn is_in_handshake(&self) -> bool {
        !self.options.is_empty()
    }

    /// Returns the next ordinary request.
    pub fn next_request(&mut self, dice: &mut Dice) -> Vec<u8> {
        self.next_id += 1;
        let mut out = Vec::new();
        match self.protocol {
            Protocol::Nbd if self.is_in_handshake() => self.option(&mut out, false),
            Protocol::Nbd => {
                let size = dice.length(self.sizes.0, self.sizes.1);
                let kind = dice.pick(&[0, 0, 0, 1, 1, 3, 4, 6, 5]);
                let offset = dice.below(EXPORT_SIZE - (8 << 20));
                let len = match kind {
                    3 => 0,
                    // Most of these move nothing, regardless of their length.
                    4..=6 => dice.pick(&[4096, 1 << 20, 4 << 20]),
                    _ => size,
                };
                self.nbd_command(&mut out, kind, offset, len, usize::MAX);
            }
            Protocol::Memcached if self.is_binary => self.binary(&mut out, dice),
            Protocol::Memcached => self.text(&mut out, dice),
            Protocol::Nfs => self.call(&mut out, dice),
            Protocol::Resp => self.resp(&mut out, dice),
            Protocol::Http1 => unreachable!("no front has this protocol"),
        }
        out
    }

    /// Returns the last request of a client that leaves, if the protocol has one.
    pub fn goodbye(&mut self) -> Vec<u8> {
        let mut out = Vec::new();
        if self.protocol == Protocol::Nbd && !self.is_in_handshake() {
            self.nbd_command(&mut out, 2, 0, 0, usize::MAX);
        }
        out
    }

    fn option(&mut self, out: &mut Vec<u8>, is_refused: bool) {
        if self.is_new {
            out.extend([0, 0, 0, 3]);
            self.is_new = false;
        }
        let option = self.options.pop().expect("the handshake is not over");
        let name: &[u8] = if is_refused { b"bad" } else { b"good disk" };
        let mut data = Vec::new();
        match option {
            7 => {
                data.extend([0, 0, 0, 9]);
                data.extend(name);
                data.extend([0, 0]);
            }
            1 => data.extend(name),
            _ => {}
        }
        out.extend(b"IHAVEOPT");
        out.extend(words(&[option, u32::try_from(data.len()).expect("it is short")]));
        out.extend(data);
    }

    /// Appends a command with at most this many bytes of its payload.
    fn nbd_command(&mut self, out: &mut Vec<u8>, kind: u16, offset: u64, len: u64, payload_max: usize) {
        let magic: u32 = if self.is_extended { 0x21E4_1C71 } else { 0x2560_9513 };
        out.extend(magic.to_be_bytes());
        let flags: u16 = if self.is_extended && kind == 1 { 1 << 5 } else { 0 };
        out.extend(flags.to_be_bytes());
        out.extend(kind.to_be_bytes());
        out.extend((u64::from(self.next_id) << 8 | 0xC0).to_be_bytes());
        out.extend(offset.to_be_bytes());
        if self.is_extended {
            out.extend(len.to_be_bytes());
        } else {
            out.extend(u32::try_from(len).expect("it has 32 bits").to_be_bytes());
        }
        if kind == 1 {
            out.extend(pattern(offset, len.min(payload_max as u64)));
        }
    }

    fn key(&self, dice: &mut Dice) -> Vec<u8> {
        let size = dice.length(self.sizes.0, self.sizes.1.min(256 << 10));
        let kind = if dice.one_in(5) { 'm' } else { 'k' };
        format!("{kind}{size}_{}", self.next_id).into_bytes()
    }

    fn text(&self, out: &mut Vec<u8>, dice: &mut Dice) {
        let key = self.key(dice);
        let value = pattern(u64::from(self.next_id), dice.length(self.sizes.0, self.sizes.1.min(1 << 20)));
        let opaque = format!("O{}", self.next_id);
        match dice.below(12) {
            0..=2 => get(out, &[&key]),
            3 => get(out, &[&key, b"m1", &self.key(dice)]),
            4 | 5 => set(out, &key, 0, 0, &value, Confirmation::Reply),
            6 => set(out, &key, 0, 0, &value, Confirmation::NoReply),
            7 => meta_get(out, &key, &["v", &opaque]),
            8 => meta_get(out, &key, &["v", "q", &opaque]),
            9 => meta_set(out, &key, &value, &[if dice.one_in(2) { "q" } else { "T0" }, &opaque]),
            10 => noop(out),
            _ => {
                let line: &[u8] = dice.pick(&[
                    &b"version\r\n"[..],
                    b"delete k1_1\r\n",
                    b"delete m1 noreply\r\n",
                    b"verbosity 1 noreply\r\n",
                    b"verbosity 1\r\n",
                ]);
                out.extend(line);
            }
        }
    }

    fn resp(&self, out: &mut Vec<u8>, dice: &mut Dice) {
        let key = self.key(dice);
        let value = pattern(u64::from(self.next_id), dice.length(self.sizes.0, self.sizes.1.min(1 << 20)));
        let id = self.next_id.to_string();
        let words: &[&[u8]] = match dice.below(12) {
            0..=2 => &[b"GET", &key],
            3 | 4 => &[b"MGET", &key, b"m1", &self.key(dice)],
            5..=7 => &[b"SET", &key, &value],
            8 => &[b"ECHO", id.as_bytes()],
            9 => &[b"HGETALL", &key],
            10 if dice.one_in(4) => &[b"BLPOP", &key, b"0"],
            10 => return out.extend(b"PING\r\n"),
            _ => &[b"NOSUCH", id.as_bytes()],
        };
        out.extend(array(words));
    }

    fn binary(&self, out: &mut Vec<u8>, dice: &mut Dice) {
        let key = self.key(dice);
        let value = pattern(u64::from(self.next_id), dice.length(self.sizes.0, self.sizes.1.min(1 << 20)));
        let (opcode, extras, value): (u8, &[u8], &[u8]) = match dice.below(10) {
            0..=2 => (0x00, &[], &[]),
            3 => (0x09, &[], &[]),
            4..=6 => (0x01, &[0; 8], &value),
            7 => (0x11, &[0; 8], &value),
            8 => (0x0a, &[], &[]),
            _ => (0x0b, &[], &[]),
        };
        let key: &[u8] = if opcode == 0x0a || opcode == 0x0b { &[] } else { &key };
        out.extend([0x80, opcode, 0, u8::try_from(key.len()).expect("keys are short")]);
        out.extend([u8::try_from(extras.len()).expect("extras are short"), 0, 0, 0]);
        let body = u32::try_from(extras.len() + key.len() + value.len()).expect("values are short");
        out.extend(words(&[body, self.next_id, 0, 0]));
        for part in [extras, key, value] {
            out.extend(part);
        }
    }

    fn call(&self, out: &mut Vec<u8>, dice: &mut Dice) {
        let xid = self.next_id;
        let size = dice.length(self.sizes.0, self.sizes.1);
        let count = u32::try_from(size.min(super::rpc_reader::READ_MAX)).expect("it is short");
        let offset = dice.below(1 << 40);
        let mut record = Vec::new();
        let credentials = Credentials::Unix { machine: "here", uid: 0, gid: 0 };
        let mut encoder = CallEncoder::new(&mut record, credentials);
        let handle = b"f-17";
        match dice.below(10) {
            0..=2 => encoder.read(xid, handle, offset, count),
            3..=5 => encoder.write(xid, handle, offset, StableHow::Unstable, &pattern(offset, size)),
            6 => encoder.getattr(xid, handle),
            7 => encoder.commit(xid, handle, 0, 0),
            8 if xid < 8 => encoder.mount(xid, b"/export/gold"),
            _ => {
                let operations = compound_read(offset, count, 25);
                record = compound(xid, 3, &operations);
            }
        }
        if dice.one_in(4) {
            record = in_fragments(&record, dice);
        }
        out.extend(record);
    }

    /// Returns an invalid or abusive request, by a client's style.
    pub fn hostile(&mut self, style: super::plan::ClientStyle, dice: &mut Dice) -> Vec<u8> {
        use super::plan::ClientStyle as Style;
        self.next_id += 1;
        let mut out = Vec::new();
        if self.protocol == Protocol::Nbd && self.is_in_handshake() {
            self.option(&mut out, false);
            return out;
        }
        match (style, self.protocol) {
            (Style::Garbage, Protocol::Resp) => {
                // Most other bytes are commands that no server knows.
                out.extend(dice.pick(&[&b"*x\r\n"[..], b"\x16\x03\x01\0", b"*1\r\n$-5\r\n", b"*2\r\nx\r\n"]));
            }
            (Style::Liar | Style::HalfWriter, Protocol::Resp) => {
                // It never comes to its end: what follows would be read as lines of words.
                let len = dice.pick(&[400 << 20, 1 << 30]);
                out.extend(format!("*3\r\n$3\r\nSET\r\n$1\r\nk\r\n${len}\r\nabc").as_bytes());
            }
            (Style::Repeater | Style::Silent, Protocol::Resp) => {
                // Commands that the server does not see, and a client that says goodbye in front of others.
                let refused: &[u8] =
                    dice.pick(&[&b"SUBSCRIBE a\r\n"[..], b"BLPOP k 0\r\n", b"PING\r\n", b"NOSUCH\r\n"]);
                out.extend(refused);
            }
            (Style::Garbage, _) => {
                let len = dice.length(1, 4096);
                out = pattern(dice.next(), len);
            }
            (Style::Liar | Style::HalfWriter, Protocol::Nbd) => {
                self.nbd_command(&mut out, 1, 0, dice.pick(&[60_000, 4 << 20, u64::from(u32::MAX)]), 9000);
            }
            (Style::Liar | Style::HalfWriter, Protocol::Memcached) => {
                out.extend(
                    format!("set k {} 0 {}\r\nabc", 0, dice.pick(&[60_000, 1 << 20, 1 << 30])).as_bytes(),
                );
            }
            (Style::Liar | Style::HalfWriter, Protocol::Nfs) => {
                let record = {
                    let mut record = Vec::new();
                    let mut encoder = CallEncoder::new(&mut record, Credentials::None);
                    encoder.write(self.next_id, b"f", 0, StableHow::Unstable, &[7; 20_000]);
                    record
                };
                out.extend(&record[..dice.index(record.len())]);
            }
            (Style::Repeater, Protocol::Nfs) => {
                let mut encoder = CallEncoder::new(&mut out, Credentials::None);
                encoder.read(7, b"f", 4096, 65_536);
            }
            (Style::Repeater, Protocol::Nbd) => self.nbd_command(&mut out, 0, 4096, 4096, 0),
            (Style::Silent | Style::Repeater, Protocol::Memcached) => {
                let line: &[u8] = dice.pick(&[
                    &b"lru mode flat noreply\r\n"[..],
                    b"lru tune 10 25 0.1 2.0 noreply\r\n",
                    b"slabs automove 0 noreply\r\n",
                    b"set k 0 0 5 noreply\r\nabcde\r\n",
                    b"mg m1 v q\r\n",
                    b"delete m1 noreply\r\n",
                ]);
                out.extend(line);
            }
            (Style::Greedy, Protocol::Nfs) => {
                let mut encoder = CallEncoder::new(&mut out, Credentials::None);
                let handle: &[u8] = dice.pick(&[&b"bad"[..], b"fine"]);
                encoder.read(self.next_id, handle, 0, dice.pick(&[u32::MAX, 1 << 30, 65_536]));
            }
            (Style::Greedy, Protocol::Nbd) => {
                let kind = dice.pick(&[0, 4, 5, 6]);
                self.nbd_command(&mut out, kind, 0, dice.pick(&[u64::from(u32::MAX), 32 << 20, 4096]), 0);
            }
            (Style::Silent, Protocol::Nfs) => {
                // An answer to a call that the server never made, or READ_PLUS.
                out = if dice.one_in(2) {
                    record_of(&words(&[self.next_id, 1, 0, 0, 0, 0]))
                } else {
                    compound(self.next_id, 3, &compound_read(0, 65_536, 68))
                };
            }
            _ => out = self.next_request(dice),
        }
        out
    }
}

fn compound_read(offset: u64, count: u32, operation: u32) -> Vec<u8> {
    let mut operations = words(&[22, 4, u32::from_be_bytes(*b"f-17"), operation, 0, 0, 0, 0]);
    operations.extend(offset.to_be_bytes());
    operations.extend(words(&[count, 9, 1, 0]));
    operations
}

/// Returns an NFSv4.2 COMPOUND that announces this many operations.
fn compound(xid: u32, count: u32, operations: &[u8]) -> Vec<u8> {
    let mut body = words(&[xid, 0, 2, 100_003, 4, 1, 0, 0, 0, 0, 0, 2, count]);
    body.extend(operations);
    record_of(&body)
}

/// Splits a record into several fragments, some of them empty.
fn in_fragments(record: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut body = &record[4..];
    let mut out = Vec::new();
    for _ in 0..dice.below(3) {
        let (piece, rest) = body.split_at(dice.index(body.len() + 1));
        out.extend(u32::try_from(piece.len()).expect("pieces are short").to_be_bytes());
        out.extend(piece);
        body = rest;
    }
    out.extend(record_of(body));
    out
}

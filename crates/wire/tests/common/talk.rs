//! Well-formed conversations with what is to be recognised in them, made from random choices. Replies are written by
//! hand here: they judge the parsers.

#![allow(dead_code, unreachable_pub)]

use super::common::{Event, Side, Talk};
use proptest::prelude::*;
use tailwright_wire::nbd::client as nbd;
use tailwright_wire::rpc::client::{Auth, Calls, Stable};
use tailwright_wire::{Answer, Class};
use units::Bytes;

/// What is to be recognised: one entry a message, fragments added up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Found {
    Request { id: u64, class: Class, offset: Option<u64>, answer: Answer, len: u64 },
    Reply { id: u64, error: bool, asked: bool, last: bool, len: u64 },
}

/// Events as [`Found`]: continued pieces go to the message before them on the same side.
pub fn found(events: &[Event]) -> Vec<Found> {
    let mut found: Vec<(Side, Found)> = Vec::new();
    for event in events {
        match *event {
            Event::Request(request, extent) => found.push((
                Side::Client,
                Found::Request {
                    id: request.id,
                    class: request.class,
                    offset: request.position.map(|position| position.offset),
                    answer: request.answer,
                    len: extent.len.0,
                },
            )),
            Event::Reply(reply, extent) => found.push((
                Side::Server,
                Found::Reply {
                    id: reply.id,
                    error: reply.error,
                    asked: reply.asked,
                    last: extent.last,
                    len: extent.len.0,
                },
            )),
            Event::Continued(side, extent) => {
                let (_, message) =
                    found.iter_mut().rev().find(|(of, _)| *of == side).expect("something to continue");
                match message {
                    Found::Request { len, .. } => *len += extent.len.0,
                    Found::Reply { len, last, .. } => (*len, *last) = (*len + extent.len.0, extent.last),
                }
            }
        }
    }
    found.into_iter().map(|(_, found)| found).collect()
}

/// A conversation under construction.
#[derive(Debug, Default, Clone)]
pub struct Script {
    pub talk: Talk,
    pub found: Vec<Found>,
}

impl Script {
    fn request(&mut self, bytes: Vec<u8>, id: u64, class: Class, offset: Option<u64>, answer: Answer) {
        let len = bytes.len() as u64;
        self.found.push(Found::Request { id, class, offset, answer, len });
        self.talk.push((Side::Client, bytes));
    }

    fn reply(&mut self, bytes: Vec<u8>, id: u64, error: bool, last: bool) {
        let asked = id != u64::MAX;
        let len = bytes.len() as u64;
        self.found.push(Found::Reply { id: if asked { id } else { 0 }, error, asked, last, len });
        self.talk.push((Side::Server, bytes));
    }
}

/// One random choice: what, how long, how it is cut or answered.
pub type Choice = (u8, u16, u8);

pub fn choices() -> impl Strategy<Value = Vec<Choice>> {
    proptest::collection::vec((any::<u8>(), 0..3000u16, any::<u8>()), 0..12)
}

/// The record's body in fragments of `cut` bytes (zero: in one), an empty one among them.
fn fragments(body: &[u8], cut: u8) -> Vec<u8> {
    let size = if cut < 128 { body.len() } else { (usize::from(cut) - 127) * 9 };
    let mut out = Vec::new();
    let mut rest = body;
    while !rest.is_empty() {
        let (piece, behind) = rest.split_at(size.min(rest.len()));
        rest = behind;
        let last = if rest.is_empty() { 1 << 31 } else { 0 };
        out.extend((u32::try_from(piece.len()).unwrap() | last).to_be_bytes());
        out.extend(piece);
        if last == 0 && cut % 2 == 1 {
            out.extend(0u32.to_be_bytes());
        }
    }
    out
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

/// Calls of every kind, answered one behind the other or all at the end in reverse.
pub fn rpc(choices: &[Choice]) -> Script {
    let mut script = Script::default();
    let mut late = Vec::new();
    for (xid, &(what, size, cut)) in (7u32..).zip(choices) {
        let (offset, data) = (u64::from(size) << 20, vec![cut; usize::from(size)]);
        let (class, body) = call(what, xid, offset, &data);
        let at = (class != Class::Control).then_some(offset);
        script.request(fragments(&body, cut), xid.into(), class, at, Answer::Always);
        let bad = cut % 5 == 0;
        // Accepted, no verifier, status or the like; then whatever it is.
        let mut answer = words(&[xid, 1, 0, 0, 0, 0, u32::from(bad) * 70]);
        answer.extend(&data);
        let has_status = !matches!(what % 9, 0 | 6);
        let reply = (fragments(&answer, cut), u64::from(xid), bad && has_status);
        if what < 128 { script.reply(reply.0, reply.1, reply.2, true) } else { late.push(reply) }
    }
    for (bytes, id, error) in late.into_iter().rev() {
        script.reply(bytes, id, error, true);
    }
    script
}

fn call(what: u8, xid: u32, offset: u64, data: &[u8]) -> (Class, Vec<u8>) {
    let mut out = Vec::new();
    let auth = if what % 2 == 0 { Auth::None } else { Auth::Unix { machine: "client", uid: 7, gid: 8 } };
    let mut calls = Calls::new(&mut out, auth);
    let bytes = Bytes(data.len() as u64);
    let count = u32::try_from(data.len()).unwrap();
    let class = match what % 9 {
        0 => {
            calls.null(xid);
            Class::Control
        }
        1 => {
            calls.read(xid, b"some handle", offset, count);
            Class::Read(bytes)
        }
        2 => {
            calls.write(xid, b"some handle", offset, Stable::Unstable, data);
            Class::Write(bytes)
        }
        3 => {
            calls.lookup(xid, b"directory", b"a name");
            Class::Control
        }
        4 => {
            calls.mount(xid, b"/export");
            Class::Control
        }
        5 => {
            calls.create(xid, b"directory", b"new", 0o600, Some(4));
            Class::Control
        }
        6 => {
            calls.getport(xid, 100_003, 3);
            Class::Control
        }
        7 => return (Class::Read(bytes), compound(xid, &[&read4(offset, count)])),
        _ => return (Class::Write(bytes), compound(xid, &[&write4(offset, data), &words(&[9, 1, 0])])),
    };
    out.drain(..4);
    (class, out)
}

/// SEQUENCE, PUTFH, then `operations`.
fn compound(xid: u32, operations: &[&[u8]]) -> Vec<u8> {
    let count = u32::try_from(operations.len() + 2).unwrap();
    // Call, RPC 2, NFS 4 COMPOUND, no credentials; tag "abc", minor version.
    let mut out = words(&[xid, 0, 2, 100_003, 4, 1, 0, 0, 0, 0, 3]);
    out.extend(b"abc\0");
    out.extend(words(&[1, count, 53, 1, 2, 3, 4, 5, 6, 7, 8, 22, 5]));
    out.extend(b"12345\0\0\0");
    out.extend(operations.concat());
    out
}

fn read4(offset: u64, count: u32) -> Vec<u8> {
    let mut out = words(&[25, 1, 2, 3, 4]);
    out.extend(offset.to_be_bytes());
    out.extend(count.to_be_bytes());
    out
}

fn write4(offset: u64, data: &[u8]) -> Vec<u8> {
    let mut out = words(&[38, 1, 2, 3, 4]);
    out.extend(offset.to_be_bytes());
    out.extend(words(&[2, u32::try_from(data.len()).unwrap()]));
    out.extend(data);
    out.resize(out.len().next_multiple_of(4), 0);
    out
}

/// A handshake (how it goes is `choices[0]`) and commands.
pub fn nbd(choices: &[Choice]) -> Script {
    let mut script = Script::default();
    let Some((&(how, _, _), commands)) = choices.split_first() else { return script };
    let framing = handshake(&mut script, how);
    let mut late = Vec::new();
    for (cookie, &(what, size, extra)) in (1u64 << 40..).zip(commands) {
        let reads = command(&mut script, framing, what, cookie, size, extra);
        let mut chunks = answer(framing, reads, cookie, size, extra);
        if what < 128 { emit(&mut script, chunks.drain(..), cookie) } else { late.push((cookie, chunks)) }
    }
    // Chunks of several replies, one of each in turn.
    while late.iter().any(|(_, chunks)| !chunks.is_empty()) {
        for (cookie, chunks) in &mut late {
            let some = chunks.len().min(1);
            emit(&mut script, chunks.drain(..some), *cookie);
        }
    }
    script
}

type Chunk = (Vec<u8>, bool, bool);

fn emit(script: &mut Script, chunks: impl Iterator<Item = Chunk>, cookie: u64) {
    for (bytes, error, last) in chunks {
        script.reply(bytes, cookie, error, last);
    }
}

fn option(script: &mut Script, id: u64, option: u32, data: &[u8], replies: &[(u32, &[u8])]) {
    let mut out = b"IHAVEOPT".to_vec();
    out.extend(words(&[option, u32::try_from(data.len()).unwrap()]));
    out.extend(data);
    script.request(out, id, Class::Control, None, Answer::Always);
    for &(kind, data) in replies {
        let mut out = 0x0003_e889_0455_65a9_u64.to_be_bytes().to_vec();
        out.extend(words(&[option, kind, u32::try_from(data.len()).unwrap()]));
        out.extend(data);
        script.reply(out, id, kind >= 1 << 31, kind == 1 || kind >= 1 << 31);
    }
}

/// 0: simple, 1: structured, 2: extended.
fn handshake(script: &mut Script, how: u8) -> u8 {
    let no_zeroes = how & 4 != 0;
    let mut greeting = b"NBDMAGICIHAVEOPT".to_vec();
    greeting.extend(if no_zeroes { [0, 3] } else { [0, 1] });
    script.reply(greeting, u64::MAX, false, true);
    script.request(words(&[1 + u32::from(no_zeroes) * 2]), 0, Class::Control, None, Answer::Never);
    option(script, 0, 5, &[], &[(0x8000_0001, b"no")]);
    let framing = how % 3;
    match framing {
        0 => option(script, 1, 8, &[], &[(0x8000_0002, b"")]),
        1 => option(script, 1, 8, &[], &[(1, b"")]),
        _ => option(script, 1, 11, &[], &[(1, b"")]),
    }
    option(script, 2, 3, &[], &[(2, b"\0\0\0\x04disk"), (2, b"\0\0\0\x03two"), (1, b"")]);
    let go = [&4u32.to_be_bytes()[..], b"disk", &[0; 2]].concat();
    if how & 8 == 0 {
        option(script, 3, 7, &go, &[(0x8000_0006, b"no such")]);
        option(script, 4, 7, &go, &[(3, &[0; 12]), (1, b"")]);
    } else {
        let mut name = b"IHAVEOPT".to_vec();
        name.extend(words(&[1, 4]));
        name.extend(b"disk");
        script.request(name, 3, Class::Control, None, Answer::Always);
        script.reply(vec![0; if no_zeroes { 10 } else { 134 }], 3, false, true);
    }
    framing
}

/// Appends a command; whether it reads.
fn command(script: &mut Script, framing: u8, what: u8, cookie: u64, size: u16, extra: u8) -> bool {
    let offset = u64::from(extra) << 30;
    let (class, kind) = match what % 5 {
        0 => (Class::Read(Bytes(size.into())), 0u16),
        1 => (Class::Write(Bytes(size.into())), 1),
        2 => (Class::Control, 3),
        3 => (Class::Control, 4),
        _ => (Class::Write(Bytes(size.into())), 6),
    };
    let data = vec![extra; if kind == 1 { size.into() } else { 0 }];
    let mut out = Vec::new();
    match (framing, kind) {
        (2, _) => {
            out.extend(0x21e4_1c71_u32.to_be_bytes());
            out.extend([0, if kind == 1 { 1 << 5 } else { 0 }]);
            out.extend(kind.to_be_bytes());
            out.extend([cookie, offset, size.into()].iter().flat_map(|word| word.to_be_bytes()));
            out.extend(data);
        }
        (_, 0) => nbd::read(&mut out, cookie, offset, size.into()),
        (_, 1) => nbd::write(&mut out, cookie, offset, &data),
        _ => {
            nbd::read(&mut out, cookie, offset, size.into());
            out[6..8].copy_from_slice(&kind.to_be_bytes());
        }
    }
    let at = (class != Class::Control).then_some(offset);
    script.request(out, cookie, class, at, Answer::Always);
    kind == 0
}

fn answer(framing: u8, reads: bool, cookie: u64, size: u16, extra: u8) -> Vec<Chunk> {
    let error = extra % 3 == 0;
    let data = vec![extra; if reads && !error { size.into() } else { 0 }];
    if framing == 0 || (framing == 1 && (!reads || error)) {
        let mut out = words(&[0x6744_6698, u32::from(error) * 5]);
        out.extend(cookie.to_be_bytes());
        out.extend(data);
        return vec![(out, error, true)];
    }
    let chunk = |flags: u16, kind: u16, payload: &[u8]| {
        let magic: u32 = if framing == 1 { 0x668e_33ef } else { 0x6e8a_278c };
        let mut out = magic.to_be_bytes().to_vec();
        out.extend([flags.to_be_bytes(), kind.to_be_bytes()].concat());
        out.extend(cookie.to_be_bytes());
        let len = u32::try_from(payload.len()).unwrap();
        if framing == 1 {
            out.extend(len.to_be_bytes())
        } else {
            out.extend([0; 8]);
            out.extend(u64::from(len).to_be_bytes())
        }
        out.extend(payload);
        (out, kind >= 1 << 15, flags & 1 == 1)
    };
    let mut chunks: Vec<Chunk> =
        data.chunks(1000).map(|piece| chunk(0, 1, &[&[0; 8], piece].concat())).collect();
    chunks.push(if error { chunk(1, 1 << 15 | 1, &[0; 6]) } else { chunk(1, 0, &[]) });
    chunks
}

/// Text and meta commands or binary ones, as `choices[0]` says.
pub fn memcached(choices: &[Choice]) -> Script {
    let mut script = Script::default();
    let Some((&(how, _, _), commands)) = choices.split_first() else { return script };
    let mut late = Vec::new();
    let mut quiet = false;
    for (id, &(mut what, size, extra)) in (0u64..).zip(commands) {
        if quiet && what % 12 == 1 {
            // An error behind quiet requests could be that of any of them: a no-op instead.
            what = if what < 128 { 9 } else { 141 };
        }
        let data = vec![b'a' + extra % 26; size.into()];
        let (class, answer, said, replies) =
            if how % 3 == 0 { binary(what, &data, u32::from(extra)) } else { text(what, &data, id, extra) };
        script.request(said, id, class, None, answer);
        quiet = answer == Answer::Sometimes || (quiet && answer == Answer::Never);
        late.extend(replies.into_iter().map(|reply| (id, reply)));
        // Replies come in order: either they have caught up, or they all wait.
        if what >= 128 {
            late.drain(..).for_each(|(id, (bytes, error, last))| script.reply(bytes, id, error, last));
        }
    }
    late.drain(..).for_each(|(id, (bytes, error, last))| script.reply(bytes, id, error, last));
    script
}

type Exchange = (Class, Answer, Vec<u8>, Vec<Chunk>);

fn text(what: u8, data: &[u8], id: u64, extra: u8) -> Exchange {
    let (len, read) = (data.len(), Class::Read(Bytes(0)));
    let line = |text: &str| (text.as_bytes().to_vec(), text.starts_with("SERVER_ERROR"), true);
    let with = |head: &str, last| ([head.as_bytes(), data, b"\r\n"].concat(), false, last);
    let hit = extra % 2 == 0;
    let written = Class::Write(Bytes(len as u64));
    match what % 12 {
        0 => {
            let value = with(&format!("VALUE key 0 {len}\r\n"), false);
            let mut replies = vec![value; usize::from(extra % 3)];
            replies.push(line("END\r\n"));
            (read, Answer::Always, b"get key key\r\n".to_vec(), replies)
        }
        1 => (read, Answer::Always, b"gets key \n".to_vec(), vec![line("SERVER_ERROR out of memory\r\n")]),
        2 => (
            written,
            Answer::Always,
            with(&format!("set key 0 0 {len}\r\n"), true).0,
            vec![line("STORED\r\n")],
        ),
        3 => (written, Answer::Never, with(&format!("cas key 0 0 {len} 99 noreply\r\n"), true).0, vec![]),
        4 => (Class::Control, Answer::Never, b"delete key noreply\r\n".to_vec(), vec![]),
        5 => (Class::Control, Answer::Always, b"incr key 1\r\n".to_vec(), vec![line("NOT_FOUND\r\n")]),
        6 => (
            Class::Control,
            Answer::Always,
            b"stats\r\n".to_vec(),
            vec![(b"STAT a 1\r\n".to_vec(), false, false), line("END\r\n")],
        ),
        7 => {
            let said = format!("mg key v q O{id}\r\n").into_bytes();
            let replies = if hit { vec![with(&format!("VA {len} O{id}\r\n"), true)] } else { vec![] };
            (read, Answer::Sometimes, said, replies)
        }
        8 => {
            let said = with(&format!("ms key {len} q O{id}\r\n"), true).0;
            (
                written,
                Answer::Sometimes,
                said,
                if hit { vec![line(&format!("NS O{id}\r\n"))] } else { vec![] },
            )
        }
        9 => (Class::Control, Answer::Always, b"mn\r\n".to_vec(), vec![line("MN\r\n")]),
        10 => (
            read,
            Answer::Always,
            b"mg key v\r\n".to_vec(),
            vec![if hit { with(&format!("VA {len}\r\n"), true) } else { line("EN\r\n") }],
        ),
        _ => (written, Answer::Always, with(&format!("ms key {len} T9\r\n"), true).0, vec![line("HD\r\n")]),
    }
}

fn binary(what: u8, data: &[u8], opaque: u32) -> Exchange {
    let message = |magic: u8, opcode: u8, status: u16, extras: usize, key: &[u8], data: &[u8]| {
        let mut out = vec![magic, opcode];
        out.extend(u16::try_from(key.len()).unwrap().to_be_bytes());
        out.extend([u8::try_from(extras).unwrap(), 0]);
        out.extend(status.to_be_bytes());
        out.extend(words(&[u32::try_from(extras + key.len() + data.len()).unwrap(), opaque, 0, 0]));
        out.extend(vec![0; extras]);
        [&out, key, data].concat()
    };
    let hit = opaque % 2 == 0;
    let written = Class::Write(Bytes(data.len() as u64));
    match what % 6 {
        0 => (
            Class::Read(Bytes(0)),
            Answer::Always,
            message(0x80, 0, 0, 0, b"key", b""),
            vec![(message(0x81, 0, 0, 4, b"", data), false, true)],
        ),
        1 => (
            written,
            Answer::Always,
            message(0x80, 1, 0, 8, b"key", data),
            vec![(message(0x81, 1, 0x82, 0, b"", b"no memory"), true, true)],
        ),
        2 => (
            Class::Control,
            Answer::Always,
            message(0x80, 0x0a, 0, 0, b"", b""),
            vec![(message(0x81, 0x0a, 0, 0, b"", b""), false, true)],
        ),
        3 => {
            let item = (message(0x81, 0x10, 0, 0, b"name", b"value"), false, false);
            (
                Class::Control,
                Answer::Always,
                message(0x80, 0x10, 0, 0, b"", b""),
                vec![item, (message(0x81, 0x10, 0, 0, b"", b""), false, true)],
            )
        }
        4 => {
            let replies = vec![(message(0x81, 0x04, 1, 0, b"", b"Not found"), false, true)];
            (Class::Control, Answer::Always, message(0x80, 0x04, 0, 0, b"key", b""), replies)
        }
        _ => {
            let replies =
                if hit { vec![(message(0x81, 0x09, 0, 4, b"", data), false, true)] } else { vec![] };
            (Class::Read(Bytes(0)), Answer::Sometimes, message(0x80, 0x09, 0, 0, b"key", b""), replies)
        }
    }
}

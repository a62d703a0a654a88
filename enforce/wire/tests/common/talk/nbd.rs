//! NBD from the greeting on.

use super::{Choice, Chunk, Script, words};
use units::Bytes;
use wire::nbd::client;
use wire::{ReplyExpectation, RequestClass};

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

fn emit(script: &mut Script, chunks: impl Iterator<Item = Chunk>, cookie: u64) {
    for (bytes, error, last) in chunks {
        script.reply(bytes, cookie, error, last);
    }
}

fn option(script: &mut Script, id: u64, option: u32, data: &[u8], replies: &[(u32, &[u8])]) {
    let mut out = b"IHAVEOPT".to_vec();
    out.extend(words(&[option, u32::try_from(data.len()).unwrap()]));
    out.extend(data);
    script.request(out, id, RequestClass::Control, None, ReplyExpectation::Always);
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
    script.request(
        words(&[1 + u32::from(no_zeroes) * 2]),
        0,
        RequestClass::Control,
        None,
        ReplyExpectation::Never,
    );
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
        script.request(name, 3, RequestClass::Control, None, ReplyExpectation::Always);
        script.reply(vec![0; if no_zeroes { 10 } else { 134 }], 3, false, true);
    }
    framing
}

/// Appends a command; whether it reads.
fn command(script: &mut Script, framing: u8, what: u8, cookie: u64, size: u16, extra: u8) -> bool {
    let offset = u64::from(extra) << 30;
    let (class, kind) = match what % 5 {
        0 => (RequestClass::Read(Bytes(size.into())), 0u16),
        1 => (RequestClass::Write(Bytes(size.into())), 1),
        2 => (RequestClass::Control, 3),
        3 => (RequestClass::Write(Bytes(size.into())), 4),
        _ => (RequestClass::Write(Bytes(size.into())), 6),
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
        (_, 0) => client::read(&mut out, cookie, offset, size.into()),
        (_, 1) => client::write(&mut out, cookie, offset, &data),
        _ => {
            client::read(&mut out, cookie, offset, size.into());
            out[6..8].copy_from_slice(&kind.to_be_bytes());
        }
    }
    let at = (class != RequestClass::Control).then_some(offset);
    script.request(out, cookie, class, at, ReplyExpectation::Always);
    kind == 0
}

fn answer(framing: u8, reads: bool, cookie: u64, size: u16, extra: u8) -> Vec<Chunk> {
    let error = extra.is_multiple_of(3);
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
            out.extend(len.to_be_bytes());
        } else {
            out.extend([0; 8]);
            out.extend(u64::from(len).to_be_bytes());
        }
        out.extend(payload);
        (out, kind >= 1 << 15, flags & 1 == 1)
    };
    let mut chunks: Vec<Chunk> =
        data.chunks(1000).map(|piece| chunk(0, 1, &[&[0; 8], piece].concat())).collect();
    chunks.push(if error { chunk(1, 1 << 15 | 1, &[0; 6]) } else { chunk(1, 0, &[]) });
    chunks
}

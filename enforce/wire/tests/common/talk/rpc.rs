//! CallEncoder of SunRPC programs.

use super::{Choice, Script, words};
use units::Bytes;
use wire::rpc::client::{CallEncoder, Credentials, StableHow};
use wire::{ReplyExpectation, RequestClass};

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

/// CallEncoder of every kind, answered one behind the other or all at the end in reverse.
pub fn rpc(choices: &[Choice]) -> Script {
    let mut script = Script::default();
    let mut late = Vec::new();
    for (xid, &(what, size, cut)) in (7u32..).zip(choices) {
        if what % 12 == 11 {
            callback(&mut script, cut);
            continue;
        }
        let offset = u64::from(size) << 20;
        let data = vec![cut; usize::from(size)];
        let (class, body) = call(what, xid, offset, &data);
        let at = (class != RequestClass::Control).then_some(offset);
        script.request(fragments(&body, cut), xid.into(), class, at, ReplyExpectation::Always);
        let bad = cut.is_multiple_of(5);
        // Accepted, no verifier, status or the like; then whatever it is.
        let mut answer = words(&[xid, 1, 0, 0, 0, 0, u32::from(bad) * 70]);
        if what % 12 == 4 {
            // The root that MOUNT grants.
            answer.extend(words(&[8, 1, 2]));
        }
        answer.extend(&data);
        let has_status = !matches!(what % 12, 0 | 6);
        let reply = (fragments(&answer, cut), u64::from(xid), bad && has_status);
        if what < 128 { script.reply(reply.0, reply.1, reply.2, true) } else { late.push(reply) }
    }
    for (bytes, id, error) in late.into_iter().rev() {
        script.reply(bytes, id, error, true);
    }
    script
}

fn call(what: u8, xid: u32, offset: u64, data: &[u8]) -> (RequestClass, Vec<u8>) {
    let mut out = Vec::new();
    let auth = if what.is_multiple_of(2) {
        Credentials::None
    } else {
        Credentials::Unix { machine: "client", uid: 7, gid: 8 }
    };
    let mut calls = CallEncoder::new(&mut out, auth);
    let bytes = Bytes(data.len() as u64);
    let count = u32::try_from(data.len()).unwrap();
    let class = match what % 12 {
        0 => {
            calls.null(xid);
            RequestClass::Control
        }
        1 => {
            calls.read(xid, b"some handle", offset, count);
            RequestClass::Read(bytes)
        }
        2 => {
            calls.write(xid, b"some handle", offset, StableHow::Unstable, data);
            RequestClass::Write(bytes)
        }
        3 => {
            calls.lookup(xid, b"directory", b"a name");
            RequestClass::Control
        }
        4 => {
            calls.mount(xid, b"/export");
            RequestClass::Control
        }
        5 => {
            calls.create(xid, b"directory", b"new", 0o600, Some(4));
            RequestClass::Control
        }
        6 => {
            calls.getport(xid, 100_003, 3);
            RequestClass::Control
        }
        7 => return (RequestClass::Read(bytes), compound(xid, &[&read4(offset, count)])),
        8 => {
            return (RequestClass::Write(bytes), compound(xid, &[&write4(offset, data), &words(&[9, 1, 0])]));
        }
        // OPEN by name without creating, GETFH, then READ_PLUS.
        9 => {
            let mut open = words(&[18, 1, 2, 3, 0, 4, 3]);
            open.extend(b"own\0");
            open.extend(words(&[0, 0, 4]));
            open.extend(b"name");
            let mut read = read4(offset, count);
            read[3] = 68;
            return (RequestClass::Read(bytes), compound(xid, &[&open, &words(&[10]), &read]));
        }
        // SETATTR of two attributes, then ALLOCATE.
        _ => {
            let setattr = words(&[34, 1, 2, 3, 4, 2, 5, 6, 8, 7, 7]);
            let mut allocate = words(&[59, 1, 2, 3, 4]);
            allocate.extend([offset, bytes.0].iter().flat_map(|word| word.to_be_bytes()));
            return (RequestClass::Write(bytes), compound(xid, &[&setattr, &allocate]));
        }
    };
    out.drain(..4);
    (class, out)
}

/// A call of the server, and the client's answer to it.
fn callback(script: &mut Script, cut: u8) {
    script.reply(fragments(&words(&[0, 0, 2, 0x4000_0000, 1, 1, 0, 0, 0, 0]), cut), u64::MAX, false, true);
    let answer = fragments(&words(&[0, 1, 0, 0, 0, 0]), cut);
    script.request(answer, 0, RequestClass::Control, None, ReplyExpectation::Never);
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

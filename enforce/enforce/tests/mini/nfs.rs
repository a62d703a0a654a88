//! MOUNT and NFSv3, as far as tests use them: a file's handle is its name. Answers are fragmented.

use super::{Store, long, take, word};
use std::io::{self, Write};
use std::net::TcpStream;
use std::sync::atomic::Ordering::SeqCst;

/// Bytes of a fragment.
const FRAGMENT: usize = 3000;

pub(super) fn serve(stream: &mut TcpStream, store: &Store) -> io::Result<()> {
    loop {
        let call = record(stream)?;
        store.seen.fetch_add(1, SeqCst);
        if word(&call, 4) != 0 {
            // An answer to a call that this server never made.
            continue;
        }
        let program = word(&call, 12);
        let procedure = word(&call, 20);
        // Credentials and verifier.
        let arguments = 32 + word(&call, 28).next_multiple_of(4) + 8;
        let arguments = &call[arguments..];
        let mut reply: Vec<u8> = call[..4].to_vec();
        words(&mut reply, &[1, 0, 0, 0, 0]);
        match (program, procedure) {
            (100_005, 1) => {
                words(&mut reply, &[0]);
                opaque(&mut reply, b"root");
                words(&mut reply, &[1, 1]);
            }
            (100_003, 8) => create(&mut reply, arguments),
            (100_003, 6) => read(&mut reply, arguments, store),
            (100_003, 7) => write(&mut reply, arguments, store),
            _ => {}
        }
        stream.write_all(&fragments(&reply))?;
    }
}

fn record(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut whole = Vec::new();
    loop {
        let mark = word(&take(stream, 4)?, 0);
        whole.extend(take(stream, mark & 0x7fff_ffff)?);
        if mark >> 31 == 1 {
            return Ok(whole);
        }
    }
}

fn fragments(body: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let count = body.len().div_ceil(FRAGMENT);
    for (number, piece) in body.chunks(FRAGMENT).enumerate() {
        let last = if number + 1 == count { 1 << 31 } else { 0 };
        words(&mut out, &[u32::try_from(piece.len()).unwrap() | last]);
        out.extend(piece);
    }
    out
}

fn words(out: &mut Vec<u8>, words: &[u32]) {
    out.extend(words.iter().flat_map(|word| word.to_be_bytes()));
}

fn opaque(out: &mut Vec<u8>, data: &[u8]) {
    words(out, &[u32::try_from(data.len()).unwrap()]);
    out.extend(data);
    out.resize(out.len().next_multiple_of(4), 0);
}

/// Splits bytes into the opaque data at the start and the rest.
fn split(bytes: &[u8]) -> (&[u8], &[u8]) {
    let len = word(bytes, 0);
    (&bytes[4..4 + len], &bytes[4 + len.next_multiple_of(4)..])
}

fn create(reply: &mut Vec<u8>, arguments: &[u8]) {
    let (_, rest) = split(arguments);
    let (name, _) = split(rest);
    words(reply, &[0, 1]);
    opaque(reply, name);
    // No attributes of the file, and none of the directory.
    words(reply, &[0, 0, 0]);
}

fn read(reply: &mut Vec<u8>, arguments: &[u8], store: &Store) {
    let (handle, rest) = split(arguments);
    let data = store.slice(handle, long(rest, 0), word(rest, 8));
    words(reply, &[0, 0, u32::try_from(data.len()).unwrap(), 0]);
    opaque(reply, &data);
}

fn write(reply: &mut Vec<u8>, arguments: &[u8], store: &Store) {
    let (handle, rest) = split(arguments);
    let (data, _) = split(&rest[16..]);
    store.put(handle, long(rest, 0), data);
    words(reply, &[0, 0, 0, u32::try_from(data.len()).unwrap(), 2, 7, 7]);
}

//! HTTP/1 messages with bodies of every kind.

use super::{Choice, Script};
use units::Bytes;
use wire::{ReplyExpectation, RequestClass};

/// Requests, and responses in their order, together or each at once.
pub fn http(choices: &[Choice]) -> Script {
    let mut script = Script::default();
    let mut late: Vec<(u64, Vec<u8>, bool)> = Vec::new();
    for (id, &(what, size, extra)) in (0u64..).zip(choices) {
        let data = vec![b'a' + extra % 26; size.into()];
        let (said, class) = request(what, &data);
        script.request(said, id, class, None, ReplyExpectation::Always);
        let (bytes, is_error) = response(extra, what % 5 == 1, &data);
        late.push((id, bytes, is_error));
        if what >= 128 {
            say(&mut script, &mut late, extra % 7 == 3);
        }
    }
    say(&mut script, &mut late, false);
    script
}

fn say(script: &mut Script, late: &mut Vec<(u64, Vec<u8>, bool)>, with_interim: bool) {
    for (id, bytes, is_error) in late.drain(..) {
        if with_interim {
            script.reply(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec(), u64::MAX, false, true);
        }
        script.reply(bytes, id, is_error, true);
    }
}

fn request(what: u8, data: &[u8]) -> (Vec<u8>, RequestClass) {
    let length = data.len();
    match what % 5 {
        0 => (b"GET /a?b HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(), RequestClass::Read(Bytes(0))),
        1 => (b"HEAD / HTTP/1.0\n\n".to_vec(), RequestClass::Control),
        2 => {
            let head = format!("\r\nPOST / HTTP/1.1\r\ncontent-LENGTH:  {length} \r\n\r\n");
            let class =
                if length == 0 { RequestClass::Control } else { RequestClass::Write(Bytes(length as u64)) };
            ([head.as_bytes(), data].concat(), class)
        }
        3 => {
            let head = b"PUT / HTTP/1.1\r\nContent-Length: 7\r\nTransfer-Encoding: chunked\r\n\r\n";
            ([&head[..], &chunked(data, b"A: b\r\n")].concat(), RequestClass::Write(Bytes(0)))
        }
        _ => (b"DELETE /x HTTP/1.1\r\n\r\n".to_vec(), RequestClass::Control),
    }
}

fn response(extra: u8, is_head: bool, data: &[u8]) -> (Vec<u8>, bool) {
    let length = data.len();
    if is_head {
        return (format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n").into_bytes(), false);
    }
    match extra % 4 {
        0 => {
            let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n");
            ([head.as_bytes(), data].concat(), false)
        }
        1 => {
            let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n";
            ([&head[..], &chunked(data, b"")].concat(), false)
        }
        2 => (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n".to_vec(), false),
        _ => (b"HTTP/1.0 404 Not Found\r\nContent-Length: 2\r\n\r\nno".to_vec(), true),
    }
}

fn chunked(data: &[u8], trailer: &[u8]) -> Vec<u8> {
    let chunk = |part: &[u8]| [format!("{:X};q=\"1\"\r\n", part.len()).as_bytes(), part, b"\r\n"].concat();
    let mut bytes: Vec<u8> = data.chunks(1000).flat_map(chunk).collect();
    bytes.extend([&b"0\r\n"[..], trailer, b"\r\n"].concat());
    bytes
}

//! Commands and replies of Redis.

use super::{Choice, Script};
use units::Bytes;
use wire::{ReplyExpectation, RequestClass};

/// Commands, and replies in their order, together or each at once, with pushed messages between them.
pub fn resp(choices: &[Choice]) -> Script {
    let mut script = Script::default();
    let mut late = Vec::new();
    let mut id = 0;
    for &(what, size, extra) in choices {
        let data = vec![b'a' + extra % 26; size.into()];
        let said = command(what, &data);
        if said.starts_with(b"\r") || said.starts_with(b"*0") {
            script.request(said, id, RequestClass::Control, None, ReplyExpectation::Never);
            continue;
        }
        script.request(said, id, class(what), None, ReplyExpectation::Always);
        late.push((id, reply(extra, &data)));
        id += 1;
        if what >= 128 {
            if extra % 7 == 2 {
                let pushed = b">2\r\n+invalidate\r\n*1\r\n$1\r\nk\r\n".to_vec();
                script.reply(pushed, u64::MAX, false, true);
            }
            late.drain(..).for_each(|(id, (bytes, error))| script.reply(bytes, id, error, true));
        }
    }
    late.drain(..).for_each(|(id, (bytes, error))| script.reply(bytes, id, error, true));
    script
}

/// Class by the head of a command, which does not show how much is written.
fn class(what: u8) -> RequestClass {
    match what % 7 {
        0 => RequestClass::Read(Bytes(0)),
        1 => RequestClass::Write(Bytes(0)),
        _ => RequestClass::Control,
    }
}

fn bulk(data: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}

fn command(what: u8, data: &[u8]) -> Vec<u8> {
    let words = |words: &[&[u8]]| {
        let bulks: Vec<u8> = words.iter().flat_map(|word| bulk(word)).collect();
        [format!("*{}\r\n", words.len()).as_bytes(), &bulks].concat()
    };
    match what % 7 {
        0 => words(&[b"GET", b"k"]),
        1 => words(&[b"set", b"k", data]),
        2 => b"PING\r\n".to_vec(),
        3 => b"\r\n".to_vec(),
        4 => b"*0\r\n".to_vec(),
        5 => words(&[b"CLIENT", b"SETNAME", b"*3"]),
        _ => words(&[data]),
    }
}

fn reply(extra: u8, data: &[u8]) -> (Vec<u8>, bool) {
    let bytes = match extra % 9 {
        0 => b"+OK\r\n".to_vec(),
        1 => b"-ERR no\r\n".to_vec(),
        2 => bulk(data),
        3 => b"$-1\r\n".to_vec(),
        4 => [b"*3\r\n:1\r\n*2\r\n*0\r\n", &bulk(data)[..], b"*-1\r\n"].concat(),
        5 => [b"%2\r\n+a\r\n#t\r\n+b\r\n", &bulk(data)[..]].concat(),
        6 => b"|1\r\n+ttl\r\n:5\r\n~2\r\n,1.5\r\n_\r\n".to_vec(),
        7 => b"!5\r\nERR x\r\n=7\r\ntxt:abc\r\n"[..11].to_vec(),
        _ => b"*0\r\n".to_vec(),
    };
    (bytes, matches!(extra % 9, 1 | 7))
}

//! memcached's three dialects.

use super::{Choice, Chunk, Script, words};
use units::Bytes;
use wire::{ReplyExpectation, RequestClass};

/// Text and meta commands or binary ones, as `choices[0]` says.
pub fn memcached(choices: &[Choice]) -> Script {
    let mut script = Script::default();
    let Some((&(how, _, _), commands)) = choices.split_first() else { return script };
    let mut late = Vec::new();
    let mut quiet = false;
    for (id, &(mut what, size, extra)) in (0u64..).zip(commands) {
        if quiet && matches!(what % 15, 1 | 13) {
            // An error behind quiet requests could be that of any of them: a no-op instead.
            what = if what < 128 { 9 } else { 129 };
        }
        let data = vec![b'a' + extra % 26; size.into()];
        let (class, answer, said, replies) = if how.is_multiple_of(3) {
            binary(what, &data, u32::try_from(id).unwrap() * 256 + u32::from(extra))
        } else {
            text(what, &data, id, extra)
        };
        script.request(said, id, class, None, answer);
        quiet = answer == ReplyExpectation::Sometimes || (quiet && answer == ReplyExpectation::Never);
        late.extend(replies.into_iter().map(|reply| (id, reply)));
        // Replies come in order: either they have caught up, or they all wait.
        if what >= 128 {
            late.drain(..).for_each(|(id, (bytes, error, last))| script.reply(bytes, id, error, last));
        }
    }
    late.drain(..).for_each(|(id, (bytes, error, last))| script.reply(bytes, id, error, last));
    script
}

type Exchange = (RequestClass, ReplyExpectation, Vec<u8>, Vec<Chunk>);

fn text(what: u8, data: &[u8], id: u64, extra: u8) -> Exchange {
    let len = data.len();
    let read = RequestClass::Read(Bytes(0));
    let line = |text: &str| (text.as_bytes().to_vec(), text.contains("_ERROR "), true);
    let with = |head: &str, last| ([head.as_bytes(), data, b"\r\n"].concat(), false, last);
    let hit = extra.is_multiple_of(2);
    let written = RequestClass::Write(Bytes(len as u64));
    match what % 15 {
        0 => {
            let value = with(&format!("VALUE key 0 {len}\r\n"), false);
            let mut replies = vec![value; usize::from(extra % 3)];
            replies.push(line("END\r\n"));
            (read, ReplyExpectation::Always, b"get key key\r\n".to_vec(), replies)
        }
        1 => (
            read,
            ReplyExpectation::Always,
            b"gets key \n".to_vec(),
            vec![line("SERVER_ERROR out of memory\r\n")],
        ),
        2 => (
            written,
            ReplyExpectation::Always,
            with(&format!("set key 0 0 {len}\r\n"), true).0,
            vec![line("STORED\r\n")],
        ),
        3 => (
            written,
            ReplyExpectation::Never,
            with(&format!("cas key 0 0 {len} 99 noreply\r\n"), true).0,
            vec![],
        ),
        4 => (RequestClass::Control, ReplyExpectation::Never, b"delete key noreply\r\n".to_vec(), vec![]),
        5 => (
            RequestClass::Control,
            ReplyExpectation::Always,
            b"incr key 1\r\n".to_vec(),
            vec![line("NOT_FOUND\r\n")],
        ),
        6 => (
            RequestClass::Control,
            ReplyExpectation::Always,
            b"stats\r\n".to_vec(),
            vec![(b"STAT a 1\r\n".to_vec(), false, false), line("END\r\n")],
        ),
        7 => {
            let said = format!("mg key v q O{id}\r\n").into_bytes();
            let replies = if hit { vec![with(&format!("VA {len} O{id}\r\n"), true)] } else { vec![] };
            (read, ReplyExpectation::Sometimes, said, replies)
        }
        8 => {
            let said = with(&format!("ms key {len} q O{id}\r\n"), true).0;
            (
                written,
                ReplyExpectation::Sometimes,
                said,
                if hit { vec![line(&format!("NS O{id}\r\n"))] } else { vec![] },
            )
        }
        9 => (RequestClass::Control, ReplyExpectation::Always, b"mn\r\n".to_vec(), vec![line("MN\r\n")]),
        10 => (
            read,
            ReplyExpectation::Always,
            b"mg key v\r\n".to_vec(),
            vec![if hit { with(&format!("VA {len}\r\n"), true) } else { line("EN\r\n") }],
        ),
        11 => (
            RequestClass::Control,
            ReplyExpectation::Always,
            b"stats sizes_enable\r\n".to_vec(),
            vec![line("STAT sizes_status enabled\r\n")],
        ),
        12 => (
            RequestClass::Control,
            ReplyExpectation::Always,
            b"version\r\n".to_vec(),
            vec![line("VERSION 1\r\n")],
        ),
        13 => (
            RequestClass::Control,
            ReplyExpectation::Always,
            b"delete a b c\r\n".to_vec(),
            vec![line("CLIENT_ERROR usage\r\n")],
        ),
        _ => (
            written,
            ReplyExpectation::Always,
            with(&format!("ms key {len} T9\r\n"), true).0,
            vec![line("HD\r\n")],
        ),
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
    let hit = opaque.is_multiple_of(2);
    let written = RequestClass::Write(Bytes(data.len() as u64));
    match what % 6 {
        0 => (
            RequestClass::Read(Bytes(0)),
            ReplyExpectation::Always,
            message(0x80, 0, 0, 0, b"key", b""),
            vec![(message(0x81, 0, 0, 4, b"", data), false, true)],
        ),
        1 => (
            written,
            ReplyExpectation::Always,
            message(0x80, 1, 0, 8, b"key", data),
            vec![(message(0x81, 1, 0x82, 0, b"", b"no memory"), true, true)],
        ),
        2 => (
            RequestClass::Control,
            ReplyExpectation::Always,
            message(0x80, 0x0a, 0, 0, b"", b""),
            vec![(message(0x81, 0x0a, 0, 0, b"", b""), false, true)],
        ),
        3 => {
            let item = (message(0x81, 0x10, 0, 0, b"name", b"value"), false, false);
            (
                RequestClass::Control,
                ReplyExpectation::Always,
                message(0x80, 0x10, 0, 0, b"", b""),
                vec![item, (message(0x81, 0x10, 0, 0, b"", b""), false, true)],
            )
        }
        4 => {
            let replies = vec![(message(0x81, 0x04, 1, 0, b"", b"Not found"), false, true)];
            (RequestClass::Control, ReplyExpectation::Always, message(0x80, 0x04, 0, 0, b"key", b""), replies)
        }
        _ => {
            let replies =
                if hit { vec![(message(0x81, 0x09, 0, 4, b"", data), false, true)] } else { vec![] };
            (
                RequestClass::Read(Bytes(0)),
                ReplyExpectation::Sometimes,
                message(0x80, 0x09, 0, 0, b"key", b""),
                replies,
            )
        }
    }
}

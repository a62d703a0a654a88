//! Requests of memcached, text and binary, and the answers of a memcached that has a value for each key
//! with a `k`.

use super::reader::{DeviceWork, SeenRequest, Unread, hash_of, number, pattern, take};

/// Longest value that the simulated memcached stores.
const VALUE_MAX: u64 = 1 << 20;
/// Longer lines and values are not requests, but attempts to exhaust memory.
const LINE_MAX: usize = 64 << 10;
/// Longer lines than these are refused, unless they are lists of keys.
const ORDINARY_LINE_MAX: usize = 2048;

/// Parses one request; `needed` becomes the length from which on it can be complete.
pub fn read_memcached(bytes: &[u8], is_binary: bool, needed: &mut usize) -> Result<SeenRequest, Unread> {
    if is_binary { read_binary(bytes, needed) } else { read_text(bytes, needed) }
}

/// Returns the length of the value of a key: the number behind its `k`; `None` without a value.
fn value_len(key: &[u8]) -> Option<u64> {
    let digits = key.strip_prefix(b"k")?.split(|byte| *byte == b'_').next()?;
    std::str::from_utf8(digits).ok()?.parse().ok().filter(|len| *len <= VALUE_MAX)
}

/// Returns the value of a key.
pub fn value_of(key: &[u8]) -> Option<Vec<u8>> {
    value_len(key).map(|len| pattern(hash_of(key), len))
}

fn read_text(bytes: &[u8], needed: &mut usize) -> Result<SeenRequest, Unread> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        *needed = bytes.len() + 1;
        return Err(if bytes.len() > LINE_MAX { Unread::Garbage } else { Unread::Incomplete });
    };
    if let Some(zero) = bytes[..end].iter().position(|byte| *byte == 0) {
        // The rest of the line is not seen.
        let visible = [&bytes[..zero], b"\r\n"].concat();
        let request = read_text(&visible, &mut 0)?;
        return Ok(SeenRequest { len: end + 1, sent_as: Some(visible), ..request });
    }
    let line = bytes[..end].strip_suffix(b"\r").unwrap_or(&bytes[..end]);
    let words: Vec<&[u8]> = line.split(|byte| *byte == b' ').filter(|word| !word.is_empty()).collect();
    let Some(command) = words.first() else { return Ok(answered(end + 1, b"ERROR\r\n")) };
    let is_list = matches!(*command, b"get" | b"gets");
    if !command.iter().all(u8::is_ascii_graphic) || (end >= ORDINARY_LINE_MAX && !is_list) {
        return Ok(refused(end + 1));
    }
    let is_noreply = words.len() > 1 && words.last() == Some(&&b"noreply"[..]);
    let mut request = match *command {
        b"get" | b"gets" => read_values(end + 1, &words[1..]),
        b"mg" => meta_get(end + 1, &words),
        b"set" | b"add" | b"replace" => return store(bytes, end + 1, &words, 4, is_noreply, needed),
        b"ms" => return store(bytes, end + 1, &words, 2, false, needed),
        b"mn" => answered(end + 1, b"MN\r\n"),
        b"delete" if words.get(1).is_some_and(|key| key.starts_with(b"k")) => {
            control(end + 1, b"DELETED\r\n")
        }
        b"delete" => control(end + 1, b"NOT_FOUND\r\n"),
        b"version" => SeenRequest { is_noop: true, ..control(end + 1, b"VERSION 1.6.21\r\n") },
        b"verbosity" | b"lru" | b"slabs" => control(end + 1, b"OK\r\n"),
        b"quit" => SeenRequest { closes: true, ..SeenRequest::silent(end + 1) },
        _ => answered(end + 1, b"ERROR\r\n"),
    };
    if is_noreply && !matches!(*command, b"get" | b"gets" | b"mg" | b"mn") {
        request.reply.clear();
    }
    let is_quiet = *command == b"mg" && words.contains(&&b"q"[..]);
    request.is_independent = matches!(*command, b"get" | b"gets" | b"mg" | b"mn" | b"delete" | b"version")
        && words.len() < 60
        && !is_noreply
        && !is_quiet;
    Ok(request)
}

/// A request that the server does not get.
fn refused(len: usize) -> SeenRequest {
    SeenRequest { is_refused: true, ..answered(len, b"ERROR\r\n") }
}

fn answered(len: usize, reply: &[u8]) -> SeenRequest {
    SeenRequest { reply: reply.to_vec(), ..SeenRequest::silent(len) }
}

fn control(len: usize, reply: &[u8]) -> SeenRequest {
    SeenRequest { work: DeviceWork::Control, ..answered(len, reply) }
}

fn read_values(len: usize, keys: &[&[u8]]) -> SeenRequest {
    let mut reply = Vec::new();
    let mut moved = 0;
    for key in keys {
        let Some(value) = value_of(key) else { continue };
        moved += value.len() as u64;
        reply.extend(b"VALUE ");
        reply.extend(*key);
        reply.extend(format!(" 0 {}\r\n", value.len()).as_bytes());
        reply.extend(value);
        reply.extend(b"\r\n");
    }
    reply.extend(b"END\r\n");
    SeenRequest { work: DeviceWork::Read(moved), ..answered(len, &reply) }
}

/// Returns the opaque value of a meta command, as repeated in the answer.
fn opaque(words: &[&[u8]]) -> Vec<u8> {
    let mut repeated = Vec::new();
    for word in words.iter().filter(|word| word.starts_with(b"O")) {
        repeated.push(b' ');
        repeated.extend(*word);
    }
    repeated
}

fn meta_get(len: usize, words: &[&[u8]]) -> SeenRequest {
    let is_quiet = words[1..].contains(&&b"q"[..]);
    let opaque = opaque(words);
    let Some(value) = words.get(1).and_then(|key| value_of(key)) else {
        let reply: &[u8] = if is_quiet { b"" } else { b"EN\r\n" };
        return SeenRequest { work: DeviceWork::Read(0), ..answered(len, reply) };
    };
    let mut reply = format!("VA {}", value.len()).into_bytes();
    reply.extend(opaque);
    reply.extend(b"\r\n");
    reply.extend(&value);
    reply.extend(b"\r\n");
    SeenRequest { work: DeviceWork::Read(value.len() as u64), ..answered(len, &reply) }
}

/// Parses a command with a value: the word at `place` is the number of bytes behind the line.
fn store(
    bytes: &[u8],
    line_len: usize,
    words: &[&[u8]],
    place: usize,
    is_noreply: bool,
    needed: &mut usize,
) -> Result<SeenRequest, Unread> {
    let digits = words.get(place).and_then(|word| std::str::from_utf8(word).ok());
    let len: usize = digits.and_then(|word| word.parse().ok()).ok_or(Unread::Garbage)?;
    if len as u64 > VALUE_MAX {
        return Err(Unread::Garbage);
    }
    take(bytes, line_len, len + 2, needed)?;
    let is_meta = place == 2;
    let mut reply = if is_meta { b"HD".to_vec() } else { b"STORED".to_vec() };
    reply.extend(if is_meta { opaque(words) } else { Vec::new() });
    reply.extend(b"\r\n");
    if is_noreply || (is_meta && words[2..].contains(&&b"q"[..])) {
        reply.clear();
    }
    let is_independent = !is_meta && !is_noreply;
    let work = DeviceWork::Write(len as u64);
    Ok(SeenRequest { work, is_independent, ..answered(line_len + len + 2, &reply) })
}

fn read_binary(bytes: &[u8], needed: &mut usize) -> Result<SeenRequest, Unread> {
    let head = take(bytes, 0, 24, needed)?;
    if head[0] != 0x80 {
        return Err(Unread::Garbage);
    }
    let key_len = usize::from(u16::from_be_bytes([head[2], head[3]]));
    let extras_len = usize::from(head[4]);
    let body_len = usize::try_from(number(&head[8..12])).map_err(|_| Unread::Garbage)?;
    if body_len as u64 > VALUE_MAX + 1024 || key_len + extras_len > body_len {
        return Err(Unread::Garbage);
    }
    let body = take(bytes, 24, body_len, needed)?;
    let key = &body[extras_len..extras_len + key_len];
    let opcode = head[1];
    let len = 24 + body_len;
    let answer = |opcode: u8, status: u8, extras: &[u8], value: &[u8]| {
        let mut reply = vec![0x81, opcode, 0, 0, u8::try_from(extras.len()).expect("short"), 0, 0, status];
        reply.extend(u32::try_from(extras.len() + value.len()).expect("values are short").to_be_bytes());
        reply.extend(&head[12..16]);
        reply.extend([0; 8]);
        reply.extend(extras);
        reply.extend(value);
        reply
    };
    let mut request = SeenRequest::silent(len);
    match opcode {
        // GET and GETQ
        0x00 | 0x09 => {
            let value = value_of(key);
            request.work = DeviceWork::Read(value.as_ref().map_or(0, |value| value.len() as u64));
            match value {
                Some(value) => request.reply = answer(0, 0, &[0; 4], &value),
                None if opcode == 0 => request.reply = answer(0, 1, &[], b"Not found"),
                None => {}
            }
        }
        // SET and SETQ
        0x01 | 0x11 => {
            request.work = DeviceWork::Write((body_len - key_len - extras_len) as u64);
            if opcode == 1 {
                request.reply = answer(1, 0, &[], &[]);
            }
        }
        0x07 => (request.reply, request.closes) = (answer(7, 0, &[], &[]), true),
        0x0a => (request.reply, request.is_noop) = (answer(0x0a, 0, &[], &[]), true),
        0x0b => (request.reply, request.work) = (answer(0x0b, 0, &[], b"1.6.21"), DeviceWork::Control),
        _ => {
            request.reply = answer(opcode, 0x81, &[], b"Unknown command");
            request.is_refused = body_len > 0 && !matches!(opcode, 0x00..=0x1a | 0x1c..=0x1e | 0x20..=0x24);
        }
    }
    Ok(request)
}

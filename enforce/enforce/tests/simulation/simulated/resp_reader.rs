//! Requests of RESP, and the answers of a Redis that has a value for each key with a `k`.

use super::memcached_reader::value_of;
use super::reader::{DeviceWork, SeenRequest, Unread, take};

/// Longest string that the simulated Redis takes, and most words of a command.
const STRING_MAX: usize = 512 << 20;
const WORDS_MAX: usize = 4096;
/// Longest line with a length.
const LINE_MAX: usize = 32;

/// Parses one request; `needed` becomes the length from which on it can be complete.
pub fn read_resp(bytes: &[u8], needed: &mut usize) -> Result<SeenRequest, Unread> {
    if bytes[0] != b'*' {
        return inline(bytes, needed);
    }
    let (count, mut at) = length(bytes, 0, b'*', needed)?;
    if count == 0 || count > WORDS_MAX {
        return Err(Unread::Garbage);
    }
    let mut words = Vec::new();
    for _ in 0..count {
        let (len, begin) = length(bytes, at, b'$', needed)?;
        if len > STRING_MAX {
            return Err(Unread::Garbage);
        }
        words.push(&take(bytes, begin, len + 2, needed)?[..len]);
        at = begin + len + 2;
    }
    Ok(command(&words, at))
}

/// A line of words, which the proxy sends as an array.
fn inline(bytes: &[u8], needed: &mut usize) -> Result<SeenRequest, Unread> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else {
        *needed = bytes.len() + 1;
        return if bytes[0] == 0x16 { Err(Unread::Garbage) } else { Err(Unread::Incomplete) };
    };
    let words: Vec<&[u8]> =
        bytes[..end].split(|byte| b" \r".contains(byte)).filter(|word| !word.is_empty()).collect();
    if words.iter().any(|word| !word.iter().all(u8::is_ascii_alphanumeric)) {
        return Err(Unread::Garbage);
    }
    Ok(SeenRequest { sent_as: Some(array(&words)), ..command(&words, end + 1) })
}

/// Reads the line with a length at this place, and returns the place behind it.
fn length(bytes: &[u8], at: usize, kind: u8, needed: &mut usize) -> Result<(usize, usize), Unread> {
    let line = bytes.get(at..).unwrap_or_default();
    let Some(end) = line.iter().position(|byte| *byte == b'\n') else {
        *needed = bytes.len().max(at) + 1;
        return Err(if line.len() > LINE_MAX { Unread::Garbage } else { Unread::Incomplete });
    };
    let digits = line[..end].strip_suffix(b"\r").and_then(|line| line.strip_prefix(&[kind]));
    let number = digits.and_then(|digits| std::str::from_utf8(digits).ok()?.parse().ok());
    Ok((number.ok_or(Unread::Garbage)?, at + end + 1))
}

/// Encodes a command.
pub fn array(words: &[&[u8]]) -> Vec<u8> {
    let mut out = format!("*{}\r\n", words.len()).into_bytes();
    for word in words {
        out.extend(string(word));
    }
    out
}

fn string(data: &[u8]) -> Vec<u8> {
    [format!("${}\r\n", data.len()).as_bytes(), data, b"\r\n"].concat()
}

fn command(words: &[&[u8]], len: usize) -> SeenRequest {
    let name = words.first().copied().unwrap_or_default();
    let first = words.get(1).copied().unwrap_or_default();
    let mut request = SeenRequest { work: DeviceWork::Control, ..SeenRequest::silent(len) };
    match name {
        b"GET" | b"MGET" => {
            let values: Vec<_> = words[1..].iter().map(|key| value_of(key)).collect();
            if name == b"MGET" {
                request.reply = format!("*{}\r\n", values.len()).into_bytes();
            }
            let moved = values.iter().flatten().map(|value| value.len() as u64).sum();
            request.work = DeviceWork::Read(moved);
            let strings =
                values.iter().map(|value| value.as_ref().map_or(b"$-1\r\n".to_vec(), |value| string(value)));
            request.reply.extend(strings.flatten());
        }
        b"SET" => {
            request.work = DeviceWork::Write(words.get(2).map_or(0, |value| value.len() as u64));
            request.reply = b"+OK\r\n".to_vec();
        }
        b"PING" => request.reply = b"+PONG\r\n".to_vec(),
        b"ECHO" => request.reply = string(first),
        // Of RESP3: attributes, and nested aggregates.
        b"HGETALL" => request.reply = b"|1\r\n+ttl\r\n:5\r\n%1\r\n+f\r\n~2\r\n_\r\n,1.5\r\n".to_vec(),
        b"QUIT" => {
            request.closes = true;
            request.reply = b"+OK\r\n".to_vec();
        }
        b"BLPOP" => refuse(
            &mut request,
            "BLPOP",
            "it may wait without end, and no limit holds what waits at the server",
        ),
        b"SUBSCRIBE" => refuse(&mut request, "SUBSCRIBE", "its messages answer no request"),
        _ => {
            // Also what the proxy sends in place of a command that it refuses.
            request.is_noop = name == b"tailwright.refused";
            request.reply = b"-ERR unknown command\r\n".to_vec();
        }
    }
    request
}

fn refuse(request: &mut SeenRequest, name: &str, why: &str) {
    request.is_refused = true;
    request.reply =
        format!("-ERR {name} is not passed on by this proxy: {why}; connect to the server\r\n").into_bytes();
}

//! memcached's text and meta commands. Keys are a letter, the tag, a number, a dot and the size of the value.

use crate::oracle::UNCOUNTED;

use super::{DeviceRequest, Heard, ReplyBytes, ServerSpeech, data_head, place};

/// A connection; nothing is known from one request to the next.
#[derive(Debug)]
pub struct MemcachedSpeech;

struct NamedValue {
    tag: u8,
    number: u64,
    size: usize,
}

/// Keys without a size name no value.
fn value(key: &str) -> Option<NamedValue> {
    let (name, size) = key.split_once('.')?;
    Some(NamedValue {
        tag: key.as_bytes()[0],
        number: name.get(1..)?.parse().ok()?,
        size: size.parse().ok()?,
    })
}

fn request(accesses: u64, tag: u8, place: u64, bytes: usize, reply: ReplyBytes) -> DeviceRequest {
    DeviceRequest { tag, place, accesses, bytes: bytes as u64, reply }
}

fn tag_of(key: &str) -> u8 {
    key.as_bytes().first().copied().unwrap_or(b'?')
}

/// Several values: those after the first are written out in the tail.
fn get(keys: &[&str]) -> DeviceRequest {
    let mut out = ReplyBytes::default();
    let mut bytes = 0;
    let mut first = true;
    for key in keys {
        let Some(NamedValue { number, size, .. }) = value(key) else { continue };
        let head =
            [format!("VALUE {key} 0 {size}\r\n").into_bytes(), data_head(number * 4096, size)].concat();
        let filling = size - size.min(8);
        if first {
            (out.head, out.filling) = (head, filling);
        } else {
            out.tail.extend(head);
            out.tail.resize(out.tail.len() + filling, 7);
        }
        out.tail.extend(b"\r\n");
        (first, bytes) = (false, bytes + size);
    }
    out.tail.extend(b"END\r\n");
    let tag = tag_of(keys[0]);
    let at = value(keys[0]).map_or(0, |value| place(tag, value.number * 4096));
    request(keys.len() as u64, tag, at, bytes, out)
}

fn meta_get(key: &str, flags: &[&str]) -> DeviceRequest {
    let quiet = flags.contains(&"q");
    match value(key) {
        Some(NamedValue { tag, number, size }) => {
            let head = [format!("VA {size}\r\n").into_bytes(), data_head(number * 4096, size)].concat();
            let reply = ReplyBytes { head, filling: size - size.min(8), tail: b"\r\n".to_vec() };
            request(1, tag, place(tag, number * 4096), size, reply)
        }
        None if quiet => request(1, tag_of(key), 0, 0, ReplyBytes::default()),
        None => request(1, tag_of(key), 0, 0, ReplyBytes::short(b"EN\r\n".to_vec())),
    }
}

fn silent_or(words: &[&str], said: &str) -> ReplyBytes {
    let silent = words.contains(&"noreply");
    ReplyBytes::short(if silent { Vec::new() } else { said.as_bytes().to_vec() })
}

impl ServerSpeech for MemcachedSpeech {
    fn hear(&mut self, input: &[u8]) -> Heard {
        let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return Heard::Incomplete };
        let line = String::from_utf8_lossy(&input[..end]).into_owned();
        let words = line.split_whitespace().collect::<Vec<_>>();
        let used = end + 1;
        match words[..] {
            ["get" | "gets", ref keys @ ..] if !keys.is_empty() => Heard::Request(used, get(keys)),
            ["mg", key, ref flags @ ..] => Heard::Request(used, meta_get(key, flags)),
            ["mn"] => Heard::Request(used, request(0, b'n', 0, 0, ReplyBytes::short(b"MN\r\n".to_vec()))),
            ["set", key, _, _, len, ..] => {
                let Ok(len) = len.parse::<usize>() else { return Heard::Over };
                if input.len() < used + len + 2 {
                    return Heard::Incomplete;
                }
                let reply = silent_or(&words, "STORED\r\n");
                Heard::Request(used + len + 2, request(1, tag_of(key), 0, len, reply))
            }
            ["lru" | "slabs" | "verbosity" | "flush_all" | "cache_memlimit", ..] => {
                Heard::Request(used, request(0, b's', 0, 0, silent_or(&words, "OK\r\n")))
            }
            ["version"] => {
                let reply = ReplyBytes::short(b"VERSION 1.6.18\r\n".to_vec());
                Heard::Request(used, request(0, UNCOUNTED, 0, 0, reply))
            }
            ["quit"] => Heard::Over,
            _ => Heard::Request(used, request(0, b'?', 0, 0, ReplyBytes::short(b"ERROR\r\n".to_vec()))),
        }
    }

    fn is_serial(&self) -> bool {
        true
    }
}

//! memcached's text commands `get` and `set`, which every server and proxy of it understands.

use super::framer::Framer;
use super::{Ask, Heard, Said, Speak};
use model::Op;
use std::borrow::Cow;
use wire::Limits;
use wire::memcached::Connection;
use wire::memcached::client::{self, Confirm};

/// Behind a value.
const TAIL: &[u8] = b"\r\nEND\r\n";

#[derive(Debug)]
pub(crate) struct Memcached {
    framer: Framer<Connection>,
    prefix: String,
    key: Vec<u8>,
}

impl Memcached {
    /// Keys begin with `prefix`.
    pub(crate) fn new(prefix: String) -> Self {
        let limits = Limits { outstanding: 1 << 16, ..Limits::MEMCACHED };
        Self { framer: Framer::new(Connection::new(limits)), prefix, key: Vec::new() }
    }
}

/// The key of a value: its size stands in it, so that each size has keys of its own.
fn key(out: &mut Vec<u8>, prefix: &str, size: u32, place: u64) {
    use std::io::Write as _;
    out.clear();
    write!(out, "{prefix}:{size}:{place}").expect("a vector takes what is written");
}

impl Speak for Memcached {
    fn ask(&mut self, out: &mut Vec<u8>, _id: u64, ask: Ask, data: &[u8]) -> Result<(), String> {
        let start = out.len();
        key(&mut self.key, &self.prefix, ask.size, ask.place);
        match ask.op {
            Op::Read => client::get(out, &[&self.key]),
            Op::Write => client::set(out, &self.key, 0, 0, data, Confirm::Reply),
        }
        self.framer.asked(&out[start..])
    }

    fn hear(&mut self, input: &[u8]) -> Result<Heard, String> {
        self.framer.hear(input)
    }

    fn said<'a>(&self, ask: Ask, raw: &'a [u8], head: usize) -> Said<'a> {
        let line = || Said::Failed(format!("the server answered '{}'", first_line(raw)));
        match ask.op {
            Op::Write if raw == b"STORED\r\n" => Said::Done(Cow::Borrowed(&[])),
            Op::Read if raw == b"END\r\n" => Said::Missed,
            Op::Read
                if raw.starts_with(b"VALUE ") && raw.ends_with(TAIL) && raw.len() >= head + TAIL.len() =>
            {
                let data = &raw[head..raw.len() - TAIL.len()];
                if data.len() == ask.size as usize {
                    return Said::Done(Cow::Borrowed(data));
                }
                Said::Failed(format!("a value of {} bytes instead of {}", data.len(), ask.size))
            }
            _ => line(),
        }
    }
}

fn first_line(raw: &[u8]) -> String {
    let end = raw.iter().position(|byte| *byte == b'\r').unwrap_or(raw.len()).min(100);
    String::from_utf8_lossy(&raw[..end]).into_owned()
}

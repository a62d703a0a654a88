//! Text and meta commands.

use super::expect::{Expect, Item, Meta};
use super::{Parsed, number, words};
use crate::read::{Hash, at_most};
use crate::{Answer, Class, Limits, Malformed};
use units::Bytes;

const KEY_MAX: u64 = 250;
const FIELD_KEY: &str = "memcached key in bytes";
const FIELD_LENGTH: &str = "length of a memcached value";

/// The request in `line`, which has its end.
pub(super) fn request(line: &[u8], limits: &Limits) -> Result<Parsed, Malformed> {
    let mut rest = words(line);
    let control = |expect| Parsed {
        class: Class::Control,
        answer: Answer::Always,
        expect,
        head: line.len(),
        len: line.len() as u64,
    };
    let read = |expect| Parsed { class: Class::Read(Bytes(0)), ..control(expect) };
    let silent = |parsed| if has_noreply(line) { Parsed { answer: Answer::Never, ..parsed } } else { parsed };
    let command = rest.next().unwrap_or(b"");
    if !command.iter().all(u8::is_ascii_graphic) {
        // TLS, for one: its reply would be waited for without end.
        return Err(Malformed::Line { field: "memcached command", expected: "a word" });
    }
    Ok(match command {
        b"get" | b"gets" | b"gat" | b"gats" => read(Expect::Values),
        b"set" | b"add" | b"replace" | b"append" | b"prepend" => stored(line, rest, 0, limits)?,
        b"cas" => stored(line, rest, 1, limits)?,
        b"mg" => meta(Meta::Get, rest, read(Expect::Line)),
        b"ms" => {
            key(rest.next())?;
            let parsed = with_data(line, number(rest.next(), FIELD_LENGTH)?, limits)?;
            flagged(Meta::Set, rest, parsed)
        }
        b"md" => meta(Meta::Delete, rest, control(Expect::Line)),
        b"ma" => meta(Meta::Arithmetic, rest, control(Expect::Line)),
        b"mn" => flagged(Meta::Noop, [].into_iter(), control(Expect::Line)),
        b"me" => flagged(Meta::Debug, [].into_iter(), control(Expect::Line)),
        b"stats" => control(Expect::Lines(Item::Stat)),
        b"delete" | b"incr" | b"decr" | b"touch" | b"verbosity" | b"flush_all" | b"cache_memlimit" => {
            silent(control(Expect::Line))
        }
        b"lru_crawler" => control(match rest.next() {
            Some(b"metadump") => Expect::Lines(Item::Key),
            Some(b"mgdump") => Expect::Lines(Item::Mg),
            _ => Expect::Line,
        }),
        b"quit" => Parsed { answer: Answer::Never, ..control(Expect::Line) },
        b"watch" => {
            return Err(Malformed::Refused {
                what: "memcached's watch",
                remedy: "connect without the proxy",
            });
        }
        _ => control(Expect::Line),
    })
}

fn has_noreply(line: &[u8]) -> bool {
    line.trim_ascii_end().ends_with(b" noreply")
}

fn key(word: Option<&[u8]>) -> Result<(), Malformed> {
    let word = word.ok_or(Malformed::Line { field: "memcached storage command", expected: "a key" })?;
    at_most(FIELD_KEY, KEY_MAX, word.len() as u64).map(|_| ())
}

/// A command with `<key> <flags> <exptime> <bytes>`, further words, and data.
fn stored<'a>(
    line: &[u8],
    mut rest: impl Iterator<Item = &'a [u8]>,
    further: usize,
    limits: &Limits,
) -> Result<Parsed, Malformed> {
    key(rest.next())?;
    let mut parsed = with_data(line, number(rest.nth(2), FIELD_LENGTH)?, limits)?;
    if rest.nth(further) == Some(b"noreply") {
        parsed.answer = Answer::Never;
    }
    Ok(parsed)
}

/// `line` is followed by `bytes` of data and an end of line.
fn with_data(line: &[u8], bytes: u64, limits: &Limits) -> Result<Parsed, Malformed> {
    let bytes = at_most("memcached value in bytes", limits.message.0, bytes)?;
    Ok(Parsed {
        class: Class::Write(Bytes(bytes)),
        answer: Answer::Always,
        expect: Expect::Line,
        head: line.len(),
        len: line.len() as u64 + bytes + 2,
    })
}

/// A meta command: `rest` begins with the key.
fn meta<'a>(command: Meta, mut rest: impl Iterator<Item = &'a [u8]>, parsed: Parsed) -> Parsed {
    rest.next();
    flagged(command, rest, parsed)
}

fn flagged<'a>(command: Meta, flags: impl Iterator<Item = &'a [u8]>, mut parsed: Parsed) -> Parsed {
    let (mut quiet, mut opaque) = (false, None);
    for flag in flags {
        match flag {
            [b'q', ..] => quiet = true,
            [b'O', token @ ..] => opaque = Some(Hash::of(token)),
            _ => {}
        }
    }
    if quiet {
        parsed.answer = Answer::Sometimes;
    }
    parsed.expect = Expect::Meta { command, quiet, opaque };
    parsed
}

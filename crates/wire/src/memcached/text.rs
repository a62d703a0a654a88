//! Requests of text and meta commands.

use super::command::MemcachedCommand;
use super::expected_reply::{ExpectedReply, ListItem, MetaCommand};
use super::line::{number, words};
use super::text_reply::opaque_hash;
use crate::fields::check_at_most;
use crate::{ParserLimits, ProtocolError, ReplyExpectation, RequestClass};
use units::Bytes;

const KEY_LEN_MAX: u64 = 250;
const KEY_FIELD: &str = "memcached key in bytes";
const LENGTH_FIELD: &str = "length of a memcached value";

/// Reads the request that begins with this line; the line includes its end.
pub(super) fn request(line: &[u8], limits: &ParserLimits) -> Result<MemcachedCommand, ProtocolError> {
    let mut rest = words(line);
    let command = rest.next().unwrap_or(b"");
    if !command.iter().all(u8::is_ascii_graphic) {
        // This may be TLS, whose reply would be waited for without end.
        return Err(ProtocolError::Line { field: "memcached command", expected: "a word" });
    }
    Ok(match command {
        b"get" | b"gets" | b"gat" | b"gats" => read(line, ExpectedReply::Values),
        b"set" | b"add" | b"replace" | b"append" | b"prepend" => storage(line, rest, 0, limits)?,
        b"cas" => storage(line, rest, 1, limits)?,
        b"mg" => meta(MetaCommand::Get, rest, read(line, ExpectedReply::Line)),
        b"ms" => {
            check_key(rest.next())?;
            let command = with_data(line, number(rest.next(), LENGTH_FIELD)?, limits)?;
            with_meta_flags(MetaCommand::Set, rest, command)
        }
        b"md" => meta(MetaCommand::Delete, rest, control(line, ExpectedReply::Line)),
        b"ma" => meta(MetaCommand::Arithmetic, rest, control(line, ExpectedReply::Line)),
        b"mn" => with_meta_flags(MetaCommand::Noop, [].into_iter(), control(line, ExpectedReply::Line)),
        b"me" => with_meta_flags(MetaCommand::Debug, [].into_iter(), control(line, ExpectedReply::Line)),
        b"stats" => control(line, ExpectedReply::List(ListItem::Stat)),
        b"delete" | b"incr" | b"decr" | b"touch" | b"verbosity" | b"flush_all" | b"cache_memlimit" => {
            let never = line.trim_ascii_end().ends_with(b" noreply");
            let reply = if never { ReplyExpectation::Never } else { ReplyExpectation::Always };
            MemcachedCommand { reply, ..control(line, ExpectedReply::Line) }
        }
        b"version" => control(line, ExpectedReply::Version),
        b"lru_crawler" => match rest.next() {
            Some(b"metadump") => control(line, ExpectedReply::List(ListItem::Key)),
            Some(b"mgdump") => control(line, ExpectedReply::List(ListItem::Mg)),
            _ => control(line, ExpectedReply::Line),
        },
        b"quit" => {
            let reply = ReplyExpectation::Never;
            MemcachedCommand { reply, ends_connection: true, ..control(line, ExpectedReply::Line) }
        }
        b"shutdown" => {
            let reply = ReplyExpectation::Sometimes;
            MemcachedCommand { reply, ends_connection: true, ..control(line, ExpectedReply::Line) }
        }
        b"watch" => {
            let (what, remedy) = ("memcached's watch", "connect without the proxy");
            return Err(ProtocolError::Unsupported { what, remedy });
        }
        _ => {
            let may_be_silent = rest.any(|word| word == b"noreply");
            let reply = if may_be_silent { ReplyExpectation::Sometimes } else { ReplyExpectation::Always };
            MemcachedCommand { reply, ..control(line, ExpectedReply::Line) }
        }
    })
}

/// A command that is this line alone, and neither reads nor writes.
fn control(line: &[u8], expected: ExpectedReply) -> MemcachedCommand {
    let (class, reply) = (RequestClass::Control, ReplyExpectation::Always);
    let (head, len) = (line.len(), line.len() as u64);
    MemcachedCommand { class, reply, expected, ends_connection: false, head, len }
}

/// A command that is this line alone and reads. How much it reads, only the reply shows.
fn read(line: &[u8], expected: ExpectedReply) -> MemcachedCommand {
    MemcachedCommand { class: RequestClass::Read(Bytes(0)), ..control(line, expected) }
}

fn check_key(word: Option<&[u8]>) -> Result<(), ProtocolError> {
    let (field, expected) = ("memcached storage command", "a key");
    let word = word.ok_or(ProtocolError::Line { field, expected })?;
    check_at_most(KEY_FIELD, KEY_LEN_MAX, word.len() as u64)?;
    Ok(())
}

/// A command with `<key> <flags> <exptime> <bytes>`, so many further words, perhaps `noreply`, and data.
fn storage<'a>(
    line: &[u8],
    mut rest: impl Iterator<Item = &'a [u8]>,
    further_words: usize,
    limits: &ParserLimits,
) -> Result<MemcachedCommand, ProtocolError> {
    check_key(rest.next())?;
    let mut command = with_data(line, number(rest.nth(2), LENGTH_FIELD)?, limits)?;
    if rest.nth(further_words) == Some(b"noreply") {
        command.reply = ReplyExpectation::Never;
    }
    Ok(command)
}

/// A command whose line is followed by so many bytes of data and an end of line.
fn with_data(line: &[u8], bytes: u64, limits: &ParserLimits) -> Result<MemcachedCommand, ProtocolError> {
    let bytes = check_at_most("memcached value in bytes", limits.message.0, bytes)?;
    let len = line.len() as u64 + bytes + 2;
    let class = RequestClass::Write(Bytes(bytes));
    Ok(MemcachedCommand { class, len, ..control(line, ExpectedReply::Line) })
}

/// A meta command whose further words begin with the key.
fn meta<'a>(
    name: MetaCommand,
    mut rest: impl Iterator<Item = &'a [u8]> + Clone,
    command: MemcachedCommand,
) -> MemcachedCommand {
    rest.next();
    with_meta_flags(name, rest, command)
}

/// The same command with the reply that a meta command with these flags has.
fn with_meta_flags<'a>(
    name: MetaCommand,
    flags: impl Iterator<Item = &'a [u8]> + Clone,
    mut command: MemcachedCommand,
) -> MemcachedCommand {
    let quiet = flags.clone().any(|flag| flag.starts_with(b"q"));
    let opaque = opaque_hash(flags);
    if quiet {
        command.reply = ReplyExpectation::Sometimes;
    }
    command.expected = ExpectedReply::Meta { command: name, quiet, opaque };
    command
}

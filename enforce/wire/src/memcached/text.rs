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
/// The most flags of a meta command. Behind an `ms` with more memcached takes the data for commands.
const META_FLAGS_MAX: usize = 16;

/// Reads the request that begins with this line; the line includes its end.
pub(super) fn request(line: &[u8], limits: &ParserLimits) -> Result<MemcachedCommand, ProtocolError> {
    if line.contains(&0) {
        // What is behind it would be invisible to memcached.
        return Err(ProtocolError::Line { field: "memcached command line", expected: "no zero bytes" });
    }
    let mut rest = words(line);
    let command = rest.next().unwrap_or(b"");
    if !command.iter().all(u8::is_ascii_graphic) {
        // This may be TLS, whose reply would be waited for without end.
        return Err(ProtocolError::Line { field: "memcached command", expected: "a word" });
    }
    Ok(match command {
        b"get" | b"gets" | b"gat" | b"gats" | b"bget" => {
            check_keys(line, rest)?;
            read(line, ExpectedReply::Values)
        }
        b"set" | b"add" | b"replace" | b"append" | b"prepend" => storage(line, rest, false, limits)?,
        b"cas" => storage(line, rest, true, limits)?,
        b"mg" => meta(MetaCommand::Get, rest, read(line, ExpectedReply::Line)),
        b"ms" => {
            check_key(rest.next())?;
            let command = with_data(line, number(rest.next(), LENGTH_FIELD)?, limits)?;
            if rest.clone().nth(META_FLAGS_MAX).is_some() {
                let field = "flags of a memcached meta command";
                let max = META_FLAGS_MAX as u64;
                return Err(ProtocolError::AboveLimit { field, max, found: max + 1 });
            }
            with_meta_flags(MetaCommand::Set, rest, command)
        }
        b"md" => meta(MetaCommand::Delete, rest, control(line, ExpectedReply::Line)),
        b"ma" => meta(MetaCommand::Arithmetic, rest, control(line, ExpectedReply::Line)),
        b"mn" => with_meta_flags(MetaCommand::Noop, [].into_iter(), control(line, ExpectedReply::Line)),
        b"me" => with_meta_flags(MetaCommand::Debug, [].into_iter(), control(line, ExpectedReply::Line)),
        b"version" => control(line, ExpectedReply::Version),
        b"watch" => {
            let what = "memcached's watch";
            let remedy = "connect without the proxy";
            return Err(ProtocolError::Unsupported { what, remedy });
        }
        b"quit" => {
            let reply = ReplyExpectation::Never;
            MemcachedCommand { reply, ends_connection: true, ..control(line, ExpectedReply::Line) }
        }
        // Where it is allowed the server ends without an answer.
        b"shutdown" => {
            let reply = ReplyExpectation::Sometimes;
            MemcachedCommand { reply, ends_connection: true, ..control(line, ExpectedReply::Line) }
        }
        _ => {
            let reply = reply_to_control(command, rest.clone());
            MemcachedCommand { reply, ..control(line, list_or_line(command, rest)) }
        }
    })
}

/// What a command that neither reads nor writes is answered with.
fn list_or_line<'a>(command: &[u8], mut rest: impl Iterator<Item = &'a [u8]>) -> ExpectedReply {
    match (command, rest.next()) {
        // These are answered by one line without an end.
        (b"stats", Some(b"sizes_enable" | b"sizes_disable")) => ExpectedReply::Item(ListItem::Stat),
        (b"stats", _) => ExpectedReply::List(ListItem::Stat),
        (b"lru_crawler", Some(b"metadump")) => ExpectedReply::List(ListItem::Key),
        (b"lru_crawler", Some(b"mgdump")) => ExpectedReply::List(ListItem::Mg),
        _ => ExpectedReply::Line,
    }
}

/// Whether a command that neither reads nor writes is answered, which depends on the word `noreply`: some commands
/// look for it in their last word, whatever stands before it, and some never.
fn reply_to_control<'a>(
    command: &[u8],
    rest: impl DoubleEndedIterator<Item = &'a [u8]> + Clone,
) -> ReplyExpectation {
    if !rest.clone().any(|word| word == b"noreply") {
        return ReplyExpectation::Always;
    }
    let silent_counts = match command {
        b"delete" => 2..=3,
        b"incr" | b"decr" | b"touch" => 3..=3,
        b"verbosity" | b"flush_all" | b"cache_memlimit" => 1..=2,
        _ => return ReplyExpectation::Sometimes,
    };
    let is_silent = rest.clone().next_back() == Some(b"noreply") && silent_counts.contains(&rest.count());
    if is_silent { ReplyExpectation::Never } else { ReplyExpectation::Sometimes }
}

/// A command that is this line alone, and neither reads nor writes.
fn control(line: &[u8], expected: ExpectedReply) -> MemcachedCommand {
    let class = RequestClass::Control;
    let reply = ReplyExpectation::Always;
    let head = line.len();
    let len = line.len() as u64;
    MemcachedCommand { class, reply, expected, ends_connection: false, head, len }
}

/// A command that is this line alone and reads. How much it reads, only the reply shows.
fn read(line: &[u8], expected: ExpectedReply) -> MemcachedCommand {
    MemcachedCommand { class: RequestClass::Read(Bytes(0)), ..control(line, expected) }
}

fn check_key(word: Option<&[u8]>) -> Result<(), ProtocolError> {
    let field = "memcached storage command";
    let expected = "a key";
    let word = word.ok_or(ProtocolError::Line { field, expected })?;
    check_at_most(KEY_FIELD, KEY_LEN_MAX, word.len() as u64)?;
    Ok(())
}

/// Checks the keys of a retrieval command: at one that is too long memcached 1.6 also drops the replies to earlier
/// requests that it has not sent yet.
fn check_keys<'a>(line: &[u8], mut keys: impl Iterator<Item = &'a [u8]>) -> Result<(), ProtocolError> {
    // Most lines are too short for such a key.
    const SHORTEST_LEN: u64 = "get ".len() as u64 + KEY_LEN_MAX + 1;
    if line.len() as u64 <= SHORTEST_LEN { Ok(()) } else { keys.try_for_each(|key| check_key(Some(key))) }
}

/// A command with `<key> <flags> <exptime> <bytes>`, perhaps `<cas unique>` and `noreply`, and data. Where memcached
/// does not accept a word, or finds too few or too many, it takes the data for commands.
fn storage<'a>(
    line: &[u8],
    mut rest: impl Iterator<Item = &'a [u8]>,
    has_unique: bool,
    limits: &ParserLimits,
) -> Result<MemcachedCommand, ProtocolError> {
    check_key(rest.next())?;
    let field = "flags of a memcached value";
    check_at_most(field, u32::MAX.into(), number(rest.next(), field)?)?;
    let expiry = rest.next().map(|word| word.strip_prefix(b"-").unwrap_or(word));
    let field = "expiry time of a memcached value";
    let expected = "a number of seconds";
    if !expiry.is_some_and(|digits| digits.len() <= 18 && number(Some(digits), field).is_ok()) {
        return Err(ProtocolError::Line { field, expected });
    }
    let mut command = with_data(line, number(rest.next(), LENGTH_FIELD)?, limits)?;
    if has_unique {
        number(rest.next(), "unique number of a memcached value")?;
    }
    if rest.next() == Some(b"noreply") {
        command.reply = ReplyExpectation::Never;
    }
    let field = "memcached storage command";
    let expected = "at most one word behind its numbers";
    if rest.next().is_some() { Err(ProtocolError::Line { field, expected }) } else { Ok(command) }
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
    mut rest: impl Iterator<Item = &'a [u8]>,
    command: MemcachedCommand,
) -> MemcachedCommand {
    rest.next();
    with_meta_flags(name, rest, command)
}

/// The same command with the reply that a meta command with these flags has.
fn with_meta_flags<'a>(
    name: MetaCommand,
    flags: impl Iterator<Item = &'a [u8]>,
    mut command: MemcachedCommand,
) -> MemcachedCommand {
    let mut quiet = false;
    let mut opaque = None;
    for flag in flags {
        match flag {
            [b'q', ..] => quiet = true,
            [b'O', token @ ..] => opaque = Some(opaque_hash(token)),
            _ => {}
        }
    }
    if quiet {
        command.reply = ReplyExpectation::Sometimes;
    }
    command.expected = ExpectedReply::Meta { command: name, quiet, opaque };
    command
}

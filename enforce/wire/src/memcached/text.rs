//! Requests of text and meta commands.
//!
//! A line that memcached answers with an error is one request, and what follows it is the next line: memcached takes the
//! data of a refused storage command for commands. A proxy does not send such a line, whose reading may differ between
//! versions: it answers it itself (`OwnLine`), and sends numbers in odd spellings in the usual one.

use super::barrier::TEXT_BARRIER;
use super::command::MemcachedCommand;
use super::expected_reply::{ExpectedReply, ListItem, MetaCommand, OwnLine};
use super::key_list::KEY_LEN_MAX;
use super::line::{LooseNumber, loose_number, words};
use super::text_reply::opaque_hash;
use crate::fields::check_at_most;
use crate::{ProtocolError, ReplyExpectation, RequestClass, RequestRewrite};
use units::Bytes;

/// The most flags of a meta command. Behind an `ms` with more memcached takes the data for commands.
const META_FLAGS_MAX: usize = 16;
/// The largest length of a value, as memcached checks it.
const VALUE_LEN_MAX: u64 = i32::MAX as u64 - 2;
/// The longest line in bytes, except for those of `get` and `gets`, that memcached reads in whatever pieces it arrives.
const LINE_LEN_MAX: usize = 2048;

/// Reads lines, for an observer or a proxy.
#[derive(Debug, Clone, Copy)]
pub(super) struct LineReader {
    /// For a proxy, which may answer in place of the server.
    pub(super) mediates: bool,
}

impl LineReader {
    /// Reads the request that begins with this line; the line includes its end.
    pub(super) fn request(self, line: &[u8]) -> Result<MemcachedCommand, ProtocolError> {
        let Some(zero) = line.iter().position(|&byte| byte == 0) else { return self.whole_line(line) };
        // memcached does not see the rest of the line.
        let visible = [&line[..zero], b"\r\n"].concat();
        let mut command = self.whole_line(&visible)?;
        let rewrite = command.rewrite.take();
        let bytes = rewrite.map_or(visible, |rewrite| rewrite.bytes);
        command.len = command.len - command.head as u64 + line.len() as u64;
        command.head = line.len();
        let is_own = matches!(command.expected, ExpectedReply::OwnLine(_));
        let skip = if is_own { u64::MAX } else { line.len() as u64 };
        command.rewrite = self.mediates.then_some(RequestRewrite { skip, bytes });
        Ok(command)
    }

    fn whole_line(self, line: &[u8]) -> Result<MemcachedCommand, ProtocolError> {
        let mut rest = words(line);
        let command = rest.next().unwrap_or(b"");
        if !command.iter().all(u8::is_ascii_graphic) {
            if self.mediates {
                return Ok(self.refused(line, OwnLine::Error));
            }
            // This may be TLS, whose reply would be waited for without end.
            return Err(ProtocolError::Line { field: "memcached command", expected: "a word" });
        }
        if self.mediates && line.len() > LINE_LEN_MAX && retrieval_words(command).is_none() {
            return Ok(self.refused(line, OwnLine::TooLong));
        }
        Ok(match command {
            b"get" | b"gets" | b"gat" | b"gats" | b"bget" => return self.retrieval(line, rest),
            b"set" | b"add" | b"replace" | b"append" | b"prepend" => {
                independent(self.storage(line, rest, false))
            }
            b"cas" => independent(self.storage(line, rest, true)),
            b"mg" => independent(meta(MetaCommand::Get, rest, read(line, ExpectedReply::Line))),
            // Versions differ in how they go on behind an erroneous one.
            b"ms" => self.meta_set(line, rest),
            b"md" => independent(meta(MetaCommand::Delete, rest, control(line, ExpectedReply::Line))),
            b"ma" => independent(meta(MetaCommand::Arithmetic, rest, control(line, ExpectedReply::Line))),
            b"mn" => independent(with_meta_flags(
                MetaCommand::Noop,
                [].into_iter(),
                control(line, ExpectedReply::Line),
            )),
            b"me" => with_meta_flags(MetaCommand::Debug, [].into_iter(), control(line, ExpectedReply::Line)),
            b"version" => independent(control(line, ExpectedReply::Version)),
            b"delete" | b"incr" | b"decr" | b"touch" => {
                let reply = reply_to_control(command, rest);
                independent(MemcachedCommand { reply, ..control(line, ExpectedReply::Line) })
            }
            b"watch" if self.mediates => self.refused(line, OwnLine::Watch),
            b"watch" => {
                let what = "memcached's watch";
                let remedy = "connect without the proxy";
                return Err(ProtocolError::Unsupported { what, remedy });
            }
            b"quit" => {
                let reply = ReplyExpectation::Never;
                MemcachedCommand { reply, ends_connection: true, ..control(line, ExpectedReply::Line) }
            }
            // If it is allowed, the server ends without an answer.
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

    /// A line that memcached answers with an error.
    fn refused(self, line: &[u8], answer: OwnLine) -> MemcachedCommand {
        if self.mediates {
            let rewrite = Some(RequestRewrite { skip: u64::MAX, bytes: TEXT_BARRIER.to_vec() });
            return independent(MemcachedCommand {
                rewrite,
                ..control(line, ExpectedReply::OwnLine(answer))
            });
        }
        let is_silent = answer == OwnLine::Nothing;
        let reply = if is_silent { ReplyExpectation::Never } else { ReplyExpectation::Always };
        MemcachedCommand { reply, ..control(line, ExpectedReply::Line) }
    }

    /// A part of a list with a key that is too long: the answer to the list.
    pub(super) fn long_key(self) -> MemcachedCommand {
        self.refused(b"", OwnLine::BadLine)
    }

    /// A part of a list of keys, to be sent as this line.
    pub(super) fn keys(self, line: Vec<u8>, keys: u32) -> MemcachedCommand {
        let rewrite = Some(RequestRewrite { skip: u64::MAX, bytes: line });
        independent(MemcachedCommand { keys: keys.max(1), rewrite, ..read(b"", ExpectedReply::Values) })
    }

    /// A retrieval of any number of keys.
    fn retrieval<'a>(
        self,
        line: &[u8],
        rest: impl Iterator<Item = &'a [u8]> + Clone,
    ) -> Result<MemcachedCommand, ProtocolError> {
        let has_expiry = line.trim_ascii_start().starts_with(b"gat");
        let keys = rest.skip(usize::from(has_expiry));
        // Most lines are too short for such a key.
        let is_short = line.len() <= "get ".len() + KEY_LEN_MAX + 1;
        let longest = if is_short { 0 } else { keys.clone().map(<[u8]>::len).max().unwrap_or(0) };
        if longest > KEY_LEN_MAX {
            if self.mediates {
                return Ok(self.refused(line, OwnLine::BadLine));
            }
            // memcached 1.6 also drops the replies to earlier requests that it has not sent yet.
            let max = KEY_LEN_MAX as u64;
            check_at_most("memcached key in bytes", max, longest as u64)?;
        }
        let keys = u32::try_from(keys.count().max(1)).unwrap_or(u32::MAX);
        Ok(independent(MemcachedCommand { keys, ..read(line, ExpectedReply::Values) }))
    }

    /// A command with `<key> <flags> <exptime> <bytes>`, perhaps `<cas unique>` and `noreply`, and data.
    fn storage<'a>(
        self,
        line: &[u8],
        rest: impl DoubleEndedIterator<Item = &'a [u8]> + Clone,
        has_unique: bool,
    ) -> MemcachedCommand {
        let count = rest.clone().count();
        let least = if has_unique { 5 } else { 4 };
        if count < least || count > least + 1 {
            return self.refused(line, OwnLine::Error);
        }
        let is_silent = rest.clone().next_back() == Some(b"noreply");
        let error = if is_silent { OwnLine::Nothing } else { OwnLine::BadLine };
        let all = rest.clone();
        let mut rest = rest;
        if rest.next().is_none_or(|key| key.len() > KEY_LEN_MAX) {
            return self.refused(line, error);
        }
        let is_unsigned = |number: &LooseNumber| !number.is_negative || number.magnitude == 0;
        let is_i64 = |number: &LooseNumber| i64::try_from(number.magnitude).is_ok();
        let mut next_number = || rest.next().and_then(loose_number);
        let flags = next_number().filter(is_unsigned);
        let expiry = next_number().filter(is_i64);
        let len = next_number().filter(|len| is_unsigned(len) && len.magnitude <= VALUE_LEN_MAX);
        let unique = if has_unique { next_number().filter(|unique| !unique.is_negative) } else { len };
        let (Some(flags), Some(expiry), Some(len), Some(unique)) = (flags, expiry, len, unique) else {
            return self.refused(line, error);
        };
        let reply = if is_silent { ReplyExpectation::Never } else { ReplyExpectation::Always };
        let mut command = MemcachedCommand { reply, ..with_data(line, len.magnitude) };
        let numbers = [flags, expiry, len, unique];
        if self.mediates && numbers.iter().any(|number| !number.is_plain) {
            let numbers = &numbers[..least - 1];
            command.rewrite = Some(rewritten(line, all, 1, numbers));
        }
        command
    }

    fn meta_set<'a>(
        self,
        line: &[u8],
        mut rest: impl DoubleEndedIterator<Item = &'a [u8]> + Clone,
    ) -> MemcachedCommand {
        let all = rest.clone();
        let Some(key) = rest.next() else { return self.refused(line, OwnLine::Error) };
        let len = rest.next();
        if key.len() > KEY_LEN_MAX || len.is_none() {
            return self.refused(line, OwnLine::BadLine);
        }
        if rest.clone().nth(META_FLAGS_MAX).is_some() {
            return self.refused(line, OwnLine::TooManyFlags);
        }
        let len = len
            .and_then(loose_number)
            .filter(|len| (!len.is_negative || len.magnitude == 0) && len.magnitude <= VALUE_LEN_MAX);
        let Some(len) = len else { return self.refused(line, OwnLine::BadLine) };
        let mut command = with_data(line, len.magnitude);
        if self.mediates && !len.is_plain {
            command.rewrite = Some(rewritten(line, all, 1, &[len]));
        }
        with_meta_flags(MetaCommand::Set, rest, command)
    }
}

/// The words in front of the keys of a retrieval command; `None` for other commands.
pub(super) fn retrieval_words(command: &[u8]) -> Option<usize> {
    match command {
        b"get" | b"gets" | b"bget" => Some(1),
        b"gat" | b"gats" => Some(2),
        _ => None,
    }
}

/// The line with numbers in their usual spelling; they begin at this word behind the command.
fn rewritten<'a>(
    line: &[u8],
    rest: impl Iterator<Item = &'a [u8]>,
    first: usize,
    numbers: &[LooseNumber],
) -> RequestRewrite {
    let mut bytes = words(line).next().unwrap_or_default().to_vec();
    for (index, word) in rest.enumerate() {
        bytes.push(b' ');
        match index.checked_sub(first).and_then(|index| numbers.get(index)) {
            Some(number) => {
                let sign = if number.is_negative { "-" } else { "" };
                bytes.extend(format!("{sign}{}", number.magnitude).as_bytes());
            }
            None => bytes.extend(word),
        }
    }
    bytes.extend(b"\r\n");
    RequestRewrite { skip: line.len() as u64, bytes }
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
    MemcachedCommand {
        class,
        reply,
        expected,
        ends_connection: false,
        is_independent: false,
        keys: 1,
        rewrite: None,
        head,
        len,
    }
}

/// The same command, whose effect and reply do not depend on the connection.
fn independent(command: MemcachedCommand) -> MemcachedCommand {
    MemcachedCommand { is_independent: true, ..command }
}

/// A command that is this line alone and reads. How much it reads, only the reply shows.
fn read(line: &[u8], expected: ExpectedReply) -> MemcachedCommand {
    MemcachedCommand { class: RequestClass::Read(Bytes(0)), ..control(line, expected) }
}

/// A command whose line is followed by so many bytes of data and an end of line.
fn with_data(line: &[u8], bytes: u64) -> MemcachedCommand {
    let len = line.len() as u64 + bytes + 2;
    let class = RequestClass::Write(Bytes(bytes));
    MemcachedCommand { class, len, ..control(line, ExpectedReply::Line) }
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

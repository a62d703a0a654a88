//! The server's side of the protocol as functions of the bytes that came: what is asked for, and what to answer in
//! the handshake.

use wire::nbd::protocol::{
    EXPORT_NAME_ZEROES, FLAG_CAN_MULTI_CONN, FLAG_FIXED_NEWSTYLE, FLAG_HAS_FLAGS, FLAG_NO_ZEROES,
    FLAG_SEND_FLUSH, FLAG_SEND_FUA, FLAG_SEND_TRIM, FLAG_SEND_WRITE_ZEROES, GREETING_MAGIC, INFO_BLOCK_SIZE,
    INFO_EXPORT, OPT_ABORT, OPT_EXPORT_NAME, OPT_GO, OPT_INFO, OPT_LIST, OPTION_MAGIC, OPTION_REPLY_MAGIC,
    REP_ACK, REP_ERR_INVALID, REP_ERR_UNKNOWN, REP_ERR_UNSUP, REP_INFO, REP_SERVER, REQUEST_HEADER_LEN,
    REQUEST_MAGIC, SIMPLE_REPLY_MAGIC,
};

/// Transmission flags of every export. Several connections may be used at once, because they see one content.
const EXPORT_FLAGS: u16 = FLAG_HAS_FLAGS
    | FLAG_SEND_FLUSH
    | FLAG_SEND_FUA
    | FLAG_SEND_TRIM
    | FLAG_SEND_WRITE_ZEROES
    | FLAG_CAN_MULTI_CONN;
/// Data of an option; the longest legitimate ones name an export.
const OPTION_MAX: usize = 16 << 10;
/// Data of a command, as advertised.
pub(super) const PAYLOAD_MAX: u32 = 32 << 20;

/// A volume that clients may ask for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Up to 4096 bytes; a client that asks for the empty name gets the first export.
    pub name: String,
    /// In bytes, at most 2⁶² .
    pub size: u64,
}

/// How far a client's handshake has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Phase {
    /// The client's flags come next.
    Flags,
    /// Options come next.
    Options { no_zeroes: bool },
    /// Commands come next, for the export of this index.
    Commands(usize),
}

/// What was done with the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// Nothing: there is not enough of it yet.
    More,
    /// So many bytes were used, and this comes next.
    Used(usize, Phase),
    /// The client wants to end.
    Bye,
}

/// A command without its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Command {
    pub(super) kind: u16,
    pub(super) cookie: u64,
    pub(super) offset: u64,
    pub(super) len: u32,
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at + N)?.try_into().ok()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(u32::from_be_bytes)
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    array(bytes, at).map(u64::from_be_bytes)
}

/// What the server says first.
pub(super) fn greet(out: &mut Vec<u8>) {
    out.extend(GREETING_MAGIC.to_be_bytes());
    out.extend(OPTION_MAGIC.to_be_bytes());
    out.extend((FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes());
}

/// One step of the handshake: flags or an option.
///
/// # Errors
/// What is wrong with the input; the connection cannot go on.
pub(super) fn handshake(
    phase: Phase,
    input: &[u8],
    exports: &[Export],
    out: &mut Vec<u8>,
) -> Result<Step, String> {
    let Phase::Options { no_zeroes } = phase else {
        let Some(flags) = u32_at(input, 0) else { return Ok(Step::More) };
        let known = u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
        if flags & !known != 0 {
            return Err(format!("client flags {flags:#x}, expected 0 to 3"));
        }
        return Ok(Step::Used(4, Phase::Options { no_zeroes: flags & u32::from(FLAG_NO_ZEROES) != 0 }));
    };
    let (Some(magic), Some(option), Some(len)) = (u64_at(input, 0), u32_at(input, 8), u32_at(input, 12))
    else {
        return Ok(Step::More);
    };
    let end = 16 + usize::try_from(len).unwrap_or(usize::MAX - 16);
    if magic != OPTION_MAGIC || end > 16 + OPTION_MAX {
        return Err(format!(
            "option magic {magic:#x} with {len} bytes, expected IHAVEOPT and at most {OPTION_MAX}"
        ));
    }
    let Some(data) = input.get(16..end) else { return Ok(Step::More) };
    let next = match option {
        OPT_EXPORT_NAME => {
            let found = find(exports, data).ok_or("EXPORT_NAME asks for an export that is not here")?;
            out.extend(exports[found].size.to_be_bytes());
            out.extend(EXPORT_FLAGS.to_be_bytes());
            out.resize(out.len() + if no_zeroes { 0 } else { EXPORT_NAME_ZEROES }, 0);
            Phase::Commands(found)
        }
        OPT_ABORT => {
            reply(out, option, REP_ACK, &[]);
            return Ok(Step::Bye);
        }
        _ => answer(option, data, exports, out).map_or(phase, Phase::Commands),
    };
    Ok(Step::Used(end, next))
}

/// Answers an option that leaves the client asking, or the export that it got.
fn answer(option: u32, data: &[u8], exports: &[Export], out: &mut Vec<u8>) -> Option<usize> {
    match option {
        OPT_LIST if data.is_empty() => {
            for export in exports {
                reply(out, option, REP_SERVER, &[&length(export.name.len()), export.name.as_bytes()]);
            }
            reply(out, option, REP_ACK, &[]);
            None
        }
        OPT_LIST => {
            reply(out, option, REP_ERR_INVALID, &[]);
            None
        }
        OPT_INFO | OPT_GO => {
            let Some(name) = name_in(data) else {
                reply(out, option, REP_ERR_INVALID, &[]);
                return None;
            };
            let Some(found) = find(exports, name) else {
                reply(out, option, REP_ERR_UNKNOWN, &[]);
                return None;
            };
            let size = exports[found].size.to_be_bytes();
            reply(out, option, REP_INFO, &[&INFO_EXPORT.to_be_bytes(), &size, &EXPORT_FLAGS.to_be_bytes()]);
            let [least, preferred, most] = [1, 4096, PAYLOAD_MAX].map(u32::to_be_bytes);
            reply(out, option, REP_INFO, &[&INFO_BLOCK_SIZE.to_be_bytes(), &least, &preferred, &most]);
            reply(out, option, REP_ACK, &[]);
            (option == OPT_GO).then_some(found)
        }
        _ => {
            reply(out, option, REP_ERR_UNSUP, &[]);
            None
        }
    }
}

/// The name in the data of INFO and GO, where a count of wanted pieces of information follows it, which all are
/// given anyhow.
fn name_in(data: &[u8]) -> Option<&[u8]> {
    let len = usize::try_from(u32_at(data, 0)?).ok()?;
    let name = data.get(4..len.checked_add(4)?)?;
    let count = u16::from_be_bytes(array(data, 4 + len)?);
    (data.len() == 6 + len + 2 * usize::from(count)).then_some(name)
}

fn find(exports: &[Export], name: &[u8]) -> Option<usize> {
    let named = exports.iter().position(|export| export.name.as_bytes() == name);
    named.or_else(|| (name.is_empty() && !exports.is_empty()).then_some(0))
}

fn length(len: usize) -> [u8; 4] {
    u32::try_from(len).expect("names and replies to options are short").to_be_bytes()
}

fn reply(out: &mut Vec<u8>, option: u32, kind: u32, data: &[&[u8]]) {
    out.extend(OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend(option.to_be_bytes());
    out.extend(kind.to_be_bytes());
    out.extend(length(data.iter().map(|part| part.len()).sum()));
    data.iter().for_each(|part| out.extend_from_slice(part));
}

/// The command at the head of the input; none if not all of its head is there.
///
/// # Errors
/// What is wrong with it.
pub(super) fn command(input: &[u8]) -> Result<Option<Command>, String> {
    let Some(head) = input.get(..REQUEST_HEADER_LEN) else { return Ok(None) };
    let magic = u32_at(head, 0).unwrap_or(0);
    if magic != REQUEST_MAGIC {
        return Err(format!("request magic {magic:#x}, expected {REQUEST_MAGIC:#x}"));
    }
    let kind = u16::from_be_bytes(array(head, 6).unwrap_or_default());
    let (cookie, offset) = (u64_at(head, 8).unwrap_or(0), u64_at(head, 16).unwrap_or(0));
    Ok(Some(Command { kind, cookie, offset, len: u32_at(head, 24).unwrap_or(0) }))
}

/// A simple reply without its data.
pub(super) fn simple(out: &mut Vec<u8>, error: u32, cookie: u64) {
    out.extend(SIMPLE_REPLY_MAGIC.to_be_bytes());
    out.extend(error.to_be_bytes());
    out.extend(cookie.to_be_bytes());
}

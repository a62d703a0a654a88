//! The server's side of the NBD handshake, as a function of the bytes that a client sent.
//!
//! Fixed newstyle only: the server greets, the client sends its flags and then options until one of them chooses an
//! export. Numbers and their meaning are those of the NBD protocol document.

use super::command::{PAYLOAD_MAX, array_at, u32_at, u64_at};
use super::config::ExportedVolume;
use wire::nbd::protocol::{
    EXPORT_NAME_ZEROES, FLAG_CAN_MULTI_CONN, FLAG_FIXED_NEWSTYLE, FLAG_HAS_FLAGS, FLAG_NO_ZEROES,
    FLAG_SEND_FLUSH, FLAG_SEND_FUA, FLAG_SEND_TRIM, FLAG_SEND_WRITE_ZEROES, GREETING_MAGIC, INFO_BLOCK_SIZE,
    INFO_EXPORT, OPT_ABORT, OPT_EXPORT_NAME, OPT_GO, OPT_INFO, OPT_LIST, OPTION_HEADER_LEN, OPTION_MAGIC,
    OPTION_REPLY_MAGIC, REP_ACK, REP_ERR_INVALID, REP_ERR_UNKNOWN, REP_ERR_UNSUP, REP_INFO, REP_SERVER,
};

/// The transmission flags of every export. Clients may use several connections at once, because all connections see
/// the same content.
const EXPORT_FLAGS: u16 = FLAG_HAS_FLAGS
    | FLAG_SEND_FLUSH
    | FLAG_SEND_FUA
    | FLAG_SEND_TRIM
    | FLAG_SEND_WRITE_ZEROES
    | FLAG_CAN_MULTI_CONN;
/// The largest data of an option, in bytes; the longest legitimate ones name an export.
const OPTION_DATA_MAX: usize = 16 << 10;
/// Advertised block size at which reads and writes are fastest: a page.
const PREFERRED_BLOCK_SIZE: u32 = 4096;

/// State of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NegotiationPhase {
    /// The client's handshake flags.
    ClientFlags,
    /// Options, until one of them chooses an export.
    Options {
        /// True if both sides agreed to omit the zeroes at the end of the answer to EXPORT_NAME.
        no_zeroes: bool,
    },
    /// Commands for the export with this index: the handshake is complete.
    Commands(usize),
}

/// Result of one step of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NegotiationStep {
    /// The next message is not complete yet; no byte was used.
    NeedMore,
    /// This many bytes were used, and this phase follows.
    Used(usize, NegotiationPhase),
    /// The client asked to end the connection.
    Abort,
}

/// Appends the greeting of the server.
pub(super) fn write_greeting(out: &mut Vec<u8>) {
    out.extend(GREETING_MAGIC.to_be_bytes());
    out.extend(OPTION_MAGIC.to_be_bytes());
    out.extend((FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES).to_be_bytes());
}

/// Reads the client's flags or one option at the head of the input, and appends the answer to `out`.
///
/// # Errors
/// If the input violates the protocol; the connection must be closed.
pub(super) fn negotiate(
    phase: NegotiationPhase,
    input: &[u8],
    exports: &[ExportedVolume],
    out: &mut Vec<u8>,
) -> Result<NegotiationStep, String> {
    let NegotiationPhase::Options { no_zeroes } = phase else { return client_flags(input) };
    let (Some(magic), Some(option), Some(len)) = (u64_at(input, 0), u32_at(input, 8), u32_at(input, 12))
    else {
        return Ok(NegotiationStep::NeedMore);
    };
    let end = OPTION_HEADER_LEN + usize::try_from(len).unwrap_or(usize::MAX - OPTION_HEADER_LEN);
    if magic != OPTION_MAGIC || end > OPTION_HEADER_LEN + OPTION_DATA_MAX {
        return Err(format!(
            "option magic {magic:#x} with {len} bytes, expected IHAVEOPT and at most {OPTION_DATA_MAX}"
        ));
    }
    let Some(data) = input.get(OPTION_HEADER_LEN..end) else { return Ok(NegotiationStep::NeedMore) };
    let next = match option {
        OPT_EXPORT_NAME => {
            let index = find_export(exports, data).ok_or("EXPORT_NAME asks for an unknown export")?;
            out.extend(exports[index].size.to_be_bytes());
            out.extend(EXPORT_FLAGS.to_be_bytes());
            out.resize(out.len() + if no_zeroes { 0 } else { EXPORT_NAME_ZEROES }, 0);
            NegotiationPhase::Commands(index)
        }
        OPT_ABORT => {
            write_option_reply(out, option, REP_ACK, &[]);
            return Ok(NegotiationStep::Abort);
        }
        _ => answer_option(option, data, exports, out).map_or(phase, NegotiationPhase::Commands),
    };
    Ok(NegotiationStep::Used(end, next))
}

fn client_flags(input: &[u8]) -> Result<NegotiationStep, String> {
    let Some(flags) = u32_at(input, 0) else { return Ok(NegotiationStep::NeedMore) };
    let known = u32::from(FLAG_FIXED_NEWSTYLE | FLAG_NO_ZEROES);
    if flags & !known != 0 {
        return Err(format!("client flags {flags:#x}, expected 0 to 3"));
    }
    let no_zeroes = flags & u32::from(FLAG_NO_ZEROES) != 0;
    Ok(NegotiationStep::Used(4, NegotiationPhase::Options { no_zeroes }))
}

/// Answers an option other than EXPORT_NAME and ABORT. Returns the index of the export if the option chose one.
fn answer_option(option: u32, data: &[u8], exports: &[ExportedVolume], out: &mut Vec<u8>) -> Option<usize> {
    match option {
        OPT_LIST if data.is_empty() => {
            for export in exports {
                let name = export.name.as_bytes();
                write_option_reply(out, option, REP_SERVER, &[&length_field(name.len()), name]);
            }
            write_option_reply(out, option, REP_ACK, &[]);
            None
        }
        OPT_INFO | OPT_GO => {
            let index = answer_info(option, data, exports, out)?;
            (option == OPT_GO).then_some(index)
        }
        OPT_LIST => {
            write_option_reply(out, option, REP_ERR_INVALID, &[]);
            None
        }
        _ => {
            write_option_reply(out, option, REP_ERR_UNSUP, &[]);
            None
        }
    }
}

/// Answers INFO or GO. Returns the index of the requested export, if it exists.
fn answer_info(option: u32, data: &[u8], exports: &[ExportedVolume], out: &mut Vec<u8>) -> Option<usize> {
    let Some(name) = export_name(data) else {
        write_option_reply(out, option, REP_ERR_INVALID, &[]);
        return None;
    };
    let Some(index) = find_export(exports, name) else {
        write_option_reply(out, option, REP_ERR_UNKNOWN, &[]);
        return None;
    };
    let size = exports[index].size.to_be_bytes();
    let flags = EXPORT_FLAGS.to_be_bytes();
    write_option_reply(out, option, REP_INFO, &[&INFO_EXPORT.to_be_bytes(), &size, &flags]);
    let [least, preferred, most] = [1, PREFERRED_BLOCK_SIZE, PAYLOAD_MAX].map(u32::to_be_bytes);
    write_option_reply(out, option, REP_INFO, &[&INFO_BLOCK_SIZE.to_be_bytes(), &least, &preferred, &most]);
    write_option_reply(out, option, REP_ACK, &[]);
    Some(index)
}

/// Returns the name in the data of INFO and GO. The list of requested information that follows is ignored:
/// every client gets all of it.
fn export_name(data: &[u8]) -> Option<&[u8]> {
    let len = usize::try_from(u32_at(data, 0)?).ok()?;
    let name = data.get(4..len.checked_add(4)?)?;
    let count = u16::from_be_bytes(array_at(data, 4 + len)?);
    (data.len() == 6 + len + 2 * usize::from(count)).then_some(name)
}

fn find_export(exports: &[ExportedVolume], name: &[u8]) -> Option<usize> {
    let named = exports.iter().position(|export| export.name.as_bytes() == name);
    named.or_else(|| (name.is_empty() && !exports.is_empty()).then_some(0))
}

fn length_field(len: usize) -> [u8; 4] {
    u32::try_from(len).expect("names and replies to options are short").to_be_bytes()
}

/// Appends a reply to an option: its data are the concatenation of these parts.
fn write_option_reply(out: &mut Vec<u8>, option: u32, reply_type: u32, parts: &[&[u8]]) {
    out.extend(OPTION_REPLY_MAGIC.to_be_bytes());
    out.extend(option.to_be_bytes());
    out.extend(reply_type.to_be_bytes());
    out.extend(length_field(parts.iter().map(|part| part.len()).sum()));
    for part in parts {
        out.extend_from_slice(part);
    }
}

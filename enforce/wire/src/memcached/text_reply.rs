//! Lines of replies to text and meta commands.

use super::expected_reply::{ListItem, MemcachedReply, MetaCode, ReplyKind};
use super::line::{number, words};
use crate::fields::check_at_most;
use crate::hash::Fnv1a;
use crate::{ParserLimits, ProtocolError};
use std::num::NonZeroU64;

/// Reads a reply, or part of a reply, that begins with this line; the line includes its end.
pub(super) fn read(line: &[u8], limits: &ParserLimits) -> Result<MemcachedReply, ProtocolError> {
    let mut rest = words(line);
    let first_word = rest.next().unwrap_or(b"");
    let mut data_len = None;
    let kind = match first_word {
        b"VALUE" => {
            data_len = Some(number(rest.nth(2), "length in a VALUE line")?);
            ReplyKind::Value
        }
        b"VA" => {
            data_len = Some(number(rest.next(), "length in a VA line")?);
            ReplyKind::Meta(MetaCode::Va, opaque_in(rest))
        }
        b"HD" => ReplyKind::Meta(MetaCode::Hd, opaque_in(rest)),
        b"EN" => ReplyKind::Meta(MetaCode::En, opaque_in(rest)),
        b"NS" => ReplyKind::Meta(MetaCode::Ns, opaque_in(rest)),
        b"EX" => ReplyKind::Meta(MetaCode::Ex, opaque_in(rest)),
        b"NF" => ReplyKind::Meta(MetaCode::Nf, opaque_in(rest)),
        b"MN" => ReplyKind::Meta(MetaCode::Mn, None),
        b"ME" => ReplyKind::Meta(MetaCode::Me, None),
        b"END" => ReplyKind::End,
        b"VERSION" => ReplyKind::Version,
        b"STAT" | b"ITEM" | b"PREFIX" => ReplyKind::ListItem(ListItem::Stat),
        b"mg" => ReplyKind::ListItem(ListItem::Mg),
        b"ERROR" | b"ERROR:" | b"CLIENT_ERROR" | b"SERVER_ERROR" => ReplyKind::Error,
        word if word.starts_with(b"key=") => ReplyKind::ListItem(ListItem::Key),
        _ => ReplyKind::OtherLine,
    };
    let data_len = match data_len {
        // Data are followed by an end of line.
        Some(bytes) => check_at_most("memcached value in bytes", limits.message.0, bytes)? + 2,
        None => 0,
    };
    let head = line.len();
    let len = line.len() as u64 + data_len;
    Ok(MemcachedReply { kind, is_error: kind == ReplyKind::Error, head, len })
}

/// The hash of the opaque value among the flags of a reply.
fn opaque_in<'a>(mut flags: impl Iterator<Item = &'a [u8]>) -> Option<NonZeroU64> {
    flags.find_map(|flag| flag.strip_prefix(b"O")).map(opaque_hash)
}

/// The hash of an opaque value, as requests and replies have it.
pub(super) fn opaque_hash(value: &[u8]) -> NonZeroU64 {
    NonZeroU64::new(Fnv1a::hash_of(value)).unwrap_or(NonZeroU64::MIN)
}
